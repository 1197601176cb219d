"""Lazily opened rows of resources: a sealed value is opened at its first use.

A plan locks and reads all rows of a stack, and uses only plain columns of most of them. Opening and parsing the sealed
values of a row costs ten times as much as reading it.

Such a row is a frozen `Resource` for all readers: the sealed texts are present from the beginning, and each value
depends on its text only. Unreadable values are absent, and named in `Resource.damaged`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, SupportsIndex

from sqlalchemy import type_coerce
from sqlalchemy.engine import Dialect
from typing_extensions import override

from convergence.core.rows import Resource
from convergence.db.schema.columns import LONG_TEXT, UNREADABLE, Sealable
from convergence.db.schema.row_columns import ABSENT, RESOURCE_COLUMNS

_SEALED: dict[str, Sealable] = {
    column.name: column.type for column in RESOURCE_COLUMNS if isinstance(column.type, Sealable)
}

UNOPENED_COLUMNS = [
    type_coerce(column, LONG_TEXT).label(column.name) if column.name in _SEALED else column
    for column in RESOURCE_COLUMNS
]
"""The columns of `RESOURCE_COLUMNS`; sealed ones in their stored form."""

_DIALECT = 'damaged'
"""In this field of a row that is not opened stands the dialect of the engine which has the key."""


class _Unopened(Resource):
    """A row that has texts where others have values. None of those values is a text.

    Once all of it is opened it is of the class `Resource`: then there is nothing special about it any more.
    """

    __slots__ = ()

    @override
    def __eq__(self, other: object) -> bool:
        return _whole(self) == other

    @override
    def __hash__(self) -> int:
        return hash(_whole(self))

    @override
    def __repr__(self) -> str:
        return repr(_whole(self))

    @override
    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return _whole(self).__reduce_ex__(protocol)  # for copies


def _found(row: Resource, name: str) -> object:
    """Return the opened value of a field."""
    value = _field(name).__get__(row)
    if isinstance(value, str):
        value = _SEALED[name].process_result_value(value, _field(_DIALECT).__get__(row))
        _field(name).__set__(row, value)
    return value


def _field(name: str) -> Any:
    """The slot itself, in which the class of a row has no say."""
    return vars(Resource)[name]


def _value(name: str, row: Resource) -> object:
    """A field, as others see it."""
    value = _found(row, name)
    return ABSENT.get(name) if value is UNREADABLE else value


def _whole(row: Resource) -> Resource:
    """Return the row with all values opened. The class changes last: until then no thread reads a field in its stored
    form.
    """
    damaged = tuple(name for name in _SEALED if _found(row, name) is UNREADABLE)
    for name in damaged:
        _field(name).__set__(row, ABSENT.get(name))
    _field(_DIALECT).__set__(row, damaged)
    object.__setattr__(row, '__class__', Resource)
    return row


def _damaged(row: Resource) -> tuple[str, ...]:
    return _whole(row).damaged


_Unopened.damaged = property(_damaged)  # type: ignore[assignment, misc]  # a name of a frozen class, and not its field
for _name in _SEALED:
    setattr(_Unopened, _name, property(partial(_value, _name)))


def unopened(rows: Iterable[Sequence[Any]], dialect: Dialect) -> list[Resource]:
    """The rows of resources, from the `UNOPENED_COLUMNS` of each.

    :param dialect: that of the engine which has the key.
    """
    found = []
    for row in rows:
        values: list[Any] = [*row, dialect]  # the field of `_DIALECT` is the last
        made = Resource(*values)
        object.__setattr__(made, '__class__', _Unopened)
        found.append(made)
    return found
