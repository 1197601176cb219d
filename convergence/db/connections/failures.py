"""Translates driver errors: database unreachable, lock not available, or another error.

oslo.db recognises most errors by their messages, which differ between versions and languages; errors while connecting
have other messages again. So this module also uses the error codes of the servers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from oslo_db import exception as db_exception
from sqlalchemy import exc

from convergence.errors import Conflict, DatabaseUnavailable

LOST = frozenset(
    {
        '57P01',
        '57P02',
        '57P03',
        '57P04',
        '57P05',
        '25P03',
        '25P04',
        '53300',
        1040,
        1047,
        1053,
        1152,
        1158,
        1159,
        1160,
        1161,
        1184,
        1203,
        1927,
        2002,
        2003,
        2006,
        2013,
        4031,
    }
)
"""The server ends the session, or takes none now: SQLSTATEs of PostgreSQL (besides class 08), numbers of MariaDB."""
LOCKED = frozenset({'55P03', '40P01', '40001', 1020, 1205, 1213})
"""A lock was waited for too long, or in a circle."""
DUPLICATE = frozenset({'23505', 1062})
"""There is a row with such a key."""
REFUSED = frozenset({'22012', 1690})
"""A statement has not found the rows that it was for. PostgreSQL was to divide by their number: see
`convergence.db.statements.prepared.statement.refused_where_none`; MariaDB was to make a number of it that is too large:
see `convergence.db.statements.prepared.statement.PreparedStatement.checking`."""
FULL = frozenset({'53100', '53200', '25006', 1021, 1114, 1290, 1792, 1836})
"""The server has no room left or is read-only: a replica, or set so by its administrator."""
FULL_TEXTS = ('database or disk is full', 'disk I/O error', 'attempt to write a readonly database')
"""The same from SQLite, which has no codes in its errors."""


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Around everything that is done with a connection, and around its making.

    :raises DatabaseUnavailable: in place of what drivers say when a connection is lost or not to be had.
    :raises Conflict: in place of a deadlock, of a lock that was waited for too long, and of a row that is not as it was
        read.
    """
    try:
        yield
    except exc.TimeoutError as error:
        raise DatabaseUnavailable(
            'The database cannot be reached: no connection of this process became free; '
            'see [database] max_pool_size, and what the database is waiting for'
        ) from error
    except (db_exception.DBError, exc.SQLAlchemyError) as error:
        if _is_lost(error):
            raise DatabaseUnavailable(f'The database cannot be reached: {first_line(error)}') from error
        if _is_full(error):
            raise DatabaseUnavailable(f'The database stores nothing now: {first_line(error)}{_cure(error)}') from error
        if is_locked(error):
            raise Conflict(f'another transaction was in the way: {first_line(error)}') from error
        if _code(error) in REFUSED:
            raise Conflict('something is not as it was read') from error
        raise


def is_locked(error: BaseException | None) -> bool:
    """Return True if another transaction was in the way: a deadlock, or a lock that was waited for too long."""
    return isinstance(error, db_exception.DBDeadlock) or _code(error) in LOCKED


def is_duplicate(error: BaseException | None) -> bool:
    """Return True if there is a row with such a key already."""
    if isinstance(error, db_exception.DBDuplicateEntry) or _code(error) in DUPLICATE:
        return True
    return 'UNIQUE constraint failed' in str(_cause(error))  # what SQLite says, which has no codes in its errors


def _is_full(error: Exception) -> bool:
    """Return True if the database is there and takes nothing: the disk is full, or it may only be read at the
    moment."""
    return _code(error) in FULL or any(text in str(_cause(error)) for text in FULL_TEXTS)


def _cure(error: Exception) -> str:
    """Return the remedy that SQLite omits: it reports a full disk with the text of a broken one."""
    if 'disk I/O error' not in str(_cause(error)):
        return ''
    return '. The disk may be full, or broken: look for room where [database] connection keeps the file'


def _is_lost(error: Exception) -> bool:
    if isinstance(error, (db_exception.DBConnectionError, db_exception.DBNonExistentDatabase)):
        return True
    if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
        return True
    code = _code(error)
    if code in LOST or str(code).startswith('08'):
        return True
    # An error without a statement comes from connecting: refused, not found, or starting up.
    return isinstance(error, exc.OperationalError) and error.statement is None and code not in LOCKED


def _cause(error: BaseException | None) -> BaseException | None:
    """Return the driver's exception."""
    for name in ('inner_exception', 'orig'):
        inner = getattr(error, name, None)
        error = inner if isinstance(inner, BaseException) else error
    return error


def _code(error: BaseException | None) -> str | int | None:
    """SQLSTATE of an error of psycopg2, number of one of PyMySQL."""
    cause = _cause(error)
    state = getattr(cause, 'pgcode', None)
    if state is not None:
        return str(state)
    first = cause.args[0] if cause is not None and cause.args else None
    return first if isinstance(first, int) else None


def first_line(error: BaseException | None) -> str:
    """Return the driver's message in one line, without the statement and its values."""
    cause = _cause(error)
    arguments = cause.args if cause is not None else ()
    numbered = _code(error) is not None and getattr(cause, 'pgcode', None) is None and len(arguments) > 1
    lines = str(arguments[1] if numbered else cause).strip().splitlines() or [type(cause).__name__]
    return lines[0]
