"""Locks and reads rows in memory, one function for each scope.

`convergence.db.statements.loading.load` does the same with a database.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from convergence.core.effects import DeleteResource, DoubtParents, Effect, UpdateResource
from convergence.core.handoff import Handoff
from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Resource, Stack
from convergence.core.upwards import is_awaited
from convergence.core.views import FinishView, NodeView, PlanView, SignalView
from convergence.db.scopes import (
    UNDONE,
    HeldResource,
    LastNode,
    NewStack,
    OneNode,
    OneReplacement,
    Scope,
    SeveralStacks,
    SignalledResource,
    StackAlone,
    ViewT,
    WholeStack,
)
from convergence.db.stale_reads import (
    MANY_LEFTOVERS,
    SeenNode,
    awaits_end,
    held_row,
    needs_rivals,
    only_follower,
    require_lock,
    row_and_node,
    waits_for,
)
from convergence.db.transaction import Missing
from convergence.errors import Conflict
from convergence.values import replace
from convergence_simulator.memory.look import Look


def load(look: Look, scope: Scope[ViewT]) -> ViewT:
    """Lock and read the rows of a scope.

    :returns: the scope's view.
    :raises Missing: a row that the scope names does not exist.
    :raises Conflict: a row changed between reading and locking.
    """
    view: ViewT = _LOADERS[type(scope)](look, scope)
    return view


def _lock_row(look: Look, resource_id: str, *, waits: bool = True) -> Resource | None:
    """Lock and read a resource row in one statement."""
    row: Resource | None = look.lock('resource', resource_id, waits=waits)
    look.over()
    return row


def _lock_parent(look: Look, resource_id: str | None) -> Resource | None:
    return _lock_row(look, resource_id) if resource_id is not None else None


def _new_stack(look: Look, scope: NewStack) -> PlanView:
    if scope.parent_resource_id is not None:
        parent = _lock_parent(look, scope.parent_resource_id)
        return PlanView(look.now(), None, parent=parent, around=_around(look, parent, scope.handoff))
    look.lock_project(scope.project_id)
    look.over()
    living = [row for row in look.tables.stack.values() if row.deleted_at is None and row.parent_id is None]
    return PlanView(look.now(), None, stack_count=sum(row.project_id == scope.project_id for row in living))


def _stack_alone(look: Look, scope: StackAlone) -> PlanView:
    alone = _stack_and_traversal(look, scope.stack_id)
    return replace(alone, parent=_lock_parent(look, scope.parent_resource_id))


def _stack_and_traversal(look: Look, stack_id: str) -> PlanView:
    stack = look.lock('stack', stack_id)
    look.over()
    if stack is None:
        raise Missing
    traversal = look.tables.traversal.get(stack.traversal_id or '')
    return PlanView(look.now(), stack, traversal)


def _whole_stack(look: Look, scope: WholeStack) -> PlanView:
    alone = _stack_and_traversal(look, scope.stack_id)
    for row in look.tables.resources_of(scope.stack_id):
        look.lock('resource', row.id)
    parent = _lock_parent(look, scope.parent_resource_id)
    assert alone.stack is not None
    traversal = look.tables.traversal.get(alone.stack.traversal_id or '')
    resources = tuple(look.tables.resources_of(scope.stack_id))
    around = _around(look, parent, scope.handoff)
    return replace(alone, traversal=traversal, resources=resources, parent=parent, around=around)


def _several_stacks(look: Look, scope: SeveralStacks) -> tuple[PlanView | None, ...]:
    wholes = [each.stack_id for each in scope.scopes if isinstance(each, WholeStack)]
    for stack_id in sorted(wholes):
        look.lock('stack', stack_id)
    for key in sorted(row.id for stack_id in wholes for row in look.tables.resources_of(stack_id)):
        look.lock('resource', key)
    for key in sorted(each.parent_resource_id or '' for each in scope.scopes):
        look.lock('resource', key)
    look.over()
    return tuple(_one_of_several(look, each) for each in scope.scopes)


def _one_of_several(look: Look, scope: NewStack | WholeStack) -> PlanView | None:
    parent = look.tables.resource.get(scope.parent_resource_id or '')
    stack = look.tables.stack.get((parent.token or '') if parent is not None else '')
    around = _around(look, parent, scope.handoff)
    held = around.node if around is not None else None
    if parent is None or held is None or held.resource_id != parent.id:
        return None
    if (stack.id if stack is not None else None) != (scope.stack_id if isinstance(scope, WholeStack) else None):
        return None
    if stack is None:
        return PlanView(look.now(), None, parent=parent, around=around)
    traversal = look.tables.traversal.get(stack.traversal_id or '')
    resources = tuple(look.tables.resources_of(stack.id))
    return PlanView(look.now(), stack, traversal, resources, parent=parent, around=around)


def _one_node(look: Look, scope: OneNode) -> NodeView:
    read_node = partial(look.node, scope.traversal_id, scope.number)

    def lock_and_read() -> tuple[Resource | None, SeenNode]:
        seen = look.nodes(scope.traversal_id).get(scope.number)
        row = _lock_row(look, seen.resource_id or '' if seen is not None else '', waits=scope.waits)
        if row is None and not scope.waits:
            raise Missing
        return row, read_node()

    resource, seen = row_and_node(lock_and_read, partial(_lock_row, look), read_node)
    node, nodes = seen.node, look.nodes(scope.traversal_id)
    required = [nodes[number] for number in node.requires]
    inputs = {other.name: other.output for other in required if other.name and other.output}
    chosen_id = resource.id if resource is not None and seen.is_chosen else None
    size = 0
    if scope.max_input_bytes is not None:
        size = sum(len(json.dumps(output.document())) for output in inputs.values())
        inputs = {} if size > scope.max_input_bytes else inputs
    view = NodeView(seen.now, node, seen.traversal, seen.stack, resource, inputs, size, chosen_id=chosen_id)
    if resource is None or not needs_rivals(resource, node):
        return view
    rows = look.tables.resources_of(resource.stack_id)
    rivals = tuple(row for row in rows if row.name == resource.name and row.id != resource.id)
    return replace(view, rivals=rivals)


def _one_replacement(look: Look, scope: OneReplacement) -> NodeView:
    held = look.lock('stack', scope.stack_id)
    look.over()
    locked = look.lock('resource', scope.resource_id)
    seen = look.node(scope.traversal_id, scope.number)
    require_lock(held, seen.stack)
    resource = locked if seen.node.resource_id == scope.resource_id else None
    has_cleanup = any(
        other.phase is Phase.CLEANUP and other.resource_id == scope.resource_id
        for other in look.nodes(scope.traversal_id).values()
    )
    return NodeView(seen.now, seen.node, seen.traversal, seen.stack, resource, has_cleanup=has_cleanup)


def _last_node(look: Look, scope: LastNode) -> NodeView:
    traversal_seen = look.tables.traversal.get(scope.traversal_id)
    held = look.lock('stack', traversal_seen.stack_id) if traversal_seen is not None else None
    look.over()
    seen = look.node(scope.traversal_id, scope.number)
    node, traversal, stack = seen.node, seen.traversal, seen.stack
    require_lock(held, stack)
    last = only_follower(node, traversal, look.nodes(traversal.id).get(traversal.complete_number))
    leftovers: tuple[str, ...] = ()
    if node.phase is Phase.IN_SERVICE and last is None and traversal.template_id is not None:
        goal = look.tables.template.get(traversal.template_id)
        rows = look.tables.resources_of(stack.id)
        leftovers = tuple(sorted(row.name for row in (rows if goal is None else goal.others(rows))))[:MANY_LEFTOVERS]
    late: tuple[int, ...] = ()
    if node.phase is Phase.IN_SERVICE:
        nodes = look.nodes(traversal.id)
        late = tuple(number for number in traversal.late_numbers if nodes[number].status is NodeStatus.WAITING)
    around = _awaiting(look, awaits_end(node, last, traversal, stack), stack.id, traversal.id)
    return NodeView(seen.now, node, traversal, stack, leftovers=leftovers, last=last, late=late, around=around)


def _awaiting(look: Look, resource_id: str | None, stack_id: str, traversal_id: str) -> FinishView | None:
    row = _lock_parent(look, resource_id)
    if row is None or not is_awaited(row, stack_id, traversal_id):
        return None
    stack = look.tables.stack[row.stack_id]
    traversal = look.tables.traversal.get(stack.traversal_id or '')
    if traversal is None:
        return None
    nodes = sorted(look.nodes(traversal.id).items())
    ready = (node for _, node in nodes if node.resource_id == row.id and node.status is NodeStatus.READY)
    return FinishView(look.now(), row, next(ready, None), traversal, stack)


def _held_resource(look: Look, scope: HeldResource) -> FinishView:
    resource = held_row(partial(_lock_row, look), scope)
    if resource is None:
        return FinishView(look.now(), None, None, None, None)
    return _held_for(look, resource, scope.traversal_id, scope.number)


def _around(look: Look, parent: Resource | None, handoff: Handoff | None) -> FinishView | None:
    return None if parent is None or handoff is None else _held_for(look, parent, *handoff.claimed_for)


def _held_for(look: Look, resource: Resource, traversal_id: str | None, held_number: int | None) -> FinishView:
    stack = look.tables.stack[resource.stack_id]
    traversal = look.tables.traversal.get(traversal_id or '')
    node = look.nodes(traversal_id or '').get(-1 if held_number is None else held_number)
    waiting: tuple[tuple[str, int], ...] = ()
    if stack.traversal_id is not None and stack.traversal_id != traversal_id:
        waiting = tuple(
            (other.traversal_id, number)
            for number, other in sorted(look.nodes(stack.traversal_id).items())
            if waits_for(other, resource)
        )
    return FinishView(look.now(), resource, node, traversal, stack, waiting)


def lock_written(look: Look, effects: Iterable[Effect]) -> None:
    """Lock resource rows that are written but were not read, as a database does when it writes."""
    for effect in effects:
        if isinstance(effect, UpdateResource | DeleteResource):
            look.lock('resource', effect.resource_id)


def lock_doubted(look: Look, effects: Iterable[Effect]) -> None:
    """Lock the parent rows of a nested stack upwards, because the commit invalidates their digests."""
    for effect in effects:
        key: str | None = effect.resource_id if isinstance(effect, DoubtParents) else None
        while key is not None and (row := look.lock('resource', key)) is not None:
            key = look.tables.stack[row.stack_id].parent_resource_id


def _signalled(look: Look, scope: SignalledResource) -> SignalView:
    def dependents(stack: Stack) -> set[str]:
        nodes = look.nodes(stack.traversal_id or '')
        told = {
            number
            for node in nodes.values()
            for number in node.required_by
            if node.phase is Phase.UPDATE and node.resource_id == scope.resource_id
        }
        reading = [nodes[number] for number in told if number in nodes and nodes[number].phase is Phase.UPDATE]
        return {each.resource_id for each in reading if each.resource_id and each.status in UNDONE}

    seen = look.tables.stack.get(scope.stack_id)
    if seen is None:
        raise Missing
    built_on = dependents(seen)
    look.over()
    rows = sorted({scope.resource_id, *built_on})
    for key in rows:
        look.lock('resource', key)
    stack = look.tables.stack[scope.stack_id]
    if stack.traversal_id != seen.traversal_id:
        raise Conflict(f'stack {scope.stack_id} has another traversal now')
    ready = tuple(
        (node.traversal_id, number, node.resource_id)
        for number, node in sorted(look.nodes(stack.traversal_id or '').items())
        if node.status is NodeStatus.READY and node.resource_id in rows
    )
    resource = look.tables.resource.get(scope.resource_id)
    traversal = look.tables.traversal.get(stack.traversal_id or '')
    received = sum(
        len(json.dumps(each.details))
        for each in look.tables.signal
        if each.resource_id == scope.resource_id and each.details is not None
    )
    return SignalView(look.now(), stack, resource, traversal, tuple(sorted(built_on)), ready, received)


_LOADERS: dict[type, Callable[[Look, Any], Any]] = {
    NewStack: _new_stack,
    StackAlone: _stack_alone,
    WholeStack: _whole_stack,
    SeveralStacks: _several_stacks,
    OneNode: _one_node,
    OneReplacement: _one_replacement,
    LastNode: _last_node,
    HeldResource: _held_resource,
    SignalledResource: _signalled,
}
