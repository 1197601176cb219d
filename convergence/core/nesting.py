"""What a nested stack and the resource whose object it is owe each other.

The resource is parked while its stack is at work. The transaction that brings the stack to rest finishes the resource
(`convergence.core.upwards`), or it counts an event of it, and whoever has committed that casts the resource's node:
nobody waits, and nobody asks again and again. Where the message is lost the sweeper finds the node, because there is an
event that the row has not heard of.
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
"""The digest of a row that somebody holds, or for which something is under way, when its stack gets something to tidy
up: what comes of that is not up to date when it is done. Where nothing is going on, None says the same."""


def is_doubted(row: Resource) -> bool:
    """Whether the stack of a row may have something to tidy up that an update to the same goal would get at."""
    return row.digest in (None, DOUBTED)


def parent_told(stack: Stack) -> tuple[Effect, ...]:
    """What becomes true, besides, when a stack comes to rest."""
    return (TellParent(stack.parent_resource_id),) if stack.parent_resource_id is not None else ()


def doubted(stack: Stack) -> tuple[Effect, ...]:
    """What becomes true, besides, when a stack gets something that its next update has to tidy up."""
    return (DoubtParents(stack.parent_resource_id),) if stack.parent_resource_id is not None else ()


def is_tidy(rows: Sequence[Resource]) -> bool:
    """Whether there is nothing in a stack that an update to the goal that it has would change.

    :param rows: all of its resources.
    """
    names = {row.name for row in rows}
    return len(names) == len(rows) and all(row.status is Status.COMPLETE and row.digest for row in rows)


def may_act(parent: Resource | None, stack_id: str, fence: int) -> bool:
    """Whether a nested stack may be given something to do on behalf of its resource.

    Not by a call that comes late: since then the row has been taken by somebody else, has come to rest or is gone.

    :param parent: the row as it is now, locked.
    :param fence: the one under which the caller holds the row.
    """
    if parent is None or parent.fence != fence or parent.owner is None:
        return False
    return parent.token == stack_id and parent.status is Status.IN_PROGRESS


def park(view: PlanView, progress: Mapping[str, Json], after_s: float) -> tuple[Effect, ...]:
    """What lets go of the row of a nested stack in the same step in which the stack gets something to do.

    Nothing, where somebody waits for the row for another reason: whoever holds it lets go of it then. What has happened
    to the row before does not matter: what it is told of from now on is the end of what the stack begins here.

    :param after_s: after how many seconds it is looked at though nobody has told it to.
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
    let_go = UpdateResource(row.id, row.owner, row.fence, changes)
    if node.next_in_backlog is None:
        return (let_go,)
    return (let_go, NotifyNode(node.traversal_id, node.next_in_backlog))


def nested_snapshot(snapshot_id: str, stack_id: str) -> str:
    """Id of the snapshot of a nested stack that is part of a snapshot of the stack around it.

    The same whoever works it out, and however often: no snapshot is taken twice, and none is lost.

    :param snapshot_id: that of the stack around it.
    :param stack_id: the nested stack.
    """
    digits = hashlib.sha256(f'{snapshot_id}/{stack_id}'.encode()).hexdigest()
    return '-'.join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def is_wanted(parent: Resource | None) -> bool:
    """Whether what a nested stack is doing on behalf of its resource still matters to anybody."""
    return parent is not None and parent.status is Status.IN_PROGRESS


V = TypeVar('V')


def joined(decisions: Sequence[Decision[V] | None]) -> Decision[tuple[V | None, ...]]:
    """All of them in one; None stands for a stack about which nothing is decided.

    New stacks come first: what is refused because there is such a stack is refused before anything else is written.
    Nodes of the stack around that are told of come after all else, in the order in which everybody locks them. The room
    in their tree comes last, and once: everybody in the tree waits for whoever has it.
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
    """One for each tree and limit."""
    wanted: dict[tuple[str, int | None], RequireRoom] = {}
    for room in rooms:
        before = wanted.get((room.root_id, room.most))
        wanted[room.root_id, room.most] = room if before is None else replace(before, more=before.more + room.more)
    return list(wanted.values())
