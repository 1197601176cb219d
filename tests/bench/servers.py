"""The database servers and the broker that are measured on: where they are, and what they count themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from convergence.db.connections.database import Database, connect

RABBITMQ = ('CONVERGENCE_TEST_RABBIT_URL', 'rabbit://guest:guest@127.0.0.1:5672/')
"""Environment variable and default of the broker, as for the tests."""


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """A server that can be measured on.

    :param variable: environment variable with its URL, as for the tests.
    :param default: where the variable is not set.
    :param program: how its processes are called by the kernel.
    """

    title: str
    variable: str
    default: str
    program: str

    @property
    def url(self) -> str:
        """Where it is. The account may create databases."""
        return os.environ.get(self.variable, self.default)

    def version(self) -> str:
        """Its name and version.

        :raises DatabaseUnavailable: it does not answer.
        """
        server = connect(self.url)
        try:
            with server.connect() as connection:
                found = str(connection.exec_driver_sql('SELECT version()').scalar_one())
        finally:
            server.dispose()
        return f'{self.title} {found.removeprefix("PostgreSQL ").split()[0].partition("-")[0]}'


SERVERS = {
    'postgresql': DatabaseServer(
        'PostgreSQL',
        'CONVERGENCE_TEST_POSTGRESQL_URL',
        'postgresql://postgres@127.0.0.1:5432/postgres',
        'postgres',
    ),
    'mariadb': DatabaseServer('MariaDB', 'CONVERGENCE_TEST_MARIADB_URL', 'mysql://root@127.0.0.1:3306/', 'mariadbd'),
}
"""By the name of the installation that uses them."""

BROKER_PROGRAM = 'beam.smp'


def broker_url() -> str:
    """Where the broker is. Queues vanish with those who listen to them, so nothing is left behind there."""
    url = os.environ.get(*RABBITMQ)
    return url + ('&' if urlsplit(url).query else '?') + 'amqp_auto_delete=true'


@contextmanager
def own_database(server: DatabaseServer) -> Iterator[str]:
    """URL of a new database, which is removed in the end.

    :raises DatabaseUnavailable: the server does not answer.
    """
    name = f'convergence_bench_{os.getpid()}'
    connected = connect(server.url)
    is_postgresql = connected.dialect.name == 'postgresql'
    try:
        _run(
            connected, f'CREATE DATABASE {name} ' + ('TEMPLATE template0' if is_postgresql else 'CHARACTER SET utf8mb4')
        )
        parts = urlsplit(server.url)
        yield urlunsplit((parts.scheme, parts.netloc, f'/{name}', parts.query, ''))
    finally:
        _run(connected, f'DROP DATABASE IF EXISTS {name}' + (' WITH (FORCE)' if is_postgresql else ''))
        connected.dispose()


def _run(server: Database, statement: str) -> None:
    with server.connect().execution_options(isolation_level='AUTOCOMMIT') as connection:
        connection.exec_driver_sql(statement)


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """What a server has counted since it was started; None for what it does not count.

    What the benchmark itself has asked is among them.

    :param statements: whatever it was sent, pings too, but for what begins or ends a transaction. PostgreSQL counts it with
        ``pg_stat_statements`` only.
    :param writes: transactions that wrote something.
    :param lock_waits: how often a transaction waited for a lock of another one.
    :param lock_wait_ms: for how long, in all. On PostgreSQL an estimate, from looking at it again and again.
    :param log_bytes: written to its log of changes.
    """

    statements: float | None = None
    writes: float | None = None
    lock_waits: float | None = None
    lock_wait_ms: float | None = None
    deadlocks: float | None = None
    log_bytes: float | None = None

    def __sub__(self, before: ServerFigures) -> ServerFigures:
        pairs = [(getattr(self, each.name), getattr(before, each.name)) for each in fields(self)]
        return ServerFigures(*(None if None in pair else pair[0] - pair[1] for pair in pairs))


class ServerWatch:
    """Reads the figures of the server that a database is on.

    On a server that others use at the same time, what they do is among them.

    :param database: of the installation that is measured.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_postgresql = database.dialect.name == 'postgresql'
        self._waited_ms = 0.0
        self._counts_statements = self._is_postgresql and self._can_count_statements()

    def read(self) -> ServerFigures:
        """The figures of this moment."""
        return self._postgresql() if self._is_postgresql else self._mariadb()

    def look(self, interval_s: float) -> None:
        """Look who waits for a lock now; `interval_s` is how long ago that was looked at last."""
        if self._is_postgresql:
            waiting = self._ask(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            self._waited_ms += 1000 * interval_s * waiting[0][0]

    def _can_count_statements(self) -> bool:
        found = self._ask("SELECT current_setting('shared_preload_libraries') LIKE '%%pg_stat_statements%%'")
        if found[0][0]:
            _run(self._database, 'CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
        return bool(found[0][0])

    def _postgresql(self) -> ServerFigures:
        statements = None
        if self._counts_statements:
            statements = self._ask(
                'SELECT COALESCE(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid '
                "WHERE d.datname = current_database() AND query !~* '^(begin|commit|rollback)'"
            )[0][0]
        writes, log_bytes, deadlocks = self._ask(
            'SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, '
            "pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, "
            '(SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())'
        )[0]
        return ServerFigures(
            None if statements is None else int(statements), writes, None, self._waited_ms, deadlocks, log_bytes
        )

    def _mariadb(self) -> ServerFigures:
        names = ('Questions', 'Com_commit', 'Com_rollback', 'Com_begin', 'Com_admin_commands', 'Innodb_row_lock_waits')
        names += ('Innodb_row_lock_time', 'Innodb_deadlocks', 'Innodb_os_log_written')
        found = {name: float(value) for name, value in self._ask('SHOW GLOBAL STATUS') if name in names}
        ends = found['Com_commit'] + found['Com_rollback'] + found['Com_begin']
        return ServerFigures(
            found['Questions'] - ends + found['Com_admin_commands'],  # those are pings
            found['Com_commit'],
            found['Innodb_row_lock_waits'],
            found['Innodb_row_lock_time'],
            found.get('Innodb_deadlocks'),
            found['Innodb_os_log_written'],
        )

    def _ask(self, statement: str) -> list[Any]:
        with self._database.connect() as connection:
            return list(connection.exec_driver_sql(statement).all())
