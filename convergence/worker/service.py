"""The worker of one process: takes messages, renews its lease, and drains."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import asdict, dataclass, field

from convergence.concurrency import ThreadEvent
from convergence.core.model import DISPATCH_WINDOW
from convergence.db.records import WorkerTask
from convergence.heartbeat import Heartbeat, Load
from convergence.rpc.shares import beneficiary
from convergence.settings import WorkerSettings
from convergence.template.limits import STANDARD
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.checks.node_checks import NodeChecks
from convergence.worker.scheduler.constants import MAX_REDELIVERIES
from convergence.worker.scheduler.local_queue import LocalQueue
from convergence.worker.scheduler.scheduler import Scheduler
from convergence.worker.scheduler.thread_groups import Check
from convergence.worker.scheduler.timers import Timers
from convergence.worker.upkeep.maintenance import Health, Maintenance, do_each
from convergence.worker.upkeep.result_journal import ResultJournal
from convergence.worker.upkeep.snapshot_removal import SnapshotRemoval

_SETTINGS = WorkerSettings()

LOG = logging.getLogger(__name__)

MAX_CANCELLED = 1000
"""Maximum number of remembered cancelled traversals. They decide if a task that does not stop fails its action or only
releases its row. A task is given up some seconds after its cancel, so only the latest cancels matter."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The settings of a worker. Times in seconds.

    :param lease_s: time after the last heartbeat at which other workers take over its rows; it stops by itself then.
    :param max_inline_nodes: how many nodes a thread runs one after the other; see `convergence.worker.scheduler`.
    :param unattended_s: age of a READY node from which this worker takes it without a message; None: never.
    :param max_stored_bytes: maximum size of each kind of a resource's values (properties, an attribute ...), as JSON.
    :param max_input_bytes: maximum size of the values that a resource takes from others, as stored; None: no limit.
    :param create_ambiguity_s: time for which a creation may still take effect after its worker has died, unless its
        type says otherwise.
    :param max_stuck_threads: number of stuck threads at which the process must be restarted; None: all its threads.
    """

    host: str
    version: str
    poll_policy: PollPolicy = field(default_factory=PollPolicy)
    heartbeat_interval_s: float = _SETTINGS.heartbeat_interval_s
    lease_s: float = _SETTINGS.lease_s
    cancel_grace_s: float = _SETTINGS.cancel_grace_s
    unattended_s: float | None = 15.0
    threads: int = _SETTINGS.threads
    max_stuck_threads: int | None = None
    dispatch_window: int = DISPATCH_WINDOW
    max_inline_nodes: int = 1
    max_stored_bytes: int = STANDARD.max_stored_bytes
    max_input_bytes: int | None = None
    create_ambiguity_s: float = _SETTINGS.create_ambiguity_s


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The parts of a worker; see `convergence.worker.wiring`.

    :param cancelled: ids of traversals that were cancelled lately.
    """

    heartbeat: Heartbeat
    timers: Timers
    queue: LocalQueue
    scheduler: Scheduler
    checks: NodeChecks
    journal: ResultJournal
    maintenance: Maintenance
    snapshot_removal: SnapshotRemoval
    cancelled: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_CANCELLED))


class WorkerService:
    """Handles the messages to a worker. Its id is new each time it is made: no id is ever used twice."""

    def __init__(self, worker_id: str, options: WorkerOptions, parts: WorkerParts) -> None:
        self.id = worker_id
        self._options = options
        self._parts = parts
        self._threads = parts.queue.threads
        self.heartbeat = parts.heartbeat
        self.journal = parts.journal

    # --- messages ---------------------------------------------------------------------------------------------

    def check_resource(self, context: object, traversal_id: str, node: int, hops: int = 0) -> None:
        """Accept a node, or forward it to another worker. Returns at once.

        :param hops: number of redeliveries: how often workers without a free thread have forwarded it.
        """
        self._parts.maintenance.heard()
        self._parts.queue.accept(Check(traversal_id, node, hops, beneficiary()))

    def run_locally(self, traversal_id: str, node: int) -> bool:
        """Run a node for which the broker takes no message, if there is room; return True if it will run."""
        return self._parts.queue.put_if_room(Check(traversal_id, node, MAX_REDELIVERIES, beneficiary()))

    def cancel(self, context: object, stack_id: str, traversal_id: str) -> None:
        """Stop the tasks of a traversal."""
        self._parts.cancelled.append(traversal_id)
        tasks = self._threads.stop(traversal_id, self._options.cancel_grace_s)
        if tasks:
            LOG.info('Cancelling %d tasks of traversal %s', tasks, traversal_id)

    # --- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Register the worker, before it takes the first message."""
        self.heartbeat.start()
        self._parts.timers.start()

    def begin_nothing(self) -> None:
        """Start no further check, action or retry. Returns at once.

        Nodes that are refused meanwhile are kept for `begin_to_stop`: while this worker takes messages, a node that it
        sent away could come straight back.
        """
        self._parts.queue.close()

    def begin_to_stop(self, grace_s: float) -> None:
        """Send waiting nodes to other workers, and let running calls finish. Take no messages from now on.

        :param grace_s: seconds after which a row whose call still runs is given back in the middle of its action.
        """
        self.begin_nothing()
        self._parts.timers.stop()
        self._parts.queue.leave()
        self._parts.scheduler.flush()
        self._threads.interrupt(grace_s)

    def wait(self, timeout_s: float) -> bool:
        """After `begin_to_stop`: wait until nothing runs and every result is stored; return False on timeout.

        Each result that is not stored by then is logged, for an operator who has to find its object.
        """
        ends = time.monotonic() + timeout_s
        while self._is_busy() and time.monotonic() < ends:
            ThreadEvent().wait(0.05)
        for pending in self._parts.checks.unsaved():
            LOG.error(
                'Stopping with an unsaved result; check the object and delete it if it is not needed: %s', pending
            )
        return not self._is_busy()

    def _is_busy(self) -> bool:
        # Nothing starts any more, so a task that has ended has ended for good. A thread that was given up does not
        # count as busy, and may hold a result all the same.
        return self._threads.occupancy().busy > 0 or bool(self._parts.checks.unsaved())

    def leave(self) -> None:
        """Sign off. Other workers take over at once what this one still holds."""
        self.heartbeat.stop()

    def give_up(self) -> None:
        """Stop all tasks: the lease is lost, other workers take over the rows, and the fences refuse late writes."""
        self._threads.interrupt(self._options.cancel_grace_s)

    def reconcile(self) -> None:
        """Do what follows a heartbeat; see `convergence.worker.upkeep`."""
        do_each(self.journal.check, self.journal.mend)
        if WorkerTask.REMOVE_SNAPSHOTS in self._parts.maintenance():
            self._parts.snapshot_removal()

    def load(self) -> Load:
        """How busy this worker is, for the service list."""
        return asdict(self._threads.occupancy())

    def unhealthy_reason(self) -> str:
        """Why this process should be restarted; empty if it should not."""
        if self._parts.maintenance.health is Health.OK:
            return ''
        return f'{self._threads.stuck} threads are stuck in calls of resource types that do not end'
