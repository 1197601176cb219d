"""The worker of one process: takes checks and cancels, shows that it is alive, and ends in good order."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial

from convergence import logs
from convergence.concurrency import Task, ThreadEvent, sleep
from convergence.core.claim import Worker
from convergence.core.interrupt import NO_NODE
from convergence.core.model import DISPATCH_WINDOW
from convergence.credentials.model import Credentials
from convergence.db.ports import Ports
from convergence.db.records import WorkerTask
from convergence.dispatch import Dispatcher
from convergence.heartbeat import Heartbeat, Load, Presence
from convergence.resources.registry import Registry
from convergence.rpc.shares import beneficiary, on_behalf_of
from convergence.template.limits import STANDARD
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.attempts.port import NO_NESTING, NestingPort, WorkerPort, none_of_stack, wait
from convergence.worker.attempts.runner import Runner
from convergence.worker.checks.assess import Assessor
from convergence.worker.checks.fences import Fences
from convergence.worker.checks.nested_batch import NestedBatch
from convergence.worker.checks.node_checks import NodeChecks, Settler
from convergence.worker.checks.steps import Steps
from convergence.worker.in_a_row import InARow
from convergence.worker.keeping import Keeping
from convergence.worker.scheduler.thread_groups import Check, ThreadGroups
from convergence.worker.scheduler.timers import Timers
from convergence.worker.unannounced import Soon, Unannounced
from convergence.worker.upkeep.maintenance import HOPS, Fitness, Maintenance, MaintenanceSettings, do_each
from convergence.worker.upkeep.result_journal import ResultJournal
from convergence.worker.upkeep.snapshot_removal import SnapshotRemoval

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker needs to know. Times in seconds.

    :param lease_s: after so long without a heartbeat the others take its work; it stops by itself then.
    :param in_a_row: how many nodes a thread looks at one after the other; see `convergence.worker.in_a_row`.
    :param unattended_s: it takes nodes unasked of which nobody was told for so long; None: it does nothing unasked.
    :param max_stored_bytes: what a resource may store of each kind (properties, an attribute …), as JSON.
    :param max_input_bytes: what a resource may take from others, as it is stored; None: no limit.
    :param create_ambiguity_s: for how long a creation may still have an effect when its worker is dead, where its type
        does not say so.
    :param max_stuck_threads: as many stuck threads make it unfit to go on; None: as many as it has threads.
    """

    host: str
    version: str
    pace: PollPolicy = field(default_factory=PollPolicy)
    heartbeat_interval_s: float = 5.0
    lease_s: float = 30.0
    cancel_grace_s: float = 10.0
    unattended_s: float | None = 15.0
    threads: int = 8
    max_stuck_threads: int | None = None
    dispatch_window: int = DISPATCH_WINDOW
    in_a_row: int = 1
    max_stored_bytes: int = STANDARD.max_stored_bytes
    max_input_bytes: int | None = None
    create_ambiguity_s: float = 60.0


@dataclass(frozen=True, slots=True)
class WorkerRuntime:
    """How a worker waits.

    :param wait: waits for a while, or until a task is cancelled; whether it was.
    :param later: has a node cast again after some seconds, `soon` has a call made; None for timers of its own.
    :param groups: makes what runs tasks, as `ThreadGroups` is made.
    :param pause: lets some seconds pass.
    :param clock: seconds on the clock of this process, from any moment on.
    """

    wait: Callable[[Task, float], bool] = wait
    later: Callable[[float, str, int], None] | None = None
    soon: Soon | None = None
    groups: Callable[[int, Callable[[Task], object]], ThreadGroups] = ThreadGroups
    pause: Callable[[float], None] = sleep
    clock: Callable[[], float] = time.monotonic


class WorkerService:
    """Handles the messages to a worker. Its id is new each time it is made: an id never comes back from the dead.

    :param nested: the nested stacks that it has to do with; see `convergence.worker.attempts.nested`.
    :param credentials: those of the stack of that id; see `convergence.worker.attempts.credentials`.
    """

    def __init__(
        self,
        ports: Ports,
        dispatcher: Dispatcher,
        registry: Registry,
        settler: Settler,
        options: WorkerOptions,
        new_id: Callable[[], str],
        timing: WorkerRuntime = WorkerRuntime(),
        nested: NestingPort = NO_NESTING,
        credentials: Callable[[str], Credentials] = none_of_stack,
    ) -> None:
        self.id = new_id()
        self._store = store = ports.store
        self._options = options
        self._roster = ports.roster
        self._reader = ports.reader
        self._dispatcher = dispatcher
        self._worker = Worker(
            self.id,
            new_id,
            options.dispatch_window,
            registry.time_limit,
            registry.can_snapshot,
            lambda name: registry.creation(name, options.create_ambiguity_s),
            options.max_input_bytes,
            registry.nests,
            Fences().next,
        )
        self._timers = Timers()
        self._stopping = ThreadEvent()
        self._leaving = ThreadEvent()
        self._refused: deque[Check] = deque()
        self._groups = timing.groups(options.threads, self._left)
        self._groups.soon = timing.soon or self._timers.after
        self._cancelled: deque[str] = deque(maxlen=1000)
        self.heartbeat = Heartbeat(
            self._roster,
            Presence(self.id, 'worker', options.host, options.version, options.lease_s),
            options.heartbeat_interval_s,
            on_beat=self.reconcile,
            load=self.load,
            on_lost=self.give_up,
        )
        assess = Assessor(registry, options.max_stored_bytes)
        steps = Steps(store, self._worker, assess, timing.pause)
        around = WorkerPort(
            steps.record,
            steps.escalate,
            self._stopping.is_set,
            steps.is_wanted,
            timing.wait,
            ports.reader.signals,
            options.max_stored_bytes,
            nested,
            ports.software,
            credentials,
        )
        runner = Runner(registry, options.pace, around)
        later = timing.later or self._cast_later
        draining = self._stopping.is_set
        siblings = NestedBatch(store, self._worker, assess, runner.attempts, nested, draining, timing.clock)
        self._checks = NodeChecks(steps, dispatcher, runner, siblings, settler, later, timing.clock, draining)
        self._unannounced = Unannounced(dispatcher, self._has_room, timing.soon or self._timers.after, timing.clock)
        self._keeping = Keeping(self._groups, self._take, self._stopping.is_set, timing.clock)
        self._in_a_row = InARow(
            self._checks.check,
            dispatcher,
            options.in_a_row,
            self._groups,
            self._unannounced,
            self._keeping,
            timing.clock,
        )
        self.recent = ResultJournal(
            store, dispatcher, new_id, ports.reader.resource, ports.reader.traversal, timing.clock
        )
        self._checks.stored, self._checks.lost_handoff = self.recent.add, nested.lost_handoff
        steps.dropped = self.recent.dropped
        settings = MaintenanceSettings(
            self._worker,
            older_than_s=options.unattended_s,
            max_stuck_threads=options.max_stuck_threads or options.threads,
            grace_s=options.cancel_grace_s,
        )
        self._snapshot_removal = SnapshotRemoval(
            ports.snapshots, ports.reader, registry, self._groups, nested, credentials
        )
        self._maintenance = Maintenance(
            ports,
            dispatcher,
            self._groups,
            self._checks,
            settings,
            lambda check: self._take([check]),
            lambda stack_id, traversal_id: self.cancel(None, stack_id, traversal_id),
        )

    # --- messages ---------------------------------------------------------------------------------------------

    def check_resource(self, context: object, traversal_id: str, node: int, hops: int = 0) -> None:
        """Look at a node, and do what it needs, when a thread is free. Returns at once.

        :param hops: how many workers without a free thread have handed it on.
        """
        self._maintenance.heard()
        check = Check(traversal_id, node, hops, beneficiary())
        if hops < HOPS and self._maintenance.is_better_elsewhere() and not self._groups.has_room_for(traversal_id):
            self._maintenance.hand_on(check)
        else:
            self._take([check])

    def run_locally(self, traversal_id: str, node: int) -> bool:
        """Look at a node of which no other worker can be told, if there is room; whether it will be looked at."""
        return self._keeping.take(traversal_id, node, HOPS)

    def _has_room(self, traversal_id: str) -> bool:
        return self._stopping.is_set() or self._groups.has_room_for(traversal_id)

    def _cast_later(self, delay_s: float, traversal_id: str, number: int) -> None:
        self._timers.after(delay_s, lambda: self._dispatcher.cast([(traversal_id, number)]))

    def _take(self, checks: Sequence[Check]) -> bool:
        taken = self._groups.submit_all([(check, partial(self._work, check)) for check in checks])
        if not taken:
            self._refused.extend(checks)
            if self._leaving.is_set():
                self._pass_on()
        return taken

    def _work(self, check: Check, task: Task) -> None:
        with logs.bind(traversal=check.traversal_id, worker=self.id), on_behalf_of(check.project):
            self._in_a_row.check(check.traversal_id, check.node, task)

    def _pass_on(self) -> None:
        """Tell other workers of what does not begin here any more."""
        with suppress(IndexError):
            while True:
                check = self._refused.popleft()
                if check.node != NO_NODE:
                    with on_behalf_of(check.project):
                        self._dispatcher.cast([(check.traversal_id, check.node)])

    def cancel(self, context: object, stack_id: str, traversal_id: str) -> None:
        """Stop what runs here for a traversal."""
        self._cancelled.append(traversal_id)
        tasks = self._groups.stop(traversal_id, self._options.cancel_grace_s)
        if tasks:
            LOG.info('This worker cancels %d tasks of traversal %s', tasks, traversal_id)

    # --- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Become known, before the first message is taken."""
        self.heartbeat.start()
        self._timers.start()

    def begin_nothing(self) -> None:
        """From now on nothing begins here, by whatever way it comes: no check, no action, no repetition of a call.

        Returns at once. What is refused meanwhile is kept for `begin_to_stop`: for as long as messages are taken, it
        would come straight back.
        """
        self._stopping.set()
        self._refused.extend(self._groups.close())

    def begin_to_stop(self, grace_s: float) -> None:
        """Hand back what waits, let calls that run come to their end. Take no messages from now on.

        :param grace_s: what still runs after so many seconds is given back as it is.
        """
        self.begin_nothing()
        self._leaving.set()
        self._timers.stop()
        self._pass_on()
        self._unannounced.announce()
        self._groups.interrupt(grace_s)

    def wait(self, timeout_s: float) -> bool:
        """After `begin_to_stop`: wait until nothing runs and every result is stored; whether that came true in time.

        Results that are not stored by then are told in the log, for an operator to look after their objects.
        """
        ends = time.monotonic() + timeout_s
        while self._is_busy() and time.monotonic() < ends:
            ThreadEvent().wait(0.05)
        for unsaved in self._checks.unsaved():
            LOG.error('This worker had to end before it could store a result; look after the object: %s', unsaved)
        return not self._is_busy()

    def _is_busy(self) -> bool:
        # Nothing begins any more, so what is seen to have ended has ended for good. A thread that was given up does not
        # count as busy, and may hold a result all the same.
        return self._groups.occupancy().busy > 0 or bool(self._checks.unsaved())

    def leave(self) -> None:
        """Be gone. What is still held here is taken over by others at once."""
        self.heartbeat.stop()

    def _left(self, task: Task) -> None:
        self._checks.leave_behind(task, self._cancelled)

    def give_up(self) -> None:
        """The others take our work by now: stop it. What we write late is refused by its fence."""
        self._groups.interrupt(self._options.cancel_grace_s)

    def reconcile(self) -> None:
        """See `convergence.worker.upkeep.maintenance` and `convergence.worker.upkeep.result_journal`."""
        do_each(self.recent.look, self.recent.mend)
        if WorkerTask.REMOVE_SNAPSHOTS in self._maintenance():
            self._snapshot_removal()

    def load(self) -> Load:
        """How busy this worker is, for the service list."""
        return asdict(self._groups.occupancy())

    def unhealthy_reason(self) -> str:
        """Why this process should be started anew; empty while it should not."""
        if self._maintenance.fitness is Fitness.FIT:
            return ''
        return f'{self._groups.stuck} threads are stuck in calls of resource types that do not end'
