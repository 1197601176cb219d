"""The relation of a nested stack to the resource of the parent stack whose object it is.

The resource is parked while the operation on its nested stack runs. The transaction that ends that operation finishes
the resource (`convergence.core.upwards`), or it counts an event of the resource, and the process that commits it
dispatches the resource's node. So no thread waits and no worker polls repeatedly. If the message is lost, the sweeper
finds the node, because the row has counted more events than the last poll knew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from convergence.core.changes import ResourceChange
from convergence.core.effects import (
    Decision,
    DoubtParents,
    Effect,
    InsertStack,
    NotifyNode,
    RequireRoom,
    TellParent,
    UpdateResource,
)
from convergence.core.model import Json, NodeStatus, Status
from convergence.core.rows import Resource, Stack
from convergence.core.views import PlanView
from convergence.values import replace

DOUBTED = 'doubted'
"""Digest of a row in use whose nested stack gets a leftover to clean up: the result of the running action is then out
of date. A row at rest gets the digest None instead."""


def is_doubted(row: Resource) -> bool:
    """Return True if the nested stack of a row may have leftovers that an update to the same goal would clean up."""
    return row.digest in (None, DOUBTED)


def parent_told(stack: Stack) -> tuple[Effect, ...]:
    """Return the effect that notifies the parent resource of a stack when its operation ends."""
    return (TellParent(stack.parent_resource_id),) if stack.parent_resource_id is not None else ()


def doubted(stack: Stack) -> tuple[Effect, ...]:
    """Return the effect that marks the parent resources of a stack when it gets a leftover for its next update."""
    return (DoubtParents(stack.parent_resource_id),) if stack.parent_resource_id is not None else ()


def is_tidy(rows: Sequence[Resource]) -> bool:
    """Return True if an update of a stack to its current goal would change nothing.

    :param rows: all resources of the stack.
    """
    names = {row.name for row in rows}
    return len(names) == len(rows) and all(row.status is Status.COMPLETE and row.digest for row in rows)


def may_act(parent: Resource | None, stack_id: str, fence: int) -> bool:
    """Return True if a caller may start an operation on a nested stack for its resource.

    A late call may not: another worker has claimed the row since, its action has ended, or the row was removed.

    :param parent: the locked row of the resource.
    :param stack_id: id of the nested stack.
    :param fence: fence of the caller's claim.
    """
    if parent is None or parent.fence != fence or parent.owner is None:
        return False
    return parent.token == stack_id and parent.status is Status.IN_PROGRESS


def park(view: PlanView, progress: Mapping[str, Json], after_s: float) -> tuple[Effect, ...]:
    """Return the effects that park the row of a nested stack in the transaction that starts the stack's operation.

    Return nothing if another operation waits for the row: the worker that has claimed it releases it then. The row
    counts its earlier events as known, so that the next event is the end of the operation that starts here.

    :param progress: progress to store in the row.
    :param after_s: seconds until a worker polls the row even without an event.
    """
    around = view.around
    row, node = (around.resource, around.node) if around is not None else (None, None)
    if around is None or row is None or node is None or not around.is_running or node.status is not NodeStatus.READY:
        return ()
    at = view.now + after_s
    changes: ResourceChange = {
        'owner': None,
        'progress': progress,
        'wake_at': at if row.deadline is None else min(at, row.deadline),
        'polled_event_count': row.event_count,
        'crash_count': 0,
        'retry': None,
    }
    release = UpdateResource(row.id, row.owner, row.fence, changes)
    if node.next_in_backlog is None:
        return (release,)
    return (release, NotifyNode(node.traversal_id, node.next_in_backlog))


def nested_snapshot(snapshot_id: str, stack_id: str) -> str:
    """Return the id of the snapshot of a nested stack that belongs to a snapshot of its parent stack.

    The id depends only on the arguments, so that repeated calls take no second snapshot and no snapshot is lost.

    :param snapshot_id: id of the snapshot of the parent stack.
    :param stack_id: id of the nested stack.
    """
    digits = hashlib.sha256(f'{snapshot_id}/{stack_id}'.encode()).hexdigest()
    return '-'.join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def is_wanted(parent: Resource | None) -> bool:
    """Return True if the resource of a nested stack still waits for the end of the stack's operation."""
    return parent is not None and parent.status is Status.IN_PROGRESS


V = TypeVar('V')


def joined(decisions: Sequence[Decision[V] | None]) -> Decision[tuple[V | None, ...]]:
    """Join several decisions into one. None stands for a stack without a decision.

    New stacks come first, so that a name conflict is found before any other write. Notifications of nodes of the parent
    stack come late, in the order in which all transactions lock nodes. The room in the tree comes last and once,
    because its lock blocks all other stacks of the tree.
    """
    made = [each for each in decisions if each is not None]
    effects = tuple(chain.from_iterable(each.effects for each in made))
    new = [each for each in effects if isinstance(each, InsertStack)]
    others = [each for each in effects if not isinstance(each, InsertStack | NotifyNode | RequireRoom)]
    told = (each for each in effects if isinstance(each, NotifyNode))
    in_order = sorted(told, key=lambda each: (each.traversal_id, each.number))
    rooms = _in_all(each for each in effects if isinstance(each, RequireRoom))
    verdict = tuple(None if each is None else each.verdict for each in decisions)
    return Decision(verdict, (*new, *others, *in_order, *rooms), tuple(chain.from_iterable(each.wake for each in made)))


def _in_all(rooms: Iterable[RequireRoom]) -> list[Effect]:
    """Add up the required room for each tree and limit."""
    sums: dict[tuple[str, int | None], RequireRoom] = {}
    for room in rooms:
        before = sums.get((room.root_id, room.most))
        sums[room.root_id, room.most] = room if before is None else replace(before, more=before.more + room.more)
    return list(sums.values())
