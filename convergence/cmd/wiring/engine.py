"""The engine of a process, wired from settings."""

from __future__ import annotations

from collections.abc import Mapping

from convergence import __version__, template
from convergence.cmd.wiring.notifications import ToldOutside
from convergence.cmd.wiring.parts import Parts, observed_types
from convergence.config import LimitSettings, Settings
from convergence.core.claim import Worker as CoreWorker
from convergence.db.ports import Ports
from convergence.db.records import Keep
from convergence.db.repositories.purges import DAY_S
from convergence.db.repositories.reads.overview import Overview
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.repositories.software import SoftwareRows
from convergence.db.repositories.wiring import ports_of
from convergence.db.repositories.witness import Witness
from convergence.engine.callers.credentials import StackCredentials
from convergence.engine.drift.requested_repairs import RepairOptions
from convergence.engine.nesting.converger import NestingLimits
from convergence.engine.operations.options import StackLimits
from convergence.engine.preview.preview import Previews
from convergence.engine.questions.worker_questions import WorkerQuestions
from convergence.engine.reads.answers import (
    DriftReads,
    ExplainReads,
    HistoryReads,
    InstallationReads,
    ProgressReads,
    ResourceReads,
    StackReads,
)
from convergence.engine.reads.nested_values import NestedReads
from convergence.engine.service import EngineService
from convergence.engine.signals.addresses import SignalAddresses
from convergence.engine.signals.software import Software
from convergence.engine.sweeper.credentials import CredentialRemoval
from convergence.engine.sweeper.presence import Presences
from convergence.engine.sweeper.tasks import SweepOptions
from convergence.engine.wiring import EngineOptions, EngineParts, wire_engine
from convergence.heartbeat import LAST_S, Heartbeat, Presence
from convergence.randomness import new_id
from convergence.rpc.client import QuestionClient, WorkerClient
from convergence.rpc.server import EngineServer
from convergence.settings.declaring import slice_of


def _workers(parts: Parts) -> WorkerQuestions:
    """Return the questions that an engine sends to workers."""
    settings = parts.settings
    # The engine must answer its caller before the call times out.
    limit_s = min(settings.engine.question_timeout_s, settings.transport.response_timeout_s / 2)
    most = max(1, settings.engine.threads // 2)
    return WorkerQuestions(QuestionClient(parts.transport).ask, *parts.sealing(), limit_s, most)


def _reading(parts: Parts, ports: Ports, engine: EngineParts, heartbeat: Heartbeat) -> tuple[object, ...]:
    """Return the services that only read."""
    reader, roster, compiler, objects = StackReader(parts.store), ports.roster, engine.compiler, ports.observations
    workers, credentials = _workers(parts), ports.credentials
    return (
        StackReads(reader, compiler, parts.settings.engine.hidden_stack_tags, objects),
        ResourceReads(reader, compiler, ports.software, objects, workers),
        ExplainReads(reader, compiler, objects),
        DriftReads(reader, compiler, objects, roster, engine.observation_scheduler.of),
        HistoryReads(reader, compiler, objects),
        ProgressReads(Overview(parts.store), roster),
        InstallationReads(compiler, parts.types, roster, __version__, heartbeat.holds, workers, credentials),
        Previews(reader, parts.types, engine.stacks, objects, workers, credentials),
        Presences(roster),
    )


def _kept(limits: LimitSettings) -> Keep:
    """How much of the past is kept."""
    days = limits.deleted_stacks_days
    return Keep(limits.max_events_per_stack, limits.max_operations_per_stack, None if days is None else days * DAY_S)


def _options(settings: Settings, observed: Mapping[str, float]) -> EngineOptions:
    """How an engine is configured to work."""
    engine, limits = settings.engine, settings.limits
    most = limits.max_resources_per_stack
    return EngineOptions(
        template.Limits(
            max_bytes=limits.max_template_bytes,
            max_resources=most if most is not None else 1_000_000_000,
            max_stored_bytes=limits.max_stored_bytes,
        ),
        StackLimits(**slice_of(StackLimits, limits, engine)),
        SweepOptions(
            interval_s=engine.sweep_interval_s,
            older_than_s=engine.sweep_interval_s,
            neglect_s=2 * engine.lease_s,
            interrupt_s=2 * engine.lease_s,
            **slice_of(SweepOptions, engine),
        ),
        nesting=NestingLimits(limits.max_nested_stack_depth, most),
        observed=observed,
        repairs=RepairOptions(**slice_of(RepairOptions, engine)),
        **slice_of(EngineOptions, engine, limits),
    )


def _myself(parts: Parts, engine_id: str) -> CoreWorker:
    """An engine, where it takes rows from dead workers."""
    settings = parts.settings.engine
    settles_s = settings.create_ambiguity_s
    return CoreWorker(
        engine_id, new_id, settings.dispatch_window, creation=lambda name: parts.types.creation(name, settles_s)
    )


class EngineProcess:
    """An engine with its server.

    :param stop_s: seconds that running requests may take after a stop.
    """

    def __init__(self, parts: Parts, *, stop_s: float = 10.0) -> None:
        self._parts = parts
        self._stop_s = stop_s
        settings, engine_id = parts.settings.engine, new_id()
        ports = ports_of(parts.store, _kept(parts.settings.limits))
        myself = _myself(parts, engine_id)
        engine = wire_engine(
            ports, WorkerClient(parts.transport), parts.types, _options(parts.settings, observed_types(parts)), myself
        )
        presence = Presence(engine_id, 'engine', parts.settings.host, __version__, settings.lease_s)
        heartbeat = Heartbeat(
            ports.roster,
            presence,
            settings.heartbeat_interval_s,
            load=lambda: {'threads': settings.threads, 'busy': self._server.busy},
            on_beat=lambda: self._server.resume(),
            on_lost=lambda: self._server.pause(),
            witness=Witness(parts.store, engine_id, settings.lease_s),
        )
        another_sweeps = engine.sweeper.duty.is_elsewhere
        self._telling = ToldOutside(parts.settings, parts.store, ports, engine_id, new_id, another_sweeps)
        acting = (
            engine.stacks,
            engine.rollbacks,
            engine.actions,
            *engine.drift,
            engine.snapshots,
            engine.abandonment,
            engine.signals,
            engine.nesting,
            engine.nesting.snapshots,
            engine.nested_stops,
            NestedReads(ports.reader, engine.compiler),
            SignalAddresses(parts.store, ports.reader, engine.signals, new_id, parts.api),
            Software(SoftwareRows(parts.store), new_id),
            self._telling.webhooks(engine.stacks),
            StackCredentials(ports.credentials, engine.stacks.find, parts.sealing()[1], new_id),
        )
        offered = (*acting, *_reading(parts, ports, engine, heartbeat))
        self.service = EngineService(offered, engine.traversals, engine.sweeper, heartbeat)
        name = parts.queue_name(engine_id)
        self._server = EngineServer(parts.transport, name, self.service, threads=settings.threads)
        self._credential_removal = None
        if parts.keystone is not None:
            self._credential_removal = CredentialRemoval(
                ports.credentials, parts.keystone, settings.sweep_interval_s, parts.settings.credentials.orphan_grace_s
            )

    def start(self) -> None:
        """Take requests."""
        self.service.start()
        self._server.start()
        self._telling.start()
        if self._credential_removal is not None:
            self._credential_removal.start()

    def stop(self) -> bool:
        """Take no more requests, finish those that were taken; whether all of them ended in time."""
        # Stop all first, then wait for each: no request is accepted while a slow receiver gets its last notification.
        if self._credential_removal is not None:
            self._credential_removal.stop()
        self._telling.stop()
        self._server.stop()
        finished = self._server.wait(self._stop_s)
        if self._credential_removal is not None:
            self._credential_removal.wait(LAST_S)
        self._telling.close(LAST_S)
        self.service.stop()
        return finished

    def close(self) -> None:
        """Give back the connections."""
        self._parts.close()
