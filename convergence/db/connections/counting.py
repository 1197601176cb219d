"""Counts the statements, commits and rollbacks of a process, for measurements and tests of costs.

It counts every text that the driver sends, including pings and rollbacks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from sqlalchemy import event
from typing_extensions import override

from convergence.db.connections.database import Database
from convergence.db.connections.drivers import connection_class, opened

Note = Callable[[str], None]
"""Called for each text sent, with its kind: ``statements``, ``commits`` or ``rollbacks``."""


def count(database: Database, note: Note) -> Callable[[], None]:
    """Have `note` called with each statement, commit and rollback that is sent on any connection of `database`.

    Rows, and statements, that a driver sends at once count as one statement. What begins a transaction does not count.
    Connections that exist already are closed; the ones that take their place are counted.

    :returns: ends the counting.
    """
    connect = partial(_CONNECT[database.dialect.name], note)
    # SQLAlchemy calls only the first listener that opens connections.
    is_opened = event.contains(database, 'do_connect', opened)
    if is_opened:
        event.remove(database, 'do_connect', opened)
    event.listen(database, 'do_connect', connect)
    database.dispose()

    def stop() -> None:
        event.remove(database, 'do_connect', connect)
        if is_opened:
            event.listen(database, 'do_connect', opened)
        database.dispose()

    return stop


def kind_of(text: str) -> str | None:
    """Return the kind of a text; None for texts that begin a transaction or that are sent once per connection."""
    word = text.lstrip()[:8].upper()
    if word.startswith(('BEGIN', 'PREPARE')):
        return None
    if word.startswith('COMMIT'):
        return 'commits'
    return 'rollbacks' if word.startswith('ROLLBACK') else 'statements'


def _noted(note: Note, text: str) -> None:
    kind = kind_of(text)
    if kind is not None:
        note(kind)


def _sqlite(note: Note, dialect: Any, record: Any, arguments: Any, options: Any) -> None:
    class Cursor(sqlite3.Cursor):
        @override
        def execute(self, text: str, *parameters: Any) -> Self:
            _noted(note, text)
            return super().execute(text, *parameters)

        @override
        def executemany(self, text: str, *parameters: Any) -> Self:
            _noted(note, text)
            return super().executemany(text, *parameters)

    class Connection(sqlite3.Connection):
        @override
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        @override
        def execute(self, text: str, *parameters: Any) -> sqlite3.Cursor:
            answer: sqlite3.Cursor = self.cursor().execute(text, *parameters)
            return answer

        @override
        def commit(self) -> None:
            if self.in_transaction:
                note('commits')
            super().commit()

        @override
        def rollback(self) -> None:
            if self.in_transaction:
                note('rollbacks')
            super().rollback()

    options['factory'] = Connection


def _postgresql(note: Note, dialect: Any, record: Any, arguments: Any, options: Any) -> object:
    base = connection_class(dialect)

    class Cursor(base.cursor_class):  # type: ignore[misc, name-defined]
        def execute(self, text: Any, *parameters: Any) -> None:
            _noted(note, text if isinstance(text, str) else text.decode())
            super().execute(text, *parameters)

        def executemany(self, text: str, parameters: Any) -> None:
            rows = list(parameters)
            for _ in rows:  # it sends each by itself
                _noted(note, text)
            super().executemany(text, rows)

    class Connection(base):  # type: ignore[misc, valid-type]
        cursor_class = Cursor

        def commit(self) -> None:
            if self.is_begun or self.with_commit is not None:
                note('commits')
            super().commit()

        def rollback(self) -> None:
            if self.is_begun:
                note('rollbacks')
            super().rollback()

    return opened(dialect, record, arguments, options, Connection)


def _mysql(note: Note, dialect: Any, record: Any, arguments: Any, options: Any) -> object:
    class Connection(connection_class(dialect)):  # type: ignore[misc]
        def query(self, text: Any, *more: Any) -> Any:
            _noted(note, text if isinstance(text, str) else bytes(text).decode('latin-1'))
            return super().query(text, *more)

        def ping(self, *more: Any) -> Any:
            note('statements')
            return super().ping(*more)

        def commit(self) -> None:
            note('commits')
            super().commit()

        def rollback(self) -> None:
            if not self.is_over:
                note('rollbacks')
            super().rollback()

    return opened(dialect, record, arguments, options, Connection)


_CONNECT: dict[str, Callable[..., Any]] = {
    'sqlite': _sqlite,
    'postgresql': _postgresql,
    'mysql': _mysql,
    'mariadb': _mysql,
}
