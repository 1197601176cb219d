"""Rows of many columns, for MariaDB and MySQL: the short ones come packed into a single one, as a JSON array.

The server describes each column of an answer before the first row, and PyMySQL, which is written in Python, takes
longer to understand a description than to read a value: of the hundred columns of a node with all that belongs to it
more than all else that a worker does in the transaction takes. Python reads a JSON array of as many values in no time.

A server makes no value that is longer than its ``max_allowed_packet``; so a column whose length nothing limits stays as
it is. So does what is worked out: there MariaDB makes a text of the number that an EXISTS comes to, in some statements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from sqlalchemy import Boolean, Column, Double, Integer, Select, String, func
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

WORTHWHILE = 4
"""Short columns that a statement has to have: to unpack fewer takes as long as their descriptions."""

Unpack: TypeAlias = Callable[[Iterable[Sequence[Any]]], list[list[Any]]]
"""Makes of rows, as they are answered, rows as they were asked for."""


def packed(statement: Any, dialect: Dialect) -> tuple[Any, Unpack | None]:
    """The statement as it is best sent; and how its answer is unpacked, None where it comes as it was asked for."""
    if dialect.name not in ('mysql', 'mariadb') or not isinstance(statement, Select):
        return statement, None
    columns = list(statement.selected_columns)
    short = [place for place, each in enumerate(columns) if isinstance(each, Column) and _is_short(each.type)]
    if len(short) < WORTHWHILE:
        return statement, None
    long = [place for place in range(len(columns)) if place not in short]
    array = func.json_array(*(columns[place] for place in short))
    came = [*short, *long]
    in_order = itemgetter(*(came.index(place) for place in range(len(columns))))

    def unpack(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
        return [list(in_order([*json.loads(row[0]), *row[1:]])) for row in rows]

    return statement.with_only_columns(array, *(columns[place] for place in long)), unpack


def _is_short(kind: TypeEngine[Any]) -> bool:
    stored: Any = kind.impl_instance if isinstance(kind, TypeDecorator) else kind
    return isinstance(stored, Integer | Double | Boolean) or (isinstance(stored, String) and stored.length is not None)
