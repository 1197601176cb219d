"""Lock order: rows are locked by their primary key, independent of the optimizer.

MariaDB and MySQL lock rows in the order in which they read them. The optimizer chooses the index, and for a few rows of
a small table it may choose one in whose order no other transaction locks: two of them then deadlock. So all statements
that lock or change rows of these tables name the index.
"""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy import Select, Table, Update

Locking = TypeVar('Locking', Select, Update)  # type: ignore[type-arg]


def by_key(statement: Locking, table: Table) -> Locking:
    """Return the statement with the hint to read the rows of `table` by primary key, in its order."""
    for dialect in ('mysql', 'mariadb'):
        statement = (
            statement.with_hint(table, 'FORCE INDEX (PRIMARY)', dialect)
            if isinstance(statement, Select)
            else statement.with_hint('FORCE INDEX (PRIMARY)', table, dialect)
        )
    return statement
