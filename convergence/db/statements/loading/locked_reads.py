"""Locks a row and reads the rows that depend on the lock, in one round trip.

The read is a statement of its own and sees all commits before the lock was granted: a join with the locking statement
would return an older state.

MariaDB returns the results of both. PostgreSQL returns the result of the last statement of a text only: so the first
one notes the locked key in a setting of the transaction, and the second reads that note as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, func, literal, literal_column, select
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT, TRAVERSAL, TREE
from convergence.db.schema.row_columns import NODE_COLUMNS, RESOURCE_COLUMNS, STACK_COLUMNS, TRAVERSAL_COLUMNS
from convergence.db.statements.applying.outbox import HAS_WEBHOOK, ROOT_ID
from convergence.db.statements.prepared.batch import Rows, StatementBatch, answers_last_alone
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import PreparedListStatement, PreparedStatement, among

LOCKED = 'convergence.locked'
"""Prefix of the PostgreSQL settings with the keys of the rows locked last; empty for no row."""


@dataclass(frozen=True, slots=True)
class LockedRead:
    """Statements that lock, one after the other, and one that reads.

    :param locks: each answers the key of the row that it locks.
    :param read: reads.
    :param noting: the same for PostgreSQL: each notes the key, and the last one reads the keys before all else.
    """

    locks: tuple[PreparedStatement, ...]
    read: PreparedStatement
    noting: tuple[PreparedStatement, ...]

    @classmethod
    def of(cls, *locking: Select[Any], reading: Select[Any]) -> LockedRead:
        """Return a locked read from statements that select the keys of rows to lock, and one that reads.

        :param locking: without FOR UPDATE.
        """
        return cls.by([each.with_for_update() for each in locking], PreparedStatement(reading))

    @classmethod
    def by(cls, locking: Sequence[Select[Any]], read: PreparedStatement) -> LockedRead:
        """The same of some that do lock."""
        names = [f'{LOCKED}_{place}' for place in range(len(locking))]
        noting = [
            PreparedStatement(
                select(func.set_config(name, func.coalesce(each.scalar_subquery(), ''), literal_column('true')))
            )
            for name, each in zip(names, locking, strict=True)
        ]
        reading: Any = read.statement
        noted = [func.current_setting(name) for name in names]
        whole = PreparedStatement(reading.with_only_columns(*noted, *reading.selected_columns))
        return cls(tuple(map(PreparedStatement, locking)), read, (*noting, whole))

    def all(self, connection: Connection, values: Mapping[str, Any]) -> tuple[list[str | None], Rows]:
        """Return the keys of the locked rows, None for each missing row; and the rows read.

        If nothing is read, no row counts as locked.
        """
        batch = StatementBatch(connection)
        if not answers_last_alone(connection):
            *locked, rows = batch.read(*(each.call(values) for each in (*self.locks, self.read)))
            return [found[0][0] if found else None for found in locked], rows
        *locks, read = self.noting
        for lock in locks:
            batch.add(lock.call(values))
        (rows,) = batch.read(read.call(values))
        keys = rows[0][: len(locks)] if rows else []
        return [key or None for key in keys] or [None] * len(locks), [row[len(locks) :] for row in rows]


_FOLLOWER = SYNC_POINT.alias('follower')
_ROW = RESOURCE.alias('waiting_row')
_AROUND, _NESTED = STACK.alias('around'), STACK.alias('nested')
_ITS_TRAVERSAL = TRAVERSAL.alias('its_traversal')
_ITS_NODE = SYNC_POINT.alias('its_node')
_THIS_TRAVERSAL = TRAVERSAL.c.id == bindparam('traversal')


def _of(alias: Any, columns: Sequence[Any]) -> list[Any]:
    return [alias.c[each.name] for each in columns]


_ONE = by_key(select(RESOURCE.c.id), RESOURCE).where(RESOURCE.c.id == bindparam('resource'))
_OF_NODE = (SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
_ALL = (*RESOURCE_COLUMNS, *NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now())
_ROW_AND_STACK = select(*_ALL).select_from(RESOURCE).join(STACK, STACK.c.id == RESOURCE.c.stack_id)

ROW_OF_NODE = by_key(select(RESOURCE.c.id), RESOURCE).where(
    RESOURCE.c.id == select(SYNC_POINT.c.resource_id).where(*_OF_NODE).scalar_subquery()
)
"""The key of the row that a node works on."""


def rows_by_key(table: Table, name: str) -> PreparedListStatement:
    """Locks the rows whose keys are in the list `name`, in the order of the keys."""

    def lock(length: int) -> Select[Any]:
        keys = by_key(select(table.c.id), table).where(among(table.c.id, name, length))
        return keys.order_by(table.c.id).with_for_update()

    return PreparedListStatement(name, lock)


def _with_all(node: ColumnElement[bool], nested_id: ColumnElement[Any]) -> Select[Any]:
    """Rows, with the nodes that they are held for, and the traversal and the stacks of those.

    :param node: which node of the traversal that is.
    :param nested_id: the stack that is the object.
    """
    return (
        _ROW_AND_STACK.add_columns(
            TREE.c.resource_count, HAS_WEBHOOK, *_of(_ITS_TRAVERSAL, TRAVERSAL_COLUMNS), *_of(_NESTED, STACK_COLUMNS)
        )
        .join(TREE, TREE.c.id == ROOT_ID, isouter=True)
        .join(TRAVERSAL, TRAVERSAL.c.id == bindparam('traversal'), isouter=True)
        .join(SYNC_POINT, and_(SYNC_POINT.c.traversal_id == TRAVERSAL.c.id, node), isouter=True)
        .join(_NESTED, _NESTED.c.id == nested_id, isouter=True)
        .join(_ITS_TRAVERSAL, _ITS_TRAVERSAL.c.id == _NESTED.c.traversal_id, isouter=True)
    )


HELD = LockedRead.of(
    _ONE, reading=_with_all(_OF_NODE[1], bindparam('stack')).where(RESOURCE.c.id == bindparam('resource'))
)
"""A row, and the node that it is held for, with its traversal and the stack of the row. Of the tree of that, how many
resources it is known to have, and whether it has a webhook. And the stack that is the object, with its traversal."""

LOCK_HELD = rows_by_key(RESOURCE, 'resources')
READ_HELD = PreparedListStatement(
    'resources',
    lambda length: _with_all(SYNC_POINT.c.resource_id == RESOURCE.c.id, RESOURCE.c.token).where(
        among(RESOURCE.c.id, 'resources', length)
    ),
)
"""The same of several rows that are locked, held for nodes of one traversal; for each node that works on one."""

LAST = LockedRead.of(
    by_key(select(STACK.c.id), STACK).where(
        STACK.c.id == select(TRAVERSAL.c.stack_id).where(_THIS_TRAVERSAL).scalar_subquery()
    ),
    by_key(select(RESOURCE.c.id), RESOURCE).where(
        RESOURCE.c.id
        == select(STACK.c.parent_resource_id)
        .join(TRAVERSAL, TRAVERSAL.c.stack_id == STACK.c.id)
        .where(_THIS_TRAVERSAL, TRAVERSAL.c.for_parent.is_(True), TRAVERSAL.c.id == STACK.c.traversal_id)
        .scalar_subquery()
    ),
    reading=select(
        *NODE_COLUMNS,
        *TRAVERSAL_COLUMNS,
        *STACK_COLUMNS,
        database_now(),
        literal(False),
        *_of(_FOLLOWER, NODE_COLUMNS),
        HAS_WEBHOOK,
        *_of(_ROW, RESOURCE_COLUMNS),
        *_of(_ITS_NODE, NODE_COLUMNS),
        *_of(_ITS_TRAVERSAL, TRAVERSAL_COLUMNS),
        *_of(_AROUND, STACK_COLUMNS),
    )
    .select_from(SYNC_POINT)
    .join(TRAVERSAL, TRAVERSAL.c.id == SYNC_POINT.c.traversal_id)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .join(
        _FOLLOWER,
        and_(_FOLLOWER.c.traversal_id == TRAVERSAL.c.id, _FOLLOWER.c.number == TRAVERSAL.c.complete_number),
        isouter=True,
    )
    .join(_ROW, and_(_ROW.c.id == STACK.c.parent_resource_id, TRAVERSAL.c.for_parent.is_(True)), isouter=True)
    .join(_AROUND, _AROUND.c.id == _ROW.c.stack_id, isouter=True)
    .join(_ITS_TRAVERSAL, _ITS_TRAVERSAL.c.id == _AROUND.c.traversal_id, isouter=True)
    .join(
        _ITS_NODE,
        and_(
            _ITS_NODE.c.traversal_id == _ITS_TRAVERSAL.c.id,
            _ITS_NODE.c.resource_id == _ROW.c.id,
            _ITS_NODE.c.status == NodeStatus.READY,
        ),
        isouter=True,
    )
    .where(*_OF_NODE)
    .order_by(_ITS_NODE.c.number)
    .limit(1),
)
"""A node that ends a traversal, with that and its stack, which is locked; the node `COMPLETE`; whether there is a
webhook. And, locked as well, the row that waits for this end, if one does, with the node that is ready and works on it
in the current traversal of its stack."""
