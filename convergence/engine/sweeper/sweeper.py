"""The guarantee that no work is lost: the sweeper finds in the rows the work of lost messages and dead processes.

Every engine runs a sweeper; at any time one of them acts, elected by a compare-and-set with an expiry.
"""

from __future__ import annotations

import logging

from convergence.concurrency import RunningThread, ThreadEvent, start_thread
from convergence.core.claim import Worker
from convergence.db.ports import SweepsPort
from convergence.engine.sweeper.duty import Duty
from convergence.engine.sweeper.tasks import SweepOptions, SweepTasks
from convergence.errors import DatabaseUnavailable

LOG = logging.getLogger(__name__)

DUTY = 'sweeper'


class Sweeper:
    """Polls the database for unattended work.

    :param worker: this process, for the election and for the events that it stores.
    :ivar duty: knows which engine sweeps.
    """

    def __init__(self, sweeps: SweepsPort, tasks: SweepTasks, options: SweepOptions, worker: Worker) -> None:
        # After half a lease without an answer the database may be unreachable: see `convergence.engine.sweeper.reach`.
        self.duty = Duty(
            sweeps,
            DUTY,
            worker.id,
            options.interval_s,
            options.lease_s / 3,
            lambda: tasks.reach.answered(),
            options.clock,
        )
        self._tasks = tasks
        self._options = options
        self._stopping = ThreadEvent()
        self._thread: RunningThread | None = None

    def start(self) -> None:
        """Start to sweep, in a thread of its own."""
        self._thread = start_thread('sweeper', self._run)

    def stop(self) -> None:
        """Stop after the sweep in progress. Returns at once; `wait` waits for that sweep."""
        self._stopping.set()

    def wait(self, timeout_s: float) -> bool:
        """After `stop`: wait for the sweep in progress; True if it ended in time."""
        return self._thread is None or self._thread.wait(timeout_s)

    def sweep(self) -> int:
        """One sweep, if it is this process's turn; the number of rows handled.

        :raises DatabaseUnavailable: the database is out of reach; the next sweep continues.
        """
        reach = self._tasks.reach
        try:
            if not self.duty.is_ours():
                return 0
            attended = self._tasks.all()
            reach.answered()
        except DatabaseUnavailable:
            reach.failed()
            raise
        return attended

    def repair(self) -> int:
        """Begin due repairs, even if another engine sweeps; the number of stacks. Two engines begin no repair twice.

        :raises DatabaseUnavailable: nothing can begin now.
        """
        return self._tasks.repair()

    def _run(self) -> None:
        while not self._stopping.wait(self._options.interval_s):
            try:
                self.sweep()
            except Exception as error:  # noqa: BLE001 - the database may be away; the next sweep tries again
                LOG.warning('Sweep failed, will retry at the next interval: %s', error)
