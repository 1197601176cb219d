"""Lock rows of resources by their keys, and read what belongs to the node that a row is held for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Select, and_, bindparam, or_, select
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Resource, Stack, Traversal
from convergence.core.views import FinishView
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT, TRAVERSAL
from convergence.db.schema.row_columns import (
    AT,
    AT_NOW,
    AT_STACK,
    NODE_COLUMNS,
    RESOURCE_COLUMNS,
    STACK_COLUMNS,
    TRAVERSAL_COLUMNS,
    node_of,
    resource_of,
)
from convergence.db.scopes import HeldResource
from convergence.db.stale_reads import held_row
from convergence.db.statements.loading.unopened import UNOPENED_COLUMNS, unopened
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import PreparedListStatement, PreparedStatement, among
from convergence.db.transaction import Missing

LOCK_RESOURCE = PreparedStatement(
    by_key(select(*RESOURCE_COLUMNS), RESOURCE).where(RESOURCE.c.id == bindparam('resource')).with_for_update()
)


def _lock_some(length: int) -> Select[Any]:
    some = by_key(select(*UNOPENED_COLUMNS), RESOURCE).where(among(RESOURCE.c.id, 'resources', length))
    return some.order_by(RESOURCE.c.id).with_for_update()


LOCK_SOME = PreparedListStatement('resources', _lock_some)
READ_HELD_FOR = PreparedStatement(
    select(*NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now())
    .select_from(STACK)
    .join(TRAVERSAL, TRAVERSAL.c.id == bindparam('traversal'), isouter=True)
    .join(
        SYNC_POINT,
        and_(SYNC_POINT.c.traversal_id == TRAVERSAL.c.id, SYNC_POINT.c.number == bindparam('node')),
        isouter=True,
    )
    .where(STACK.c.id == bindparam('stack'))
)
READ_WAITING = (
    select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.number)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.resource_id == bindparam('resource'),
        SYNC_POINT.c.status == NodeStatus.READY,
    )
    .order_by(SYNC_POINT.c.number)
)
# Of a row that others are to take from: these as well.
READ_WAITING_TO_TAKE = (
    select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.number)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.status == NodeStatus.READY,
        or_(
            SYNC_POINT.c.resource_id == bindparam('resource'),
            and_(SYNC_POINT.c.phase == Phase.UPDATE, SYNC_POINT.c.name == bindparam('name')),
        ),
    )
    .order_by(SYNC_POINT.c.number)
)


def lock_row(connection: Connection, resource_id: str) -> Resource | None:
    """A row, locked; None where it is gone."""
    row = LOCK_RESOURCE.first(connection, {'resource': resource_id})
    return resource_of(*row) if row is not None else None


def locked(connection: Connection, keys: Sequence[str]) -> list[Resource]:
    """Rows, locked in the order of their keys, which is that of `keys`."""
    return unopened(LOCK_SOME.all(connection, {'resources': keys}), connection.dialect)


def held_resource(connection: Connection, scope: HeldResource) -> FinishView:
    """See the scope."""
    resource = held_row(partial(lock_row, connection), scope)
    if resource is None:
        return FinishView(0.0, None, None, None, None)
    return held_for(connection, resource, scope.traversal_id, scope.number)


def held_for(connection: Connection, resource: Resource, traversal_id: str | None, number: int | None) -> FinishView:
    """A locked row, and what belongs to the node that it is held for."""
    key = {'traversal': traversal_id, 'node': number, 'stack': resource.stack_id}
    row = READ_HELD_FOR.first(connection, key)
    if row is None:
        raise Missing
    return held_view(connection, resource, traversal_id, row)


def held_view(connection: Connection, resource: Resource, traversal_id: str | None, row: Sequence[Any]) -> FinishView:
    """The same, and who waits for the row in the current traversal of its stack, from what `READ_HELD_FOR` answers."""
    node = node_of(*row[:AT]) if row[0] is not None else None
    traversal = Traversal(*row[AT:AT_STACK]) if row[AT] is not None else None
    stack = Stack(*row[AT_STACK:AT_NOW])
    waiting: tuple[tuple[str, int], ...] = ()
    if stack.traversal_id is not None and stack.traversal_id != traversal_id:
        statement = READ_WAITING if resource.handover is None else READ_WAITING_TO_TAKE
        named = {'traversal': stack.traversal_id, 'resource': resource.id, 'name': resource.name}
        found = connection.execute(statement, named)
        waiting = tuple((traversal_id, number) for traversal_id, number in found)
    return FinishView(row[AT_NOW], resource, node, traversal, stack, waiting)
