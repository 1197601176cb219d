"""Requests of a user that set no goal: signals, hooks, snapshots, abandoning and adopting stacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.rows import Resource
from convergence_simulator.cloud.sorts import WITHOUT_ID, Listener
from convergence_simulator.scenarios.language import QueuedCall
from convergence_simulator.scenarios.templates import Template, type_name_of
from convergence_simulator.world.place import AnEngine, WatchedPlace
from convergence_simulator.world.world import PROJECT, Context

if TYPE_CHECKING:
    from convergence_simulator.runs.user import User

TOO_LATE = (
    errors.NotSupported,
    errors.EntityNotFound,
    errors.Invalid,
    errors.InvalidBreakPointHook,
    errors.ResourceNotAvailable,
)
"""Answers of an engine if the state of the stack no longer allows the request."""


def request(user: User, engine: AnEngine, call: QueuedCall) -> None:
    """Send a request to an engine. A refused request changes nothing: it came too early or too late.

    :raises RetryLater: the engine cannot do it now.
    """
    name = call.arguments[0]
    if name not in user.ids:
        return
    identity, parts = user.identity(name), engine.parts
    with suppress(*TOO_LATE):
        match call.verb:
            case 'signal':
                parts.signals.resource_signal(Context(), identity, call.arguments[1], {'said': 'go on'})
            case 'clear_hook':
                _, resource, hook = call.arguments
                parts.signals.resource_signal(Context(), identity, resource, {'unset_hook': hook})
            case 'snapshot_stack':
                if not call.again or user.stack(name).action is not Action.SNAPSHOT:
                    parts.snapshots.stack_snapshot(Context(), identity)
            case 'restore_stack':
                _restore(user, engine, name)
            case 'delete_snapshot':
                for snapshot in user.world.snapshots.of_stack(user.ids[name])[-1:]:
                    parts.snapshots.delete_snapshot(Context(), identity, snapshot.id)
            case 'abandon_stack':
                _abandon(user, engine, name)
            case 'adopt_stack':
                _adopt(user, engine, name)
            case _:
                raise AssertionError(f'unknown verb {call.verb}')


def _restore(user: User, engine: AnEngine, name: str) -> None:
    complete = [
        each
        for each in user.world.snapshots.of_stack(user.ids[name])
        if each.status is Status.COMPLETE and not each.deleting
    ]
    if complete:
        engine.parts.snapshots.stack_restore(Context(), user.identity(name), complete[-1].id)
        content = complete[-1].content
        assert isinstance(content['template'], dict)
        assert isinstance(content['environment'], dict)
        user.wants(name, Template.from_document(content['template'], content['environment']))


def _abandon(user: User, engine: AnEngine, name: str) -> None:
    stack = user.stack(name)
    traversal = user.world.store.tables.traversal.get(stack.traversal_id or '')
    if traversal is not None and traversal.retains:
        user.wants(name, None)  # the first request succeeded, but the engine died before it answered
        return
    goal = user.stacks[name].goal
    is_whole = stack.status is Status.COMPLETE and stack.action in (Action.CREATE, Action.UPDATE)
    if is_whole and goal is not None and all(type_name_of(kind) not in WITHOUT_ID for kind in _kinds(goal)):
        # The export is saved before the request, because the engine may die before it answers.
        user.left[name] = (engine.parts.abandonment.export_stack(Context(), user.identity(name)), goal)
    engine.parts.abandonment.abandon_stack(Context(), user.identity(name))
    user.wants(name, None)


def _kinds(template: Template) -> Iterator[str]:
    """Yield the kinds of all resources, on every level."""
    for each in template.resources.values():
        yield each.kind
        yield from _kinds(each.nested) if each.nested is not None else ()


def _adopt(user: User, engine: AnEngine, name: str) -> None:
    """Adopt the objects of an abandoned stack, if the stack was complete.

    An adopted object is assumed to match the template, which names it by its id.
    """
    if name not in user.left or user.stack(name).deleted_at is None:
        return
    data, goal = user.left[name]
    arguments = {**user.arguments(name), 'adopt_stack_data': data}
    try:
        user.ids[name] = engine.parts.stacks.create_stack(Context(), name, None, args=arguments)['stack_id']
    except errors.StackExists:
        existing = user.world.reader.stack_named(PROJECT, name)
        if existing is None:
            raise
        user.ids[name] = existing.id
    user.left.pop(name)
    user.wants(name, goal)


def waiting(world: WatchedPlace) -> list[tuple[str, Resource, str]]:
    """Return the resources that wait for a user: name of the stack, row, and the hook; an empty hook for a signal."""
    found: list[tuple[str, Resource, str]] = []
    for row in world.store.tables.resource.values():
        stack = world.store.tables.stack[row.stack_id]
        if stack.status is not Status.IN_PROGRESS:
            continue
        hook = row.waits_at(stack.traversal_id or '')
        listens = row.type == Listener.type_name and row.owner is None and (row.progress or {}).get('listens')
        if hook:
            found.append((stack.name, row, hook.value))
        elif listens and not any(signal.resource_id == row.id for signal in world.store.tables.signal):
            found.append((stack.name, row, ''))
    return found
