"""The worker of one process: takes checks and cancels, shows that it is alive, and ends in good order."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from convergence import logs
from convergence.concurrency import Event, GroupStopped, Task, sleep
from convergence.core.claim import Worker
from convergence.core.finish import release
from convergence.core.model import TraversalStatus
from convergence.db.queries import Reader
from convergence.db.roster import Roster
from convergence.db.scopes import HeldResource
from convergence.db.transaction import Transactions
from convergence.dispatch import Dispatcher
from convergence.heartbeat import Heartbeat, Presence
from convergence.resources.registry import Registry
from convergence.worker.assess import Assessor
from convergence.worker.checks import Checks, Settler
from convergence.worker.groups import ThreadGroups
from convergence.worker.runner import Pace, Runner, Surroundings, wait
from convergence.worker.steps import Steps
from convergence.worker.timers import Timers

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker needs to know. Times in seconds.

    :param lease_s: after so long without a heartbeat the others take its work; it stops by itself then.
    """

    host: str
    version: str
    pace: Pace = field(default_factory=Pace)
    heartbeat_interval_s: float = 5.0
    lease_s: float = 30.0
    cancel_grace_s: float = 10.0
    threads: int = 8
    dispatch_window: int = 64


@dataclass(frozen=True, slots=True)
class Clockwork:
    """How a worker waits.

    :param wait: waits for a while, or until a task is cancelled; whether it was.
    :param later: has a node cast again after some seconds; None for timers of its own.
    :param groups: runs tasks; None for thread groups of its own.
    :param pause: lets some seconds pass.
    """

    wait: Callable[[Task, float], bool] = wait
    later: Callable[[float, str, int], None] | None = None
    groups: ThreadGroups | None = None
    pause: Callable[[float], None] = sleep


@dataclass(frozen=True, slots=True)
class Rows:
    """The database, as a worker uses it."""

    store: Transactions
    reader: Reader
    roster: Roster


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
        self._worker = Worker(self.id, new_id, options.dispatch_window)
        self._timers = Timers(lambda traversal_id, number: dispatcher.cast([(traversal_id, number)]))
        self._stopping = Event()
        self._groups = clockwork.groups or ThreadGroups(options.threads, self._left)
        self._cancelled: deque[str] = deque(maxlen=1000)
        self._forgotten: frozenset[tuple[str, int]] = frozenset()
        self._heartbeat = Heartbeat(
            self._roster,
            Presence(self.id, 'worker', options.host, options.version, options.lease_s),
            options.heartbeat_interval_s,
            on_beat=self.reconcile,
            on_lost=self.give_up,
        )
        steps = Steps(store, self._worker, Assessor(registry), clockwork.pause)
        around = Surroundings(
            steps.record, steps.escalate, self._stopping.is_set, steps.is_wanted, clockwork.wait
        )
        runner = Runner(registry, options.pace, around)
        self._checks = Checks(steps, dispatcher, runner, settler, clockwork.later or self._timers.after)

    # --- messages ---------------------------------------------------------------------------------------------

    def check_resource(self, context: Any, traversal_id: str, node: int) -> None:
        """Look at a node and do what it needs."""

        def work(task: Task) -> None:
            with logs.bind(traversal=traversal_id, node=node, worker=self.id):
                self._checks.check(traversal_id, node, task)

        try:
            self._groups.run(traversal_id, work)
        except GroupStopped:
            LOG.debug('node %d of the cancelled traversal %s is left alone', node, traversal_id)

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
        self._groups.stop_all(grace_s)

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing runs any more; whether that came true in time."""
        ends = time.monotonic() + timeout_s
        while self._groups.busy() and time.monotonic() < ends:
            Event().wait(0.05)
        return not self._groups.busy()

    def leave(self) -> None:
        """Be gone. What is still held here is taken over by others at once."""
        self._heartbeat.stop()

    def _left(self, task: Task) -> None:
        self._checks.leave_behind(task, self._cancelled)

    def give_up(self) -> None:
        """The others take our work by now: stop it. What we write late is refused by its fence."""
        self._groups.stop_all(0.0)

    def reconcile(self) -> None:
        """Give back rows that nobody works on here, and stop work that nobody wants: a message may have been lost.

        A row counts as forgotten when no task works on it and it is seen so twice in a row under the same fence.
        """
        self._stop_unwanted()
        held = {(resource.id, resource.fence) for resource in self._roster.held_by(self.id)}
        forgotten = held - self._checks.holding()
        for resource_id, fence in sorted(forgotten & self._forgotten):
            LOG.warning('Giving back resource %s, which nothing works on', resource_id)
            self._give_back(resource_id, fence)
        self._forgotten = frozenset(forgotten)

    def _give_back(self, resource_id: str, fence: int) -> None:
        committed = self._store.transact(HeldResource(resource_id), lambda view: release(view, fence))
        if committed is not None:
            self._dispatcher.attend(committed)

    def _stop_unwanted(self) -> None:
        for traversal_id in self._groups.traversals():
            traversal = self._reader.traversal(traversal_id)
            if traversal is None or traversal.status is TraversalStatus.RUNNING:
                continue
            stack = self._reader.stack(traversal.stack_id)
            current = self._reader.traversal(stack.traversal_id) if stack and stack.traversal_id else None
            superseded = current is not None and current.id != traversal_id and current.cancels
            if traversal.status is TraversalStatus.CANCELLED or superseded:
                self.cancel(None, traversal.stack_id, traversal_id)
