"""Put the parts together: from settings to a worker, an engine, or both in one process."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Self

from oslo_config import cfg

from convergence import __version__, template
from convergence.cmd import failpoints
from convergence.cmd.database import open_database
from convergence.config import Settings
from convergence.core.claim import Worker as CoreWorker
from convergence.db.connection import Database
from convergence.db.migration import require_newest
from convergence.db.overview import Overview
from convergence.db.purges import DAY_S, Keep
from convergence.db.queries import Reader
from convergence.db.roster import Roster
from convergence.db.snapshots import SnapshotRows
from convergence.db.software import SoftwareRows
from convergence.db.store import Store
from convergence.db.sweeps import Sweeps
from convergence.dispatch import Dispatcher
from convergence.engine.abandonment import Abandonment
from convergence.engine.actions import Actions, Present
from convergence.engine.chores import SweepOptions
from convergence.engine.goals import Goals
from convergence.engine.presence import Presences
from convergence.engine.preview import Previews
from convergence.engine.reads import (
    ExplainReads,
    HistoryReads,
    InstallationReads,
    ProgressReads,
    ResourceReads,
    StackReads,
)
from convergence.engine.service import EngineService
from convergence.engine.signals import Signals
from convergence.engine.snapshots import Snapshots
from convergence.engine.software import Software
from convergence.engine.stacks import StackLimits, Stacks
from convergence.engine.sweeper import Sweeper
from convergence.engine.traversals import Traversals
from convergence.heartbeat import Heartbeat, Presence
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.registry import Registry
from convergence.rpc.client import EngineClient, WorkerClient
from convergence.rpc.server import CancelServer, EngineServer, WorkerServer
from convergence.rpc.transport import MEMORY_URL, Transport
from convergence.rpc.transport import connect as connect_broker
from convergence.worker.course import Pace
from convergence.worker.fallback import OwnHands
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.upkeep import Rows


def new_id() -> str:
    """An id that was never used before."""
    return str(uuid.uuid4())


def open_transport(settings: Settings, prefix: str | None = None) -> Transport:
    """Connect to the configured broker.

    :param prefix: see `convergence.rpc.transport.connect`.
    :raises ConfigurationError: the URL is wrong.
    :raises MessagingUnavailable: the broker does not answer.
    """
    configured = settings.transport
    return connect_broker(cfg.CONF, configured.url, prefix=prefix, call_timeout_s=configured.response_timeout_s)


def registry(settings: Settings) -> Registry:
    """The resource types that are installed, with the local provider where that is enabled."""
    local, listens = settings.local_provider, settings.api
    api = f'{listens.public_url.rstrip("/") or f"http://{listens.host}:{listens.port}"}/v1'
    if not local.enabled:
        return Registry.installed(api=api)
    programs = {name: str(path) for name, path in local.programs.items()}
    provider = LocalProvider(local.root, programs) if programs else LocalProvider(local.root)
    return Registry.installed(local=provider, api=api)


@dataclass(frozen=True, slots=True)
class Parts:
    """What every process has.

    :param types: the resource types of this process.
    """

    settings: Settings
    store: Store
    transport: Transport
    types: Registry

    @classmethod
    def of(cls, settings: Settings, database: Database, transport: Transport, types: Registry | None = None) -> Self:
        """The parts on a database and a broker that answer.

        :raises DatabaseUnavailable: the schema is not the one that this version needs.
        """
        require_newest(database)
        points = failpoints.from_environment()
        if points is not None:
            transport.around_send = points.send
        store = Store(database, around_commit=points.commit if points is not None else None)
        return cls(settings, store, transport, types or registry(settings))

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """The parts on the configured database and broker.

        :raises OperatorError: one of them does not answer, or cannot be used.
        """
        database = open_database(settings)
        require_newest(database)
        return cls.of(settings, database, open_transport(settings))

    def close(self) -> None:
        """Give the connections back. What uses them must have been stopped."""
        self.transport.close()
        self.store.engine.dispose()

    def dispatcher(self) -> Dispatcher:
        """Casts to the workers."""
        return Dispatcher(self.store, WorkerClient(self.transport), new_id)

    def queue_name(self, service_id: str) -> str:
        """Under which name a process listens.

        Nobody sends to a single process. On a broker all of one machine share a name, so that a process that starts
        leaves no queues of its own behind; inside a process the name tells its listeners apart.
        """
        in_process = self.settings.transport.url.startswith(MEMORY_URL.partition(':')[0] + ':')
        return service_id if in_process else self.settings.host


class WorkerProcess:
    """A worker with its servers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        settings = parts.settings.worker
        pace = Pace(
            settings.poll_interval_min_s,
            settings.poll_interval_max_s,
            settings.park_after_s,
            settings.transient_attempts,
        )
        options = WorkerOptions(
            host=parts.settings.host,
            version=__version__,
            pace=pace,
            heartbeat_interval_s=settings.heartbeat_interval_s,
            lease_s=settings.lease_s,
            cancel_grace_s=settings.cancel_grace_s,
            unattended_s=3 * settings.sweep_interval_s,
            most_stuck=settings.max_stuck_threads,
            threads=settings.threads,
            dispatch_window=settings.dispatch_window,
        )
        self._drain_timeout_s = settings.drain_timeout_s
        hands = OwnHands(WorkerClient(parts.transport))
        self.service = WorkerService(
            Rows(
                parts.store, Reader(parts.store), Roster(parts.store), Sweeps(parts.store), SnapshotRows(parts.store)
            ),
            Dispatcher(parts.store, hands, new_id),
            parts.types,
            EngineClient(parts.transport),
            options,
            new_id,
        )
        hands.lend_a_hand = self.service.lend_a_hand
        queue_name = parts.queue_name(self.service.id)
        self._checks = WorkerServer(parts.transport, queue_name, self.service)
        self._cancels = CancelServer(parts.transport, queue_name, self.service)

    def start(self) -> None:
        """Take work."""
        self.service.start()
        self._cancels.start()
        self._checks.start()

    def stop(self) -> bool:
        """Take no more work, hand back what waits, finish what runs; whether all of it ended in time."""
        self._checks.stop()
        self.service.begin_to_stop(self._drain_timeout_s)
        drained = self.service.wait(self._drain_timeout_s)
        self._cancels.stop()
        self._checks.wait(1.0)
        self._cancels.wait(1.0)
        self.service.leave()
        return drained

    def ailment(self) -> str:
        """Why this process should be started anew; empty while it should not."""
        return self.service.ailment()

    def close(self) -> None:
        """Give back the connections."""
        self._parts.close()


def _acting(parts: Parts, stacks: Stacks, goals: Goals, traversals: Traversals) -> tuple[object, ...]:
    """What an engine does to stacks besides giving them goals."""
    store, settings, limits = parts.store, parts.settings.engine, parts.settings.limits
    present = Present(stacks.reader, goals)
    return (
        Actions(store, stacks.reader, stacks, present, traversals, new_id),
        Snapshots(stacks, goals, traversals, SnapshotRows(store), new_id, most=limits.max_snapshots_per_stack),
        Abandonment(stacks, goals, traversals, enabled=settings.enable_stack_abandon),
    )


def _reading(parts: Parts, reader: Reader, goals: Goals, stacks: Stacks) -> tuple[object, ...]:
    """What answers questions and changes nothing of any stack."""
    roster = Roster(parts.store)
    return (
        StackReads(reader, goals),
        ResourceReads(reader, goals),
        ExplainReads(reader, goals),
        HistoryReads(reader, goals),
        ProgressReads(Overview(parts.store), roster),
        InstallationReads(goals, parts.types, roster, __version__),
        Previews(reader, parts.types, stacks),
        Presences(roster),
    )


class EngineProcess:
    """An engine with its server.

    :param stop_s: seconds that requests in hand are given when it is stopped.
    """

    def __init__(self, parts: Parts, *, stop_s: float = 10.0) -> None:
        self._parts = parts
        self._stop_s = stop_s
        settings, limits = parts.settings.engine, parts.settings.limits
        engine_id = new_id()
        reader, roster, dispatcher = Reader(parts.store), Roster(parts.store), parts.dispatcher()
        most = limits.max_resources_per_stack
        allowed = template.Limits(
            max_bytes=limits.max_template_bytes, max_resources=most if most is not None else 1_000_000_000
        )
        goals = Goals(reader, parts.types, allowed)
        traversals = Traversals(
            parts.store, reader, goals, dispatcher, new_id, window=settings.dispatch_window
        )
        stacks = Stacks(
            reader, goals, traversals, StackLimits(
                limits.max_stacks_per_project, limits.stack_timeout_mins, settings.enable_stack_adopt
            ), new_id
        )
        sweep = SweepOptions(
            interval_s=settings.sweep_interval_s,
            older_than_s=settings.sweep_interval_s,
            neglect_s=2 * settings.lease_s,
            interrupt_s=2 * settings.lease_s,
            stall_after_s=settings.stall_after_s,
        )
        myself = CoreWorker(engine_id, new_id, settings.dispatch_window)
        days = limits.deleted_stacks_days
        keep = Keep(
            limits.max_events_per_stack, limits.max_operations_per_stack, None if days is None else days * DAY_S
        )
        sweeps = Sweeps(parts.store, keep)
        sweeper = Sweeper(parts.store, sweeps, roster, dispatcher, traversals, sweep, myself)
        presence = Presence(engine_id, 'engine', parts.settings.host, __version__, settings.lease_s)
        heartbeat = Heartbeat(
            roster, presence, settings.heartbeat_interval_s,
            load=lambda: {'threads': settings.threads, 'busy': self._server.busy},
        )  # fmt: skip
        reads = _reading(parts, reader, goals, stacks)
        software = Software(SoftwareRows(parts.store), new_id)
        signals = Signals(parts.store, reader, stacks, parts.types, dispatcher, new_id)
        acting = (stacks, signals, software, *_acting(parts, stacks, goals, traversals))
        self.service = EngineService((*acting, *reads), traversals, sweeper, heartbeat)
        name = parts.queue_name(engine_id)
        self._server = EngineServer(parts.transport, name, self.service, threads=settings.threads)

    def start(self) -> None:
        """Take requests."""
        self.service.start()
        self._server.start()

    def stop(self) -> bool:
        """Take no more requests, finish those that were taken; whether all of them ended in time."""
        self._server.stop()
        finished = self._server.wait(self._stop_s)
        self.service.stop()
        return finished

    def close(self) -> None:
        """Give back the connections."""
        self._parts.close()
