"""Packed answers for MariaDB and MySQL: short columns travel in one JSON array.

The server describes each column of an answer before the first row, and PyMySQL, written in Python, decodes a
description
more slowly than a value: the hundred columns of a node with its related rows take longer than all other work of the
transaction. Python decodes a JSON array of as many values at once.

A server makes no value longer than its ``max_allowed_packet``, so columns of unlimited length stay separate. So do
computed columns: MariaDB converts the number of an EXISTS to text in some statements.
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
"""Restores the requested columns from the rows of a packed answer."""


def packed(statement: Any, dialect: Dialect) -> tuple[Any, Unpack | None]:
    """Return the statement in its packed form, and the function that unpacks its answer; None if it stays unpacked."""
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
