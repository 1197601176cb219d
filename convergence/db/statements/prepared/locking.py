"""In which order rows are locked, whatever index a server likes.

MariaDB and MySQL lock rows in the order in which they come to them. Which index they come by is theirs to choose, and
for a few rows of a small table that may be one in whose order no other transaction locks: two of them then meet in a
circle. So whatever locks or changes rows of these tables names the index.
"""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy import Select, Table, Update

Locking = TypeVar('Locking', Select, Update)  # type: ignore[type-arg]


def by_key(statement: Locking, table: Table) -> Locking:
    """The statement, which comes to the rows of `table` by their primary key alone, in its order."""
    for dialect in ('mysql', 'mariadb'):
        statement = (
            statement.with_hint(table, 'FORCE INDEX (PRIMARY)', dialect)
            if isinstance(statement, Select)
            else statement.with_hint('FORCE INDEX (PRIMARY)', table, dialect)
        )
    return statement
