"""Driver connections that begin and end transactions without round trips of their own.

A round trip costs a thread more than most statements cost the server: the thread releases the interpreter, waits for it
again, and holds its locks meanwhile. So the last statements of a transaction travel with the commit; see
`convergence.db.statements.prepared.batch`. MariaDB and MySQL begin a transaction with its first statement; psycopg2
would send BEGIN separately.

An SQL injection needs several statements in one text to do more than change a condition. There is no way in: all texts
are built from the tables when the program starts and contain only placeholders; the driver escapes the values. Only
these connections allow several statements per text on MariaDB; PostgreSQL allows them for every client that sends no
separate values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from convergence.db.connections.mysql import EndingInText

MULTI_STATEMENTS = 1 << 16
"""Flag of a connection of MariaDB and MySQL: a text may hold several statements."""

SEVERAL = 'several'
"""Key in the `info` of a connection on which several statements may go together."""

DriverConnection: TypeAlias = Any
"""A connection of a driver, or its class."""


def opened(dialect: Any, record: Any, arguments: Any, options: Any, kind: DriverConnection = None) -> DriverConnection:
    """A connection of the driver of `dialect`.

    Listens to ``do_connect``.

    :param kind: what it is to be; None: of `connection_class`.
    """
    kind = kind or connection_class(dialect)
    record.info[SEVERAL] = True
    if dialect.name == 'postgresql':
        return dialect.loaded_dbapi.connect(*arguments, **{**options, 'connection_factory': kind})
    flags = options.get('client_flag', 0) | MULTI_STATEMENTS
    return kind(*arguments, **{**options, 'client_flag': flags})


@contextmanager
def read_alone(connection: Connection) -> Iterator[None]:
    """Run each statement as a transaction of its own, where this saves round trips to a server.

    A single read then needs one round trip. PostgreSQL commits each statement by itself; for MariaDB and MySQL the text
    carries the commit.
    """
    driven: Any = connection.connection.dbapi_connection
    if isinstance(driven, EndingInText):
        driven.reads_alone = True
        try:
            yield
        finally:
            driven.reads_alone = False
    else:
        with _without_transactions(connection):
            yield


@contextmanager
def _without_transactions(connection: Connection) -> Iterator[None]:
    """While it is open, nothing begins a transaction at PostgreSQL, or ends one."""
    driven = connection.connection.dbapi_connection if connection.dialect.name == 'postgresql' else None
    if driven is None:
        yield
        return
    driven.begins = False
    try:
        yield
    finally:
        driven.begins = True


def written_alone(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> CursorResult[Any]:
    """Carry out a statement beside which its transaction has no other.

    PostgreSQL commits it by itself, and the commit that follows sends nothing.
    """
    with _without_transactions(connection):
        return connection.execute(statement, values)


def connection_class(dialect: Any) -> DriverConnection:
    """Return the class of driver connections for a dialect."""
    if dialect.name == 'postgresql':
        from convergence.db.connections.psycopg2 import Psycopg2Connection  # noqa: PLC0415 - if used

        return Psycopg2Connection
    return _of_mysql(import_module(f'{dialect.loaded_dbapi.__name__}.connections').Connection)


@cache
def _of_mysql(base: Any) -> Any:
    return type('Connection', (EndingInText, base), {})
