"""Put a worker together. The command, the simulator and the tests call this with ports of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from convergence import logs
from convergence.concurrency import Task, sleep
from convergence.core.claim import Worker
from convergence.credentials.model import Credentials
from convergence.db.ports import Ports
from convergence.db.repositories.witness import LostCommits, Witness
from convergence.dispatch import Dispatcher
from convergence.heartbeat import Heartbeat, Presence
from convergence.resources.registry import Registry
from convergence.rpc.shares import on_behalf_of
from convergence.worker.attempts.port import NO_NESTING, NestingPort, WorkerPort, none_of_stack, wait
from convergence.worker.attempts.runner import Runner
from convergence.worker.checks.assess import Assessor
from convergence.worker.checks.claim_table import ClaimTable
from convergence.worker.checks.fences import Fences
from convergence.worker.checks.nested_batch import NestedBatch
from convergence.worker.checks.node_checks import CheckPorts, NodeChecks, Settler
from convergence.worker.checks.steps import Steps, begin_free
from convergence.worker.scheduler.local_queue import LocalQueue
from convergence.worker.scheduler.scheduler import CallLater, Scheduler
from convergence.worker.scheduler.thread_groups import Check, ThreadGroups
from convergence.worker.scheduler.timers import Timers
from convergence.worker.scheduler.turn import Turn
from convergence.worker.service import WorkerOptions, WorkerParts, WorkerService
from convergence.worker.upkeep.maintenance import Maintenance, MaintenanceSettings
from convergence.worker.upkeep.result_journal import ResultJournal
from convergence.worker.upkeep.snapshot_removal import SnapshotRemoval


@dataclass(frozen=True, slots=True)
class WorkerRuntime:
    """The clock and the threads of a worker; the simulator has its own.

    :param wait: waits for some seconds, or until a task is cancelled; returns True if it was.
    :param retry_later: dispatches a node after some seconds; None: a timer of the worker does.
    :param call_later: makes a call after some seconds; None: a timer of the worker does.
    :param threads: makes the threads, as `ThreadGroups` does.
    :param pause: lets some seconds pass.
    :param clock: seconds on the clock of this process.
    """

    wait: Callable[[Task, float], bool] = wait
    retry_later: Callable[[float, str, int], None] | None = None
    call_later: CallLater | None = None
    threads: Callable[[int, Callable[[Task], object]], ThreadGroups] = ThreadGroups
    pause: Callable[[float], None] = sleep
    clock: Callable[[], float] = time.monotonic


class MakeWitness(Protocol):
    """Makes the witness of one process, which detects lost commits."""

    def __call__(self, worker_id: str, lost: Callable[[LostCommits], None]) -> Witness:
        """:param lost: notified of each loss."""


def wire_worker(
    ports: Ports,
    dispatcher: Dispatcher,
    registry: Registry,
    settler: Settler,
    options: WorkerOptions,
    new_id: Callable[[], str],
    runtime: WorkerRuntime = WorkerRuntime(),
    nested: NestingPort = NO_NESTING,
    credentials: Callable[[str], Credentials] = none_of_stack,
    witness: MakeWitness | None = None,
) -> WorkerService:
    """Make a worker.

    Threads, scheduler and checks form a ring: a thread checks a node, the check reports ready nodes to the scheduler,
    and the scheduler gives them to threads. Two functions close it: `run` and `check_node` name parts that are made
    later.

    :param nested: the nested stacks of the worker; see `convergence.worker.attempts.nested`.
    :param credentials: the credentials of the stack with an id; see `convergence.worker.attempts.credentials`.
    """
    worker = Worker(
        new_id(),
        new_id,
        options.dispatch_window,
        registry.time_limit,
        registry.can_snapshot,
        lambda name: registry.creation(name, options.create_ambiguity_s),
        options.max_input_bytes,
        registry.nests,
        Fences().next,
    )
    timers = Timers()
    call_later = runtime.call_later or timers.after

    def retry_later(delay_s: float, traversal_id: str, number: int) -> None:
        timers.after(delay_s, lambda: dispatcher.cast([(traversal_id, number)]))

    def run(check: Check, task: Task) -> None:
        with logs.bind(traversal=check.traversal_id, worker=worker.id), on_behalf_of(check.project):
            scheduler.run(check.traversal_id, check.node, task)

    def check_node(turn: Turn) -> None:
        checks.check(turn)

    threads = runtime.threads(options.threads, lambda task: checks.leave_behind(task, service_parts.cancelled))
    queue = LocalQueue(threads, dispatcher, run)
    scheduler = Scheduler(check_node, dispatcher, queue, options.max_inline_nodes, call_later, runtime.clock)
    journal = ResultJournal(
        ports.store, dispatcher, new_id, ports.reader.resource, ports.reader.traversal, runtime.clock
    )
    assess = Assessor(registry, options.max_stored_bytes)
    steps = Steps(ports.store, worker, assess, journal.dropped, runtime.pause)
    port = WorkerPort(
        steps.record,
        steps.escalate,
        queue.is_draining,
        steps.is_wanted,
        runtime.wait,
        ports.reader.signals,
        options.max_stored_bytes,
        nested,
        ports.software,
        credentials,
    )
    runner = Runner(registry, options.poll_policy, port)
    batch = NestedBatch(
        partial(begin_free, ports.store, worker, assess),
        worker.nests,
        runner.attempts,
        nested,
        scheduler,
        queue.is_draining,
        runtime.clock,
    )
    check_ports = CheckPorts(
        settler,
        runtime.retry_later or retry_later,
        journal.add,
        nested.lost_handoff,
        queue.is_draining,
        runtime.clock,
    )
    checks = NodeChecks(steps, runner, batch, scheduler, dispatcher, ClaimTable(runtime.clock), check_ports)
    settings = MaintenanceSettings(
        worker,
        older_than_s=options.unattended_s,
        max_stuck_threads=options.max_stuck_threads or options.threads,
        grace_s=options.cancel_grace_s,
    )
    maintenance = Maintenance(
        ports,
        dispatcher,
        queue,
        checks,
        settings,
        lambda stack_id, traversal_id: service.cancel(None, stack_id, traversal_id),
    )
    heartbeat = Heartbeat(
        ports.roster,
        Presence(worker.id, 'worker', options.host, options.version, options.lease_s),
        options.heartbeat_interval_s,
        on_beat=lambda: service.reconcile(),
        load=lambda: service.load(),
        on_lost=lambda: service.give_up(),
        witness=witness(worker.id, journal.add_loss) if witness is not None else None,
    )
    removal = SnapshotRemoval(ports.snapshots, ports.reader, registry, threads, nested, credentials)
    service_parts = WorkerParts(heartbeat, timers, queue, scheduler, checks, journal, maintenance, removal)
    service = WorkerService(worker.id, options, service_parts)
    return service
