"""The guarantee: whatever a lost message or a dead process left undone is found in the rows, and done.

Every engine runs a sweeper; at any time one of them acts, elected by a compare-and-set with an expiry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from convergence.concurrency import Event, start_thread
from convergence.core.check import Worker
from convergence.core.finish import give_up, release
from convergence.db.roster import Roster
from convergence.db.scopes import HeldResource
from convergence.db.sweeps import Sweeps
from convergence.db.transaction import LAST, Transactions
from convergence.dispatch import Dispatcher
from convergence.engine.traversals import Traversals

LOG = logging.getLogger(__name__)

DUTY = 'sweeper'


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How often and how much. Times in seconds.

    :param older_than_s: how long a node may be ready before it is cast again.
    :param limit: most rows of one kind in one sweep.
    """

    interval_s: float = 5.0
    older_than_s: float = 5.0
    limit: int = 500


class Sweeper:
    """Looks for work that nobody attends to, again and again.

    :param worker: this process, for the election and for the events that it stores.
    """

    def __init__(
        self,
        store: Transactions,
        sweeps: Sweeps,
        roster: Roster,
        dispatcher: Dispatcher,
        traversals: Traversals,
        options: SweepOptions,
        worker: Worker,
    ) -> None:
        self._store = store
        self._sweeps = sweeps
        self._roster = roster
        self._dispatcher = dispatcher
        self._traversals = traversals
        self._options = options
        self._worker = worker
        self._stopping = Event()

    def start(self) -> None:
        """Begin to sweep, in a thread of its own."""
        start_thread('sweeper', self._run)

    def stop(self) -> None:
        """End after the sweep in progress."""
        self._stopping.set()

    def sweep(self) -> int:
        """One sweep, if it is this process's turn; how many things were attended to."""
        if not self._sweeps.take_duty(DUTY, self._worker.id, self._options.interval_s * 3):
            return 0
        chores: tuple[Callable[[], int], ...] = (
            self._take_over,
            self._give_up,
            self._time_out,
            self._settle,
            self._wake,
            self._clean,
        )
        return sum(self._survive(chore) for chore in chores)

    def _survive(self, chore: Callable[[], int]) -> int:
        """One chore that fails must not keep the others from being done."""
        try:
            return chore()
        except Exception:
            LOG.exception('Sweeping: %s failed', chore.__name__)
            return 0

    def _run(self) -> None:
        while not self._stopping.wait(self._options.interval_s):
            try:
                self.sweep()
            except Exception as error:  # noqa: BLE001 - the database may be away; the next sweep tries again
                LOG.warning('No sweep: %s', error)

    def _take_over(self) -> int:
        """Rows of dead workers become free, and whoever waits for them is woken."""
        orphans = self._sweeps.orphaned(self._options.limit)
        for row in orphans:
            LOG.warning('Worker %s is gone, resource %s is taken from it', row.owner, row.resource_id)
            fence = row.fence
            committed = self._store.transact(
                HeldResource(row.resource_id), lambda view, fence=fence: release(view, fence)
            )
            if committed is not None:
                self._dispatcher.attend(committed)
        return len(orphans)

    def _give_up(self) -> int:
        """Rows that were left in the middle when their stack came to rest say so."""
        interrupted = self._sweeps.interrupted(self._options.limit)
        for row in interrupted:
            fence = row.fence
            self._store.transact(
                HeldResource(row.resource_id), lambda view, fence=fence: give_up(view, fence, self._worker)
            )
        return len(interrupted)

    def _time_out(self) -> int:
        overdue = self._sweeps.overdue(self._options.limit)
        for ended in overdue:
            LOG.warning('Traversal %s is past its deadline', ended.traversal_id)
            self._traversals.time_out(ended.stack_id, ended.traversal_id)
        return len(overdue)

    def _settle(self) -> int:
        unsettled = self._sweeps.unsettled(self._options.limit)
        for ended in unsettled:
            self._traversals.settle(ended.stack_id, ended.traversal_id)
        return len(unsettled)

    def _wake(self) -> int:
        """Ready nodes that nobody claimed: their message was lost, or whoever had it died."""
        nodes = self._sweeps.unattended(self._options.older_than_s, self._options.limit, self._worker.window)
        self._dispatcher.conclude((node.traversal_id, node.number) for node in nodes if node.phase in LAST)
        cast = [(node.traversal_id, node.number) for node in nodes if node.phase not in LAST]
        if cast:
            LOG.debug('%d nodes were ready and unattended', len(cast))
        self._dispatcher.cast(cast)
        return len(nodes)

    def _clean(self) -> int:
        return self._sweeps.purge_nodes(self._options.limit) + self._roster.remove_dead()
