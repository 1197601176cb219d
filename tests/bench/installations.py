"""What is measured: the embedded default, and real processes on RabbitMQ and PostgreSQL."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from oslo_context.context import RequestContext

from convergence.cmd.assembly import EngineProcess, Parts, WorkerProcess, open_transport
from convergence.cmd.database import open_database
from convergence.cmd.launcher import Launcher
from convergence.concurrency import sleep
from convergence.core.rows import Stack
from convergence.db.queries.stacks import StackReader
from convergence.db.schema import migration
from convergence.db.schema.sealing import new_key
from convergence.db.statements.connection import Database, connect
from convergence.db.statements.counting import count
from convergence.db.statements.store import Store
from convergence.errors import ConvergenceError, RetryLater
from convergence.rpc.client import EngineClient
from tests.bench.counting import Counters, counted, counts_in, total
from tests.bench.process import COUNTS
from tests.bench.settings import KEYS, configured, settings_for

POSTGRESQL = ('CONVERGENCE_TEST_POSTGRESQL_URL', 'postgresql://postgres@127.0.0.1:5432/postgres')
RABBITMQ = ('CONVERGENCE_TEST_RABBIT_URL', 'rabbit://guest:guest@127.0.0.1:5672/')
"""Environment variable and default of the servers, as for the tests."""

ROOT = Path(__file__).parents[2]
WORKERS = 2
OPERATION_LIMIT_S = 1800.0
LOOK_INTERVAL_S = 0.01


@dataclass(frozen=True, slots=True)
class BenchmarkInstallation:
    """An engine and workers at work, in this process or in others.

    :param tally: what this process has counted, where it does the work itself.
    :param counted_in: where the processes keep their counts that do the work otherwise.
    """

    name: str
    client: EngineClient
    reader: StackReader
    tally: Counters
    counted_in: Path | None = None
    context: RequestContext = field(default_factory=lambda: RequestContext(project_id='bench', overwrite=False))

    def counts(self) -> dict[str, int]:
        """What engine and workers have asked of the database and said to each other so far."""
        return self.tally.read() if self.counted_in is None else total(counts_in(self.counted_in))

    def cpu_s(self) -> float:
        """Seconds of processor time that engine and workers have used so far, in user and kernel mode.

        Where they are this process, those of the benchmark are among them; where the kernel does not tell, it is 0.
        """
        if self.counted_in is None:
            return time.process_time()
        return sum(_cpu_s(path.stem) for path in self.counted_in.glob('*.counts'))

    def wait(self, identity: dict[str, Any]) -> Stack:
        """The stack when its operation has ended. Asks the database, and is not counted itself.

        :raises RetryLater: it takes half an hour.
        """
        begun = time.monotonic()
        while True:
            stack = self.reader.stack(identity['stack_id'])
            if stack is not None and stack.status.value != 'IN_PROGRESS':
                return stack
            if time.monotonic() - begun > OPERATION_LIMIT_S:
                raise RetryLater(f'A stack has not come to an end in {OPERATION_LIMIT_S:g} s')
            sleep(LOOK_INTERVAL_S)


@contextmanager
def embedded(directory: Path) -> Iterator[BenchmarkInstallation]:
    """The embedded default: an engine and a worker in this process, an SQLite file, messages in memory."""
    settings = settings_for(directory, f'sqlite:///{directory / "convergence.sqlite"}', 'memory://')
    tally, database, looking = Counters(), open_database(settings), open_database(settings)
    migration.sync(database)
    count(database, tally.note)
    transport = open_transport(settings, f'bench-{os.getpid()}')
    parts = Parts.of(settings, database, counted(transport, tally))
    engine, worker = EngineProcess(parts), WorkerProcess(parts)
    try:
        engine.start()
        worker.start()
        yield BenchmarkInstallation('embedded', EngineClient(transport), StackReader(Store(looking)), tally)
    finally:
        worker.stop()
        engine.stop()
        parts.close()
        looking.dispose()


@contextmanager
def real(directory: Path) -> Iterator[BenchmarkInstallation]:
    """One engine process and two worker processes, on RabbitMQ and a PostgreSQL database of their own.

    :raises OperatorError: a server does not answer.
    """
    server_url, broker_url = servers()
    prefix = f'bench-{os.getpid()}'
    with ExitStack() as stack:
        database_url = stack.enter_context(own_database(server_url))
        (directory / KEYS).write_text(f'{new_key()}\n', encoding='utf-8')
        (directory / KEYS).chmod(0o600)
        settings = settings_for(directory, database_url, broker_url)
        looking = open_database(settings)
        stack.callback(looking.dispose)
        migration.sync(looking)
        transport = stack.enter_context(closing(open_transport(settings, prefix)))
        sections = configured(directory, prefix, database_url, broker_url)
        processes = Launcher(
            directory,
            sections,
            {COUNTS: str(directory), 'PYTHONPATH': str(ROOT)},
            special='tests.bench.process',
        )
        stack.callback(processes.stop)
        processes.fill(1, WORKERS)
        yield BenchmarkInstallation('real', EngineClient(transport), StackReader(Store(looking)), Counters(), directory)


def servers() -> tuple[str, str]:
    """URLs of the database server and of the broker."""
    server_url, broker_url = (os.environ.get(name, default) for name, default in (POSTGRESQL, RABBITMQ))
    # Queues vanish with those who listen to them, so nothing is left behind in a broker that others use.
    return server_url, broker_url + ('&' if urlsplit(broker_url).query else '?') + 'amqp_auto_delete=true'


@contextmanager
def own_database(server_url: str) -> Iterator[str]:
    """URL of a new PostgreSQL database, which is removed in the end.

    :raises DatabaseUnavailable: the server does not answer.
    """
    name = f'convergence_bench_{os.getpid()}'
    server = connect(server_url)
    try:
        _run(server, f'CREATE DATABASE {name} TEMPLATE template0')
        parts = urlsplit(server_url)
        yield urlunsplit((parts.scheme, parts.netloc, f'/{name}', parts.query, ''))
    finally:
        _run(server, f'DROP DATABASE IF EXISTS {name} WITH (FORCE)')
        server.dispose()


def _run(server: Database, statement: str) -> None:
    with server.connect().execution_options(isolation_level='AUTOCOMMIT') as connection:
        connection.exec_driver_sql(statement)


def _cpu_s(pid: str) -> float:
    try:
        fields = Path('/proc', pid, 'stat').read_text(encoding='utf-8').rpartition(')')[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def versions(database_url: str | None = None) -> str:
    """Name and version of the server at `database_url`, or of SQLite."""
    if database_url is None:
        import sqlite3

        return f'SQLite {sqlite3.sqlite_version}'
    server = connect(database_url)
    try:
        with server.connect() as connection:
            return f'PostgreSQL {connection.exec_driver_sql("SHOW server_version").scalar_one().split()[0]}'
    finally:
        server.dispose()


def unavailable() -> str | None:
    """Why real processes cannot be measured; None where they can."""
    server_url, broker_url = servers()
    try:
        connect(server_url).dispose()
        open_transport(settings_for(Path(), server_url, broker_url)).close()
    except ConvergenceError as error:
        return str(error)
    return None
