"""The SQL store on an SQLite file, as the database of a simulated world.

The statements are those of production. A transaction is one step: other fibers may run before and after it but not
inside it, because SQLite has only one writer at a time. The database uses the simulated clock. A server that lags, or
that is promoted, has the state of some commits ago.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from typing_extensions import override

from convergence.core.effects import Decision
from convergence.core.views import NodeView
from convergence.db.connections.database import Connected, Database, connect
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.repositories.wiring import ports_of
from convergence.db.schema import migration
from convergence.db.scopes import FreeNodes, Scope
from convergence.db.statements.loading.load import load
from convergence.db.statements.store import Store
from convergence.db.transaction import Committed, Following
from convergence.errors import Conflict
from convergence.values import replace
from convergence_simulator.memory.look import UP_TO_DATE, Lag, Tables
from convergence_simulator.memory.store import no_pause
from convergence_simulator.stores.database import all_rows, set_clock
from convergence_simulator.stores.deciding import Decisions, SeveralDecisions
from convergence_simulator.stores.storage import Storage

ViewT = TypeVar('ViewT')
V = TypeVar('V')
RowT = TypeVar('RowT')


class Copies:
    """The states of the database after each of the last commits.

    :param empty: the state before the first commit.
    :param opened: opens another database, which then shows an older state.
    """

    def __init__(self, empty: bytes, opened: Callable[[], Database], commits: int) -> None:
        self._kept: deque[bytes] = deque([empty], maxlen=commits + 1)
        self._opened = opened
        self._shown: Database | None = None

    def keep(self, connection: Connected) -> None:
        """Record the state after a commit on a connection."""
        self._kept.append(_raw(connection).serialize())

    def before(self, commits: int) -> Database | None:
        """Return a database with the state before the last `commits` commits; None for the present state.

        The oldest recorded state is the limit. The database is valid until the next call.
        """
        back = min(commits, len(self._kept) - 1)
        if not back:
            return None
        if self._shown is None:
            self._shown = self._opened()
        _restore(self._shown, self._kept[-1 - back])
        return self._shown

    def forget(self, commits: int, database: Database) -> None:
        """Drop the states after the last `commits` commits, and set the database to the state before them."""
        for _ in range(min(commits, len(self._kept) - 1)):
            self._kept.pop()
        _restore(database, self._kept[-1])

    def dispose(self) -> None:
        """Close the database that shows older states."""
        if self._shown is not None:
            self._shown.dispose()


def _restore(database: Database, content: bytes) -> None:
    """Set a database to a recorded state."""
    # Bytes 18 and 19 mark a write-ahead log, which a database in memory cannot have.
    plain = content[:18] + b'\x01\x01' + content[20:]
    with contextlib.closing(sqlite3.connect(':memory:')) as older, database.connect() as connection:
        older.deserialize(plain)
        raw = _raw(connection)
        raw.rollback()
        older.backup(raw)


def _raw(connection: Connected) -> sqlite3.Connection:
    raw: Any = connection.connection.dbapi_connection
    assert raw is not None
    found: sqlite3.Connection = raw
    return found


class CatchingUp:
    """A connection to a server that lags behind during the first statement of a transaction and then catches up."""

    def __init__(self, before: Connected, connection: Connected) -> None:
        self._before: Connected | None = before
        self._connection = connection
        self.info = connection.info
        self.dialect = connection.dialect

    @property
    def dispatch(self) -> object:
        """The event listeners of the connection."""
        return self._connection.dispatch

    def in_transaction(self) -> bool:
        """Return True if both connections are in a transaction."""
        return self._connection.in_transaction() and (self._before is None or self._before.in_transaction())

    def begin(self) -> None:
        """Begin a transaction on each connection that has none."""
        for each in (self._before, self._connection):
            if each is not None and not each.in_transaction():
                each.begin()

    @property
    def connection(self) -> CatchingUp:
        """Itself, for statements that the caller passes to the driver as text."""
        return self

    def cursor(self) -> OlderCursor | sqlite3.Cursor:
        """Return a cursor of the driver; the first one reads from the server that lags behind."""
        present: sqlite3.Cursor = _raw(self._connection).cursor()
        if self._before is None:
            return present
        older, self._before = _raw(self._before).cursor(), None
        return OlderCursor(older, present)

    def execute(self, statement: Any, values: Any = None) -> Any:
        """Execute a statement; the first one on both servers.

        :raises Conflict: others have meanwhile written the row that the first statement locks.
        """
        if self._before is None:
            return self._connection.execute(statement, values)
        row, now = (each.execute(statement, values).first() for each in (self._before, self._connection))
        self._before = None
        if row is not None and row != now:
            raise Conflict('another server wrote the locked rows meanwhile')
        return Shown(row)


class OlderCursor:
    """The answer of a server that lags to a statement that locks rows; the current server executes it as well."""

    def __init__(self, older: Any, present: Any) -> None:
        self._older = older
        self._present = present

    def execute(self, text: str, parameters: Any) -> None:
        """Execute on both servers."""
        self._older.execute(text, parameters)
        self._present.execute(text, parameters)

    def fetchall(self) -> list[Any]:
        """Return the rows.

        :raises Conflict: others have meanwhile written the rows that the statement locks.
        """
        rows = self._older.fetchall()
        if rows and rows != self._present.fetchall():
            raise Conflict('another server wrote the locked rows meanwhile')
        return list(rows)

    @property
    def description(self) -> object:
        """The description of the columns."""
        return self._older.description

    @property
    def rowcount(self) -> int:
        """Number of rows that the current server found."""
        found: int = self._present.rowcount
        return found

    def close(self) -> None:
        """Close both cursors."""
        self._older.close()
        self._present.close()


@dataclass(frozen=True, slots=True)
class Shown:
    """The answer to a statement that returns one row."""

    row: Any

    def first(self) -> Any:
        """Return the row, or None."""
        return self.row


class SqliteStore(Store):
    """The SQL store, with the pauses and the hooks of the store in memory.

    The variables are those of `convergence_simulator.memory.store.MemoryStore`.
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
        """From now on simulate several servers, which may lag behind by up to `commits` commits; see `lag`."""
        self._copies = self._copied(commits)

    def promote(self, commits: int) -> None:
        """Lose the last commits, as the store in memory does.

        A transaction is one step here, so none is in progress.
        """
        assert self._copies is not None, 'older states are not kept'
        self._copies.forget(commits, self.engine)
        self._tables = None
        self.released()

    def _shown(self, lag: Lag) -> Database | None:
        return self._copies.before(lag.commits) if self._copies is not None and lag.commits else None

    @property
    def tables(self) -> Tables:
        """The committed rows; read again after each write."""
        if self._tables is None:
            self._tables = all_rows(self._plain)
        return self._tables

    @override
    def transact(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None = None
    ) -> Committed[V] | None:
        """Run a transaction; other fibers can run before and after it."""
        decisions = Decisions()
        self.pause('begin')
        committed = super().transact(scope, decisions.noting(decide), decisions.noting_both(following))
        true = decisions.come_true(committed)
        for decision in true:
            self.committed(decision)
        if true:
            self.pause('committed')
        return committed

    @override
    def decide_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        """Decide about free nodes; other fibers can run before and after. A server that lags shows no node as free."""
        self.pause('begin')
        if self._shown(self.lag()) is not None:
            return ()
        decisions = SeveralDecisions()
        committed = super().decide_free(nodes, decisions.noting(decide))
        for decision, _ in decisions.come_true(committed):
            self.committed(decision)
        if committed:
            self.pause('committed')
        return committed

    @override
    def _once(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None
    ) -> Committed[V]:
        """Run one attempt of a transaction, perhaps on a server that lags. It never overwrites a newer row."""
        lag = self.lag()
        older = self._shown(lag)
        if older is None:
            return super()._once(scope, decide, following)
        with older.connect().execution_options(reads_only=True) as before, self.writing() as connection:
            if lag.catches_up:
                seen: Any = load(CatchingUp(before, connection), scope)  # type: ignore[arg-type]
            else:
                seen = load(before, scope)
            decision = decide(seen)
            if not decision.effects:
                return Committed.of(decision, ())
            if not lag.catches_up and replace(cast('Any', load(connection, scope)), now=seen.now) != seen:
                raise Conflict('another server wrote the rows meanwhile')
            ready = self.carry_out(connection, decision.effects)
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
        """Open a connection for reading, perhaps to a server that lags behind."""
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
        """Open a connection for writing, and drop the cached rows afterwards."""
        try:
            with super().writing() as connection:
                yield connection
        finally:
            self._tables = None


class PausingReader(StackReader):
    """Reads rows; other fibers can run before each query."""

    _store: SqliteStore

    @override
    def _one(self, kind: Callable[..., RowT], statement: Any, **key: str) -> RowT | None:
        self._store.pause('read')
        return super()._one(kind, statement, **key)

    @override
    def _many(self, kind: Callable[..., RowT], statement: Any) -> list[RowT]:
        self._store.pause('read')
        return super()._many(kind, statement)


@cache
def _empty() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Create an empty database with the newest schema by the migrations, once per process."""
    directory = tempfile.TemporaryDirectory(prefix='simulated-')
    path = Path(directory.name) / 'empty.sqlite'
    database = connect(f'sqlite:///{path}')
    migration.sync(database)
    database.dispose()
    return directory, path


def in_sqlite(clock: Callable[[], float]) -> Storage:
    """Create an SQLite file that lasts as long as the world."""
    directory, empty = _empty()
    path = Path(tempfile.mkdtemp(dir=directory.name)) / 'world.sqlite'

    def opened(file: Path) -> Database:
        shutil.copyfile(empty, file)
        database = connect(f'sqlite:///{file}')
        set_clock(database, clock)
        return database

    copies: list[Copies] = []

    def copied(commits: int) -> Copies:
        copies.append(Copies(empty.read_bytes(), lambda: opened(path.parent / 'older.sqlite'), commits))
        return copies[-1]

    database = opened(path)
    store = SqliteStore(database, copied)

    def close() -> None:
        database.dispose()
        for each in copies:
            each.dispose()
        shutil.rmtree(path.parent, ignore_errors=True)

    return Storage(store, replace(ports_of(store), reader=PausingReader(store)), close)
