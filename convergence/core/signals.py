"""What somebody outside has to say to a resource: a signal, that a hook is cleared, or that its object has changed.

Neither waits for whoever holds the row, nor changes anything that a holder writes.
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
    """Store a signal, and wake whoever may wait for it: the resource itself, and what is built on it.

    :param signal_id: None: what it says is not kept.
    :param reason: what is told of it.
    :returns: as the verdict, whether the resource is still there.
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
    """Make every signal address void that there is for a row, whoever holds it.

    :param revocation: what those sign that are made from now on; nobody can know it before.
    :returns: as the verdict, whether the row is still there.
    """
    resource = view.resource
    if resource is None:
        return Decision(False)
    event = _event(view, resource, Action.SIGNAL, 'All signal addresses are revoked', new_id)
    return Decision(True, (RevokeAddresses(resource.id, revocation), InsertEvents((event,))))


def clear(view: SignalView, hook: Hook, new_id: Callable[[], str]) -> Decision[bool]:
    """Let a row go on that waits at a hook.

    :returns: as the verdict, whether the row waits at that hook, or did.
    """
    resource, traversal = view.resource, view.traversal
    if resource is None or traversal is None or traversal.status is not TraversalStatus.RUNNING:
        return Decision(False)
    if resource.waits_at(traversal.id) is not hook:
        return Decision(False)
    event = _event(view, resource, resource.action, f'Hook {hook} is cleared', new_id)
    return Decision(True, (ClearHook(resource.id, hook, traversal.id), InsertEvents((event,))), _woken(view, resource))


def stir(view: SignalView) -> Decision[bool]:
    """Something has happened to the object of a row: if an action of it is in progress, have it polled at once.

    :returns: as the verdict, whether one is.
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
