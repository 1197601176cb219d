"""Add a cleanup node to a traversal that is under way."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, insert, select, update
from sqlalchemy.engine import Connection

from convergence.core.effects import AppendCleanup
from convergence.core.model import NodeStatus, Phase
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import SYNC_POINT, TRAVERSAL
from convergence.db.schema.row_columns import chunks, stored_values
from convergence.db.statements.prepared.locking import by_key
from convergence.errors import Conflict

_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
WAITING_CLEANUPS = select(SYNC_POINT.c.number).where(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.phase == Phase.CLEANUP,
    SYNC_POINT.c.status == NodeStatus.WAITING,
    SYNC_POINT.c.resource_id.in_(bindparam('rows', expanding=True)),
)
ONE_MORE = (
    by_key(update(SYNC_POINT), SYNC_POINT)
    .where(_THIS_NODE, SYNC_POINT.c.status == NodeStatus.WAITING)
    .values(waiting=SYNC_POINT.c.waiting + 1)
)
COUNT_NODE = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'), TRAVERSAL.c.node_count == bindparam('node'))
    .values(node_count=TRAVERSAL.c.node_count + 1)
)
INSERT_TOLD = insert(SYNC_POINT).values(notified_at=database_now())
INSERT_UNTOLD = insert(SYNC_POINT).values(notified_at=None)


def append_cleanup(connection: Connection, effect: AppendCleanup) -> None:
    """Insert the node before those that come after it. These are locked in the order of their numbers, as those do who
    arrive at them.

    :raises Conflict: the traversal's last node does not wait any more, or the number of the node is taken.
    """
    traversal_id = effect.node.traversal_id
    followers = {effect.before} if effect.holds_up is None else {effect.before, effect.holds_up}
    for some in chunks(effect.rows_after):
        followers |= set(
            connection.execute(WAITING_CLEANUPS, {'traversal': traversal_id, 'rows': list(some)}).scalars()
        )
    held_up = [
        follower
        for follower in sorted(followers)
        if connection.execute(ONE_MORE, {'traversal': traversal_id, 'node': follower}).rowcount == 1
    ]
    if effect.before not in held_up:
        raise Conflict(f'node {effect.before} of {traversal_id} does not wait any more')
    number = effect.node.number
    # The lock of the stack keeps others out, but in a cluster only those on the same server.
    if connection.execute(COUNT_NODE, {'key': traversal_id, 'node': number}).rowcount != 1:
        raise Conflict(f'traversal {traversal_id} has got a node {number} since')
    statement = INSERT_TOLD if effect.node.status is NodeStatus.READY else INSERT_UNTOLD
    connection.execute(statement, {**stored_values(effect.node), 'required_by': tuple(held_up)})
