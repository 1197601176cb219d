"""Columns of each kind of row, their order in joined queries, and the functions that build rows from them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlalchemy import Table
from sqlalchemy.engine import Connection

from convergence.core.rows import Node, Resource, Stack, Traversal
from convergence.db.schema.columns import UNREADABLE
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT, TRAVERSAL
from convergence.values import replace

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RowT = TypeVar('RowT', Node, Resource)

CHUNK = 500
"""Members of one IN list."""


@cache
def stored_names(kind: Hashable) -> tuple[str, ...]:
    """The fields of a kind of row that are stored."""
    every = fields(cast('type[DataclassInstance]', kind))
    return tuple(field.name for field in every if field.metadata.get('stored', True))


def stored_values(row: Any) -> dict[str, Any]:
    """Return the stored columns of a row."""
    return {name: getattr(row, name) for name in stored_names(cast('Hashable', type(row)))}


def stored_columns(kind: type, rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The values of all rows of a kind, for each column."""
    return {name: list(map(attrgetter(name), rows)) for name in stored_names(kind)}


def columns(table: Table, kind: type) -> list[Any]:
    """The columns that make up a row value, in the order of its fields."""
    return [table.c[name] for name in stored_names(kind)]


def backend_of(connection: Connection) -> str:
    """``sqlite``, ``postgresql`` or ``mysql``, which MariaDB is too."""
    name = connection.dialect.name
    return 'mysql' if name == 'mariadb' else name


def chunks(members: Sequence[Any], size: int = CHUNK) -> Iterable[Sequence[Any]]:
    """Cut a long list into pieces, in order."""
    return (members[start : start + size] for start in range(0, len(members), size))


STACK_COLUMNS = columns(STACK, Stack)
TRAVERSAL_COLUMNS = columns(TRAVERSAL, Traversal)
NODE_COLUMNS = columns(SYNC_POINT, Node)
RESOURCE_COLUMNS = columns(RESOURCE, Resource)

ABSENT: dict[str, Any] = {'properties': {}, 'data': {}}
"""Substitutes for unreadable values; None for all other columns."""


def resource_of(*values: Any) -> Resource:
    """The row of a resource, from its columns. What cannot be read is absent, and named in `Resource.damaged`."""
    return Resource(*values) if UNREADABLE not in values else _damaged(Resource, RESOURCE_COLUMNS, values)


def node_of(*values: Any) -> Node:
    """A node, from its columns. What cannot be read is absent, and named in `Node.damaged`."""
    return Node(*values) if UNREADABLE not in values else _damaged(Node, NODE_COLUMNS, values)


def _damaged(kind: type[RowT], of: Sequence[Any], values: Sequence[Any]) -> RowT:
    names = [column.name for column in of]
    damaged = tuple(name for name, value in zip(names, values, strict=True) if value is UNREADABLE)
    read: list[Any] = [
        ABSENT.get(name) if value is UNREADABLE else value for name, value in zip(names, values, strict=True)
    ]
    return replace(kind(*read), damaged=damaged)


# First columns of each part of a row with a node, its traversal, its stack, the time, and more.
OF_RESOURCE = len(RESOURCE_COLUMNS)
AT = len(NODE_COLUMNS)
AT_STACK = AT + len(TRAVERSAL_COLUMNS)
AT_NOW = AT_STACK + len(STACK_COLUMNS)
AT_FOLLOWER = AT_NOW + 2
AT_WEBHOOK = AT_FOLLOWER + AT
