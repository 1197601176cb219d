"""Engines and workers under a supervisor, with failpoints; and what can be seen of their stacks from outside."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from convergence_simulator.real.launcher import LaunchedProcess

from convergence import errors
from convergence.core.rows import Resource
from convergence.core.rows import Stack as Row
from convergence.db.connections.database import connect
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.statements.store import Store
from tests.chaos.failpoints import VARIABLE, Rule
from tests.functional.cluster import Cluster
from tests.services import SERVICES, unique_name

PATIENCE_S = 180.0
"""For how long a stack that ought to end is waited for."""

STARTS_S = 300.0
"""For how long processes that were started are waited for: all at once, on a machine that is busy with other things."""

CALL_S = 3.0
SEARCH_S = 2.0
SHORT = {
    'heartbeat_interval_s': 0.5,
    'lease_s': 2,
    'create_ambiguity_s': SEARCH_S,
    'cancel_grace_s': 2,
    'park_after_s': 1,
    'call_timeout_s': CALL_S,
}
"""Intervals with which a recovery takes seconds. `Cluster` sweeps every half second."""

AWAY = (errors.MessagingUnavailable, errors.DatabaseUnavailable, errors.Conflict)
"""What a client is told while something is broken: it looks what has become of its request, and asks again."""


class Broken(Exception):
    """Something did not hold. The text says what."""


class Points:
    """The failpoints of all processes of an installation."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / 'fired').mkdir(parents=True)
        self.set()

    def set(self, *rules: Rule) -> None:
        """Have these rules hold from now on, and no others."""
        written = self.directory / 'rules.new'
        written.write_text(json.dumps([asdict(rule) for rule in rules]))
        written.replace(self.directory / 'rules.json')

    def passed(self, since: int = 0) -> list[str]:
        """The places that were passed, in order, but for so many at the beginning."""
        path = self.directory / 'passed'
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.partition(' ')[2] for line in lines[since:]]

    def fired(self, rule: str) -> bool:
        """Whether a process has died of a rule."""
        return (self.directory / 'fired' / rule).exists()


class Supervised:
    """Engines and workers that are started again when they die, as an operator's supervisor does.

    :param directory: for everything that is written.
    :param urls: of the database and the broker.
    :param seen: URL by which this run looks into the database, where that is another one.
    :param options: of `Cluster`, beyond `SHORT`.
    """

    def __init__(self, directory: Path, urls: tuple[str, str], *, seen: str = '', **options: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        exchange = unique_name()
        database_url, rabbit_url = urls
        self.cluster = Cluster(
            directory,
            database_url=database_url,
            rabbit_url=rabbit_url,
            exchange=exchange,
            special='tests.chaos.process',
            **{**SHORT, **options},
        )
        self.points = Points(directory / 'failpoints')
        self.cluster.environment[VARIABLE] = str(self.points.directory)
        synced = self.cluster.manage('db', 'sync')
        if synced.returncode:
            raise Broken(f'The database could not be prepared: {synced.stderr}')
        self.cloud = self.cluster.cloud
        self.reader = StackReader(Store(connect(seen or database_url, pool_size=4)))
        self.deaths: Counter[str] = Counter()
        self._store = self.reader._store
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._counts = {'engine': 0, 'worker': 0}
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    def start(self, engines: int = 2, workers: int = 2) -> None:
        """Have so many engines and workers at work, from now to the end.

        :raises Broken: they do not get there.
        """
        self._counts = {'engine': engines, 'worker': workers}
        self.cluster.engines += [self.cluster.launch('engine') for _ in range(engines)]
        self.cluster.workers += [self.cluster.launch('worker') for _ in range(workers)]
        self._supervisor.start()
        self.complete()

    def add_worker(self) -> LaunchedProcess:
        """One worker more, at work."""
        with self._lock:
            process = self.cluster.launch('worker')
            self.cluster.workers.append(process)
            self._counts['worker'] += 1
        until(process.is_ready, 'the worker is at work', STARTS_S)
        return process

    def processes(self) -> list[LaunchedProcess]:
        """Those that run now."""
        with self._lock:
            return self.cluster.running()

    def complete(self) -> None:
        """Wait until as many processes as there should be are at work."""

        def look() -> bool:
            running = self.processes()
            return len(running) == sum(self._counts.values()) and all(each.is_ready() for each in running)

        until(look, 'all processes are at work', STARTS_S)

    def close(self) -> None:
        """End everything."""
        self._stopping.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        self.cluster.stop(10.0)
        self.cluster.close()
        self._store.engine.dispose()

    def _supervise(self) -> None:
        while not self._stopping.wait(0.05):
            with self._lock:
                for module, processes in (('engine', self.cluster.engines), ('worker', self.cluster.workers)):
                    dead = [each for each in processes if not each.running()]
                    for process in dead:
                        self.deaths[f'{module} {process.popen.returncode}'] += 1
                        processes.remove(process)
                        self.cluster.gone.append(process)
                        processes.append(self.cluster.launch(module))


class Installation(Supervised):
    """The same, and its stacks: asked for as clients do it, looked at in the database."""

    def create(self, name: str, template: str, **args: Any) -> str:
        """Ask for a stack, and ask again while nobody answers; its id."""
        while True:
            try:
                made = self.cluster.client.create_stack(self.cluster.context(), name, template, args=args)
                return str(made['stack_id'])
            except errors.StackExists:
                row = self.reader.stack_named(self.cluster.context().project_id, name)
                if row is not None:
                    return row.id
            except AWAY:
                time.sleep(0.2)

    def ask(self, stack_id: str, ask: Callable[[Any, dict[str, str]], object], was_done: Callable[[], bool]) -> None:
        """Ask for an operation; while nobody answers, look whether it was accepted, and ask again where it was not."""
        row = self.row(stack_id)
        identity = {'tenant': row.project_id, 'stack_name': row.name, 'stack_id': row.id, 'path': ''}
        while True:
            try:
                ask(self.cluster.context(), identity)
                return
            except AWAY:
                # Whoever has it may still be at it: what is not there in a moment was lost.
                ends = time.monotonic() + 1.0
                while time.monotonic() < ends:
                    if was_done():
                        return
                    time.sleep(0.2)

    def update(self, stack_id: str, template: str, **args: Any) -> None:
        """Give a stack a new goal."""
        before = self.row(stack_id).template_id
        self.ask(
            stack_id,
            lambda context, identity: self.cluster.client.update_stack(context, identity, template, args=args),
            lambda: self.row(stack_id).template_id != before,
        )

    def delete(self, stack_id: str) -> None:
        """Have a stack removed."""
        self.ask(stack_id, self.cluster.client.delete_stack, lambda: self.row(stack_id).action.value == 'DELETE')

    def cancel(self, stack_id: str, *, rollback: bool, now: bool = True) -> None:
        """Have what is in progress stopped, or let what runs come to its end."""
        before = self.row(stack_id)
        with contextlib.suppress(errors.UserError):  # said at the second time of asking: it is over already
            self.ask(
                stack_id,
                lambda context, identity: self.cluster.client.stack_cancel_update(context, identity, rollback, now=now),
                lambda: (
                    (self.row(stack_id).traversal_id, self.state(stack_id)) != (before.traversal_id, _state(before))
                ),
            )

    def row(self, stack_id: str) -> Row:
        """A stack as it is stored."""
        row: Row = _patiently(lambda: self.reader.stack(stack_id))
        return row

    def rows(self, stack_id: str) -> list[Resource]:
        """The rows of its resources."""
        rows: list[Resource] = _patiently(lambda: self.reader.resources(stack_id))
        return rows

    def state(self, stack_id: str) -> str:
        """Action and status."""
        return _state(self.row(stack_id))

    def ended(self, stack_id: str, limit_s: float = PATIENCE_S) -> str:
        """Action and status, once it is not in progress any more."""
        until(lambda: not self.state(stack_id).endswith('IN_PROGRESS'), f'stack {stack_id} ends', limit_s)
        return self.state(stack_id)

    def make_late(self, stack_id: str) -> None:
        """Put the deadline of what is in progress into the past."""
        row = self.row(stack_id)
        with self._store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE traversal SET deadline = started_at WHERE id = '{row.traversal_id}'")
            connection.commit()


def _state(row: Row) -> str:
    return f'{row.action.value}_{row.status.value}'


def _patiently(ask: Callable[[], Any]) -> Any:
    """What the database answers, however long it is away."""
    while True:
        try:
            return ask()
        except AWAY:
            time.sleep(0.1)


def until(look: Callable[[], object], what: str, limit_s: float = PATIENCE_S) -> None:
    """Wait until something is true.

    :raises Broken: it did not come true.
    """
    ends = time.monotonic() + limit_s
    while not look():
        if time.monotonic() > ends:
            raise Broken(f'{what}: not within {limit_s:g} s')
        time.sleep(0.02)


@contextlib.contextmanager
def installed(directory: Path, database: str, **options: Any) -> Iterator[Installation]:
    """An installation on the servers of this machine (`tests.services`), with a database of its own.

    :param database: ``postgresql`` or ``mariadb``.
    """
    server = SERVICES.get(database)
    url = server.create()
    try:
        installation = Installation(directory, (url, SERVICES.get('rabbit').url), **options)
        try:
            yield installation
        finally:
            installation.close()
    finally:
        server.drop(re.sub('^/', '', urlsplit(url).path))
        for pid in left_over(directory):
            os.kill(pid, signal.SIGKILL)


def left_over(directory: Path) -> list[int]:
    """Processes of a plugin that outlived the worker that began them (they run in its directory)."""
    found = []
    for entry in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            if (entry / 'cwd').resolve() == directory.resolve() and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found
