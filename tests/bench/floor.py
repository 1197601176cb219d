"""The floor: how fast resources could be worked off if an engine did the least that any of its kind must do.

A message wakes a worker for each resource, and three transactions follow: the row is locked and claimed; its end is
written with an event; those that require it are counted down. Whoever requires nothing more is cast. There is no
template, no plan, no fence, no property and no resource type. As many workers and threads as are measured beside it do
this, on the same kind of database and the same broker, so what is measured divided by the floor means the same on
every machine.

A worker is this module as a program. It is told on standard input where to work, and ends when that is closed.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oslo_context.context import RequestContext

from convergence.cmd.wiring.parts import open_transport
from convergence.concurrency import sleep
from convergence.db.connections.database import Database, connect
from convergence.errors import RetryLater
from convergence.rpc.server import Endpoint, RpcServer
from tests.bench.installations import LOOK_INTERVAL_S, ROOT, WORKERS
from tests.bench.servers import SERVERS, broker_url, own_database
from tests.bench.settings import settings_for
from tests.bench.shapes import SHAPES

THREADS = 8
LIMIT_S = 300.0
_TOPIC, _VERSION = 'floor', '1.0'
_TABLES = (
    'CREATE TABLE work (number INTEGER PRIMARY KEY, state VARCHAR(16) NOT NULL, missing INTEGER NOT NULL)',
    'CREATE TABLE edge (number INTEGER NOT NULL, dependent INTEGER NOT NULL, PRIMARY KEY (number, dependent))',
    'CREATE TABLE event (id {} PRIMARY KEY, number INTEGER NOT NULL, reason VARCHAR(255) NOT NULL)',
)
_SERIAL = {'postgresql': 'BIGSERIAL', 'mysql': 'BIGINT AUTO_INCREMENT', 'mariadb': 'BIGINT AUTO_INCREMENT'}
_COUNT_DOWN = (
    'WITH those AS (SELECT number FROM work WHERE number IN (SELECT dependent FROM edge WHERE number = %s) '
    'ORDER BY number FOR UPDATE) '
    'UPDATE work SET missing = missing - 1 FROM those WHERE work.number = those.number '
    'RETURNING work.number, work.missing'
)
# A server that answers no rows to an UPDATE.
_LOCK_DEPENDENTS = (
    'SELECT work.number, work.missing - 1 FROM edge JOIN work ON work.number = edge.dependent '
    'WHERE edge.number = %s ORDER BY work.number FOR UPDATE'
)
_COUNT_THOSE = (
    'UPDATE work JOIN edge ON work.number = edge.dependent SET work.missing = work.missing - 1 WHERE edge.number = %s'
)


@dataclass(frozen=True, slots=True)
class Floor:
    """What the loop took for one shape and size."""

    installation: str
    shape: str
    size: int
    seconds: float


class _Loop:
    """The loop of one worker."""

    def __init__(self, database: Database, casts: _Casts) -> None:
        self._database = database
        self._casts = casts

    def check(self, context: RequestContext, document: dict[str, Any]) -> None:
        """Do what is done for one resource."""
        number = document['number']
        with _transaction(self._database) as cursor:
            cursor.execute('SELECT state FROM work WHERE number = %s FOR UPDATE', [number])
            if cursor.fetchone() != ('READY',):
                return
            cursor.execute("UPDATE work SET state = 'IN_PROGRESS' WHERE number = %s", [number])
        with _transaction(self._database) as cursor:
            cursor.execute("UPDATE work SET state = 'COMPLETE' WHERE number = %s", [number])
            cursor.execute('INSERT INTO event (number, reason) VALUES (%s, %s)', [number, 'state changed'])
        with _transaction(self._database) as cursor:
            ready = [other for other, missing in self._count_down(cursor, number) if not missing]
        self._casts.cast(ready)

    def _count_down(self, cursor: Any, number: int) -> list[tuple[int, int]]:
        if self._database.dialect.name == 'postgresql':
            cursor.execute(_COUNT_DOWN, [number])
            return list(cursor.fetchall())
        cursor.execute(_LOCK_DEPENDENTS, [number])
        found = list(cursor.fetchall())
        if found:
            cursor.execute(_COUNT_THOSE, [number])
        return found


class _Casts:
    """Casts resources to the workers of the loop."""

    def __init__(self, transport: Any) -> None:
        self._client = transport.client(_TOPIC, _VERSION)
        self._context = RequestContext()

    def cast(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._client.cast(self._context, 'check', number=number)


def measure(name: str, cases: Sequence[tuple[str, int]]) -> Iterator[Floor]:
    """Work off resources of these shapes and sizes, one case after the other.

    :param name: of the installation that is measured beside it; its servers are used.
    :raises OperatorError: a server does not answer.
    :raises RetryLater: the loop does not come to its end; perhaps a message was lost.
    """
    broker, prefix = broker_url(), f'bench-floor-{os.getpid()}'
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='convergence-bench-')))
        database_url = stack.enter_context(own_database(SERVERS[name]))
        database = connect(database_url)
        stack.callback(database.dispose)
        with _transaction(database) as cursor:
            for table in _TABLES:
                cursor.execute(table.format(_SERIAL[database.dialect.name]))
        where = {'directory': str(directory), 'database': database_url, 'broker': broker, 'prefix': prefix}
        for number in range(WORKERS):
            stack.enter_context(_worker({**where, 'name': f'floor-{number}'}))
        settings = settings_for(directory, database_url, broker)
        casts = _Casts(stack.enter_context(closing(open_transport(settings, prefix))))
        _work_off(database, casts, 'flat', 10)  # connections are not measured
        for shape, size in cases:
            yield Floor(name, shape, size, _work_off(database, casts, shape, size))


def _work_off(database: Database, casts: _Casts, shape: str, size: int) -> float:
    """How many seconds it takes until all are done."""
    required = [list(SHAPES[shape](number, size)) for number in range(size)]
    edges = [(other, number) for number, others in enumerate(required) for other in others]
    with _transaction(database) as cursor:
        for table in ('work', 'edge', 'event'):
            cursor.execute(f'TRUNCATE TABLE {table}')
        rows = [(number, len(others)) for number, others in enumerate(required)]
        cursor.executemany("INSERT INTO work (number, state, missing) VALUES (%s, 'READY', %s)", rows)
        if edges:
            cursor.executemany('INSERT INTO edge (number, dependent) VALUES (%s, %s)', edges)
    begun = time.perf_counter()
    casts.cast([number for number, others in enumerate(required) if not others])
    while _left(database):
        if time.perf_counter() - begun > LIMIT_S:
            raise RetryLater(f'The floor loop has not come to an end in {LIMIT_S:g} s')
        sleep(LOOK_INTERVAL_S)
    return time.perf_counter() - begun


def _left(database: Database) -> bool:
    with _transaction(database) as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM work WHERE state <> 'COMPLETE')")
        return bool(cursor.fetchone()[0])


@contextmanager
def _transaction(database: Database) -> Iterator[Any]:
    """A cursor of the driver itself: SQLAlchemy only keeps the connections."""
    connection = database.raw_connection()
    try:
        with closing(connection.cursor()) as cursor:
            yield cursor
        connection.commit()
    finally:
        connection.close()  # back to the pool, which undoes what was not committed


@contextmanager
def _worker(where: dict[str, str]) -> Iterator[None]:
    variables = os.environ | {'PYTHONPATH': str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-m', 'tests.bench.floor'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=variables,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(where) + '\n')
        process.stdin.flush()
        if not process.stdout.readline():
            raise RetryLater('A worker of the floor loop did not start; what it said is above')
        yield
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def main() -> int:
    """Be a worker of the loop until standard input ends."""
    logging.getLogger('amqp').setLevel(logging.ERROR)  # it warns of what arrives while a connection is closed
    where = json.loads(sys.stdin.readline())
    settings = settings_for(Path(where['directory']), where['database'], where['broker'])
    database = connect(where['database'])
    with closing(open_transport(settings, where['prefix'])) as transport:
        loop = _Loop(database, _Casts(transport))
        server = RpcServer(transport, _TOPIC, where['name'], Endpoint(_VERSION, {'check': loop.check}), THREADS)
        server.start()
        print('listening', flush=True)
        sys.stdin.read()
        server.stop()
        server.wait(5.0)
    database.dispose()
    return 0


if __name__ == '__main__':
    sys.exit(main())
