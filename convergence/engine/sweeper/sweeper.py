"""The guarantee: whatever a lost message or a dead process left undone is found in the rows, and done.

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
    """Looks for work that nobody attends to, again and again.

    :param worker: this process, for the election and for the events that it stores.
    :ivar duty: tells which engine sweeps.
    """

    def __init__(self, sweeps: SweepsPort, tasks: SweepTasks, options: SweepOptions, worker: Worker) -> None:
        # Who has not been answered for half of a lease may have been cut off: see `convergence.engine.sweeper.reach`.
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
        """Begin to sweep, in a thread of its own."""
        self._thread = start_thread('sweeper', self._run)

    def stop(self) -> None:
        """Begin no further sweep. Returns at once; `wait` waits for the one in progress."""
        self._stopping.set()

    def wait(self, timeout_s: float) -> bool:
        """After `stop`: wait for the sweep in progress; whether it ended in time."""
        return self._thread is None or self._thread.wait(timeout_s)

    def sweep(self) -> int:
        """One sweep, if it is this process's turn; how many things were attended to.

        :raises DatabaseUnavailable: the database cannot be reached; what is left is for the next sweep.
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
        """Begin what repairs can begin, whoever sweeps; of how many stacks. Two who do it begin none twice.

        :raises DatabaseUnavailable: nothing can be begun now.
        """
        return self._tasks.repair()

    def _run(self) -> None:
        while not self._stopping.wait(self._options.interval_s):
            try:
                self.sweep()
            except Exception as error:  # noqa: BLE001 - the database may be away; the next sweep tries again
                LOG.warning('This engine cannot sweep, and tries again at the next interval: %s', error)
