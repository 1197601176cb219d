"""The SQL store on an SQLite file, as the database of a simulated world.

The statements are those that run in production. A transaction is one step: others may go on before it and after it,
not inside, for SQLite lets only one writer in. What the database takes for the time is the simulated clock.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from convergence.core.effects import Decision
from convergence.db.memory.store import Tables, no_pause
from convergence.db.ports import Ports
from convergence.db.queries.stacks import StackReader
from convergence.db.schema import migration
from convergence.db.scopes import Scope
from convergence.db.simulation import all_rows, set_clock
from convergence.db.statements.connection import Database, connect
from convergence.db.statements.store import Store
from convergence.db.transaction import Committed
from convergence.simulator.storage import Storage

ViewT = TypeVar('ViewT')
V = TypeVar('V')
Row = TypeVar('Row')


class SqliteStore(Store):
    """The SQL store, with the pauses and the hooks of the one in memory.

    The variables are as those of `convergence.db.memory.store.MemoryStore`.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database, interval_s=0.0)
        self.pause: Callable[[str], None] = no_pause
        self.block: Callable[[], None] = lambda: None
        self.released: Callable[[], None] = lambda: None
        self.committed: Callable[[Decision[Any]], None] = lambda decision: None
        self._tables: Tables | None = None

    @property
    def tables(self) -> Tables:
        """The rows, as they are committed; read again when anything has been written."""
        if self._tables is None:
            self._tables = all_rows(self)
        return self._tables

    @override
    def transact(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V] | None:
        """As the base class, with others going on before and after."""
        decisions: list[Decision[V]] = []

        def noted(view: ViewT) -> Decision[V]:
            decisions.append(decide(view))
            return decisions[-1]

        self.pause('begin')
        committed = super().transact(scope, noted)
        if committed is not None and decisions[-1].effects:
            self.committed(decisions[-1])
            self.pause('committed')
        return committed

    @contextlib.contextmanager
    @override
    def writing(self) -> Iterator[Any]:
        """As the base class; afterwards the rows are not what they were."""
        try:
            with super().writing() as connection:
                yield connection
        finally:
            self._tables = None


class PausingReader(StackReader):
    """Lets others go on before each question."""

    _store: SqliteStore

    @override
    def _one(self, kind: Callable[..., Row], statement: Any) -> Row | None:
        self._store.pause('read')
        return super()._one(kind, statement)

    @override
    def _many(self, kind: Callable[..., Row], statement: Any) -> list[Row]:
        self._store.pause('read')
        return super()._many(kind, statement)


@cache
def _empty() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """A database with the newest schema and nothing in it, made by the migrations, once in a process."""
    directory = tempfile.TemporaryDirectory(prefix='simulated-')
    path = Path(directory.name) / 'empty.sqlite'
    database = connect(f'sqlite:///{path}')
    migration.sync(database)
    database.dispose()
    return directory, path


def in_sqlite(clock: Callable[[], float]) -> Storage:
    """A new SQLite file that lasts as long as the world."""
    directory, empty = _empty()
    path = Path(tempfile.mkdtemp(dir=directory.name)) / 'world.sqlite'
    shutil.copyfile(empty, path)
    database = connect(f'sqlite:///{path}')
    set_clock(database, clock)
    store = SqliteStore(database)

    def close() -> None:
        database.dispose()
        shutil.rmtree(path.parent, ignore_errors=True)

    return Storage(store, replace(Ports.of(store), reader=PausingReader(store)), close)
