"""Inputs from outside a stack to a resource: a signal, a cleared hook, or an event of its object.

These decisions do not wait for the worker that has claimed the row, and they change no column that this worker writes.
"""

from __future__ import annotations

from collections.abc import Callable

from convergence.core.effects import (
    ClearHook,
    CountEvent,
    Decision,
    Effect,
    InsertEvents,
    InsertSignal,
    RevokeAddresses,
)
from convergence.core.model import Action, Hook, Json, Status, TraversalStatus
from convergence.core.rows import Event, ReceivedSignal, Resource
from convergence.core.views import SignalView


def receive(
    view: SignalView, signal_id: str | None, details: Json, reason: str, new_id: Callable[[], str]
) -> Decision[bool]:
    """Store a signal, and wake the resource and its dependents, which may wait for it.

    :param signal_id: id of the stored signal; None: the content of the signal is not stored.
    :param details: content of the signal.
    :param reason: text of the event.
    :returns: a decision whose verdict is True if the resource still exists.
    """
    resource = view.resource
    if resource is None:
        return Decision(False)
    kept = () if signal_id is None else (ReceivedSignal(signal_id, resource.stack_id, resource.id, view.now, details),)
    told = (resource.id, *view.dependents)
    effects: tuple[Effect, ...] = (
        *(InsertSignal(signal) for signal in kept),
        *(CountEvent(resource_id) for resource_id in sorted(told)),
        InsertEvents((_event(view, resource, Action.SIGNAL, reason, new_id),)),
    )
    return Decision(True, effects, _woken(view))


def revoke(view: SignalView, revocation: str, new_id: Callable[[], str]) -> Decision[bool]:
    """Revoke every signal address of a row.

    :param revocation: a new random text that the signatures of all later addresses cover.
    :returns: a decision whose verdict is True if the row still exists.
    """
    resource = view.resource
    if resource is None:
        return Decision(False)
    event = _event(view, resource, Action.SIGNAL, 'All signal addresses are revoked', new_id)
    return Decision(True, (RevokeAddresses(resource.id, revocation), InsertEvents((event,))))


def clear(view: SignalView, hook: Hook, new_id: Callable[[], str]) -> Decision[bool]:
    """Clear a hook, so that the row that is paused there continues.

    :returns: a decision whose verdict is True if the row was paused at that hook.
    """
    resource, traversal = view.resource, view.traversal
    if resource is None or traversal is None or traversal.status is not TraversalStatus.RUNNING:
        return Decision(False)
    if resource.waits_at(traversal.id) is not hook:
        return Decision(False)
    event = _event(view, resource, resource.action, f'Hook {hook} is cleared', new_id)
    return Decision(True, (ClearHook(resource.id, hook, traversal.id), InsertEvents((event,))), _woken(view, resource))


def stir(view: SignalView) -> Decision[bool]:
    """Handle an event of the object of a row: if an action on it is in progress, wake the row so that it is polled.

    :returns: a decision whose verdict is True if an action is in progress.
    """
    resource = view.resource
    if resource is None or resource.status is not Status.IN_PROGRESS:
        return Decision(False)
    return Decision(True, (CountEvent(resource.id),), _woken(view, resource))


def _woken(view: SignalView, only: Resource | None = None) -> tuple[tuple[str, int], ...]:
    return tuple(
        (traversal_id, number)
        for traversal_id, number, resource_id in view.ready
        if only is None or resource_id == only.id
    )


def _event(view: SignalView, resource: Resource, action: Action, reason: str, new_id: Callable[[], str]) -> Event:
    return Event.of_resource(new_id(), resource, action, resource.status, reason, view.now)
