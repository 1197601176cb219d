"""Several statements on one way to the server and back, where its driver can: that of MariaDB and MySQL.

A way there and back costs a thread more than most statements cost the server: it gives up the interpreter and has to
wait for it again, and holds its locks meanwhile. So what a transaction writes goes together, and what nothing more is
decided by, such as the arrival at a node for which all others wait, goes with the commit. The server ends such a
message at the first statement that fails; so nothing is carried out, and nothing committed, of what comes after it.

Statements in one text are what an injection of SQL needs to do more than to change a condition. There is no way in:
all texts are built from the tables, when the program starts, and hold nothing but places for values, which the driver
writes in its own notation. The server is told that texts may hold several by those connections alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from itertools import chain
from typing import Any, TypeAlias

from sqlalchemy.engine import Connection

from convergence.db.statements.hot import HotCall, as_raised, executed
from convergence.errors import Conflict

MULTI_STATEMENTS = 1 << 16
"""Flag of a connection of MariaDB and MySQL: a text may hold several statements."""

SEVERAL = 'several'
"""Key in the `info` of a connection on which several statements may go together."""

LONGEST = 1 << 18
"""Characters of values after which a message is sent. A server refuses one of more than 16 MiB, whatever is in it."""


WITH_COMMIT = '; COMMIT'
"""How a text ends that takes the commit along."""

DriverConnection: TypeAlias = Any
"""A connection of a driver, or its class."""


def opened(dialect: Any, record: Any, arguments: Any, options: Any, kind: DriverConnection = None) -> DriverConnection:
    """A connection of the driver of `dialect`, of which texts may hold several statements.

    Listens to ``do_connect``.

    :param kind: what it is to be; None: of `connection_class`.
    """
    record.info[SEVERAL] = True
    flags = options.get('client_flag', 0) | MULTI_STATEMENTS
    return (kind or connection_class(dialect))(*arguments, **{**options, 'client_flag': flags})


def connection_class(dialect: Any) -> DriverConnection:
    """What the connections of the driver of a dialect are here."""
    return _class_of(import_module(f'{dialect.loaded_dbapi.__name__}.connections').Connection)


@cache
def _class_of(base: Any) -> Any:
    class Committing(base):  # type: ignore[misc]
        """A connection on which a commit may take the last statements along.

        :ivar with_commit: sends them with the commit; None: there are none.
        """

        with_commit: Callable[[], None] | None = None

        def commit(self) -> None:
            send, self.with_commit = self.with_commit, None
            if send is None:
                super().commit()
                return
            try:
                send()
            except Exception:
                # What has failed may not have been the commit, and nobody undoes a transaction whose commit has failed.
                with contextlib.suppress(Exception):
                    super().rollback()
                raise

        def rollback(self) -> None:
            self.with_commit = None
            super().rollback()

    return Committing


@dataclass(frozen=True, slots=True)
class HotAnswer:
    """What a statement has come to.

    :param found: how many rows it has found.
    :param number: the one that an UPDATE answers by ``last_insert_id()``.
    """

    rows: Sequence[Sequence[Any]]
    found: int
    number: int


Then: TypeAlias = Callable[[HotAnswer], object]
"""Told what a statement has come to."""


def read_together(connection: Connection, *calls: HotCall) -> list[Sequence[Sequence[Any]]]:
    """The rows of the answers to some statements, of which each sees what was committed before its turn.

    :raises SQLAlchemyError: what the driver says, as `Connection.execute` would raise it.
    """
    if _takes_several(connection):
        return [answer.rows for answer in _carried_out(connection, calls)]
    return [call.hot.all(connection, call.values) for call in calls]


class Writes:
    """What a transaction writes, in its order. What the server takes one by one is written at once."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._left = _Message(connection)
        self._takes_several = _takes_several(connection)

    def add(self, call: HotCall, then: Then | None = None) -> None:
        """One whose answer refuses nothing.

        :param then: only where the server takes several.
        """
        if self._takes_several:
            self._leave(call, then)
        else:
            call.hot.write(self.connection, call.values)

    def add_one(self, call: HotCall, what: str) -> None:
        """One that has to find one row, see `expect_one`. Nothing is committed where it does not."""
        if self._takes_several:
            self._leave(call, lambda answer: expect_one(answer.found, what))
            self._left.refusing = len(self._left.calls)
        else:
            expect_one(call.hot.write(self.connection, call.values), what)

    def afterwards(self, step: Callable[[], object]) -> None:
        """Have something done when it is known what has become of all that was added."""
        if self._left.calls:
            self._left.steps.append(step)
        else:
            step()

    def send(self) -> None:
        """Carry out what was added.

        :raises Conflict: something is not as it was when the decision was made.
        """
        left, self._left = self._left, _Message(self.connection)
        left.send()

    def send_with_commit(self) -> None:
        """The same, where nothing but the commit comes after it: what can refuse nothing goes with that.

        :raises Conflict: see `send`.
        """
        first, last = self._left.parts()
        self._left = _Message(self.connection)
        first.send()
        if last.calls:
            if not self.connection.in_transaction():
                self.connection.begin()  # where nothing was begun nothing is committed
            driven: Any = self.connection.connection.dbapi_connection
            driven.with_commit = partial(last.send, commits=True)

    def _leave(self, call: HotCall, then: Then | None) -> None:
        self._left.calls.append((call, then))
        self._left.length += sum(len(value) for value in call.values.values() if isinstance(value, str))
        if self._left.length > LONGEST:
            self.send()


@dataclass(slots=True)
class _Message:
    """What goes together.

    :param calls: with those that want to know the answers.
    :param refusing: the number of the last one that may refuse; 0: none.
    :param length: of its values.
    """

    connection: Connection
    calls: list[tuple[HotCall, Then | None]] = field(default_factory=list)
    steps: list[Callable[[], object]] = field(default_factory=list)
    refusing: int = 0
    length: int = 0

    def parts(self) -> tuple[_Message, _Message]:
        """What has to be known before the commit, and the rest."""
        first = _Message(self.connection, self.calls[: self.refusing])
        last = _Message(self.connection, self.calls[self.refusing :])
        (last if last.calls else first).steps.extend(self.steps)
        return first, last

    def send(self, *, commits: bool = False) -> None:
        if self.calls:
            answers = _carried_out(self.connection, [call for call, _ in self.calls], commits=commits)
            for (_, then), answer in zip(self.calls, answers, strict=True):
                if then is not None:
                    then(answer)
        for step in self.steps:
            step()


def expect_one(count: int, what: str) -> None:
    """See that a statement has found the one row that it was for.

    :raises Conflict: it has not.
    """
    if count != 1:
        raise Conflict(f'{what} is not as it was read')


def _takes_several(connection: Connection) -> bool:
    return SEVERAL in connection.info


def _carried_out(connection: Connection, calls: Sequence[HotCall], *, commits: bool = False) -> list[HotAnswer]:
    """What statements in one text have come to."""
    forms = [call.hot.form(connection.dialect) for call in calls]
    text = '; '.join(form.text for form in forms) + (WITH_COMMIT if commits else '')
    given = [form.parameters(call.values) for form, call in zip(forms, calls, strict=True)]
    cursor = executed(connection, text, tuple(chain(*given)), lambda cursor, *sent: cursor.execute(*sent))
    found = []
    try:
        for place in range(len(forms) + commits):
            if place:
                cursor.nextset()
            found.append((cursor.fetchall(), cursor.description, cursor.rowcount, cursor.lastrowid))
        cursor.close()
    except connection.dialect.loaded_dbapi.Error as error:
        raise as_raised(connection, text, error) from error
    # Not before all of it has arrived: what is read here may not be understood, and the connection is used again.
    return [
        HotAnswer(form.understood(rows, description), count, number)
        for form, (rows, description, count, number) in zip(forms, found, strict=False)
    ]
