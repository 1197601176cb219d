"""Many stacks that have been there for long: rows that are copied by the server are there in seconds."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, String, Table, cast, func, insert, literal, select
from sqlalchemy.sql.expression import ColumnElement

from convergence.db.connections.database import Database
from convergence.db.schema.models import EVENT, ID, OBSERVATION, RESOURCE, STACK, SYNC_POINT, TEMPLATE, TRAVERSAL

AT_ONCE = 500
"""Copies that one statement makes: servers bound how far a query counts."""

_KEPT = 24
"""Characters of an id that a copy has in common with what it was copied from."""
_FIRST = 10 ** (ID.length - _KEPT - 1)
_TABLES = (STACK, TEMPLATE, TRAVERSAL, SYNC_POINT, RESOURCE, OBSERVATION, EVENT)


def copy_stack(database: Database, stack_id: str, copies: int, first: int = 0) -> None:
    """Copy all rows of a stack that has come to rest. Copies are read as any stack, but for what is sealed in them.

    :param first: how many copies there are already.
    """
    with database.connect() as connection:
        traversals = select(TRAVERSAL.c.id).where(TRAVERSAL.c.stack_id == stack_id)
        for begin in range(first, first + copies, AT_ONCE):
            end = min(begin + AT_ONCE, first + copies)
            numbers = select(literal(begin + 1).label('number')).cte('numbers', recursive=True)
            numbers = numbers.union_all(select(numbers.c.number + 1).where(numbers.c.number < end))
            for table in _TABLES:
                copied = [column for column in table.c if column.name != 'sequence']
                chosen = select(*(_copied(table, column, numbers.c.number) for column in copied)).select_from(
                    table.join(numbers, literal(True))
                )
                if table is STACK:
                    chosen = chosen.where(table.c.id == stack_id)
                elif 'stack_id' in table.c:
                    chosen = chosen.where(table.c.stack_id == stack_id)
                else:
                    chosen = chosen.where(table.c.traversal_id.in_(traversals))
                connection.execute(insert(table).from_select([column.name for column in copied], chosen))
        connection.commit()


def take_statistics(database: Database) -> None:
    """Have the server look at what is in its tables, as it does by itself some time after they have grown.

    Until then it takes them for as small as they were, and may read one from end to end.
    """
    with database.connect() as connection:
        what = 'TABLE ' if database.dialect.name == 'mysql' else ''
        for table in _TABLES:
            connection.exec_driver_sql(f'ANALYZE {what}{table.name}')
        connection.commit()


def _copied(table: Table, column: Column[Any], number: ColumnElement[int]) -> ColumnElement[Any]:
    digits = cast(number + _FIRST, String(ID.length))
    if column.type is ID:
        return func.substr(column, 1, _KEPT, type_=String) + digits
    if table is STACK and column.name in ('name', 'live_name'):
        return column + literal('-') + digits
    return column
