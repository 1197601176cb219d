"""A worker, put together from settings."""

from __future__ import annotations

from convergence import __version__
from convergence.cmd.wiring.parts import Parts
from convergence.config import Settings
from convergence.db.ports import Ports
from convergence.db.repositories.wiring import ports_of
from convergence.db.repositories.witness import Witness
from convergence.dispatch import Dispatcher
from convergence.randomness import new_id
from convergence.resources.invocation import CallAccess
from convergence.rpc.client import EngineClient, WorkerClient
from convergence.rpc.context import CallerContext
from convergence.rpc.server import CancelServer, QuestionServer, WorkerServer
from convergence.settings.declaring import slice_of
from convergence.worker.answering import Answering, SealedAnswers
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.attempts.credentials import CredentialsOfStacks
from convergence.worker.attempts.nested import EngineNesting
from convergence.worker.service import WorkerOptions
from convergence.worker.wiring import wire_worker


def _on_behalf(project_id: str, request_id: str) -> CallerContext:
    """Return the context of a call to an engine about a nested stack."""
    return CallerContext(request_id=request_id or None, project_id=project_id)


def _answers(parts: Parts, ports: Ports, credentials: CredentialsOfStacks) -> SealedAnswers:
    """Return the answers of a worker to questions of engines."""
    access = CallAccess(ports.reader.signals, ports.software, credentials)
    return SealedAnswers(Answering(parts.types, ports.reader, access, credentials.lent), *parts.sealing())


def _options(all_settings: Settings) -> WorkerOptions:
    settings = all_settings.worker
    return WorkerOptions(
        host=all_settings.host,
        version=__version__,
        poll_policy=PollPolicy(**slice_of(PollPolicy, settings)),
        unattended_s=3 * settings.sweep_interval_s,
        **slice_of(WorkerOptions, settings, all_settings.limits),
    )


class WorkerProcess:
    """A worker with its servers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        settings, options = parts.settings.worker, _options(parts.settings)
        self._drain_timeout_s = settings.drain_timeout_s
        engine = EngineClient(parts.transport)
        ports = ports_of(parts.store)
        acting = parts.settings.credentials
        credentials = CredentialsOfStacks(ports.credentials, parts.keystone, acting.region, acting.interface)
        dispatcher = Dispatcher(
            parts.store,
            WorkerClient(parts.transport),
            new_id,
            settings.max_batch_nodes,
            settings.dispatch_window,
            unsent=lambda traversal_id, node: self.service.run_locally(traversal_id, node),
        )
        self.service = wire_worker(
            ports,
            dispatcher,
            parts.types,
            engine,
            options,
            new_id,
            nested=EngineNesting(engine, ports.reader, _on_behalf),
            credentials=credentials,
            witness=lambda worker_id, lost: Witness(parts.store, worker_id, settings.lease_s, lost),
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
        """Return why this process needs a restart; empty while it is healthy."""
        return self.service.unhealthy_reason()

    def close(self) -> None:
        """Give back the connections."""
        self._parts.close()
