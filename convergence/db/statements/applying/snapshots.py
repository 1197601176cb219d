"""Store and end snapshots and what they keep, and have them deleted."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, insert, update
from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.db.schema.models import SNAPSHOT, SNAPSHOT_ITEM
from convergence.db.schema.row_columns import stored_values
from convergence.db.statements.prepared.locking import by_key

# The snapshot that a traversal was to take ends with it.
END_SNAPSHOT = (
    by_key(update(SNAPSHOT), SNAPSHOT)
    .where(SNAPSHOT.c.id == bindparam('key'))
    .values(status=bindparam('new_status'), status_reason=bindparam('new_reason'))
)


def insert_snapshot(connection: Connection, effect: effects.InsertSnapshot) -> None:
    """See the effect."""
    connection.execute(insert(SNAPSHOT), stored_values(effect.snapshot))


def delete_snapshots(connection: Connection, effect: effects.DeleteSnapshots) -> None:
    """See the effect."""
    of_stack = update(SNAPSHOT).where(SNAPSHOT.c.stack_id == effect.stack_id).values(deleting=True)
    if effect.snapshot_id is not None:
        of_stack = of_stack.where(SNAPSHOT.c.id == effect.snapshot_id)
    if effect.keeping:
        of_stack = of_stack.where(SNAPSHOT.c.id.not_in(effect.keeping))
    connection.execute(of_stack)


def keep_item(connection: Connection, effect: effects.KeepItem) -> None:
    """See the effect."""
    item = effect.item
    # Its writer holds the claim of the resource, so there is no other writer.
    connection.execute(
        delete(SNAPSHOT_ITEM).where(
            SNAPSHOT_ITEM.c.snapshot_id == item.snapshot_id, SNAPSHOT_ITEM.c.resource_id == item.resource_id
        )
    )
    connection.execute(insert(SNAPSHOT_ITEM), stored_values(item))
