"""Count what a process asks of its database: for measurements and for tests of what an operation may cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from convergence.db.statements.connection import Database


def count(database: Database, note: Callable[[str], None]) -> None:
    """Have `note` called with ``statements`` and ``commits``, each time one happens on any connection of `database`.

    A statement for many rows at once counts as one. What begins a transaction does not count.
    """

    def statement(connection: Any, cursor: Any, text: str, *_: Any) -> None:
        if text != 'BEGIN':
            note('statements')

    def commit(_: Any) -> None:
        note('commits')

    event.listen(database, 'before_cursor_execute', statement)
    event.listen(database, 'commit', commit)
