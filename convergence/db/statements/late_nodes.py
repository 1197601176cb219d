"""Add a cleanup node to a traversal that is under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, bindparam, insert, select, update
from sqlalchemy.engine import Connection

from convergence.core.effects import AppendCleanup
from convergence.core.model import NodeStatus, Phase
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import SYNC_POINT, TRAVERSAL
from convergence.db.statements.load import chunks
from convergence.db.statements.locking import by_key
from convergence.errors import Conflict

_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
# Locked in the order of their numbers, as those that arrive at them do.
LOCK_WAITING_CLEANUPS = (
    by_key(select(SYNC_POINT.c.number), SYNC_POINT)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.phase == Phase.CLEANUP,
        SYNC_POINT.c.status == NodeStatus.WAITING,
        SYNC_POINT.c.resource_id.in_(bindparam('rows', expanding=True)),
    )
    .order_by(SYNC_POINT.c.number)
    .with_for_update()
)
ONE_MORE = (
    by_key(update(SYNC_POINT), SYNC_POINT)
    .where(_THIS_NODE, SYNC_POINT.c.status == NodeStatus.WAITING)
    .values(waiting=SYNC_POINT.c.waiting + 1)
)
READ_REQUIRED_BY = select(SYNC_POINT.c.required_by).where(_THIS_NODE)
SET_REQUIRED_BY = (
    by_key(update(SYNC_POINT), SYNC_POINT).where(_THIS_NODE).values(required_by=bindparam('new_required_by'))
)
COUNT_NODE = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'))
    .values(node_count=TRAVERSAL.c.node_count + 1)
)
INSERT_TOLD = insert(SYNC_POINT).values(notified_at=database_now())
INSERT_UNTOLD = insert(SYNC_POINT).values(notified_at=None)


def append_cleanup(connection: Connection, effect: AppendCleanup, values: Mapping[str, Any]) -> None:
    """Insert the node between those that it comes after and those that come after it.

    :param values: the columns of the node.
    :raises Conflict: the traversal's last node does not wait any more.
    """
    traversal_id, number = effect.node.traversal_id, effect.node.number
    if effect.after is not None:
        after = {'traversal': traversal_id, 'node': effect.after}
        present = connection.execute(READ_REQUIRED_BY, after).scalar_one()
        connection.execute(SET_REQUIRED_BY, {**after, 'new_required_by': (*present, number)})
    held_up: list[int] = []
    for some in chunks(effect.rows_after):
        held_up += connection.execute(LOCK_WAITING_CLEANUPS, {'traversal': traversal_id, 'rows': list(some)}).scalars()
    for follower in (*held_up, effect.before):
        more = connection.execute(ONE_MORE, {'traversal': traversal_id, 'node': follower})
        if more.rowcount != 1:
            raise Conflict(f'node {follower} of {traversal_id} is not as it was read')
    statement = INSERT_TOLD if effect.after is None else INSERT_UNTOLD
    connection.execute(statement, {**values, 'required_by': (*held_up, *effect.node.required_by)})
    connection.execute(COUNT_NODE, {'key': traversal_id})
