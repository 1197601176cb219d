"""The form of a statement for one server: its text, and the conversion of its values.

PostgreSQL plans such a statement once per connection: planning the read of a node costs twice as much as its execution.
(Drivers of MariaDB cannot prepare statements, and SQLite has little to plan.) MariaDB and MySQL return few columns: see
`convergence.db.statements.prepared.packing`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Delete, Insert, Select, Update
from sqlalchemy.engine import Connection, Dialect

from convergence.db.statements.prepared.packing import Unpack, packed

Statement: TypeAlias = Select[Any] | Update | Delete | Insert
Parameters: TypeAlias = Any
"""Values as a driver takes them, by name or by place."""

_Process: TypeAlias = Callable[[Any], Any]

_PREPARED = 'prepared'
"""Key in the `info` of a connection: the names of the statements that its server has planned for it."""

_names = itertools.count(1)


_UNQUOTED: Mapping[type, Callable[[Any], str]] = {
    int: str,
    bool: lambda value: 'true' if value else 'false',
    type(None): lambda value: 'NULL',
}
"""How values of exactly these classes are written for PostgreSQL."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """How a statement is planned, once for each connection, and how it is called afterwards.

    :param places: the name of each value, in the order in which it is called with them.
    """

    name: str
    text: str
    places: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Prepared:
        """That of a text whose places have names."""
        places: dict[str, int] = {}
        numbered = re.sub(r'%\((\w+)\)s', lambda found: f'${places.setdefault(found[1], len(places) + 1)}', text)
        name = f'convergence_{next(_names)}'
        return cls(name, f'PREPARE {name} AS {numbered.replace("%%", "%")}', tuple(places))

    def call(self, cursor: Any, values: Mapping[str, Any]) -> str:
        """Return the call with some values, in the notation of the driver.

        Values without quotes are formatted here: the driver takes ten times as long for them, and for named
        placeholders.
        """
        if not self.places:
            return f'EXECUTE {self.name}'
        given = [values[place] for place in self.places]
        writers = [_UNQUOTED.get(value.__class__) for value in given]
        every = zip(writers, given, strict=True)
        written = ', '.join(['%s' if write is None else write(value) for write, value in every])
        left = tuple([value for write, value in zip(writers, given, strict=True) if write is None])
        called: bytes = cursor.mogrify(f'EXECUTE {self.name} ({written})', left)
        return called.decode()


@dataclass(slots=True)
class DialectStatement:
    """A statement in the language of one server.

    :param given: the name of each value in the text, and what makes of it what the driver takes.
    :param fixed: values that are always the same, as the driver takes them.
    :param order: the names in the order of the text, where its places have no names.
    :param columns: the types of the answer; `read`: place and reader of those values that are not taken as they come.
    :param prepared: where the server plans it once for each connection.
    :param unpack: where the answer has other columns; see `convergence.db.statements.prepared.packing`.
    """

    dialect: Dialect
    text: str
    given: tuple[tuple[str, _Process | None], ...]
    fixed: Mapping[str, Any]
    order: tuple[str, ...] | None
    columns: tuple[Any, ...]
    prepared: _Prepared | None = None
    unpack: Unpack | None = None
    read: tuple[tuple[int, _Process], ...] | None = None

    def parameters(self, values: Mapping[str, Any]) -> Parameters:
        """The values as the driver takes them."""
        made = {name: values[name] if write is None else write(values[name]) for name, write in self.given}
        if self.fixed:
            made.update(self.fixed)
        return made if self.order is None else tuple(made[name] for name in self.order)

    def send(self, connection: Connection, cursor: Any, parameters: Any) -> None:
        """Carry it out."""
        if self.prepared is None:
            cursor.execute(self.text, parameters)
        else:
            cursor.execute(self.called(connection, cursor, parameters))

    def called(self, connection: Connection, cursor: Any, parameters: Any) -> str:
        """For PostgreSQL: how it is called with some values, once the server has planned it for this connection."""
        assert self.prepared is not None
        known: set[str] = connection.info.setdefault(_PREPARED, set())
        if self.prepared.name not in known:
            cursor.execute(self.prepared.text)
            known.add(self.prepared.name)
        return self.prepared.call(cursor, parameters)

    def understood(self, rows: Iterable[Sequence[Any]], description: Sequence[Any]) -> list[list[Any]]:
        """The rows of its answer, of those that the driver gives."""
        answer = [list(row) for row in rows] if self.unpack is None else self.unpack(rows)
        if answer:
            for place, read in self._readers(description):
                for row in answer:
                    row[place] = read(row[place])
        return answer

    def _readers(self, description: Sequence[Any]) -> tuple[tuple[int, _Process], ...]:
        """How the values of a row are read: what a type makes of one may depend on the type in the server."""
        if self.read is None:
            in_server = [None] * len(self.columns) if self.unpack else [each[1] for each in description]
            found = (
                (place, each.dialect_impl(self.dialect).result_processor(self.dialect, in_server[place]))
                for place, each in enumerate(self.columns)
            )
            self.read = tuple((place, read) for place, read in found if read is not None)
        return self.read


def form_of(dialect: Dialect, statement: Statement, names: Sequence[str]) -> DialectStatement:
    """A statement in the language of one server.

    :param names: of an INSERT, its columns.
    """
    if isinstance(statement, Insert):
        statement = statement.inline()  # the key that the server gives is not asked for
    answer: Any = getattr(statement, 'exported_columns', ())
    columns = tuple(column.type for column in answer)
    sent, unpack = packed(statement, dialect)
    compiled: Any = sent.compile(dialect=dialect, column_keys=list(names) or None)
    given, fixed = [], {}
    defaults = {column.key: column.default.arg for column in compiled.insert_prefetch}
    for bound, name in compiled.bind_names.items():
        write = bound.type.dialect_impl(dialect).bind_processor(dialect)
        if bound.required or name in names:
            given.append((name, write))
        else:
            value = defaults.get(name, bound.effective_value)
            fixed[name] = value if write is None else write(value)
    order = tuple(compiled.positiontup) if compiled.positional else None
    text = str(compiled)
    prepared = _Prepared.of(text) if dialect.name == 'postgresql' else None
    return DialectStatement(dialect, text, tuple(given), fixed, order, columns, prepared, unpack)
