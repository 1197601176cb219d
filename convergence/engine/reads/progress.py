"""The progress of an operation, and the nodes it waits for, as structured data for notifications."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import StackReader
from convergence.documents import Document
from convergence.engine.reads.explain import Explanation, frontier_document
from convergence.engine.reads.formats import moment

NAMED = 20
"""Maximum number of nodes listed; with more nodes their number says more."""


@dataclass(frozen=True, slots=True)
class ToldProgress:
    """The progress of the current operation of a stack.

    :param done: number of finished steps, of `total`.
    :param details: data for notifications, under the key ``progress``.
    """

    done: int
    total: int
    details: Document


def progress_of(reader: StackReader, stack_id: str, stalled_at: float | None) -> ToldProgress | None:
    """How far a stack is. None: it is there no more, or has no operation.

    :param stalled_at: since when it makes no progress; None: it does.
    """
    stack = reader.stack(stack_id)
    if stack is None:
        return None
    explained = Explanation(reader).of(stack, NAMED)
    counts, now = explained['counts'], reader.now()
    if not counts:
        return None
    told: Document = {
        'traversal_id': explained['traversal']['id'],
        'started_at': explained['traversal']['started_at'],
        'deadline': explained['traversal']['deadline'],
        'steps_done': counts['done'],
        'steps_total': counts['total'],
        'waiting_for': [_waited_for(node, now) for node in explained['frontier']],
        'waiting_for_others': explained['frontier_left_off'],
        'stalled_since': moment(stalled_at),
        'summary': explained['summary'],
    }
    return ToldProgress(counts['done'], counts['total'], {'progress': told})


def stall_of(reader: ReaderPort, traversal_id: str, since: float, text: str) -> Document:
    """Data for a notification that an operation makes no progress.

    :param text: the same in words.
    """
    now = reader.now()
    nodes = [_waited_for(frontier_document(node), now) for node in reader.frontier(traversal_id, NAMED)]
    told = {'traversal_id': traversal_id, 'waiting_for': nodes, 'stalled_since': moment(since), 'summary': text}
    return {'progress': told}


def _waited_for(node: Document, now: float) -> Document:
    age_s = node['action_age_s'] if node['action_age_s'] is not None else node['age_s']
    return {
        'resource_name': node['resource_name'],
        'resource_type': node['resource_type'],
        'phase': node['phase'],
        'resource_status': node['resource_status'],
        'state': node['state'],
        'since': None if age_s is None else moment(now - age_s),
        'held_by': node['owner_host'],
        'attempts': node['attempts'],
        'error': node['last_error'] or '',
    }
