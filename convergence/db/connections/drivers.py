"""Connections of drivers that spend no way to the server and back on what begins and ends a transaction.

A way there and back costs a thread more than most statements cost the server: it gives up the interpreter and has to
wait for it again, and holds its locks meanwhile. So what nothing more is decided by goes with the commit; see
`convergence.db.statements.prepared.batch`. MariaDB and MySQL begin a transaction with the first statement in it;
psycopg2 would do so in a message of its own.

Statements in one text are what an injection of SQL needs to do more than to change a condition. There is no way in:
all texts are built from the tables, when the program starts, and hold nothing but places for values, which the driver
writes in its own notation. MariaDB is told that texts may hold several by these connections alone; PostgreSQL takes
them anyway, from whoever sends no values apart.
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
    """While it is open, each statement is a transaction of its own where there are ways to a server to be saved.

    So what reads once goes there once. PostgreSQL does it by itself; MariaDB and MySQL are told the end of the
    transaction with the statement.
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
    """What the connections of the driver of a dialect are here."""
    if dialect.name == 'postgresql':
        from convergence.db.connections.psycopg2 import Psycopg2Connection  # noqa: PLC0415 - if used

        return Psycopg2Connection
    return _of_mysql(import_module(f'{dialect.loaded_dbapi.__name__}.connections').Connection)


@cache
def _of_mysql(base: Any) -> Any:
    return type('Connection', (EndingInText, base), {})
