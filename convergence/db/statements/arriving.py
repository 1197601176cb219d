"""A node is done: each node that requires it waits for one predecessor less.

Many nodes arrive at one that waits for all of them, and its row is locked from the arrival to the commit. So the
arrival is the last thing that a transaction does, in as few statements as the server allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, bindparam, case, func, literal, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.effects import FinishNode
from convergence.core.model import NodeStatus, Phase
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import SYNC_POINT
from convergence.db.statements.load import chunks
from convergence.db.statements.locking import by_key
from convergence.db.transaction import LAST, Ready

_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
_SUCCESSORS = and_(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.number.in_(bindparam('numbers', expanding=True)),
)
_READY = literal(NodeStatus.READY, SYNC_POINT.c.status.type)
_LEFT = SYNC_POINT.c.waiting - 1

# A late node may wait for nobody, and stays as it is. The one behind the window waits for nobody either: it is told of.
_TOLD = and_(
    _SUCCESSORS,
    or_(SYNC_POINT.c.waiting > 0, SYNC_POINT.c.number == bindparam('behind_window', type_=SYNC_POINT.c.number.type)),
)
# The order of the columns matters: MariaDB evaluates from left to right and sees what it has just assigned.
_STATUS = (SYNC_POINT.c.status, case((SYNC_POINT.c.waiting == 1, _READY), else_=SYNC_POINT.c.status))
_NOTIFIED_AT = (
    SYNC_POINT.c.notified_at,
    case((SYNC_POINT.c.waiting <= 1, database_now()), else_=SYNC_POINT.c.notified_at),
)
_ARRIVED = update(SYNC_POINT).ordered_values(
    _STATUS, _NOTIFIED_AT, (SYNC_POINT.c.waiting, case((SYNC_POINT.c.waiting > 0, _LEFT), else_=0))
)
_ANSWER = (SYNC_POINT.c.number, SYNC_POINT.c.phase, SYNC_POINT.c.waiting)

ARRIVE = _ARRIVED.where(_TOLD).returning(*_ANSWER)
"""SQLite, which has one writer; PostgreSQL, where there is one row to be locked."""

_IN_ORDER = select(SYNC_POINT.c.number).where(_TOLD).order_by(SYNC_POINT.c.number).with_for_update().cte()
ARRIVE_IN_ORDER = _ARRIVED.where(
    SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == _IN_ORDER.c.number
).returning(*_ANSWER)
"""PostgreSQL: an UPDATE alone locks its rows in any order."""

# MariaDB and MySQL answer no rows to an UPDATE, but one number: where one node waits, for how many it waits then.
ARRIVE_UNANSWERED = (
    by_key(update(SYNC_POINT), SYNC_POINT)
    .where(_TOLD)
    .ordered_values(
        _STATUS,
        _NOTIFIED_AT,
        (SYNC_POINT.c.waiting, case((SYNC_POINT.c.waiting > 0, func.last_insert_id(_LEFT)), else_=0)),
    )
)
LOCK_SUCCESSORS = (
    by_key(select(*_ANSWER), SYNC_POINT).where(_SUCCESSORS).order_by(SYNC_POINT.c.number).with_for_update()
)
READ_SUCCESSORS = select(*_ANSWER).where(_SUCCESSORS)

# A node behind the window has not been told of.
HIDE = by_key(update(SYNC_POINT), SYNC_POINT).where(_THIS_NODE).values(notified_at=None)
CHAIN = by_key(update(SYNC_POINT), SYNC_POINT).where(_THIS_NODE).values(next_in_backlog=bindparam('new_next'))


def arrive(connection: Connection, effect: FinishNode) -> Ready:
    """A node is done: count that at those that require it, and tell the one behind the window that it is its turn.

    :returns: the nodes that became ready and are to be cast.
    """
    behind_window = effect.next_in_backlog
    told = effect.required_by if behind_window is None else (*effect.required_by, behind_window)
    answers = _answered if connection.dialect.update_returning else _found_out
    became: list[tuple[int, Phase]] = []
    for numbers in chunks(sorted(told)):
        successors = {'traversal': effect.traversal_id, 'numbers': list(numbers), 'behind_window': behind_window}
        became += sorted(answers(connection, successors))
    checks = [number for number, phase in became if phase not in LAST]
    _chain(connection, effect.traversal_id, checks, effect.window)
    behind = set(checks[effect.window :])
    return [(effect.traversal_id, number, phase) for number, phase in became if number not in behind]


def _answered(connection: Connection, successors: Mapping[str, Any]) -> list[tuple[int, Phase]]:
    """Those of the nodes that wait for none any more, as the UPDATE says."""
    in_order = connection.dialect.name == 'postgresql' and len(successors['numbers']) > 1
    found = connection.execute(ARRIVE_IN_ORDER if in_order else ARRIVE, successors)
    return [(number, phase) for number, phase, left in found if not left and number != successors['behind_window']]


def _found_out(connection: Connection, successors: Mapping[str, Any]) -> list[tuple[int, Phase]]:
    """The same where an UPDATE does not answer."""
    behind_window = successors['behind_window']
    waiting = [number for number in successors['numbers'] if number != behind_window]
    if len(waiting) > 1:
        before = connection.execute(LOCK_SUCCESSORS, successors).all()
        connection.execute(ARRIVE_UNANSWERED, successors)
        return [(number, phase) for number, phase, left in before if left == 1]
    arrived = connection.execute(ARRIVE_UNANSWERED, successors)
    if arrived.lastrowid or arrived.rowcount == (behind_window in successors['numbers']):
        return []
    return [
        (number, phase) for number, phase, _ in connection.execute(READ_SUCCESSORS, {**successors, 'numbers': waiting})
    ]


def _chain(connection: Connection, traversal_id: str, numbers: list[int], window: int) -> None:
    """More became ready than are to be cast at once: each wakes the one `window` places after it."""
    pairs = [
        {'traversal': traversal_id, 'node': number, 'new_next': follower}
        for number, follower in zip(numbers, numbers[window:], strict=False)
    ]
    if pairs:
        connection.execute(CHAIN, pairs)
        connection.execute(HIDE, [{'traversal': traversal_id, 'node': number} for number in numbers[window:]])
