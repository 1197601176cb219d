"""Prepared statements of the hot paths: compiled to text once, and passed to the driver directly.

For each execution SQLAlchemy builds a context and a result. They cost more than the driver's work for the statement,
and
three times as much for a row of seventy columns. Texts, conversions, error translation and event listeners are those of
SQLAlchemy.

For several statements in one message see `convergence.db.statements.prepared.batch`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Insert,
    Integer,
    Subquery,
    Table,
    bindparam,
    case,
    cast,
    exc,
    func,
    insert,
    literal,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.engine import Connection, Dialect

from convergence.db.statements.prepared.dialect_sql import DialectStatement, Statement, form_of

DriverCursor: TypeAlias = Any
"""That of a driver."""


@dataclass(eq=False, slots=True)
class PreparedStatement:
    """A statement without lists of variable length.

    :param statement: an INSERT must be of one row, and return nothing.
    :param names: of an INSERT, its columns; others have their defaults, which are values.
    :param leaves_answer: True if it keeps its result in a setting; see `convergence.db.statements.prepared.batch`.
    :param if_so: of an INSERT with `values`, returns it with a condition that is evaluated for its first row.
    """

    statement: Statement
    names: tuple[str, ...] = ()
    leaves_answer: bool = False
    if_so: Callable[[ColumnElement[bool]], Statement] | None = None
    _forms: weakref.WeakKeyDictionary[Dialect, DialectStatement] = field(default_factory=weakref.WeakKeyDictionary)
    _refusing: dict[int, PreparedStatement] = field(default_factory=dict)
    _checking: dict[int, PreparedStatement | None] = field(default_factory=dict)

    def write(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Carry it out; how many rows it found.

        :param values: by the names of its parameters.
        :raises SQLAlchemyError: what the driver says, as `Connection.execute` would raise it.
        """
        cursor = self._executed(connection, values)
        found: int = cursor.rowcount
        cursor.close()
        return found

    def first(self, connection: Connection, values: Mapping[str, Any]) -> list[Any] | None:
        """The first row of its answer; None where there is none.

        :raises SQLAlchemyError: see `write`.
        """
        rows = self.all(connection, values)
        return rows[0] if rows else None

    def all(self, connection: Connection, values: Mapping[str, Any]) -> list[list[Any]]:
        """The rows of its answer.

        :raises SQLAlchemyError: see `write`.
        """
        cursor = self._executed(connection, values)
        rows = self.form(connection.dialect).understood(cursor.fetchall(), cursor.description)
        cursor.close()
        return rows

    def call(self, values: Mapping[str, Any]) -> BoundStatement:
        """It, with its values, for those who send it later."""
        return BoundStatement(self, values)

    def refusing(self, wanted: int = 1) -> PreparedStatement:
        """Return the variant for PostgreSQL of an UPDATE or DELETE that fails if it finds no row, or another number
        than `wanted` if that is more than one. With one, the statement names its row by the key.
        """
        if wanted not in self._refusing:
            changing: Any = self.statement
            found = changing.returning(literal(1).label('found')).cte('found')
            count = func.count() if wanted == 1 else _one_where(func.count() == literal_column(str(wanted)))
            self._refusing[wanted] = PreparedStatement(select(refused_where_none(count)).select_from(found))
        return self._refusing[wanted]

    def checking(self, wanted: int = 1) -> PreparedStatement | None:
        """The same for MariaDB and MySQL, behind another one in the same text: it fails where that has found other than
        so many rows. None: it cannot.
        """
        if wanted not in self._checking:
            is_as_wanted = _found_before(wanted)
            changed: Statement | None = None
            if not isinstance(self.statement, Insert):
                changed = self.statement.where(is_as_wanted)
            elif self.if_so is not None:
                changed = self.if_so(is_as_wanted)
            self._checking[wanted] = PreparedStatement(changed) if changed is not None else None
        return self._checking[wanted]

    def _executed(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        form = self.form(connection.dialect)

        def send(cursor: Any, text: str, parameters: Any) -> None:
            if text is form.text:
                form.send(connection, cursor, parameters)
            else:
                cursor.execute(text, parameters)

        return executed(connection, form.text, form.parameters(values), send)

    def form(self, dialect: Dialect) -> DialectStatement:
        """It in the language of one server."""
        form = self._forms.get(dialect)
        if form is None:
            form = self._forms[dialect] = form_of(dialect, self.statement, self.names)
        return form


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement, and the values that it is to be carried out with."""

    statement: PreparedStatement
    values: Mapping[str, Any]

    def refusing(self, wanted: int = 1) -> BoundStatement:
        """See `PreparedStatement.refusing`."""
        return BoundStatement(self.statement.refusing(wanted), self.values)

    def checking(self, wanted: int = 1) -> BoundStatement | None:
        """See `PreparedStatement.checking`."""
        checking = self.statement.checking(wanted)
        return None if checking is None else BoundStatement(checking, self.values)


@dataclass(eq=False, slots=True)
class PreparedListStatement:
    """A statement with a list of variable length: there is one text for every power of two.

    :param name: the parameter with the list, which is not empty.
    :param build: makes the statement, with `among` where the list stands, for a number of members.
    :param leaves_answer: see `PreparedStatement`.
    """

    name: str
    build: Callable[[int], Statement]
    leaves_answer: bool = False
    _of_length: dict[int, PreparedStatement] = field(default_factory=dict)

    def all(self, connection: Connection, values: Mapping[str, Any]) -> list[list[Any]]:
        """The rows of its answer; see `PreparedStatement.all`."""
        statement, given = self._with(values)
        return statement.all(connection, given)

    def write(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Carry it out; how many rows it found; see `PreparedStatement.write`."""
        statement, given = self._with(values)
        return statement.write(connection, given)

    def call(self, values: Mapping[str, Any]) -> BoundStatement:
        """It, with its values, for those who send it later."""
        return BoundStatement(*self._with(values))

    def _with(self, values: Mapping[str, Any]) -> tuple[PreparedStatement, dict[str, Any]]:
        """The statement for a list of this length, and what it is given."""
        members = values[self.name]
        length = 1 << (len(members) - 1).bit_length()
        statement = self._of_length.get(length)
        if statement is None:
            statement = self._of_length[length] = PreparedStatement(
                self.build(length), leaves_answer=self.leaves_answer
            )
        # The last one stands for the places that are left: in a set it counts once.
        padded = (*members, *[members[-1]] * (length - len(members)))
        return statement, {**values, **{f'{self.name}_{place}': each for place, each in enumerate(padded)}}


FEW = 16
"""Rows that are stored by a statement of their own for each number of rows."""


@dataclass(eq=False, slots=True)
class FewRowsInsert:
    """An INSERT of one row, or of a few in one statement: there is one text for each number of them.

    Many are a matter of `convergence.db.statements.prepared.inserts`.

    :param names: the columns; others have the defaults that the server knows.
    """

    table: Table
    names: tuple[str, ...]
    _of_count: dict[int, PreparedStatement] = field(default_factory=dict)

    def call(self, rows: Sequence[Mapping[str, Any]]) -> BoundStatement:
        """It, with its values, for those who send it later: from one to `FEW` rows."""
        given = {f'{name}_{place}': row[name] for place, row in enumerate(rows) for name in self.names}
        return self._statement(len(rows)).call(given)

    def _statement(self, count: int) -> PreparedStatement:
        statement = self._of_count.get(count)
        if statement is None:
            statement = self._of_count[count] = PreparedStatement(
                self._insert(count), if_so=partial(self._insert, count)
            )
        return statement

    def _insert(self, count: int, is_so: ColumnElement[bool] | None = None) -> Insert:
        kinds = [(name, self.table.c[name].type) for name in self.names]
        rows: list[dict[str, Any]] = [
            {name: bindparam(f'{name}_{place}', type_=kind) for name, kind in kinds} for place in range(count)
        ]
        if is_so is not None:
            first = self.names[0]
            rows[0][first] = case((is_so, rows[0][first]))
        return insert(self.table).values(rows)


def _one_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, literal_column('1')), else_=literal_column('0'))


def _found_before(wanted: int) -> ColumnElement[bool]:
    """True where the statement before has found so many rows; else it fails, see
    `convergence.db.connections.failures.REFUSED`: that is more than a number can be.
    """
    return func.exp(literal_column(f'710 * (row_count() <> {wanted})')) == literal_column('1')


def refused_where_none(count: ColumnElement[int]) -> ColumnElement[int]:
    """Return an expression that fails on PostgreSQL if a count is 0; see
    `convergence.db.connections.failures.REFUSED`."""
    return literal(1).op('/')(count)


def among(column: ColumnElement[Any], name: str, length: int) -> ColumnElement[bool]:
    """That the value of a column is a member of the list `name`."""
    return column.in_([bindparam(f'{name}_{place}', type_=column.type) for place in range(length)])


def each_of(column: ColumnElement[Any], name: str, length: int) -> Subquery:
    """Return the members of the list `name` for PostgreSQL, as rows with a column `number`, in the order of the list.

    A lateral join with them can only use the whole key. For a table that PostgreSQL believes to be small, it would
    otherwise
    compare the members with all rows that satisfy the other conditions.

    :param column: of integers; its values are compared.
    """
    members = [bindparam(f'{name}_{place}', type_=column.type) for place in range(length)]
    return select(func.unnest(cast(array(members), ARRAY(Integer))).label('number')).subquery()


def executed(
    connection: Connection, text: str, parameters: Any, send: Callable[[Any, str, Any], object], *, many: bool = False
) -> DriverCursor:
    """Return the cursor with the answer to a text; event listeners are called.

    :param send: passes the text and parameters of the listeners to a cursor.
    :param many: True if the parameters are those of each of some rows.
    :raises SQLAlchemyError: the driver's error, as `Connection.execute` would raise it.
    """
    if not connection.in_transaction():
        connection.begin()
    cursor: Any = connection.connection.cursor()
    for listener in connection.dispatch.before_cursor_execute:
        text, parameters = listener(connection, cursor, text, parameters, None, many)
    try:
        send(cursor, text, parameters)
    except connection.dialect.loaded_dbapi.Error as error:
        raise as_raised(connection, text, error) from error
    for listener in connection.dispatch.after_cursor_execute:
        listener(connection, cursor, text, parameters, None, many)
    return cursor


def as_raised(connection: Connection, text: str, error: Any) -> BaseException:
    """The error as `Connection.execute` would raise it; a connection that is lost is not used any more."""
    dialect: Any = connection.dialect
    is_lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
    if is_lost:
        connection.invalidate(error)
        connection.engine.dispose()  # those that rest are as likely to be lost
    raised: BaseException = exc.DBAPIError.instance(
        text,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=is_lost,
        dialect=dialect,
    )
    return raised
