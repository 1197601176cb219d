"""A worker, put together from settings."""

from __future__ import annotations

from convergence import __version__
from convergence.cmd.wiring.parts import Parts
from convergence.db.ports import Ports
from convergence.db.repositories.wiring import ports_of
from convergence.db.repositories.witness import Witness
from convergence.dispatch import Dispatcher
from convergence.randomness import new_id
from convergence.resources.invocation import CallAccess
from convergence.rpc.client import EngineClient, WorkerClient
from convergence.rpc.context import CallerContext
from convergence.rpc.server import CancelServer, QuestionServer, WorkerServer
from convergence.worker.answering import Answering, SealedAnswers
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.attempts.credentials import CredentialsOfStacks
from convergence.worker.attempts.nested import EngineNesting
from convergence.worker.fallback import LocalFallback
from convergence.worker.service import WorkerOptions, WorkerService


def _on_behalf(project_id: str, request_id: str) -> CallerContext:
    """Who asks an engine for something about a nested stack."""
    return CallerContext(request_id=request_id or None, project_id=project_id)


def _answers(parts: Parts, ports: Ports, credentials: CredentialsOfStacks) -> SealedAnswers:
    """What a worker answers engines."""
    access = CallAccess(ports.reader.signals, ports.software, credentials)
    return SealedAnswers(Answering(parts.types, ports.reader, access, credentials.lent), *parts.sealing())


class WorkerProcess:
    """A worker with its servers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        settings = parts.settings.worker
        pace = PollPolicy(
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
            max_stuck_threads=settings.max_stuck_threads,
            threads=settings.threads,
            dispatch_window=settings.dispatch_window,
            in_a_row=settings.max_inline_nodes,
            max_stored_bytes=parts.settings.limits.max_stored_bytes,
            max_input_bytes=parts.settings.limits.max_input_bytes,
            create_ambiguity_s=settings.create_ambiguity_s,
        )
        self._drain_timeout_s = settings.drain_timeout_s
        hands, engine = LocalFallback(WorkerClient(parts.transport)), EngineClient(parts.transport)
        ports = ports_of(parts.store)
        acting = parts.settings.credentials
        credentials = CredentialsOfStacks(ports.credentials, parts.keystone, acting.region, acting.interface)
        self.service = WorkerService(
            ports,
            Dispatcher(parts.store, hands, new_id, settings.max_batch_nodes, settings.dispatch_window),
            parts.types,
            engine,
            options,
            new_id,
            nested=EngineNesting(engine, ports.reader, _on_behalf),
            credentials=credentials,
        )
        hands.run_locally = self.service.run_locally
        self.service.heartbeat.witness = Witness(
            parts.store, self.service.id, settings.lease_s, self.service.recent.tell
        )
        queue_name = parts.queue_name(self.service.id)
        self._checks = WorkerServer(parts.transport, queue_name, self.service)
        self._cancels = CancelServer(parts.transport, queue_name, self.service)
        answers = _answers(parts, ports, credentials)
        self._questions = QuestionServer(parts.transport, queue_name, answers)

    def start(self) -> None:
        """Take work."""
        self.service.start()
        self._cancels.start()
        self._checks.start()
        self._questions.start()

    def begin_nothing(self) -> None:
        """From now on no action begins here. Returns at once; `stop` does the rest."""
        self.service.begin_nothing()

    def stop(self) -> bool:
        """Take no more work, hand back what waits, finish what runs; whether all of it ended in time."""
        self.begin_nothing()
        self._questions.stop()
        self._checks.stop()
        self.service.begin_to_stop(self._drain_timeout_s)
        drained = self.service.wait(self._drain_timeout_s)
        self._cancels.stop()
        self._checks.wait(1.0)
        self._cancels.wait(1.0)
        self._questions.wait(1.0)
        self.service.leave()
        return drained

    def unhealthy_reason(self) -> str:
        """Why this process should be started anew; empty while it should not."""
        return self.service.unhealthy_reason()

    def close(self) -> None:
        """Give back the connections."""
        self._parts.close()
