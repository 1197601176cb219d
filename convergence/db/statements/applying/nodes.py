"""Finishes, fails, repoints or dispatches a node."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, or_, update
from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.core.model import NodeStatus
from convergence.core.rows import Event
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import SYNC_POINT
from convergence.db.statements.applying.arriving import finish
from convergence.db.statements.prepared.batch import StatementBatch, require_found
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import PreparedStatement

_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
_IS_READY = and_(_THIS_NODE, SYNC_POINT.c.status == NodeStatus.READY)
# Both nodes at the end of a traversal in one statement; the later one waits for nothing but the earlier.
FINISH_BOTH = PreparedStatement(
    by_key(update(SYNC_POINT), SYNC_POINT)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        or_(
            and_(SYNC_POINT.c.number == bindparam('node'), SYNC_POINT.c.status == NodeStatus.READY),
            and_(
                SYNC_POINT.c.number == bindparam('last'),
                SYNC_POINT.c.status == NodeStatus.WAITING,
                SYNC_POINT.c.waiting == 1,
            ),
        ),
    )
    .values(status=NodeStatus.DONE, waiting=0, finished_at=database_now())
)
FAIL_NODE = by_key(update(SYNC_POINT), SYNC_POINT).where(_IS_READY).values(status=NodeStatus.FAILED)
POINT_NODE = by_key(update(SYNC_POINT), SYNC_POINT).where(_IS_READY).values(resource_id=bindparam('new_resource'))
NOTIFY_NODE = PreparedStatement(
    by_key(update(SYNC_POINT), SYNC_POINT).where(_IS_READY).values(notified_at=database_now())
)


def finish_node(batch: StatementBatch, effect: effects.FinishNode, event: Event | None) -> None:
    """See the effect."""
    if effect.last is None:
        finish(batch, effect, event)
        return
    key = {'traversal': effect.traversal_id, 'node': effect.number}
    what = f'nodes {effect.number} and {effect.last} of {effect.traversal_id}'
    batch.add_one(FINISH_BOTH.call({**key, 'last': effect.last}), what, wanted=2)


def fail_node(connection: Connection, effect: effects.FailNode) -> None:
    """See the effect."""
    connection.execute(FAIL_NODE, {'traversal': effect.traversal_id, 'node': effect.number})


def point_node(connection: Connection, effect: effects.PointNode) -> None:
    """See the effect."""
    key = {'traversal': effect.traversal_id, 'node': effect.number}
    pointed = connection.execute(POINT_NODE, {**key, 'new_resource': effect.resource_id})
    require_found(pointed.rowcount, f'node {effect.number} of {effect.traversal_id}')


def notify_node(batch: StatementBatch, effect: effects.NotifyNode) -> None:
    """See the effect."""
    batch.add(NOTIFY_NODE.call({'traversal': effect.traversal_id, 'node': effect.number}))
