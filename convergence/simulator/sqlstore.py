"""The SQL store on an SQLite file, as the database of a simulated world.

The statements are those that run in production. A transaction is one step: others may go on before it and after it,
not inside, for SQLite lets only one writer in. What the database takes for the time is the simulated clock. A server
that lags is a copy of the file as it was some commits ago.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from convergence.core.effects import Decision
from convergence.db.memory.look import UP_TO_DATE, Lag, Tables
from convergence.db.memory.store import no_pause
from convergence.db.ports import Ports
from convergence.db.queries.stacks import StackReader
from convergence.db.schema import migration
from convergence.db.scopes import Scope
from convergence.db.simulation import all_rows, set_clock
from convergence.db.statements.apply import apply
from convergence.db.statements.connection import Connected, Database, connect
from convergence.db.statements.load import load
from convergence.db.statements.store import Store
from convergence.db.transaction import Committed
from convergence.errors import Conflict
from convergence.simulator.storage import Storage

ViewT = TypeVar('ViewT')
V = TypeVar('V')
RowT = TypeVar('RowT')


class Copies:
    """The database as it was after each of the last commits.

    :param directory: where the copies are kept.
    :param opened: makes a database of a file.
    """

    def __init__(self, directory: Path, opened: Callable[[Path], Database], commits: int) -> None:
        self._databases = [opened(directory / f'{number}.sqlite') for number in range(commits + 1)]
        self._kept = 0

    def keep(self, connection: Connected) -> None:
        """Something was committed on a connection."""
        copy = self._databases[self._kept % len(self._databases)]
        self._kept += 1
        with copy.connect() as into:
            raw, present = into.connection.dbapi_connection, connection.connection.dbapi_connection
            assert raw is not None
            assert present is not None
            raw.rollback()
            present.backup(raw)

    def before(self, commits: int) -> Database | None:
        """The database before so many of the last commits, as far as copies go back."""
        back = min(commits, self._kept - 1)
        return self._databases[(self._kept - 1 - back) % len(self._databases)] if back > 0 else None

    def dispose(self) -> None:
        """Close them all."""
        for database in self._databases:
            database.dispose()


class CatchingUp:
    """A connection to a server that lags until after the first statement of a transaction."""

    def __init__(self, before: Connected, connection: Connected) -> None:
        self._before: Connected | None = before
        self._connection = connection
        self.info = connection.info
        self.dialect = connection.dialect

    def execute(self, statement: Any, values: Any = None) -> Any:
        """As the connection does it.

        :raises Conflict: what the first statement has locked was written meanwhile by others.
        """
        if self._before is None:
            return self._connection.execute(statement, values)
        row, now = (each.execute(statement, values).first() for each in (self._before, self._connection))
        self._before = None
        if row is not None and row != now:
            raise Conflict('what is locked here was written on another server')
        return Shown(row)


@dataclass(frozen=True, slots=True)
class Shown:
    """The answer to a statement that asks for one row."""

    row: Any

    def first(self) -> Any:
        """The row, or None."""
        return self.row


class SqliteStore(Store):
    """The SQL store, with the pauses and the hooks of the one in memory.

    The variables are as those of `convergence.db.memory.store.MemoryStore`.
    """

    def __init__(self, database: Database, copied: Callable[[int], Copies]) -> None:
        super().__init__(database, interval_s=0.0)
        self.lag: Callable[[], Lag] = lambda: UP_TO_DATE
        self._plain = Store(database)
        self._copied = copied
        self._copies: Copies | None = None
        self.pause: Callable[[str], None] = no_pause
        self.block: Callable[[], None] = lambda: None
        self.released: Callable[[], None] = lambda: None
        self.committed: Callable[[Decision[Any]], None] = lambda decision: None
        self._tables: Tables | None = None

    def spread(self, commits: int) -> None:
        """From now on there are several servers, which may be so many commits behind; see `lag`."""
        self._copies = self._copied(commits)

    def _shown(self, lag: Lag) -> Database | None:
        return self._copies.before(lag.commits) if self._copies is not None and lag.commits else None

    @property
    def tables(self) -> Tables:
        """The rows, as they are committed; read again when anything has been written."""
        if self._tables is None:
            self._tables = all_rows(self._plain)
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

    @override
    def _once(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V]:
        """As the base class, perhaps on a server that lags: what others have written is not written over."""
        lag = self.lag()
        older = self._shown(lag)
        if older is None:
            return super()._once(scope, decide)
        with older.connect().execution_options(reads_only=True) as before, self.writing() as connection:
            if lag.catches_up:
                seen: Any = load(CatchingUp(before, connection), scope)  # type: ignore[arg-type]
            else:
                seen = load(before, scope)
            decision = decide(seen)
            if not decision.effects:
                return Committed.of(decision, ())
            if not lag.catches_up and replace(load(connection, scope), now=seen.now) != seen:
                raise Conflict('what is to be written was written on another server')
            ready = apply(connection, decision.effects)
            self.commit(connection, decide, decision.verdict)
        return Committed.of(decision, ready)

    @override
    def commit(self, connection: Connected, by: object, verdict: object = None) -> None:
        """As the base class."""
        super().commit(connection, by, verdict)
        if self._copies is not None:
            self._copies.keep(connection)

    @contextlib.contextmanager
    @override
    def reading(self) -> Iterator[Connected]:
        """As the base class, perhaps on a server that lags."""
        older = self._shown(self.lag())
        if older is None:
            with super().reading() as connection:
                yield connection
        else:
            with older.connect().execution_options(reads_only=True) as connection:
                yield connection

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
    def _one(self, kind: Callable[..., RowT], statement: Any, key: Mapping[str, Any] | None = None) -> RowT | None:
        self._store.pause('read')
        return super()._one(kind, statement, key)

    @override
    def _many(self, kind: Callable[..., RowT], statement: Any) -> list[RowT]:
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

    def opened(file: Path) -> Database:
        shutil.copyfile(empty, file)
        database = connect(f'sqlite:///{file}')
        set_clock(database, clock)
        return database

    copies: list[Copies] = []

    def copied(commits: int) -> Copies:
        copies.append(Copies(path.parent, opened, commits))
        return copies[-1]

    database = opened(path)
    store = SqliteStore(database, copied)

    def close() -> None:
        database.dispose()
        for each in copies:
            each.dispose()
        shutil.rmtree(path.parent, ignore_errors=True)

    return Storage(store, replace(Ports.of(store), reader=PausingReader(store)), close)
