"""Inserts of many rows: values that all rows share are sent once.

A new resource has more than forty columns, and differs from others of its plan in three of them. The differing values
travel as one JSON text; all others are converted, sealed, sent and read once per statement. So one statement serves any
number of rows, PostgreSQL plans it once per connection, and a row costs the server between a half and a fifth of a row
with all values written out.

SQLite reads fractions from JSON less exactly than from its driver, and needs no round trips; there the driver repeats
the statement for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import is_
from typing import Any

from sqlalchemy import Column, ColumnElement, String, Table, bindparam, insert, literal_column, select, text
from sqlalchemy.engine import Connection, Dialect

from convergence.db.schema.columns import Sealable, dumps
from convergence.db.statements.prepared.batch import LONGEST, StatementBatch
from convergence.db.statements.prepared.statement import PreparedStatement, executed

_DIFFERENCES = 'differences'
"""The parameter with the differing values: a list of objects, without NULL values."""


@dataclass(eq=False, slots=True)
class ManyRowsInsert:
    """An INSERT of any number of rows.

    :param names: the columns; others have the defaults that the server knows.
    :param differing: those in which new rows differ. Rows that differ elsewhere have a statement in which all may.
    """

    table: Table
    names: tuple[str, ...]
    differing: tuple[str, ...]
    _statements: dict[tuple[str, tuple[str, ...]], PreparedStatement] = field(default_factory=dict)
    _one: PreparedStatement = field(init=False)

    def __post_init__(self) -> None:
        self._one = PreparedStatement(insert(self.table), self.names)

    def add(self, batch: StatementBatch, columns: Mapping[str, Sequence[Any]]) -> None:
        """Store rows.

        :param columns: the values of all rows, for each column.
        :raises SQLAlchemyError: what the driver says, as `Connection.execute` would raise it.
        """
        if not columns[self.names[0]]:
            return
        same = {name: values[0] for name, values in columns.items() if _is_same(self.table.c[name].type, values)}
        dialect = batch.connection.dialect
        if dialect.name == 'sqlite':
            self._repeat(batch.connection, columns, same)
            return
        is_usual = all(name in same or name in self.differing for name in self.names)
        differing = self.differing if is_usual else self.names
        statement = self._statement(dialect, differing)
        values = {f'new_{name}': same[name] for name in self.names if name not in differing}
        writers = {name: self.table.c[name].type.dialect_impl(dialect).bind_processor(dialect) for name in differing}
        written = _written(writers.items(), columns, same)
        for piece in _pieces(written):
            batch.add(statement.call({**values, _DIFFERENCES: piece}))

    def _statement(self, dialect: Dialect, differing: tuple[str, ...]) -> PreparedStatement:
        statement = self._statements.get((dialect.name, differing))
        if statement is None:
            of = self.table.c
            source, read = _READ[dialect.name](dialect, [of[name] for name in differing])
            shared = [name for name in self.names if name not in differing]
            given = [bindparam(f'new_{name}', type_=of[name].type) for name in shared]
            rows = select(*read, *given).select_from(text(source))
            statement = self._statements[dialect.name, differing] = PreparedStatement(
                insert(self.table).from_select([*differing, *shared], rows)
            )
        return statement

    def _repeat(self, connection: Connection, columns: Mapping[str, Sequence[Any]], same: Mapping[str, object]) -> None:
        form = self._one.form(connection.dialect)
        written = dict(zip((name for name, _ in form.given), _written(form.given, columns, same), strict=True))
        count = len(columns[self.names[0]])
        written |= {name: repeat(value, count) for name, value in form.fixed.items()}
        rows = list(zip(*(written[name] for name in form.order or ()), strict=True))
        executed(connection, form.text, rows, lambda cursor, *sent: cursor.executemany(*sent), many=True).close()


def _is_same(kind: Any, values: Sequence[Any]) -> bool:
    """Return True if a column has one value in all rows.

    Sealed values are sealed for each row unless they are empty, so that equal values of two users cannot be recognized.
    Other values must be the same object: Python takes True and 1 for equal.
    """
    first = values[0]
    if isinstance(kind, Sealable) and first is not None and len(values) > 1:
        return first == {} and values.count(first) == len(values)
    return all(map(is_, values, repeat(first)))


def _written(
    writers: Iterable[tuple[str, Callable[[Any], Any] | None]],
    columns: Mapping[str, Sequence[Any]],
    same: Mapping[str, object],
) -> list[Iterable[Any]]:
    """The values of all rows as the driver takes them: texts, numbers, truth values and None.

    :param writers: the columns, and what makes of a value what the driver takes.
    :param same: of columns that have one value in all rows, that one.
    """
    written: list[Iterable[Any]] = []
    for name, write in writers:
        values: Iterable[Any] = columns[name]
        if write is not None:
            values = repeat(write(same[name]), len(columns[name])) if name in same else map(write, values)
        written.append(values)
    return written


def _pieces(written: Sequence[Iterable[Any]]) -> Iterator[str]:
    """Yield the differing values as JSON texts of bounded length.

    :param written: the values of all rows, for each column.
    """
    keys = [_key(place) for place in range(len(written))]
    rows: list[str] = []
    length = 0
    for values in zip(*written, strict=True):
        row = dumps({key: value for key, value in zip(keys, values, strict=True) if value is not None})
        if rows and length + len(row) > LONGEST:
            yield f'[{",".join(rows)}]'
            rows, length = [], 0
        rows.append(row)
        length += len(row)
    yield f'[{",".join(rows)}]'


def _key(place: int) -> str:
    return f'c{place}'


_Read = tuple[str, list[ColumnElement[Any]]]
"""The source of the rows in SQL, and the value of each column."""


def _in_postgresql(dialect: Dialect, columns: Sequence[Column[Any]]) -> _Read:
    def read(place: int, column: Column[Any]) -> ColumnElement[Any]:
        value = f"(each_row ->> '{_key(place)}')"
        # Without a length: such a cast would truncate long values.
        is_text = isinstance(getattr(column.type, 'impl', column.type), String)
        return literal_column(value if is_text else f'{value}::{column.type.compile(dialect)}')

    values = [read(place, column) for place, column in enumerate(columns)]
    return f'jsonb_array_elements(CAST(:{_DIFFERENCES} AS jsonb)) AS each_row', values


def _in_mysql(dialect: Dialect, columns: Sequence[Column[Any]]) -> _Read:
    # Read as texts of any length, so that the INSERT refuses long values instead of truncating them. The character set
    # of the database may differ from that of its tables.
    keys = [_key(place) for place in range(len(columns))]
    texts = ', '.join(f"{key} LONGTEXT CHARACTER SET utf8mb4 PATH '$.{key}' ERROR ON ERROR" for key in keys)
    return f"JSON_TABLE(:{_DIFFERENCES}, '$[*]' COLUMNS ({texts})) AS each_row", [
        literal_column(f'each_row.{key}') for key in keys
    ]


_READ: dict[str, Callable[[Dialect, Sequence[Column[Any]]], _Read]] = {
    'postgresql': _in_postgresql,
    'mysql': _in_mysql,
    'mariadb': _in_mysql,
}
