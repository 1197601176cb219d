"""Carry out effects in their order: which function does so for which effect."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeGuard

from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.core.rows import Event
from convergence.db.statements.applying import events, nodes, resources, snapshots, stacks, traversals
from convergence.db.statements.applying.changing import BeginNode, combines_changes
from convergence.db.statements.applying.late_nodes import append_cleanup
from convergence.db.statements.prepared.batch import StatementBatch

WITH_EVENT: dict[type, Callable[[StatementBatch, Any, Event | None], None]] = {
    effects.FinishNode: nodes.finish_node,
    effects.UpdateResource: resources.update_resource,
    BeginNode: resources.update_resource,
}
"""Effects whose statement may store an event as well; see `_with_events`."""

BATCHED: dict[type, Callable[[StatementBatch, Any], None]] = {
    effects.InsertStack: stacks.insert_stack,
    effects.UpdateStack: stacks.update_stack,
    effects.RequireRoom: stacks.require_room,
    effects.InsertTemplate: stacks.insert_template,
    effects.PurgeTemplates: stacks.purge_templates,
    effects.InsertTraversal: traversals.insert_traversal,
    effects.EndTraversal: traversals.end_traversal,
    effects.TellParent: resources.tell_parent,
    effects.InsertResources: resources.insert_resources,
    effects.DeleteResource: resources.delete_resource,
    effects.CountEvent: resources.count_event,
    effects.NotifyNode: nodes.notify_node,
    effects.InsertEvents: events.insert_events,
}
"""Effects whose statements share a round trip with others."""

UNBATCHED: dict[type, Callable[[Connection, Any], None]] = {
    effects.BeginCancel: traversals.begin_cancel,
    effects.NoteFailure: traversals.note_failure,
    effects.NoteInService: traversals.note_in_service,
    effects.StallTraversal: traversals.stall_traversal,
    effects.DoubtParents: resources.doubt_parents,
    effects.InsertSignal: events.insert_signal,
    effects.ClearHook: resources.clear_hook,
    effects.RevokeAddresses: resources.revoke_addresses,
    effects.UpdateResources: resources.update_resources,
    effects.FailNode: nodes.fail_node,
    effects.PointNode: nodes.point_node,
    effects.AppendCleanup: append_cleanup,
    effects.InsertSnapshot: snapshots.insert_snapshot,
    effects.DeleteSnapshots: snapshots.delete_snapshots,
    effects.KeepItem: snapshots.keep_item,
}
"""Effects whose statements are sent one at a time, after everything before them."""


class FollowUp(Protocol):
    """Decides about another node, inside the transaction that finishes one.

    :ivar comes_first: True: `effects` is called before the arrival at other nodes, when rows of resources are written
        and no node is locked yet. False: it is called last, when the nodes that became ready are known.
    """

    comes_first: bool

    def effects(self, batch: StatementBatch) -> Sequence[effects.Effect]:
        """Return what else the transaction carries out.

        :param batch: with statements that may not have been sent yet.
        """


def apply(batch: StatementBatch, decided: Iterable[effects.Effect], follow_up: FollowUp | None = None) -> None:
    """Carry out effects in their order, inside the caller's transaction.

    :param batch: the caller sends its last statements. Nodes that became ready are added to `batch.ready`.
    :param follow_up: its effects are carried out as well.
    :raises Conflict: a row has changed since the decision.
    :raises StackExists: a new stack has the name of a living one.
    """
    for effect, event in _with_events(batch.connection, decided):
        if isinstance(effect, effects.FinishNode):
            if follow_up is not None and follow_up.comes_first:
                apply(batch, follow_up.effects(batch))
            if follow_up is None or follow_up.comes_first:
                batch.flush_rows()  # the arrival comes last
        _apply_one(batch, effect, event)
    if follow_up is not None and not follow_up.comes_first:
        batch.send()  # only then the nodes that became ready are known
        apply(batch, follow_up.effects(batch))


def _apply_one(batch: StatementBatch, effect: effects.Effect, event: Event | None) -> None:
    kind = type(effect)
    if kind in WITH_EVENT:
        WITH_EVENT[kind](batch, effect, event)
    elif kind in BATCHED:
        BATCHED[kind](batch, effect)
    else:
        batch.send()
        UNBATCHED[kind](batch.connection, effect)


def _with_events(
    connection: Connection, decided: Iterable[effects.Effect]
) -> Iterator[tuple[effects.Effect, Event | None]]:
    """Yield effects in their order, each with the event that its statement stores as well, where the server can do
    both.

    The event of a finished node comes before it in a decision, the event of a changed row after it.
    """
    left = deque(decided)
    combines = combines_changes(connection)
    while left:
        effect = left.popleft()
        event: Event | None = None
        if combines and left and _is_one_event(effect) and _arrives(left[0]):
            event, effect = effect.events[0], left.popleft()
        elif combines and isinstance(effect, effects.UpdateResource) and _is_followed_by_event(left):
            event = left.popleft().events[0]
        yield effect, event


def _is_one_event(effect: effects.Effect) -> TypeGuard[effects.InsertEvents]:
    return isinstance(effect, effects.InsertEvents) and len(effect.events) == 1


def _arrives(effect: effects.Effect) -> bool:
    return isinstance(effect, effects.FinishNode) and effect.last is None


def _is_followed_by_event(left: deque[effects.Effect]) -> TypeGuard[deque[effects.InsertEvents]]:
    """Return True if an event comes next that does not belong to a finished node behind it."""
    return bool(left) and _is_one_event(left[0]) and not (len(left) > 1 and isinstance(left[1], effects.FinishNode))
