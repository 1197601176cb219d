"""What is measured: the embedded default, and real processes on RabbitMQ with PostgreSQL or MariaDB."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergence_simulator.real.launcher import LaunchedProcess, Launcher
from oslo_context.context import RequestContext

from convergence.cmd.wiring.database import open_database
from convergence.cmd.wiring.engine import EngineProcess
from convergence.cmd.wiring.parts import Parts, open_transport
from convergence.cmd.wiring.worker import WorkerProcess
from convergence.concurrency import sleep
from convergence.core.rows import Stack
from convergence.db.connections.counting import count
from convergence.db.connections.database import Database, connect
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.schema import migration
from convergence.db.schema.sealing import new_key
from convergence.db.statements.store import Store
from convergence.errors import ConvergenceError, RetryLater
from convergence.rpc.client import EngineClient
from convergence.rpc.transport import Transport
from tests.bench.counting import Counters, counted, counts_in, difference, total
from tests.bench.process import COUNTS
from tests.bench.servers import BROKER_PROGRAM, SERVERS, ServerFigures, ServerWatch, broker_url, own_database
from tests.bench.settings import KEYS, configured, settings_for
from tests.bench.watching import Watched, cpu_s, forget_peaks, peak_bytes, program_cpu_s

EMBEDDED = 'embedded'
INSTALLATIONS = (EMBEDDED, *SERVERS)
"""What can be measured on."""

ROOT = Path(__file__).parents[2]
WORKERS = 2
OPERATION_LIMIT_S = 3600.0
LOOK_INTERVAL_S = 0.01
LOOKS_EACH = 5
"""Who waits for a lock is looked at each time that many looks have found an operation under way."""


@dataclass(frozen=True, slots=True)
class Took:
    """What an operation took.

    :param counts: of statements, commits and messages, as the drivers of all engines and workers send them.
    :param cpu_s: processor time of each kind of process, and of the servers as far as they run on this machine.
    :param peak_bytes: the most memory that a process of each kind has had.
    :param server: what the database server has counted; None where there is none.
    """

    seconds: float
    counts: dict[str, int]
    cpu_s: dict[str, float]
    peak_bytes: dict[str, int]
    server: ServerFigures | None

    @property
    def own_cpu_s(self) -> float:
        """Processor time without that of the servers."""
        return sum(self.cpu_s.get(kind, 0.0) for kind in (EMBEDDED, 'engine', 'worker'))


@dataclass(frozen=True, slots=True)
class BenchmarkInstallation:
    """An engine and workers at work, in this process or in others.

    :param database: for looking; what it is asked is counted by `looks`.
    :param tally: what this process has counted, where it does the work itself.
    :param launcher: of the processes that do the work otherwise; they keep their counts in its directory.
    :param others: what was launched beside them.
    """

    name: str
    transport: Transport
    database: Database
    tally: Counters
    looks: Counters
    launcher: Launcher | None = None
    others: list[tuple[str, LaunchedProcess]] = field(default_factory=list)
    context: RequestContext = field(default_factory=lambda: RequestContext(project_id='bench', overwrite=False))

    @property
    def client(self) -> EngineClient:
        """Asks an engine."""
        return EngineClient(self.transport)

    @property
    def reader(self) -> StackReader:
        """Looks into the database."""
        return StackReader(Store(self.database))

    def processes(self) -> list[Watched]:
        """Those that do the work."""
        if self.launcher is None:
            return [Watched(EMBEDDED, os.getpid())]
        launched = [(kind, each) for kind in ('engine', 'worker') for each in self.launcher.of(kind)]
        return [Watched(kind, each.pid) for kind, each in (*launched, *self.others)]

    def launch(self, kind: str, *arguments: str) -> LaunchedProcess:
        """Start another process, such as an ``api``; it counts what it does, and ends with the installation."""
        assert self.launcher is not None
        given = [kind, '--config-file', str(self.launcher.configuration), *arguments]
        process = self.launcher.process(
            self.launcher.special, given, self.launcher.directory, self.launcher.environment
        )
        self.others.append((kind, process))
        process.ready()
        return process

    def counts(self) -> dict[str, int]:
        """What engines and workers have asked of the database and said to each other so far."""
        return self.tally.read() if self.launcher is None else total(counts_in(self.launcher.directory))

    def cpu_s(self) -> dict[str, float]:
        """Seconds of processor time of each kind of process so far. Where all is in this one, the benchmark is in it."""
        if self.launcher is None:
            return cpu_s(self.processes())
        server = SERVERS[self.name]
        return cpu_s(self.processes()) | program_cpu_s({self.name: server.program, 'rabbitmq': BROKER_PROGRAM})

    def measure(self, begin: Callable[[], object], end: Callable[[ServerWatch | None], object]) -> Took:
        """What it takes from the beginning of `begin` to the end of `end`."""
        watch = None if self.launcher is None else ServerWatch(self.database)
        forget_peaks(self.processes())
        before, used = self.counts(), self.cpu_s()
        server = watch.read() if watch else None
        looked = self.looks.read()['statements']
        begun = time.perf_counter()
        begin()
        end(watch)
        seconds = time.perf_counter() - begun
        looked = self.looks.read()['statements'] - looked
        found = None
        if watch is not None and server is not None:
            found = watch.read() - server - ServerFigures(looked, 0, 0, 0, 0, 0)
        spent = {kind: each - used.get(kind, 0.0) for kind, each in self.cpu_s().items()}
        return Took(seconds, difference(self.counts(), before), spent, peak_bytes(self.processes()), found)

    def operate(self, operation: str, identity: Mapping[str, Any], begin: Callable[[], object]) -> Took:
        """Begin an operation, wait for its end, and say what it took.

        :param identity: of the stack; it may be filled by `begin`.
        :raises ConvergenceError: it failed.
        """

        def end(watch: ServerWatch | None) -> None:
            stack = self.wait(identity, watch)
            if stack.status.value != 'COMPLETE':
                raise ConvergenceError(f'{operation} of {stack.name} has failed: {stack.status_reason}')

        return self.measure(begin, end)

    def wait(self, identity: Mapping[str, Any], watch: ServerWatch | None = None) -> Stack:
        """The stack when its operation has ended. Asks the database, and is not counted itself.

        :raises RetryLater: it takes an hour.
        """
        reader, begun, looks = self.reader, time.monotonic(), 0
        looked = begun
        while True:
            stack = reader.stack(identity['stack_id'])
            if stack is not None and stack.status.value != 'IN_PROGRESS':
                return stack
            now = time.monotonic()
            if now - begun > OPERATION_LIMIT_S:
                raise RetryLater(f'A stack has not come to an end in {OPERATION_LIMIT_S:g} s')
            looks += 1
            if watch is not None and looks % LOOKS_EACH == 0:
                watch.look(now - looked)
                looked = now
            sleep(LOOK_INTERVAL_S)


@contextmanager
def opened(name: str, *, workers: int = WORKERS) -> Iterator[BenchmarkInstallation]:
    """One of `INSTALLATIONS`, at work. Nothing is left of it afterwards.

    :raises OperatorError: a server does not answer.
    """
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory:
        one = _embedded(Path(directory)) if name == EMBEDDED else _real(Path(directory), name, workers)
        with one as installation:
            yield installation


@contextmanager
def _embedded(directory: Path) -> Iterator[BenchmarkInstallation]:
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
        yield BenchmarkInstallation(EMBEDDED, transport, looking, tally, Counters())
    finally:
        worker.stop()
        engine.stop()
        parts.close()
        looking.dispose()


@contextmanager
def _real(directory: Path, name: str, workers: int) -> Iterator[BenchmarkInstallation]:
    """One engine process and some worker processes, on RabbitMQ and a database of their own."""
    broker, prefix = broker_url(), f'bench-{os.getpid()}'
    with ExitStack() as stack:
        database_url = stack.enter_context(own_database(SERVERS[name]))
        (directory / KEYS).write_text(f'{new_key()}\n', encoding='utf-8')
        (directory / KEYS).chmod(0o600)
        settings = settings_for(directory, database_url, broker)
        looking, looks = open_database(settings), Counters()
        stack.callback(looking.dispose)
        migration.sync(looking)
        count(looking, looks.note)
        transport = stack.enter_context(closing(open_transport(settings, prefix)))
        processes = Launcher(
            directory,
            configured(directory, prefix, database_url, broker),
            {COUNTS: str(directory), 'PYTHONPATH': str(ROOT)},
            special='tests.bench.process',
        )
        stack.callback(processes.stop)
        installation = BenchmarkInstallation(name, transport, looking, Counters(), looks, processes)
        stack.callback(_end_others, installation)
        processes.fill(1, workers)
        yield installation


def _end_others(installation: BenchmarkInstallation) -> None:
    for _, process in installation.others:
        process.end()


def unavailable(name: str) -> str | None:
    """Why one of `INSTALLATIONS` cannot be measured; None where it can."""
    if name == EMBEDDED:
        return None
    url, broker = SERVERS[name].url, broker_url()
    try:
        connect(url).dispose()
        open_transport(settings_for(Path(), url, broker)).close()
    except ConvergenceError as error:
        return str(error)
    return None


def described(name: str) -> str:
    """The servers and processes of one of `INSTALLATIONS`, in a few words."""
    if name == EMBEDDED:
        return f'SQLite {sqlite3.sqlite_version}, 1 process, 1 worker of 8 threads'
    return f'RabbitMQ, {SERVERS[name].version()}, 1 engine, {WORKERS} workers of 8 threads'
