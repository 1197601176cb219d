"""Runs ANALYZE on PostgreSQL tables that have just grown by many rows.

PostgreSQL plans by the row counts of the last ANALYZE, and autovacuum follows some minutes late; until then plans stay.
An installation at rest has no nodes: for an empty table every index seems equally good, and each step of a stack would
read all nodes of that stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, text
from sqlalchemy.engine import Connection

from convergence.core.effects import Effect, InsertResources, InsertTraversal
from convergence.db.schema.models import RESOURCE, SYNC_POINT

MANY = 100
"""Rows added before a table is analyzed. Reading fewer rows per query costs less than an ANALYZE."""

LOCK_TIMEOUT_S = 0.1
"""Seconds to wait for another ANALYZE or VACUUM of the same table."""

# Only owners of a table may analyze it; PostgreSQL would log a warning each time.
_KNOWN = text(
    "SELECT reltuples FROM pg_class WHERE oid = to_regclass(:name) AND pg_has_role(relowner, 'USAGE')"
).bindparams(bindparam('name'))
_PATIENCE = text("SELECT set_config('lock_timeout', :patience, true)")


def grown_by(effects: Sequence[Effect]) -> dict[str, int]:
    """The tables to which some effects add many rows, and how many."""
    nodes = sum(len(each.nodes) for each in effects if isinstance(each, InsertTraversal))
    resources = sum(len(each.resources) for each in effects if isinstance(each, InsertResources))
    return {name: rows for name, rows in ((SYNC_POINT.name, nodes), (RESOURCE.name, resources)) if rows >= MANY}


def analyze(connection: Connection, name: str, rows: int) -> None:
    """Run ANALYZE if PostgreSQL knows of fewer rows than were just added.

    :param connection: a transaction of its own.
    """
    known: float | None = connection.execute(_KNOWN, {'name': name}).scalar()
    if known is None or known >= rows:
        return
    connection.execute(_PATIENCE, {'patience': f'{LOCK_TIMEOUT_S}s'})
    connection.exec_driver_sql(f'ANALYZE {name}')
    connection.commit()
