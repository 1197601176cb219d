"""Reports stalled traversals, with a text that names the nodes they wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from convergence.core.stall import moving, stalled
from convergence.db.ports import ReaderPort
from convergence.db.records import FrontierNode, TraversalProgress
from convergence.db.scopes import StackAlone
from convergence.db.transaction import Transactions
from convergence.engine.reads.formats import moment
from convergence.engine.reads.progress import stall_of

LOG = logging.getLogger(__name__)

NAMED = 5
"""Maximum number of nodes named; with more nodes than this, their number says more."""


class StallReports:
    """Reports traversals that make no progress, or make progress again: as event, status reason and log line."""

    def __init__(self, store: Transactions, reader: ReaderPort, new_id: Callable[[], str]) -> None:
        self._store = store
        self._reader = reader
        self._new_id = new_id

    def report(self, still: TraversalProgress) -> None:
        """Report one of them."""
        since = still.progressed_at
        if still.stalled_at is None:
            text = f'{moment(since)}, {waiting_for(self._reader, still.traversal_id)}'
            details = stall_of(self._reader, still.traversal_id, since, f'No progress since {text}')
            committed = self._store.transact(
                StackAlone(still.stack_id),
                lambda view: stalled(view, still.traversal_id, since, text, details, self._new_id),
            )
            if committed is not None and committed.verdict:
                LOG.warning('Operation of stack %s stalled but continues; no progress since %s', still.stack_id, text)
            return
        committed = self._store.transact(
            StackAlone(still.stack_id), lambda view: moving(view, still.traversal_id, self._new_id)
        )
        if committed is not None and committed.verdict:
            LOG.info('Operation of stack %s makes progress again', still.stack_id)


def waiting_for(reader: ReaderPort, traversal_id: str) -> str:
    """The nodes that a traversal waits for, and the worker that holds each."""
    nodes = reader.frontier(traversal_id, NAMED + 1)
    if not nodes:
        return 'nothing is ready'
    more = ' and others' if len(nodes) > NAMED else ''
    return f'waiting for {", ".join(node_text(node) for node in nodes[:NAMED])}{more}'


def names_waited_for(nodes: Sequence[FrontierNode]) -> str:
    """The names of nodes, as text."""
    named = [node.name or node.phase.value for node in nodes[:NAMED]]
    return ', '.join(named) + (' and others' if len(nodes) > NAMED else '')


def node_text(node: FrontierNode) -> str:
    """One node, its action, and its worker."""
    name = node.name or node.phase.value
    if node.owner is not None:
        where = node.owner_host or 'a worker that is gone'
        return f'{name} ({node.action}, held by {where}{_for(node.action_s)})'
    if node.hook is not None:
        return f'{name} (paused until its hook {node.hook} is cleared)'
    if node.retry is not None and node.retry.attempts:
        return f'{name} ({node.action}, attempt {node.retry.attempts} failed: {node.retry.error})'
    if node.is_parked:
        return f'{name} ({node.action}, polled again{_in(node.wake_in_s)}{_for(node.action_s)})'
    return f'{name} (taken up by no worker)'


def _for(seconds: float | None) -> str:
    return '' if seconds is None else f', for {max(seconds, 0.0):.0f} s'


def _in(seconds: float | None) -> str:
    return ' now' if seconds is None or seconds <= 0 else f' in {seconds:.0f} s'
