"""Limits the number of resources in a tree of stacks, also for concurrent plans.

A tree has a row with a number that is never less than the sum of its goals. A plan with more resources raises it in one
statement that the limit may refuse, and holds the row until the commit: it is the last lock of a plan, and only plans
take it. A plan with fewer resources leaves the number, so it may be too high. If it exceeds the limit, the goals are
counted under the lock.
"""

from __future__ import annotations

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection

from convergence.core.effects import RequireRoom
from convergence.db.schema.models import STACK, TREE
from convergence.db.schema.row_columns import backend_of
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.statements.prepared.statement import PreparedStatement
from convergence.errors import require_room

_NO_LIMIT = 2**31 - 1

_GOALS = select(func.coalesce(func.sum(STACK.c.resource_count), 0)).where(STACK.c.deleted_at.is_(None))
COUNT_RESOURCES = PreparedStatement(
    select(
        _GOALS.where(STACK.c.root_id == bindparam('root')).scalar_subquery()
        + _GOALS.where(STACK.c.id == bindparam('root')).scalar_subquery()
    )
)
TAKE_ROOM = PreparedStatement(
    update(TREE)
    .where(TREE.c.id == bindparam('root'), TREE.c.resource_count + bindparam('more') <= bindparam('most'))
    .values(resource_count=TREE.c.resource_count + bindparam('more'))
)
NOTE_COUNT = update(TREE).where(TREE.c.id == bindparam('root')).values(resource_count=bindparam('counted'))
LOCK_TREE = select(TREE.c.id).where(TREE.c.id == bindparam('root')).with_for_update()
FORGET_TREE = delete(TREE).where(TREE.c.id == bindparam('root'))
# Stores the row and locks it, also where another transaction has just stored it: that one is waited for.
ADD_TREE = {
    'mysql': mysql.insert(TREE).on_duplicate_key_update(id=TREE.c.id),
    'postgresql': postgresql.insert(TREE).on_conflict_do_update(index_elements=['id'], set_={'id': TREE.c.id}),
    'sqlite': sqlite.insert(TREE).on_conflict_do_nothing(),
}


def take_room(batch: StatementBatch, effect: RequireRoom) -> None:
    """A tree gets more resources; its stack is written before, in the same transaction.

    :raises Conflict: others have taken the room that there was when it was looked for.
    :raises RequestLimitExceeded: there would be too many.
    """
    most = _NO_LIMIT if effect.most is None else effect.most
    has_room = effect.counted is not None and effect.counted + effect.more <= most
    taken = TAKE_ROOM.call({'root': effect.root_id, 'more': effect.more, 'most': most})
    if has_room:
        batch.add_one(taken, f'tree {effect.root_id}')
        return
    connection = batch.connection
    if batch.write(taken) == 1:
        return
    _lock(connection, effect.root_id)
    # A statement of its own: so it sees all commits of earlier holders of the lock.
    counted = COUNT_RESOURCES.first(connection, {'root': effect.root_id})
    assert counted is not None
    require_room(int(counted[0]), effect.most)
    connection.execute(NOTE_COUNT, {'root': effect.root_id, 'counted': int(counted[0])})


def recount(connection: Connection, root_id: str) -> None:
    """Forget the count of a tree that stacks move to; the next plan with more resources counts again."""
    _lock(connection, root_id)
    connection.execute(FORGET_TREE, {'root': root_id})


def _lock(connection: Connection, root_id: str) -> None:
    if connection.execute(LOCK_TREE, {'root': root_id}).first() is None:
        connection.execute(ADD_TREE[backend_of(connection)], {'id': root_id, 'resource_count': 0})
