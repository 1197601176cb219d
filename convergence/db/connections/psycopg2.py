"""Connections of psycopg2 that begin a transaction with the first statement in it; see `drivers`."""

from __future__ import annotations

from typing import Any

from psycopg2 import extensions

from convergence.db.connections.committing import Committing


class BeginningCursor(extensions.cursor):  # type: ignore[misc]
    """The first one that is used in a transaction begins it."""

    def execute(self, query: Any, values: Any = None) -> None:
        """Send `query`, with what begins the transaction where there is none."""
        super().execute(self.connection.begin_with(query), values)

    def executemany(self, query: Any, rows: Any) -> None:
        """Send `query` for each of some rows."""
        self.connection.begin()
        super().executemany(query, rows)


class Transactional(extensions.connection):  # type: ignore[misc]
    """To the driver every statement is a transaction of its own; what begins and ends one is sent here.

    :cvar cursor_class: what its cursors are.
    :ivar begins: True if statements are part of transactions; else each is one of its own.
    """

    cursor_class = BeginningCursor
    begins = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.cursor_factory = self.cursor_class
        self.autocommit = True
        self.set_isolation_level(extensions.ISOLATION_LEVEL_READ_COMMITTED)

    @property
    def is_begun(self) -> bool:
        """Return True if there is a transaction, as far as the driver has heard; also where the connection is lost.

        What could not be sent, for a value that cannot be written, has begun none.
        """
        return bool(self.get_transaction_status() != extensions.TRANSACTION_STATUS_IDLE)

    def set_isolation_level(self, level: int) -> None:
        """Each transaction that begins from now on has it; one that was begun is undone.

        :param level: one of those of psycopg2.
        """
        self._end('ROLLBACK')
        names = {
            extensions.ISOLATION_LEVEL_AUTOCOMMIT: '',
            extensions.ISOLATION_LEVEL_READ_COMMITTED: 'BEGIN ISOLATION LEVEL READ COMMITTED',
            extensions.ISOLATION_LEVEL_REPEATABLE_READ: 'BEGIN ISOLATION LEVEL REPEATABLE READ',
            extensions.ISOLATION_LEVEL_SERIALIZABLE: 'BEGIN ISOLATION LEVEL SERIALIZABLE',
        }
        self._begin = names[level]

    def begin(self) -> None:
        """Begin a transaction, unless there is one."""
        if self._begin and self.begins and not self.is_begun:
            self._send(self._begin)

    def begin_with(self, query: str | bytes) -> str | bytes:
        """Return the text to send for `query`, with BEGIN in front if no transaction is open."""
        if self.is_begun or not self._begin or not self.begins:
            return query
        begins = f'{self._begin}; '
        return begins + query if isinstance(query, str) else begins.encode() + query

    def commit(self) -> None:
        """Commit the open transaction, if there is one."""
        self._end('COMMIT')

    def rollback(self) -> None:
        """Roll back the open transaction, if there is one."""
        self._end('ROLLBACK')

    def _end(self, how: str) -> None:
        if self.is_begun:
            self._send(how)

    def _send(self, text: str) -> None:
        with extensions.cursor(self) as cursor:
            cursor.execute(text)


class Psycopg2Connection(Committing, Transactional):
    """A connection for one transaction after the other."""
