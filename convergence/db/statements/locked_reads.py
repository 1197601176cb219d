"""Lock a row, and read what depends on the lock, on one way to the server and back.

The second statement is one of its own, and sees what was committed before the lock was had: a join with the locking one
would answer with an older state.

MariaDB answers both. PostgreSQL answers the last one of several statements in one text: so there the first notes in a
setting of the transaction what it has locked, and the second reads that note as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, bindparam, func, literal_column, select
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT, TRAVERSAL, TREE
from convergence.db.statements.hot import Hot
from convergence.db.statements.locking import by_key
from convergence.db.statements.outbox import HAS_WEBHOOK, ROOT_ID
from convergence.db.statements.row_columns import NODE_COLUMNS, RESOURCE_COLUMNS, STACK_COLUMNS, TRAVERSAL_COLUMNS
from convergence.db.statements.together import Rows, Writes, answers_last_alone

LOCKED = 'convergence.locked'
"""Setting of a transaction of PostgreSQL with the key of the row that was locked last; empty where there was none."""

_WAS_LOCKED = func.current_setting(LOCKED)


@dataclass(frozen=True, slots=True)
class LockedRead:
    """Two statements.

    :param lock: answers the key of the row that it locks.
    :param read: reads.
    :param noting: the same for PostgreSQL: notes the key, and reads it before all else.
    """

    lock: Hot
    read: Hot
    noting: tuple[Hot, Hot]

    @classmethod
    def of(cls, locking: Select[Any], reading: Select[Any]) -> LockedRead:
        """Those of one that answers the key of the row that is to be locked, and of one that reads.

        :param locking: without the lock.
        """
        locked = locking.with_for_update()
        noted = func.set_config(LOCKED, func.coalesce(locked.scalar_subquery(), ''), literal_column('true'))
        noting = (Hot(select(noted)), Hot(reading.with_only_columns(_WAS_LOCKED, *reading.selected_columns)))
        return cls(Hot(locked), Hot(reading), noting)

    def all(self, connection: Connection, values: Mapping[str, Any]) -> tuple[Rows, Rows]:
        """What the two answer: the key of the row that is locked, if one is; and the rows that are read."""
        writes = Writes(connection)
        if not answers_last_alone(connection):
            locked, rows = writes.read(self.lock.call(values), self.read.call(values))
            return locked, rows
        lock, read = self.noting
        writes.add(lock.call(values))
        (rows,) = writes.read(read.call(values))
        return [[key] for key, *_ in rows[:1] if key], [row[1:] for row in rows]


_ONE = by_key(select(RESOURCE.c.id), RESOURCE).where(RESOURCE.c.id == bindparam('resource'))
_OF_NODE = (SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
_ALL = (*RESOURCE_COLUMNS, *NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now())
_ROW_AND_STACK = select(*_ALL).select_from(RESOURCE).join(STACK, STACK.c.id == RESOURCE.c.stack_id)

ROW_OF_NODE = by_key(select(RESOURCE.c.id), RESOURCE).where(
    RESOURCE.c.id == select(SYNC_POINT.c.resource_id).where(*_OF_NODE).scalar_subquery()
)
"""The key of the row that a node works on."""

HELD = LockedRead.of(
    _ONE,
    _ROW_AND_STACK.add_columns(TREE.c.resource_count, HAS_WEBHOOK)
    .join(TREE, TREE.c.id == ROOT_ID, isouter=True)
    .join(TRAVERSAL, TRAVERSAL.c.id == bindparam('traversal'), isouter=True)
    .join(SYNC_POINT, and_(SYNC_POINT.c.traversal_id == TRAVERSAL.c.id, _OF_NODE[1]), isouter=True)
    .where(RESOURCE.c.id == bindparam('resource')),
)
"""A row, and the node that it is held for, with its traversal and the stack of the row. And of the tree of that, how
many resources it is known to have, and whether it has a webhook."""

AWAITING = LockedRead.of(
    _ONE,
    _ROW_AND_STACK.join(TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id)
    .join(
        SYNC_POINT,
        and_(
            SYNC_POINT.c.traversal_id == TRAVERSAL.c.id,
            SYNC_POINT.c.resource_id == RESOURCE.c.id,
            SYNC_POINT.c.status == NodeStatus.READY,
        ),
        isouter=True,
    )
    .where(RESOURCE.c.id == bindparam('resource'))
    .order_by(SYNC_POINT.c.number)
    .limit(1),
)
"""A row, and the node that is ready and works on it in the current traversal of its stack, if any."""
