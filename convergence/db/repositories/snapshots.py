"""Snapshots, and the kept data of those that are being deleted."""

from __future__ import annotations

from functools import partial

from sqlalchemy import ColumnElement, Delete, Update, and_, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.model import Action, Status
from convergence.core.rows import Snapshot, SnapshotItem
from convergence.db.records import SNAPSHOT_RETRY_S
from convergence.db.schema.columns import asked_at, database_now
from convergence.db.schema.models import RESOURCE, SNAPSHOT, SNAPSHOT_ITEM
from convergence.db.schema.row_columns import columns
from convergence.db.statements.store import Store

_SNAPSHOT = columns(SNAPSHOT, Snapshot)
_ITEM = columns(SNAPSHOT_ITEM, SnapshotItem)
# A worker that still takes a snapshot may add data to it.
_BUSY = exists().where(
    RESOURCE.c.stack_id == SNAPSHOT.c.stack_id,
    RESOURCE.c.action == Action.SNAPSHOT,
    RESOURCE.c.status == Status.IN_PROGRESS,
)
_IS_DUE = or_(SNAPSHOT_ITEM.c.attempted_at.is_(None), SNAPSHOT_ITEM.c.attempted_at < asked_at() - SNAPSHOT_RETRY_S)
UNWANTED_ITEMS = (
    select(*_ITEM)
    .join(SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_ITEM.c.snapshot_id)
    .where(SNAPSHOT.c.deleting.is_(True), _IS_DUE, ~_BUSY)
    .limit(bindparam('limit'))
)
EMPTY_SNAPSHOTS = (
    select(SNAPSHOT.c.id)
    .where(
        SNAPSHOT.c.deleting.is_(True),
        ~exists().where(SNAPSHOT_ITEM.c.snapshot_id == SNAPSHOT.c.id),
        ~_BUSY,
    )
    .limit(bindparam('limit'))
)


class SnapshotRows:
    """Reads snapshots, and removes them when all that was kept for them is gone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_stack(self, stack_id: str) -> list[Snapshot]:
        """The snapshots of a stack, oldest first; also those that are being deleted."""
        statement = select(*_SNAPSHOT).where(SNAPSHOT.c.stack_id == stack_id)
        with self._store.reading() as connection:
            rows = connection.execute(statement.order_by(SNAPSHOT.c.created_at, SNAPSHOT.c.id))
            return [Snapshot(*row) for row in rows]

    def count(self, stack_id: str) -> int:
        """How many snapshots a stack has that are not being deleted."""
        alive = and_(SNAPSHOT.c.stack_id == stack_id, SNAPSHOT.c.deleting.is_(False))
        with self._store.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(SNAPSHOT).where(alive)).scalar_one())

    def one(self, snapshot_id: str) -> Snapshot | None:
        """A snapshot."""
        with self._store.reading() as connection:
            row = connection.execute(select(*_SNAPSHOT).where(SNAPSHOT.c.id == snapshot_id)).first()
        return Snapshot(*row) if row is not None else None

    def items(self, snapshot_id: str) -> list[SnapshotItem]:
        """Return the data that resource types keep for a snapshot, by resource name."""
        statement = select(*_ITEM).where(SNAPSHOT_ITEM.c.snapshot_id == snapshot_id)
        with self._store.reading() as connection:
            return [SnapshotItem(*row) for row in connection.execute(statement.order_by(SNAPSHOT_ITEM.c.name))]

    # --- deleting ---------------------------------------------------------------------------------------------

    def take_unwanted(self, limit: int) -> list[SnapshotItem]:
        """Return kept data of snapshots that are being deleted. Each item is handed to one caller for
        `SNAPSHOT_RETRY_S` seconds.
        """
        with self._store.reading() as connection:
            found = [SnapshotItem(*row) for row in connection.execute(UNWANTED_ITEMS, {'limit': limit})]
        taken: list[SnapshotItem] = []
        for item in found:
            claim = update(SNAPSHOT_ITEM).where(_is(item), _IS_DUE).values(attempted_at=database_now())
            if self._store.write(partial(_changed, claim), SnapshotRows.take_unwanted):
                taken.append(item)
        return taken

    def forget(self, item: SnapshotItem) -> None:
        """It is not kept any more."""
        self._store.write(partial(_changed, delete(SNAPSHOT_ITEM).where(_is(item))), SnapshotRows.forget)

    def not_yet(self, item: SnapshotItem, reason: str) -> None:
        """It could not be deleted; the snapshot says so until it can."""
        said = {'status': Status.FAILED, 'status_reason': reason}
        statement = update(SNAPSHOT).where(SNAPSHOT.c.id == item.snapshot_id).values(**said)
        self._store.write(partial(_changed, statement), SnapshotRows.not_yet)

    def remove_empty(self) -> int:
        """Remove the snapshots that are being deleted and for which nothing is kept; how many there were."""
        with self._store.reading() as connection:
            ids = list(connection.execute(EMPTY_SNAPSHOTS, {'limit': 100}).scalars())
        if ids:
            statement = delete(SNAPSHOT).where(SNAPSHOT.c.id.in_(ids), SNAPSHOT.c.deleting.is_(True))
            self._store.write(partial(_changed, statement), SnapshotRows.remove_empty)
        return len(ids)


def _changed(statement: Update | Delete, connection: Connection) -> int:
    return connection.execute(statement).rowcount


def _is(item: SnapshotItem) -> ColumnElement[bool]:
    return and_(SNAPSHOT_ITEM.c.snapshot_id == item.snapshot_id, SNAPSHOT_ITEM.c.resource_id == item.resource_id)
