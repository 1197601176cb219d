"""A whole installation inside this process: one engine and some workers, on the configured database and broker.

For the program ``convergence-all-in-one``, for the demo, for measurements and for tests.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from oslo_config import cfg
from oslo_context.context import RequestContext

from convergence.cmd.wiring.database import open_database
from convergence.cmd.wiring.engine import EngineProcess
from convergence.cmd.wiring.parts import Parts, open_transport
from convergence.cmd.wiring.worker import WorkerProcess
from convergence.concurrency import Group, sleep
from convergence.config import Settings
from convergence.db.schema import migration
from convergence.documents import Document
from convergence.followed import Followed, Standing, named
from convergence.resources.registry import Registry
from convergence.rpc.client import EngineClient
from convergence.rpc.transport import MEMORY_URL

LOG = logging.getLogger(__name__)

WAIT_INTERVAL_S = 0.05


class OperationSuperseded(Exception):
    """Another operation superseded the one that `Embedded.wait` followed.

    :ivar successor: the other operation, as the history of the stack shows it.
    """

    def __init__(self, stack_name: str, successor: Document) -> None:
        super().__init__(f'{named(successor)} superseded the operation on the stack {stack_name}.')
        self.successor = successor


@dataclass(slots=True)
class _Running:
    """An open embedded installation."""

    parts: Parts
    engine: EngineProcess
    workers: list[WorkerProcess]
    client: EngineClient


class Embedded:
    """An engine and ``[worker] workers`` workers in this process. As a context manager, or `start`, `stop`, `close`.

    On SQLite the schema is brought up to date by itself; another database is never changed unasked. With
    ``memory://`` no other process can reach it, not even another one in the same process.

    :param types: the resource types; None: those that are installed, with the local provider where it is enabled.
    :param conf: filled; keystoneauth1 reads its own options from it.
    :raises DatabaseUnavailable: the database does not answer, or its schema is not the newest.
    :raises MessagingUnavailable: the broker does not answer.
    :raises ConfigurationError: a URL cannot be used.
    """

    def __init__(self, settings: Settings, *, types: Registry | None = None, conf: cfg.ConfigOpts = cfg.CONF) -> None:
        self.settings = settings
        self._running: _Running | None = _open(settings, types, conf)

    @property
    def client(self) -> EngineClient:
        """Asks the engine."""
        return self._open_parts().client

    @property
    def parts(self) -> Parts:
        """Store, transport and resource types: for measurements, and for what else is to run on the same transport."""
        return self._open_parts().parts

    def context(self, project_id: str, user_id: str = 'embedded') -> RequestContext:
        """The context of a request of a project. A new one gives the request an id of its own in the log."""
        return RequestContext(user_id=user_id, project_id=project_id, overwrite=False)

    def wait(self, stack_identity: Mapping[str, Any], timeout_s: float, *, request_id: str = '') -> dict[str, Any]:
        """Wait for an operation on a stack to end, and show the stack.

        :param stack_identity: as the operations give it, with the key ``tenant``.
        :param timeout_s: seconds.
        :param request_id: of the context with which the operation was begun; empty: the operation that is current now.
        :raises TimeoutError: it has not ended; the text says what it waits for.
        :raises OperationSuperseded: another operation took over.
        """
        context, identity = self.context(str(stack_identity['tenant'])), dict(stack_identity)
        ends = time.monotonic() + timeout_s
        followed = Followed.of(self.client.list_traversals(context, identity), request_id)
        while True:
            stack: dict[str, Any] = self.client.show_stack(context, identity, resolve_outputs=False)[0]
            standing = Standing.of(followed, self.client.list_traversals(context, identity))
            if standing.is_superseded and standing.successor is not None:
                raise OperationSuperseded(stack['stack_name'], standing.successor)
            if standing.successor is not None and standing.entry is not None:
                action, _, status = standing.state.partition('_')
                own = {'stack_action': action, 'stack_status': status, 'stack_status_reason': standing.entry['reason']}
                return {**self.client.show_stack(context, identity)[0], **own}
            if stack['stack_status'] != 'IN_PROGRESS':
                complete: dict[str, Any] = self.client.show_stack(context, identity)[0]
                return complete
            if time.monotonic() > ends:
                summary = self.client.stack_explain(context, identity)['summary']
                raise TimeoutError(f'Stack {stack["stack_name"]} has not finished within {timeout_s:g} s: {summary}')
            sleep(WAIT_INTERVAL_S)

    # --- life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take requests and work."""
        running = self._open_parts()
        running.engine.start()
        for worker in running.workers:
            worker.start()

    def begin_nothing(self) -> None:
        """From now on no worker begins an action. Returns at once; `stop` does the rest."""
        for worker in self._open_parts().workers:
            worker.begin_nothing()

    def stop(self) -> bool:
        """End work in good order, all workers at once; whether all of it ended in time."""
        running = self._open_parts()
        group = Group('stop')
        drained: list[bool] = []
        for worker in running.workers:
            group.spawn(lambda task, worker=worker: drained.append(worker.stop()))  # type: ignore[misc]
        group.wait()
        finished = running.engine.stop()
        return finished and len(drained) == len(running.workers) and all(drained)

    def close(self) -> None:
        """Give back the connections."""
        running, self._running = self._open_parts(), None
        running.parts.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self.stop()
        finally:
            self.close()

    def _open_parts(self) -> _Running:
        if self._running is None:
            raise RuntimeError('This embedded installation was closed; make a new one.')
        return self._running


def _open(settings: Settings, types: Registry | None, conf: cfg.ConfigOpts) -> _Running:
    database = open_database(settings)
    if database.dialect.name == 'sqlite' and migration.version(database) != migration.newest():
        LOG.info('Updating the schema of the SQLite database to the newest revision')
        migration.sync(database)
    migration.require_newest(database)
    prefix = f'embedded-{uuid.uuid4()}' if settings.transport.url == MEMORY_URL else None
    parts = Parts.of(settings, database, open_transport(settings, prefix), types, conf)
    workers = [WorkerProcess(parts) for _ in range(settings.worker.workers)]
    return _Running(parts, EngineProcess(parts), workers, EngineClient(parts.transport))
