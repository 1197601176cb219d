"""Work that follows each heartbeat: any message may have been lost, and any thread may be stuck."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from convergence.concurrency import StopReason
from convergence.core.claim import NO_NODE, Worker
from convergence.core.failure import nobody_waits_for
from convergence.core.held import release
from convergence.core.model import TraversalStatus
from convergence.core.rows import Traversal
from convergence.db.ports import Ports
from convergence.db.records import WorkerTask
from convergence.db.scopes import HeldResource
from convergence.db.transaction import LAST
from convergence.dispatch import Dispatcher
from convergence.errors import Conflict, DatabaseUnavailable
from convergence.worker.checks.node_checks import NodeChecks
from convergence.worker.scheduler.constants import MAX_REDELIVERIES
from convergence.worker.scheduler.local_queue import LocalQueue
from convergence.worker.scheduler.thread_groups import Check

LOG = logging.getLogger(__name__)

SILENT_ROUNDS = 3
"""Number of heartbeats without a message after which a worker no longer relies on messages; see `unattended_s`."""

IDLE_ROUNDS = 6
"""Number of heartbeats without messages and pending tasks after which an idle worker queries the database only with
every second heartbeat."""

BETWEEN_SWEEPS = 6
"""Divisor of `MaintenanceSettings.older_than_s`: that is the time of three sweeps, and a sixth of it half a sweep."""


class Health(StrEnum):
    """The state of a worker process."""

    OK = 'OK'
    DEGRADED = 'DEGRADED'


@dataclass(frozen=True, slots=True)
class MaintenanceSettings:
    """Settings of the work that follows a heartbeat.

    :param worker: the worker whose rows and threads are maintained.
    :param older_than_s: seconds for which a node must have been READY and unclaimed before this worker takes it without
        a message. Longer than a sweep: while engines, broker and workers run, the only such nodes wait for a thread of
        an overloaded worker. None: this worker takes no node without a message.
    :param grace_s: seconds after which a stopped task that has not ended is given up.
    :param max_stuck_threads: number of stuck threads at which the process is DEGRADED and must be restarted.
    """

    worker: Worker
    older_than_s: float | None
    grace_s: float
    max_stuck_threads: int


def do_each(*tasks: Callable[[], object]) -> None:
    """Run tasks one after the other. A task that fails does not prevent the next ones.

    :raises DatabaseUnavailable: the database cannot be reached; the remaining tasks wait for the next heartbeat.
    """
    for task in tasks:
        name = getattr(task, '__name__', repr(task))
        try:
            task()
        except DatabaseUnavailable:
            raise
        except Conflict as error:
            LOG.info('Heartbeat task %s postponed to the next heartbeat: %s', name, error)
        except Exception:
            LOG.exception('Heartbeat task %s failed, retrying with the next heartbeat', name)


def unattended_s(older_than_s: float | None, silent_rounds: int) -> float | None:
    """Seconds for which a node must be READY before a worker takes it without a message; None: it takes none.

    Messages may get lost without an error in the engine that sends them: it then counts the nodes as dispatched again
    with each sweep, so they never become older than a sweep. So a worker that receives no message takes nodes after
    half a sweep.

    :param older_than_s: the value while messages arrive.
    """
    if older_than_s is None or silent_rounds <= SILENT_ROUNDS:
        return older_than_s
    return older_than_s / BETWEEN_SWEEPS


class Maintenance:
    """Maintains the rows and threads of one worker.

    :param stop: stops the tasks of a traversal: ``stop(stack_id, traversal_id)``.
    """

    def __init__(
        self,
        ports: Ports,
        dispatcher: Dispatcher,
        queue: LocalQueue,
        checks: NodeChecks,
        settings: MaintenanceSettings,
        stop: Callable[[str, str], object],
    ) -> None:
        self._ports = ports
        self._dispatcher = dispatcher
        self._queue = queue
        self._groups = queue.threads
        self._checks = checks
        self._settings = settings
        self._stop = stop
        self._silence = 0
        self._older_than_s = settings.older_than_s
        self._quiet_rounds, self._queried = 0, False
        self._forgotten: frozenset[tuple[str, int]] = frozenset()

    def __call__(self) -> frozenset[WorkerTask]:
        """Run all tasks once. A task that fails does not prevent the next ones.

        :returns: the tasks that were pending for a worker, also those that other objects do.
        :raises DatabaseUnavailable: the database cannot be reached; the remaining tasks wait for the next heartbeat.
        """
        do_each(self.stop_unwanted, self.stop_overdue)
        self._silence += 1
        self._older_than_s = unattended_s(self._settings.older_than_s, self._silence)
        self._quiet_rounds += 1
        is_idle = self._quiet_rounds > IDLE_ROUNDS and not self._groups.traversals()
        self._queried = not (is_idle and self._queried)
        worker, pending = self._settings.worker, frozenset[WorkerTask]()
        if self._queried:
            pending = self._ports.pending.of_worker(worker.id, self._older_than_s or 0.0, worker.window)
        if pending:
            self._quiet_rounds = 0
        if WorkerTask.GIVE_BACK not in pending:
            self._forgotten = frozenset()
        tasks: dict[Callable[[], object], WorkerTask | None] = {
            self.give_back_forgotten: WorkerTask.GIVE_BACK,
            self.forward_waiting: None,
            self.interrupt_left: WorkerTask.INTERRUPT,
            self.help_out: WorkerTask.HELP_OUT,
        }
        do_each(*(task for task, name in tasks.items() if name is None or name in pending))
        return pending

    @property
    def health(self) -> Health:
        """DEGRADED if so many threads are stuck that the process must be restarted."""
        return Health.DEGRADED if self._groups.stuck >= self._settings.max_stuck_threads else Health.OK

    def forward_waiting(self) -> None:
        """Forward waiting nodes if no thread comes free here and another worker has room."""
        self._queue.forward_waiting(self._has_room_elsewhere)

    def _has_room_elsewhere(self) -> bool:
        others = [each for each in self._ports.roster.services() if each.id != self._settings.worker.id]
        return any(each.kind == 'worker' and each.is_up and each.has_room for each in others)

    def give_back_forgotten(self) -> None:
        """Release claims of this worker for which no task runs.

        A row counts as forgotten when no task works on it and it is seen so twice in a row under the same fence.
        """
        held = {(resource.id, resource.fence) for resource in self._ports.roster.held_by(self._settings.worker.id)}
        forgotten = held - self._checks.holding()
        for resource_id, fence in sorted(forgotten & self._forgotten):
            LOG.warning('Releasing stale claim on resource %s: no task is running for it', resource_id)
            self._give_back(resource_id, fence)
        self._forgotten = frozenset(forgotten)

    def _give_back(self, resource_id: str, fence: int) -> None:
        committed = self._ports.store.transact(
            HeldResource(resource_id, fence=fence), lambda view: release(view, fence, self._settings.worker)
        )
        if committed is not None:
            self._dispatcher.attend(committed)

    def stop_unwanted(self) -> None:
        """Stop the tasks of cancelled traversals, whose message may have been lost.

        Also stop the tasks of a failed or cancelling traversal after its deadline.
        """
        reader = self._ports.reader
        now: float | None = None
        for traversal_id in self._groups.traversals():
            traversal = reader.traversal(traversal_id)
            if traversal is None or traversal.status is TraversalStatus.RUNNING:
                continue
            out_of_time = False
            if traversal.status in (TraversalStatus.FAILED, TraversalStatus.CANCELLING):
                now = reader.now() if now is None else now
                out_of_time = traversal.deadline <= now
            if out_of_time or traversal.status is TraversalStatus.CANCELLED or self._is_cancelled_by_next(traversal):
                self._stop(traversal.stack_id, traversal_id)

    def _is_cancelled_by_next(self, traversal: Traversal) -> bool:
        stack = self._ports.reader.stack(traversal.stack_id)
        if stack is None or stack.traversal_id in (None, traversal.id):
            return False
        current = self._ports.reader.traversal(stack.traversal_id or '')
        return current is not None and (current.cancels or nobody_waits_for(current))

    def stop_overdue(self) -> None:
        """Stop actions that have exceeded their time limit in the middle of a call."""
        for task, claim in self._checks.claims.overdue():
            LOG.warning('Stopping %s of %s: its time limit is over', claim.action, claim.resource.name)
            self._groups.stop_one(claim.node.traversal_id, task, StopReason.TIME, self._settings.grace_s)

    def interrupt_left(self) -> None:
        """Call `cancel` of types for actions that are still under way in stacks at rest."""
        idle = self._groups.occupancy().idle
        if self._settings.older_than_s is None or not idle or self._groups.is_closed:
            return
        for row in self._ports.sweeps.parked_at_rest(idle):
            self._groups.submit(Check(row.traversal_id or '', NO_NODE), partial(self._checks.interrupt, row))

    def heard(self) -> None:
        """Note that a message arrived."""
        self._silence = self._quiet_rounds = 0

    def help_out(self) -> None:
        """Take nodes that have been READY for long: broker and engines may be down while the database is up."""
        older_than_s, idle = self._older_than_s, self._groups.occupancy().idle
        if older_than_s is None or not idle or self._groups.is_closed:
            return
        found = self._ports.sweeps.undispatched(older_than_s, idle, self._settings.worker.window)
        if found:
            LOG.info('Taking %d nodes that have been READY for %g s without a worker', len(found), older_than_s)
        for node in found:
            if node.phase in LAST:
                self._dispatcher.conclude([(node.traversal_id, node.number)])
            else:
                self._queue.put([Check(node.traversal_id, node.number, MAX_REDELIVERIES)])
