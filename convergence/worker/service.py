"""The worker of one process: takes checks and cancels, shows that it is alive, and ends in good order."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from convergence import logs
from convergence.concurrency import Event, Task, sleep
from convergence.core.claim import Worker
from convergence.dispatch import Dispatcher
from convergence.heartbeat import Heartbeat, Load, Presence
from convergence.resources.registry import Registry
from convergence.worker.assess import Assessor
from convergence.worker.checks import Checks, Settler
from convergence.worker.course import Pace
from convergence.worker.groups import Check, ThreadGroups
from convergence.worker.keeping import Keeping
from convergence.worker.runner import Runner, Surroundings, wait
from convergence.worker.steps import Steps
from convergence.worker.timers import Timers
from convergence.worker.upkeep import HOPS, Duties, Fitness, Rows, Upkeep

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker needs to know. Times in seconds.

    :param lease_s: after so long without a heartbeat the others take its work; it stops by itself then.
    :param unattended_s: it takes nodes unasked of which nobody was told for so long.
    :param most_stuck: as many stuck threads make it unfit to go on; None: as many as it has threads.
    """

    host: str
    version: str
    pace: Pace = field(default_factory=Pace)
    heartbeat_interval_s: float = 5.0
    lease_s: float = 30.0
    cancel_grace_s: float = 10.0
    unattended_s: float = 15.0
    threads: int = 8
    most_stuck: int | None = None
    dispatch_window: int = 64


@dataclass(frozen=True, slots=True)
class Clockwork:
    """How a worker waits.

    :param wait: waits for a while, or until a task is cancelled; whether it was.
    :param later: has a node cast again after some seconds; None for timers of its own.
    :param groups: makes what runs tasks, as `ThreadGroups` is made.
    :param pause: lets some seconds pass.
    :param clock: seconds on the clock of this process, from any moment on.
    """

    wait: Callable[[Task, float], bool] = wait
    later: Callable[[float, str, int], None] | None = None
    groups: Callable[[int, Callable[[Task], object]], ThreadGroups] = ThreadGroups
    pause: Callable[[float], None] = sleep
    clock: Callable[[], float] = time.monotonic


class WorkerService:
    """Handles the messages to a worker. Its id is new each time it is made: an id never comes back from the dead."""

    def __init__(
        self,
        rows: Rows,
        dispatcher: Dispatcher,
        registry: Registry,
        settler: Settler,
        options: WorkerOptions,
        new_id: Callable[[], str],
        clockwork: Clockwork = Clockwork(),
    ) -> None:
        self.id = new_id()
        self._store = store = rows.store
        self._options = options
        self._roster = rows.roster
        self._reader = rows.reader
        self._dispatcher = dispatcher
        self._worker = Worker(self.id, new_id, options.dispatch_window, registry.time_limit, registry.can_snapshot)
        self._timers = Timers(lambda traversal_id, number: dispatcher.cast([(traversal_id, number)]))
        self._stopping = Event()
        self._groups = clockwork.groups(options.threads, self._left)
        self._cancelled: deque[str] = deque(maxlen=1000)
        self._heartbeat = Heartbeat(
            self._roster,
            Presence(self.id, 'worker', options.host, options.version, options.lease_s),
            options.heartbeat_interval_s,
            on_beat=self.reconcile,
            load=self.load,
            on_lost=self.give_up,
        )
        steps = Steps(store, self._worker, Assessor(registry), clockwork.pause)
        around = Surroundings(
            steps.record, steps.escalate, self._stopping.is_set, steps.is_wanted, clockwork.wait, rows.reader.signals
        )
        runner = Runner(registry, options.pace, around)
        later = clockwork.later or self._timers.after
        self._checks = Checks(steps, dispatcher, runner, settler, later, clockwork.clock)
        duties = Duties(
            self.id,
            older_than_s=options.unattended_s,
            most_stuck=options.most_stuck or options.threads,
            grace_s=options.cancel_grace_s,
            window=options.dispatch_window,
        )
        self._keeping = Keeping(rows.snapshots, rows.reader, registry, self._groups)
        self._upkeep = Upkeep(
            rows, dispatcher, self._groups, self._checks, duties, self._take,
            lambda stack_id, traversal_id: self.cancel(None, stack_id, traversal_id),
        )  # fmt: skip

    # --- messages ---------------------------------------------------------------------------------------------

    def check_resource(self, context: Any, traversal_id: str, node: int, hops: int = 0) -> None:
        """Look at a node, and do what it needs, when a thread is free. Returns at once.

        :param hops: how many workers without a free thread have handed it on.
        """
        self._upkeep.heard()
        check = Check(traversal_id, node, hops)
        if hops < HOPS and self._upkeep.is_jammed():
            self._upkeep.hand_on(check)
        else:
            self._take(check)

    def lend_a_hand(self, traversal_id: str, node: int) -> bool:
        """Look at a node of which no other worker can be told, if there is room; whether it will be looked at."""
        now = self._groups.occupancy()
        has_room = now.waiting < 2 * now.threads and not self._stopping.is_set()
        if has_room:
            self._take(Check(traversal_id, node, HOPS))
        return has_room

    def _take(self, check: Check) -> None:
        def work(task: Task) -> None:
            with logs.bind(traversal=check.traversal_id, node=check.node, worker=self.id):
                self._checks.check(check.traversal_id, check.node, task)

        self._groups.submit(check, work)

    def cancel(self, context: Any, stack_id: str, traversal_id: str) -> None:
        """Stop what runs here for a traversal."""
        self._cancelled.append(traversal_id)
        tasks = self._groups.stop(traversal_id, self._options.cancel_grace_s)
        if tasks:
            LOG.info('Cancelling %d tasks of traversal %s', tasks, traversal_id)

    # --- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Become known, before the first message is taken."""
        self._heartbeat.start()
        self._timers.start()

    def begin_to_stop(self, grace_s: float) -> None:
        """Hand back actions that wait, let calls that run come to their end. Take no messages from now on.

        :param grace_s: what still runs after so many seconds is given back as it is.
        """
        self._stopping.set()
        self._timers.stop()
        for check in self._groups.withdraw():
            self._upkeep.hand_on(check)
        self._groups.stop_all(grace_s)

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing runs any more; whether that came true in time."""
        ends = time.monotonic() + timeout_s
        while self._groups.occupancy().busy and time.monotonic() < ends:
            Event().wait(0.05)
        return not self._groups.occupancy().busy

    def leave(self) -> None:
        """Be gone. What is still held here is taken over by others at once."""
        self._heartbeat.stop()

    def _left(self, task: Task) -> None:
        self._checks.leave_behind(task, self._cancelled)

    def give_up(self) -> None:
        """The others take our work by now: stop it. What we write late is refused by its fence."""
        self._groups.stop_all(0.0)

    def reconcile(self) -> None:
        """See `convergence.worker.upkeep`."""
        self._upkeep()
        self._keeping()

    def load(self) -> Load:
        """How busy this worker is, for the service list."""
        return asdict(self._groups.occupancy())

    def ailment(self) -> str:
        """Why this process should be started anew; empty while it should not."""
        if self._upkeep.fitness is Fitness.FIT:
            return ''
        return f'{self._groups.stuck} threads are stuck in calls of resource types that do not end'
