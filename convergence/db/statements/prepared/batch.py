"""Batches of statements that share a round trip, where the driver allows it.

A transaction sends its writes together, and the last ones with the commit: see `convergence.db.connections.drivers`. A
server ends such a message at the first statement that fails; later statements are not executed and nothing is
committed.

MariaDB and MySQL return a result for each statement of a message. PostgreSQL, through psycopg2, returns the last result
only; the result of the last statement before the commit is kept in a setting of the session, and read behind the
commit.

A statement that must find its row fails on PostgreSQL if it does not. On MariaDB and MySQL the next statement fails: it
checks the row count of the one before. So all of them may travel with the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from sqlalchemy.engine import Connection

from convergence.db.connections.committing import COMMIT
from convergence.db.connections.drivers import SEVERAL
from convergence.db.connections.failures import is_duplicate
from convergence.db.statements.prepared.statement import FEW, BoundStatement, FewRowsInsert, as_raised, executed
from convergence.db.transaction import Ready
from convergence.errors import Conflict

LONGEST = 1 << 18
"""Characters of values after which a message is sent. Servers refuse messages of more than 16 MiB."""


ANSWER = 'convergence.answer'
"""PostgreSQL setting of a session with the result of the last statement before a commit."""

READ_ANSWER = f"SELECT current_setting('{ANSWER}')"
"""How it is read."""


@dataclass(frozen=True, slots=True)
class StatementResult:
    """Result of a statement.

    :param found: number of rows found.
    :param number: the number that an UPDATE returns by ``last_insert_id()``.
    """

    rows: Rows
    found: int
    number: int


Then: TypeAlias = Callable[[StatementResult], object]
"""Called with the result of a statement."""

Rows: TypeAlias = Sequence[Sequence[Any]]
"""The rows that a statement returned."""


class StatementBatch:
    """Statements of one transaction, in their order. Where the driver takes one statement at a time, each is sent at
    once.

    :ivar ready: nodes that became ready by these statements and are to be cast; complete when all are sent.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.ready: Ready = []
        self._refusal: Exception | None = None
        self._left = _Message(connection)
        self._in_the_end: list[tuple[BoundStatement, Callable[[Rows], object]]] = []
        self._held_rows: dict[FewRowsInsert, list[Mapping[str, Any]]] = {}
        self._takes_several = _takes_several(connection)
        self._refuses = fails_in_server(connection)

    def add(self, call: BoundStatement, then: Then | None = None, refusal: Exception | None = None) -> None:
        """Add a statement whose result refuses nothing.

        :param then: only where the driver takes several statements.
        :param refusal: of an INSERT, raised on a duplicate key; also for later statements, which belong to the new row.
            The first
        refusal of several counts.
        """
        if refusal is not None and self._refusal is None:
            self.send()
            self._refusal = refusal
        if self._takes_several:
            self._leave(call, then)
        else:
            with self.refused():
                call.statement.write(self.connection, call.values)

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Translate a duplicate key into the refusal, for statements of the batch and for a commit that carries them.

        :raises Exception: the first refusal that was added.
        """
        try:
            yield
        except Exception as error:
            if self._refusal is None or not is_duplicate(error):
                raise
            raise self._refusal from error

    def add_row(self, rows: FewRowsInsert, row: Mapping[str, Any]) -> None:
        """A new row that nothing in the transaction depends on.

        MariaDB and MySQL answer each statement, and to read an answer costs more than to send a row: there it waits for
        others like it, until `flush_rows` or the end.
        """
        if not self._takes_several or self._refuses:
            self.add(rows.call([row]))
            return
        held = self._held_rows.setdefault(rows, [])
        held.append(row)
        if len(held) == FEW:
            self.flush_rows()

    def flush_rows(self) -> None:
        """Write rows that wait for more of their kind before the next statement."""
        held, self._held_rows = self._held_rows, {}
        for rows, some in held.items():
            self.add(rows.call(some))

    def add_one(self, call: BoundStatement, what: str, wanted: int = 1) -> None:
        """One that has to find so many rows, see `require_found`. Nothing is committed where it does not."""
        if self._refuses:
            self._leave(call.refusing(wanted), None)
        elif self._takes_several:
            self._leave(call, lambda answer: require_found(answer.found, what, wanted))
            self._left.unchecked = wanted
        else:
            require_found(call.statement.write(self.connection, call.values), what, wanted)

    def write(self, call: BoundStatement) -> int:
        """Send the batch and one more statement; return the number of rows that it found.

        :raises Conflict: see `send`.
        """
        if not self._takes_several:
            return call.statement.write(self.connection, call.values)
        found: list[int] = []
        self._leave(call, lambda answer: found.append(answer.found), checks=False)
        self.send()
        return found[0]

    def read_at_end(self, call: BoundStatement, then: Callable[[Rows], object]) -> None:
        """Have something read that may as well be read when all is committed.

        :param then: told the answer, when there is one.
        """
        if self._refuses:
            self._in_the_end.append((call, then))
        elif self._takes_several:
            self._leave(call, lambda answer: then(answer.rows))
        else:
            then(call.statement.all(self.connection, call.values))

    def afterwards(self, step: Callable[[], object]) -> None:
        """Call a function when the results of all statements so far are known."""
        if self._left.calls:
            self._left.steps.append(step)
        else:
            step()

    def send(self) -> None:
        """Send the statements of the batch.

        :raises Conflict: a row has changed since the decision.
        """
        left, self._left = self._left, _Message(self.connection)
        with self.refused():
            left.send()

    def read(self, *calls: BoundStatement) -> list[Rows]:
        """Send the batch and read; each query sees all commits before its turn.

        :raises Conflict: see `send`.
        """
        along = calls if self._takes_several else ()
        if self._refuses:
            # It answers the last one alone: the first that is read goes along, and the others go by themselves.
            along = calls[:1] if self._left.calls else ()
        found: list[Rows] = []
        for call in along:
            self._leave(call, lambda answer: found.append(answer.rows), checks=False)
        self.send()
        return found + [call.statement.all(self.connection, call.values) for call in calls[len(along) :]]

    def end(self) -> None:
        """Carry out all that is left, before something else is done.

        :raises Conflict: see `send`.
        """
        self.flush_rows()
        self._read_what_is_last(())
        self.send()

    def send_with_commit(self) -> None:
        """The same, where nothing but the commit comes after it: what may go with that, goes with that.

        :raises Conflict: see `send`; perhaps not before the commit.
        """
        self.flush_rows()
        # One answer comes from behind the commit.
        behind = self._in_the_end[-1:] if self._left.calls and not self._left.is_answered else []
        self._read_what_is_last(behind)
        first, last = self._left.parts()
        last.behind = behind
        self._left = _Message(self.connection)
        with self.refused():
            first.send()
        if last.calls:
            if not self.connection.in_transaction():
                self.connection.begin()  # where nothing was begun nothing is committed
            driven: Any = self.connection.connection.dbapi_connection
            driven.with_commit = partial(last.send, commits=True)

    def _read_what_is_last(self, but: Sequence[object]) -> None:
        last, self._in_the_end = self._in_the_end[: len(self._in_the_end) - len(but)], []
        for call, then in last:
            then(self.read(call)[0])

    def _leave(self, call: BoundStatement, then: Then | None, *, checks: bool = True) -> None:
        """:param checks: False where the answers to all come before anything else is done."""
        if self._refuses and self._left.is_answered:
            self.send()
        self._left.add(call, then, checks=checks)
        self._left.length += sum(len(value) for value in call.values.values() if isinstance(value, str))
        if self._left.length > LONGEST:
            self.send()


@dataclass(slots=True)
class _Message:
    """Statements that are sent together.

    :param calls: with the functions that need their results.
    :param refusing: number of the last statement whose result must be known before the commit; 0: none.
    :param unchecked: on MariaDB and MySQL, rows that the last statement has to find; 0: any number.
    :param behind: queries behind the commit, if any; only for PostgreSQL.
    :param length: of its values.
    """

    connection: Connection
    calls: list[tuple[BoundStatement, Then | None]] = field(default_factory=list)
    behind: Sequence[tuple[BoundStatement, Callable[[Rows], object]]] = ()
    steps: list[Callable[[], object]] = field(default_factory=list)
    refusing: int = 0
    unchecked: int = 0
    length: int = 0

    def add(self, call: BoundStatement, then: Then | None, *, checks: bool) -> None:
        """One more; where it can, it sees whether the one before has found what it was for."""
        if self.unchecked:
            checking = call.checking(self.unchecked) if checks else None
            if checking is None:
                self.refusing = len(self.calls)
            call, self.unchecked = checking or call, 0
        self.calls.append((call, then))

    @property
    def is_answered(self) -> bool:
        """Return True if a function needs the result of the last statement."""
        return bool(self.calls) and self.calls[-1][1] is not None

    def parts(self) -> tuple[_Message, _Message]:
        """Return the statements whose results must be known before the commit, and the rest."""
        refusing = len(self.calls) if self.unchecked else self.refusing
        first = _Message(self.connection, self.calls[:refusing])
        last = _Message(self.connection, self.calls[refusing:])
        (last if last.calls else first).steps.extend(self.steps)
        return first, last

    def send(self, *, commits: bool = False) -> None:
        if self.calls:
            behind = [call for call, _ in self.behind]
            answers = _carried_out(self.connection, [call for call, _ in self.calls], behind, commits=commits)
            for (_, then), answer in zip(self.calls, answers, strict=False):
                if then is not None:
                    then(answer)
            for _, tell in self.behind:
                tell(answers[-1].rows)
        for step in self.steps:
            step()


def require_found(count: int, what: str, wanted: int = 1) -> None:
    """See that a statement has found the one row that it was for, or so many.

    :raises Conflict: it has not.
    """
    if count != wanted:
        raise Conflict(f'{what} is not as it was read')


def fails_in_server(connection: Connection) -> bool:
    """Return True if a statement that has to find a row fails at the server where it does not."""
    return connection.dialect.name == 'postgresql'


def answers_last_alone(connection: Connection) -> bool:
    """Return True if of several statements in one text only the last one is answered."""
    return fails_in_server(connection)


def _takes_several(connection: Connection) -> bool:
    return SEVERAL in connection.info


def _carried_out(
    connection: Connection,
    calls: Sequence[BoundStatement],
    behind: Sequence[BoundStatement] = (),
    *,
    commits: bool = False,
) -> list[StatementResult]:
    """Return the results of statements in one text; on PostgreSQL only the last one is filled.

    :param behind: for PostgreSQL, queries behind the commit.
    """
    if fails_in_server(connection):
        return _answered_at_last(connection, calls, behind, commits=commits)
    forms = [call.statement.form(connection.dialect) for call in calls]
    text = '; '.join([*(form.text for form in forms), *((COMMIT,) if commits else ())])
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
    # After the whole answer has arrived: decoding may fail, and the connection is used again.
    return [
        StatementResult(form.understood(rows, description), count, number)
        for form, (rows, description, count, number) in zip(forms, found, strict=False)
    ]


def _answered_at_last(
    connection: Connection, calls: Sequence[BoundStatement], behind: Sequence[BoundStatement], *, commits: bool
) -> list[StatementResult]:
    every = [*calls, *behind]
    forms = [call.statement.form(connection.dialect) for call in every]
    given = [form.parameters(call.values) for form, call in zip(forms, every, strict=True)]
    is_left_in_setting = commits and not behind and calls[-1].statement.leaves_answer

    def joined(texts: Sequence[str]) -> str:
        if not commits:
            return '; '.join(texts)
        after = [READ_ANSWER] if is_left_in_setting else texts[len(calls) :]
        return '; '.join([*texts[: len(calls)], COMMIT, *after])

    whole = joined([form.text for form in forms])

    def send(cursor: Any, text: str, parameters: Any) -> None:
        pieces = [form.text for form in forms]
        if text is not whole:  # an event listener has changed the text
            pieces = [piece for piece in text.split('; ') if piece not in (COMMIT, READ_ANSWER)]
        made = [
            form.called(connection, cursor, values) if piece == form.text else cursor.mogrify(piece, values).decode()
            for form, piece, values in zip(forms, pieces, given, strict=True)
        ]
        cursor.execute(joined(made))

    cursor = executed(connection, whole, given, send)
    rows = cursor.fetchall() if cursor.description else []
    cursor.close()
    if rows and not is_left_in_setting:
        rows = forms[-1].understood(rows, cursor.description)
    nothing = StatementResult((), 0, 0)
    return [*[nothing] * (len(every) - 1), StatementResult(rows, cursor.rowcount, 0)]
