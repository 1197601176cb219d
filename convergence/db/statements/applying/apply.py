"""Carry out effects in their order: which function does so for which effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeGuard

from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.core.rows import Event
from convergence.db.statements.applying import events, nodes, resources, snapshots, stacks, traversals
from convergence.db.statements.applying.changing import BeginNode, combines_changes
from convergence.db.statements.applying.late_nodes import append_cleanup
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.transaction import Ready

TOGETHER: dict[type, Callable[[StatementBatch, Any, Ready, Event | None], None]] = {
    effects.InsertStack: stacks.insert_stack,
    effects.UpdateStack: stacks.update_stack,
    effects.RequireRoom: stacks.require_room,
    effects.InsertTemplate: stacks.insert_template,
    effects.PurgeTemplates: stacks.purge_templates,
    effects.InsertTraversal: traversals.insert_traversal,
    effects.EndTraversal: traversals.end_traversal,
    effects.TellParent: resources.tell_parent,
    effects.InsertResources: resources.insert_resources,
    effects.FinishNode: nodes.finish_node,
    effects.UpdateResource: resources.update_resource,
    BeginNode: resources.update_resource,
    effects.DeleteResource: resources.delete_resource,
    effects.CountEvent: resources.count_event,
    effects.NotifyNode: nodes.tell_node,
    effects.InsertEvents: events.insert_events,
}
"""Effects that may go to the server with others. To some of them belongs an event: see `_with_events`."""

ALONE: dict[type, Callable[[Connection, Any], None]] = {
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


class FollowUp:
    """What else is to be carried out by a transaction in which a node is done; here nothing.

    :ivar looks_before_arrival: whether `before_arrival` has something to say; so too `looks_after_arrival`.
    """

    looks_before_arrival = False
    looks_after_arrival = False

    def before_arrival(self, batch: StatementBatch) -> Sequence[effects.Effect]:
        """When rows of resources are written, and no row is locked yet that others arrive at.

        :param writes: with what is written and not sent yet; so too for `after_arrival`.
        """
        return ()

    def after_arrival(self, batch: StatementBatch, ready: Ready) -> Sequence[effects.Effect]:
        """When all else is written.

        :param ready: the nodes that became ready by it.
        """
        return ()


NO_FOLLOW_UP = FollowUp()


def apply(
    batch: StatementBatch, decided: Iterable[effects.Effect], ready: Ready, sequel: FollowUp = NO_FOLLOW_UP
) -> None:
    """Carry out effects in their order, inside the caller's transaction.

    :param writes: what is left in it at the end the caller sends.
    :param ready: the nodes that became ready and are to be cast are added to it, at the latest when all is sent, or
        committed with it.
    :param sequel: asked what else is to be carried out.
    :raises Conflict: something is not as it was when the decision was made.
    :raises StackExists: a new stack has the name of a living one.
    """
    for effect, told in _with_more(decided, sequel, batch, ready):
        together = TOGETHER.get(type(effect))
        if together is not None:
            together(batch, effect, ready, told)
        else:
            batch.send()
            ALONE[type(effect)](batch.connection, effect)


def _with_more(
    decided: Iterable[effects.Effect], sequel: FollowUp, batch: StatementBatch, ready: Ready
) -> Iterator[tuple[effects.Effect, Event | None]]:
    connection = batch.connection
    for effect, told in _with_events(connection, decided):
        if isinstance(effect, effects.FinishNode) and sequel.looks_before_arrival:
            yield from _with_events(connection, sequel.before_arrival(batch))
        if isinstance(effect, effects.FinishNode) and not sequel.looks_after_arrival:
            batch.flush_rows()  # the arrival comes last
        yield effect, told
    if sequel.looks_after_arrival:
        batch.send()  # only then it is known what became ready
        yield from _with_events(connection, sequel.after_arrival(batch, ready))


def _with_events(
    connection: Connection, decided: Iterable[effects.Effect]
) -> Iterator[tuple[effects.Effect, Event | None]]:
    """Effects in their order, each with the event that its statement stores as well, where the server can do both."""
    if not combines_changes(connection):
        yield from ((effect, None) for effect in decided)
        return
    left = list(decided)
    while left:
        effect = left.pop(0)
        follower = left[0] if left else None
        if _is_one_event(effect) and isinstance(follower, effects.FinishNode) and follower.last is None:
            left.pop(0)
            yield follower, effect.events[0]
        elif (
            isinstance(effect, effects.UpdateResource)
            and _is_one_event(follower)
            and not (len(left) > 1 and isinstance(left[1], effects.FinishNode))
        ):
            left.pop(0)
            yield effect, follower.events[0]
        else:
            yield effect, None


def _is_one_event(effect: effects.Effect | None) -> TypeGuard[effects.InsertEvents]:
    return isinstance(effect, effects.InsertEvents) and len(effect.events) == 1
