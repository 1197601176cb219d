"""The SQL store on an SQLite file, as the database of a simulated world.

The statements are those that run in production. A transaction is one step: others may go on before it and after it,
not inside, for SQLite lets only one writer in. What the database takes for the time is the simulated clock. A server
that lags, or that is promoted, has the database as it was some commits ago.
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
    """The database as it was after each of the last commits.

    :param empty: what it is before the first one.
    :param opened: makes another database, in which an older state is shown.
    """

    def __init__(self, empty: bytes, opened: Callable[[], Database], commits: int) -> None:
        self._kept: deque[bytes] = deque([empty], maxlen=commits + 1)
        self._opened = opened
        self._shown: Database | None = None

    def keep(self, connection: Connected) -> None:
        """Something was committed on a connection."""
        self._kept.append(_raw(connection).serialize())

    def before(self, commits: int) -> Database | None:
        """The database before so many of the last commits, as far as copies go back; until this is asked again."""
        back = min(commits, len(self._kept) - 1)
        if not back:
            return None
        if self._shown is None:
            self._shown = self._opened()
        _restore(self._shown, self._kept[-1 - back])
        return self._shown

    def forget(self, commits: int, database: Database) -> None:
        """So many of the last commits have never been: a database becomes what it was before them."""
        for _ in range(min(commits, len(self._kept) - 1)):
            self._kept.pop()
        _restore(database, self._kept[-1])

    def dispose(self) -> None:
        """Close what was opened."""
        if self._shown is not None:
            self._shown.dispose()


def _restore(database: Database, content: bytes) -> None:
    """Make a database what it was once."""
    # Bytes 18 and 19 say that there is a write-ahead log, which a database in memory cannot have.
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
    """A connection to a server that lags until after the first statement of a transaction."""

    def __init__(self, before: Connected, connection: Connected) -> None:
        self._before: Connected | None = before
        self._connection = connection
        self.info = connection.info
        self.dialect = connection.dialect

    @property
    def dispatch(self) -> object:
        """Who listens to the connection."""
        return self._connection.dispatch

    def in_transaction(self) -> bool:
        """Whether both have begun one."""
        return self._connection.in_transaction() and (self._before is None or self._before.in_transaction())

    def begin(self) -> None:
        """Begin one wherever there is none."""
        for each in (self._before, self._connection):
            if each is not None and not each.in_transaction():
                each.begin()

    @property
    def connection(self) -> CatchingUp:
        """Itself, for statements that go to the driver as text."""
        return self

    def cursor(self) -> OlderCursor | sqlite3.Cursor:
        """As that of the driver; the first one shows what the server that lags has."""
        present: sqlite3.Cursor = _raw(self._connection).cursor()
        if self._before is None:
            return present
        older, self._before = _raw(self._before).cursor(), None
        return OlderCursor(older, present)

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


class OlderCursor:
    """The answer of a server that lags to a statement that locks, which the other one carries out too."""

    def __init__(self, older: Any, present: Any) -> None:
        self._older = older
        self._present = present

    def execute(self, text: str, parameters: Any) -> None:
        """On both."""
        self._older.execute(text, parameters)
        self._present.execute(text, parameters)

    def fetchall(self) -> list[Any]:
        """The rows.

        :raises Conflict: what is locked was written meanwhile by others.
        """
        rows = self._older.fetchall()
        if rows and rows != self._present.fetchall():
            raise Conflict('what is locked here was written on another server')
        return list(rows)

    @property
    def description(self) -> object:
        """Of the columns."""
        return self._older.description

    @property
    def rowcount(self) -> int:
        """How many rows were found where it counts."""
        found: int = self._present.rowcount
        return found

    def close(self) -> None:
        """Both."""
        self._older.close()
        self._present.close()


@dataclass(frozen=True, slots=True)
class Shown:
    """The answer to a statement that asks for one row."""

    row: Any

    def first(self) -> Any:
        """The row, or None."""
        return self.row


class SqliteStore(Store):
    """The SQL store, with the pauses and the hooks of the one in memory.

    The variables are as those of `convergence_simulator.memory.store.MemoryStore`.
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

    def promote(self, commits: int) -> None:
        """As that of the store in memory. A transaction is one step here, so none is under way."""
        assert self._copies is not None, 'older states are not kept'
        self._copies.forget(commits, self.engine)
        self._tables = None
        self.released()

    def _shown(self, lag: Lag) -> Database | None:
        return self._copies.before(lag.commits) if self._copies is not None and lag.commits else None

    @property
    def tables(self) -> Tables:
        """The rows, as they are committed; read again when anything has been written."""
        if self._tables is None:
            self._tables = all_rows(self._plain)
        return self._tables

    @override
    def transact(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None = None
    ) -> Committed[V] | None:
        """As the base class, with others going on before and after."""
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
        """As the base class, with others going on before and after. Nothing is seen to be free where a server lags."""
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
        """As the base class, perhaps on a server that lags: what others have written is not written over."""
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
                raise Conflict('what is to be written was written on another server')
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
    def _one(self, kind: Callable[..., RowT], statement: Any, **key: str) -> RowT | None:
        self._store.pause('read')
        return super()._one(kind, statement, **key)

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
