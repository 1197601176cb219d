"""Have PostgreSQL look at tables that have just grown by many rows.

It plans by how many rows there were when somebody looked last. By itself it looks up to some minutes late, and for so
long keeps the plans that it has made. In an installation at rest there are no nodes: taking their table for empty it
takes every index for as good as any other, and each step of a stack would read all nodes of that stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, text
from sqlalchemy.engine import Connection

from convergence.core.effects import Effect, InsertResources, InsertTraversal
from convergence.db.schema.models import RESOURCE, SYNC_POINT

MANY = 100
"""Rows: to read fewer for one that is looked for costs less than to look at a table."""

LOOK_FOR_S = 0.1
"""How long somebody is waited for who is looking at, or tidying up, the same table."""

# Who does not own a table cannot have it looked at, and the server would write that to its log each time.
_KNOWN = text(
    "SELECT reltuples FROM pg_class WHERE oid = to_regclass(:name) AND pg_has_role(relowner, 'USAGE')"
).bindparams(bindparam('name'))
_PATIENCE = text("SELECT set_config('lock_timeout', :patience, true)")


def grown_by(effects: Sequence[Effect]) -> dict[str, int]:
    """The tables to which some effects add many rows, and how many."""
    nodes = sum(len(each.nodes) for each in effects if isinstance(each, InsertTraversal))
    resources = sum(len(each.resources) for each in effects if isinstance(each, InsertResources))
    return {name: rows for name, rows in ((SYNC_POINT.name, nodes), (RESOURCE.name, resources)) if rows >= MANY}


def look_at(connection: Connection, name: str, rows: int) -> None:
    """Have PostgreSQL look at a table if it knows of fewer rows than were just added.

    :param connection: a transaction of its own.
    """
    known: float | None = connection.execute(_KNOWN, {'name': name}).scalar()
    if known is None or known >= rows:
        return
    connection.execute(_PATIENCE, {'patience': f'{LOOK_FOR_S}s'})
    connection.exec_driver_sql(f'ANALYZE {name}')
    connection.commit()
