"""Store, change and remove rows of resources; tell those around a nested stack."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, case, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.core.model import NodeStatus, Status
from convergence.core.nesting import DOUBTED
from convergence.core.rows import Event, Resource
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT
from convergence.db.schema.row_columns import chunks, stored_columns, stored_names
from convergence.db.statements.applying.changing import change_row, remove_row
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.statements.prepared.inserts import ManyRowsInsert
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import PreparedStatement

INSERT_ROWS = ManyRowsInsert(RESOURCE, stored_names(Resource), ('id', 'name', 'type'))
CLEAR_HOOK = (
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(cleared=bindparam('hook_cleared'), cleared_traversal_id=bindparam('traversal'))
)
REVOKE_ADDRESSES = (
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(revocation=bindparam('revoked_by'))
)
COUNT_EVENT = PreparedStatement(
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(event_count=RESOURCE.c.event_count + 1)
)
# Nodes of the stack's current traversal, also if another traversal parked the row.
WAITING_FOR = PreparedStatement(
    select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.number, SYNC_POINT.c.phase)
    .join(STACK, STACK.c.traversal_id == SYNC_POINT.c.traversal_id)
    .join(RESOURCE, and_(RESOURCE.c.stack_id == STACK.c.id, RESOURCE.c.id == SYNC_POINT.c.resource_id))
    .where(RESOURCE.c.id == bindparam('key'), SYNC_POINT.c.status == NodeStatus.READY)
    .order_by(SYNC_POINT.c.number)
)
DOUBT = (
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(digest=case((or_(RESOURCE.c.owner.is_not(None), RESOURCE.c.status == Status.IN_PROGRESS), DOUBTED)))
)
PARENT_OF = (
    select(STACK.c.parent_resource_id)
    .join(RESOURCE, RESOURCE.c.stack_id == STACK.c.id)
    .where(RESOURCE.c.id == bindparam('key'))
)


def insert_resources(batch: StatementBatch, effect: effects.InsertResources) -> None:
    """See the effect."""
    INSERT_ROWS.add(batch, stored_columns(Resource, effect.resources))


def update_resource(batch: StatementBatch, effect: effects.UpdateResource, event: Event | None) -> None:
    """See the effect."""
    change_row(batch, effect, event)


def update_resources(connection: Connection, effect: effects.UpdateResources) -> None:
    """See the effect."""
    for some in chunks(effect.resource_ids, 1000):
        connection.execute(by_key(update(RESOURCE), RESOURCE).where(RESOURCE.c.id.in_(some)).values(**effect.changes))


def delete_resource(batch: StatementBatch, effect: effects.DeleteResource) -> None:
    """See the effect."""
    remove_row(batch, effect)


def clear_hook(connection: Connection, effect: effects.ClearHook) -> None:
    """See the effect."""
    cleared = {'key': effect.resource_id, 'hook_cleared': effect.hook, 'traversal': effect.traversal_id}
    connection.execute(CLEAR_HOOK, cleared)


def revoke_addresses(connection: Connection, effect: effects.RevokeAddresses) -> None:
    """See the effect."""
    connection.execute(REVOKE_ADDRESSES, {'key': effect.resource_id, 'revoked_by': effect.revocation})


def count_event(batch: StatementBatch, effect: effects.CountEvent) -> None:
    """See the effect."""
    batch.add(COUNT_EVENT.call({'key': effect.resource_id}))


def tell_parent(batch: StatementBatch, effect: effects.TellParent) -> None:
    """See the effect."""
    key = {'key': effect.resource_id}
    batch.add(COUNT_EVENT.call(key))
    batch.read_at_end(WAITING_FOR.call(key), lambda rows: batch.ready.extend((row[0], row[1], row[2]) for row in rows))


def doubt_parents(connection: Connection, effect: effects.DoubtParents) -> None:
    """See the effect."""
    resource_id: str | None = effect.resource_id
    while resource_id is not None:
        connection.execute(DOUBT, {'key': resource_id})
        resource_id = connection.execute(PARENT_OF, {'key': resource_id}).scalar()
