"""Database engines: one per process, set up for the rules of the store.

* SQLite: write-ahead log; every writing transaction begins with `BEGIN IMMEDIATE`.
* PostgreSQL, MariaDB, MySQL: READ COMMITTED; a statement sees rows that were committed before it began.

All waits on servers are bounded: see `Timeouts`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
import weakref
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import sqlalchemy
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import exc_filters
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.pool import QueuePool

from convergence import concurrency, errors
from convergence.db.connections import drivers, failures

LOG = logging.getLogger(__name__)

Database: TypeAlias = Engine
"""The type that `connect` returns, for modules that do not import SQLAlchemy."""
Connected: TypeAlias = Connection
"""An open connection, for modules that do not import SQLAlchemy."""

DRIVERS = {
    'postgresql': 'postgresql+psycopg2',
    'mysql': 'mysql+pymysql',
    'mariadb': 'mysql+pymysql',
    'mariadb+pymysql': 'mysql+pymysql',
    'mariadb+mysqldb': 'mysql+mysqldb',
}


WAITS_FOR_THE_OTHERS = 3
"""Bits of wsrep_sync_wait: before a transaction reads (1), updates or deletes (2), a server of a Galera cluster applies
what the others have committed. Without them a process that uses another server than the one that planned may not see
the plan yet when the message about it arrives."""

UNKNOWN_VARIABLE = 1193
"""Number of the error of MySQL and MariaDB."""


IDLE_BEFORE_PING_S = 30.0
"""Seconds without use after which the pool pings a connection. A connection that the server lost more recently, without
notice, fails its next user; the store repeats the transaction on another connection.
"""
IDLE_BEFORE_LOOK_S = 1.0
"""Seconds without use after which the pool checks whether the server has sent data, as a server does when it ends a
connection. The check needs no round trip; if there is data, the pool pings.
"""

RENEWED_AFTER_S = 3600
"""How old a connection gets."""

GALERA = 'galera'
"""Key in the `info` of a connection to a server of a Galera cluster."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long is waited on a database server, in whole seconds, so that no process can hold all others up.

    What the URL says, such as ``?connect_timeout=3``, goes before.

    :param lock_s: for a lock; then the transaction is undone and tried again.
    :param idle_s: a transaction in which nothing happens for so long, because its process stands still or its host is
        gone, is undone by the server.
    :param silence_s: for an answer of the server, or of its host; then the connection counts as lost.
    :param connect_s: for a connection.
    """

    lock_s: int = 10
    idle_s: int = 60
    silence_s: int = 60
    connect_s: int = 10


def normalise(url: str) -> URL:
    """The URL with the drivers and options that Convergence uses.

    :raises ConfigurationError: it is no database URL.
    """
    try:
        parsed = make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        # Not with the error's own text: it quotes the URL, perhaps in the middle of the password.
        raise errors.ConfigurationError(
            '[database] connection is not a database URL. It looks like postgresql+psycopg2://user:password@host/name; '
            'write special characters in user and password in percent notation (@ as %40, : as %3A, / as %2F).'
        ) from None
    parsed = parsed.set(drivername=DRIVERS.get(parsed.drivername, parsed.drivername))
    backend = parsed.get_backend_name()
    if backend not in ('sqlite', 'postgresql', 'mysql'):
        raise errors.ConfigurationError(
            f'[database] connection: {backend} is not supported; use sqlite, postgresql or mysql'
        )
    if parsed.get_driver_name() == 'mysqldb' and concurrency.installed() is concurrency.Executor.EVENTLET:
        raise errors.ConfigurationError(
            '[database] connection: mysqlclient stalls all green threads of a process while it waits; '
            'use mysql+pymysql with executor = eventlet'
        )
    if backend == 'mysql' and 'charset' not in parsed.query:
        parsed = parsed.update_query_dict({'charset': 'utf8mb4'})
    if backend == 'sqlite':
        if parsed.database in (None, '', ':memory:'):
            raise errors.ConfigurationError('[database] connection: SQLite needs a file, such as sqlite:///stacks.db')
        parsed = parsed.update_query_dict({'check_same_thread': 'false', 'timeout': '60'})
    return parsed


def connect(
    url: str,
    *,
    pool_size: int = 10,
    attempts: int = 1,
    interval_s: float = 1.0,
    timeouts: Timeouts = Timeouts(),
    idle_before_look_s: float = IDLE_BEFORE_LOOK_S,
    idle_before_ping_s: float = IDLE_BEFORE_PING_S,
) -> Engine:
    """An engine on the database at `url`, after it has answered once.

    :param pool_size: connections kept open; each thread that works needs one for the length of a transaction.
    :param idle_before_look_s: see `IDLE_BEFORE_LOOK_S`.
    :param idle_before_ping_s: see `IDLE_BEFORE_PING_S`.
    :param attempts: how often to try before giving up, with `interval_s` seconds in between.
    :raises DatabaseUnavailable: it did not answer.
    :raises ConfigurationError: the URL cannot be used, or its driver is not installed.
    """
    parsed = normalise(url)
    if parsed.get_backend_name() == 'sqlite' and parsed.database:
        _make_private(Path(parsed.database))
    last: Exception | None = None
    for attempt in range(1, attempts + 1):
        try:
            return _connect(_patient(parsed, timeouts), pool_size, timeouts, (idle_before_look_s, idle_before_ping_s))
        except ModuleNotFoundError as error:
            raise errors.ConfigurationError(
                f'[database] connection: the driver {error.name} of {parsed.drivername} is not installed; '
                "install it with the package, for example pip install 'convergence-orchestration[postgresql]', "
                "'[mysql]' or '[mysqlclient]'"
            ) from None
        except (db_exception.DBError, sqlalchemy.exc.SQLAlchemyError, OSError) as error:
            last = error
            if parsed.get_backend_name() == 'sqlite' and 'locked' not in failures.first_line(error):
                break  # a file that cannot be used, or a disk that is full: no waiting will change that
            if attempt < attempts:
                LOG.warning('Database %s does not answer (attempt %d of %d)', _shown(parsed), attempt, attempts)
                time.sleep(interval_s)
    if parsed.get_backend_name() == 'sqlite':
        raise errors.DatabaseUnavailable(
            f'The SQLite database {_shown(parsed)} cannot be used: {failures.first_line(last)}. '
            'Check [database] connection, the space on its disk, and that the file may be written.'
        )
    raise errors.DatabaseUnavailable(
        f'The database {_shown(parsed)} does not answer: {failures.first_line(last)}. '
        'Check [database] connection and that the server runs.'
    )


def _make_private(path: Path) -> None:
    """Create an empty file and its directory with no access for other accounts. Existing files keep their modes.

    SQLite gives its journal files the same mode.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise errors.DatabaseUnavailable(
            f'The SQLite file {path} cannot be opened: {error.strerror}. Check [database] connection and state_dir.'
        ) from error


def _patient(url: URL, timeouts: Timeouts) -> URL:
    """The URL with what the driver must know before it connects."""
    backend = url.get_backend_name()
    options: dict[str, int | str] = {}
    if backend == 'postgresql':
        from psycopg2.extensions import libpq_version  # noqa: PLC0415 - only there where PostgreSQL is used

        # A host that has gone without a word is noticed after idle + interval * count.
        options = {'connect_timeout': timeouts.connect_s, 'keepalives': 1, 'keepalives_idle': timeouts.silence_s // 2}
        options |= {'keepalives_interval': max(1, timeouts.silence_s // 6), 'keepalives_count': 3}
        options['client_encoding'] = 'utf8'
        if libpq_version() >= 120000:
            options['tcp_user_timeout'] = timeouts.silence_s * 1000
    elif backend == 'mysql':
        options = {'connect_timeout': timeouts.connect_s}
        options |= {'read_timeout': timeouts.silence_s, 'write_timeout': timeouts.silence_s}
    return url.update_query_dict({name: str(value) for name, value in options.items() if name not in url.query})


def _connect(url: URL, pool_size: int, timeouts: Timeouts, idle_s: tuple[float, float]) -> Engine:
    backend = url.get_backend_name()
    # Last in, first out: connections that are not needed may stay idle. Closing a `Connection` rolls back an open
    # transaction. A second rollback on return to the pool is free, except with PyMySQL, which sends it in every case.
    engine = sqlalchemy.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_recycle=RENEWED_AFTER_S,
        pool_reset_on_return=None if backend == 'mysql' else 'rollback',
        pool_use_lifo=True,
        # Set as an option, not by a statement: only then the pool restores the level of a connection that was used at
        # another one. MySQL defaults to REPEATABLE READ, in which a statement behind a lock sees older rows. For
        # PostgreSQL see `convergence.db.connections.psycopg2`.
        isolation_level='READ COMMITTED' if backend == 'mysql' else None,
        # Several statements may share a text: values are bound by position, not by name.
        paramstyle='format' if backend == 'mysql' else None,
        # Database errors are logged and shown; the values written may be secrets.
        hide_parameters=True,
    )
    exc_filters.register_engine(engine)
    if backend == 'sqlite':
        event.listen(engine, 'connect', _prepare_sqlite)
        event.listen(engine, 'begin', _begin_sqlite)
    else:
        event.listen(engine, 'do_connect', drivers.opened)
        prepare = _prepare_mysql if backend == 'mysql' else _prepare_postgresql
        event.listen(engine, 'connect', partial(prepare, timeouts))
        event.listen(engine, 'checkin', _note_use)
        event.listen(engine, 'checkout', partial(_ping_idle, engine, *idle_s))
    if hasattr(os, 'register_at_fork'):
        # The connections of the process that this one was forked from are not its own.
        os.register_at_fork(after_in_child=partial(_forget_pool, weakref.ref(engine)))
    with engine.connect() as connection:
        connection.exec_driver_sql('SELECT 1')
    return engine


def _forget_pool(reference: weakref.ref[Engine]) -> None:
    engine = reference()
    if engine is not None:
        engine.dispose(close=False)


_USED_AT = 'used_at'


def _note_use(connection: Any, record: Any) -> None:
    record.info[_USED_AT] = time.monotonic()


def _ping_idle(engine: Engine, look_s: float, ping_s: float, connection: Any, record: Any, _: Any) -> None:
    """See that a connection that has rested is still there; the pool replaces it otherwise."""
    used_at = record.info.get(_USED_AT)
    rested_s = 0.0 if used_at is None else time.monotonic() - used_at
    if rested_s < min(look_s, ping_s):
        return
    try:
        is_there = (rested_s < ping_s and not _has_input(connection)) or engine.dialect.do_ping(connection)
    except engine.dialect.loaded_dbapi.Error:
        is_there = False
    if not is_there:
        raise sqlalchemy.exc.InvalidatePoolError


def _has_input(connection: Any) -> bool:
    """Return True if the server has said anything on a connection since it was used, or its driver does not show
    that."""
    socket = getattr(connection, '_sock', connection)  # there it is with PyMySQL
    return not hasattr(socket, 'fileno') or concurrency.has_input(socket.fileno())


def _prepare_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself
    for pragma in ('journal_mode=WAL', 'synchronous=NORMAL', 'busy_timeout=60000'):
        connection.execute(f'PRAGMA {pragma}')


def _begin_sqlite(connection: Connection) -> None:
    """Take the write lock at the beginning, where it can be waited for, not at the first write, where it cannot."""
    reads_only = connection.get_execution_options().get('reads_only')
    raw: Any = connection.connection.dbapi_connection
    try:
        raw.execute('BEGIN' if reads_only else 'BEGIN IMMEDIATE')
    except sqlite3.OperationalError as error:
        raise db_exception.DBDeadlock(error) from error


def _prepare_postgresql(timeouts: Timeouts, connection: Any, record: Any) -> None:
    # Statements find rows by keys, and a connection keeps the plan of a statement. A plan made while a table was small
    # would scan the table: 10,000 rows for each of 20 reads of an update, until the server renews its statistics a
    # minute later. Where no index fits, the server still scans; the scan then has a cost at which the server would
    # compile each statement, and JIT takes longer than any statement here.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, false),"
            " set_config('idle_in_transaction_session_timeout', %s, false),"
            " set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false)",
            (f'{timeouts.lock_s}s', f'{timeouts.idle_s}s'),
        )
    connection.commit()  # a setting made in a transaction that is undone is undone with it


def _prepare_mysql(timeouts: Timeouts, connection: Any, record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'TRADITIONAL'")  # what does not fit is refused, not cut
        cursor.execute('SET SESSION innodb_lock_wait_timeout = %s', (timeouts.lock_s,))
        try:
            cursor.execute('SET SESSION idle_transaction_timeout = %s', (timeouts.idle_s,))
        except Exception as error:
            if error.args[:1] != (UNKNOWN_VARIABLE,):
                raise
            # MySQL does not tell transactions from sessions; the pool replaces a connection that was idle too long.
            cursor.execute('SET SESSION wait_timeout = %s', (timeouts.idle_s,))
        if _is_galera(cursor):
            record.info[GALERA] = True
            cursor.execute(f'SET SESSION wsrep_sync_wait = @@GLOBAL.wsrep_sync_wait | {WAITS_FOR_THE_OTHERS}')


def _is_galera(cursor: Any) -> bool:
    """Return True if the server is one of a cluster in which every server can be written to."""
    try:
        cursor.execute('SELECT @@wsrep_on')
    except Exception as error:
        if error.args[:1] != (UNKNOWN_VARIABLE,):
            raise
        return False
    return bool(cursor.fetchone()[0])


def _shown(url: URL) -> str:
    return url.set(query={}).render_as_string(hide_password=True)
