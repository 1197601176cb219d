"""Finishes a node: each node that requires it waits for one predecessor less.

Many nodes arrive at one that waits for all of them, and its row is locked from the arrival to the commit. So the
arrival is the last write of a transaction, in as few statements as the server allows: one on MariaDB, after the one
that finishes the node; on PostgreSQL one for both and the event. The change of the node's resource row comes before,
in a statement of its own: it may wait for the row's lock, and the conditions for finishing the node are checked after
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import ReturningUpdate

from convergence.core.effects import FinishNode
from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Event
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import SYNC_POINT
from convergence.db.schema.row_columns import CHUNK, chunks
from convergence.db.statements.applying.changing import STORE_EVENT, event_values, is_running, store_event
from convergence.db.statements.prepared.batch import ANSWER, StatementBatch, StatementResult
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import (
    PreparedListStatement,
    PreparedStatement,
    among,
    each_of,
    refused_where_none,
)
from convergence.db.transaction import LAST, Ready

_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
# The transaction has read none of these columns; one statement checks them after the resource row is locked.
_AS_ASSUMED = (
    SYNC_POINT.c.required_by == bindparam('successors', type_=SYNC_POINT.c.required_by.type),
    SYNC_POINT.c.next_in_backlog.is_not_distinct_from(bindparam('behind_window', type_=SYNC_POINT.c.number.type)),
    is_running(),
)


def _finishing(*if_so: ColumnElement[bool]) -> Update:
    return (
        by_key(update(SYNC_POINT), SYNC_POINT)
        .where(_THIS_NODE, SYNC_POINT.c.status == NodeStatus.READY, *if_so)
        .values(status=NodeStatus.DONE, output=bindparam('new_output'), finished_at=database_now())
    )


FINISH_NODE = PreparedStatement(_finishing())
FINISH_AS_ASSUMED = PreparedStatement(_finishing(*_AS_ASSUMED))
# For MariaDB and MySQL: resets the number that the arrival composes. A ready node waits for no predecessor, so
# `waiting` is 0.
_BEGUN_ANEW = func.last_insert_id(0)
FINISH_NODE_ANEW = PreparedStatement(_finishing().values(waiting=_BEGUN_ANEW))
FINISH_AS_ASSUMED_ANEW = PreparedStatement(_finishing(*_AS_ASSUMED).values(waiting=_BEGUN_ANEW))
_READY = literal(NodeStatus.READY, SYNC_POINT.c.status.type)
_LEFT = SYNC_POINT.c.waiting - 1

# A late node may wait for no predecessor and stays unchanged. The node behind the window waits for none either; it is
# dispatched.
_NEXT = or_(SYNC_POINT.c.waiting > 0, SYNC_POINT.c.number == bindparam('behind_window', type_=SYNC_POINT.c.number.type))


def _successors(length: int) -> ColumnElement[bool]:
    of_traversal = SYNC_POINT.c.traversal_id == bindparam('traversal')
    return and_(of_traversal, among(SYNC_POINT.c.number, 'numbers', length))


# The order of the columns matters: MariaDB evaluates from left to right and sees what it has just assigned.
_STATUS = (SYNC_POINT.c.status, case((SYNC_POINT.c.waiting == 1, _READY), else_=SYNC_POINT.c.status))
_NOTIFIED_AT = (
    SYNC_POINT.c.notified_at,
    case((SYNC_POINT.c.waiting <= 1, database_now()), else_=SYNC_POINT.c.notified_at),
)
_ARRIVED = update(SYNC_POINT).ordered_values(
    _STATUS, _NOTIFIED_AT, (SYNC_POINT.c.waiting, case((SYNC_POINT.c.waiting > 0, _LEFT), else_=0))
)
_KEY = (SYNC_POINT.c.traversal_id, SYNC_POINT.c.number)
_ANSWER = (SYNC_POINT.c.number, SYNC_POINT.c.phase, SYNC_POINT.c.waiting)


def arriving(length: int, *if_so: ColumnElement[bool]) -> ReturningUpdate[Any]:
    """UPDATE of so many nodes, where there is no other writer or no more than one.

    :param if_so: what must hold besides, else it changes nothing.
    """
    return _ARRIVED.where(_successors(length), _NEXT, *if_so).returning(*_ANSWER)


def arriving_in_order(length: int, *if_so: ColumnElement[bool]) -> ReturningUpdate[Any]:
    """The same for PostgreSQL: an UPDATE alone locks its rows in any order, and reads all nodes of the traversal."""
    wanted = each_of(SYNC_POINT.c.number, 'numbers', length)
    of_traversal = SYNC_POINT.c.traversal_id == bindparam('traversal')
    one = select(*_KEY).where(of_traversal, SYNC_POINT.c.number == wanted.c.number, _NEXT, *if_so)
    locked = one.with_for_update().lateral()
    # That is so of all of them, and PostgreSQL believes it of one: joined with several it would read the whole table.
    seems_rare = wanted.c.number.between(bindparam('numbers_0'), bindparam(f'numbers_{length - 1}'))
    in_order = select(*locked.c).select_from(wanted.join(locked, true())).where(seems_rare).cte('in_order')
    return _ARRIVED.where(*(mine == found for mine, found in zip(_KEY, in_order.c, strict=True))).returning(*_ANSWER)


ARRIVE = PreparedListStatement('numbers', arriving)
ARRIVE_IN_ORDER = PreparedListStatement('numbers', arriving_in_order)


def _at_once(*if_so: ColumnElement[bool]) -> Callable[[int], Select[Any]]:
    """For PostgreSQL: the node, its event and the arrival at so many others.

    It fails where the node is not done, and leaves in `ANSWER`, as JSON, what the arrival answers.
    """

    def build(length: int) -> Select[Any]:
        done = _finishing(*if_so).returning(SYNC_POINT.c.number).cte('done')
        is_done = select(done.c.number).exists()
        arrived = (arriving_in_order if length > 1 else arriving)(length, is_done).cte('arrived')
        count = select(func.count()).select_from(done).scalar_subquery()
        each = func.json_build_array(arrived.c.number, arrived.c.phase, arrived.c.waiting)
        answer = cast(func.coalesce(func.json_agg(each), literal_column("'[]'")), Text)
        left = func.set_config(ANSWER, answer, literal_column('false'))
        return select(left, refused_where_none(count)).select_from(arrived).add_cte(STORE_EVENT.cte('told'))

    return build


FINISH_AT_ONCE = PreparedListStatement('numbers', _at_once(), leaves_answer=True)
FINISH_AT_ONCE_AS_ASSUMED = PreparedListStatement('numbers', _at_once(*_AS_ASSUMED), leaves_answer=True)

# MariaDB and MySQL return no rows for an UPDATE, but one number of 64 bits, which each changed row can read and set.
# Each node has three bits in it, in the order of the list: the number of its phase, counted from 1, if it becomes
# ready; else 0.
_PHASES = tuple(Phase)
_BITS = 3
MOST_IN_NUMBER = 16
_PLACE = case({phase: place for place, phase in enumerate(_PHASES, 1)}, value=SYNC_POINT.c.phase)


def _arriving_unanswered(length: int) -> Update:
    return by_key(_ARRIVED, SYNC_POINT).where(_successors(length), _NEXT)


def _arriving_by_number(length: int) -> Update:
    numbers = [bindparam(f'numbers_{place}', type_=SYNC_POINT.c.number.type) for place in range(length)]
    bits = _PLACE.op('<<')(_BITS * (func.field(SYNC_POINT.c.number, *numbers) - 1))
    noted = func.last_insert_id(func.last_insert_id().op('|')(bits))
    left = case((SYNC_POINT.c.waiting > 1, _LEFT), (SYNC_POINT.c.waiting == 1, noted * 0), else_=0)
    changed = by_key(update(SYNC_POINT), SYNC_POINT).where(_successors(length), _NEXT)
    return changed.ordered_values(_STATUS, _NOTIFIED_AT, (SYNC_POINT.c.waiting, left))


def _locking(length: int) -> Select[Any]:
    locked = by_key(select(*_ANSWER), SYNC_POINT).where(_successors(length))
    return locked.order_by(SYNC_POINT.c.number).with_for_update()


ARRIVE_BY_NUMBER = PreparedListStatement('numbers', _arriving_by_number)
# For more nodes than the number has bits for.
LOCK_SUCCESSORS = PreparedListStatement('numbers', _locking)
ARRIVE_UNANSWERED = PreparedListStatement('numbers', _arriving_unanswered)

# A node behind the window is not dispatched yet.
HIDE = by_key(update(SYNC_POINT), SYNC_POINT).where(_THIS_NODE).values(notified_at=None)
CHAIN = by_key(update(SYNC_POINT), SYNC_POINT).where(_THIS_NODE).values(next_in_backlog=bindparam('new_next'))


def finish(batch: StatementBatch, effect: FinishNode, event: Event | None = None) -> None:
    """A node that was ready is done, and arrives at those that require it.

    It is a conflict where it was not ready, or something else than was assumed.

    :param event: stored as well, in the same statement: only where `combines_changes`.
    """
    what = f'node {effect.number} of {effect.traversal_id}'
    values: dict[str, Any] = {'traversal': effect.traversal_id, 'node': effect.number, 'new_output': effect.output}
    if effect.checked:
        values |= {'successors': effect.required_by, 'behind_window': effect.next_in_backlog}
    numbers = followers(effect)
    if event is not None and 0 < len(numbers) <= CHUNK:
        at_once = FINISH_AT_ONCE_AS_ASSUMED if effect.checked else FINISH_AT_ONCE
        given = {**values, **asked(effect, numbers), **event_values(event)}
        batch.add(at_once.call(given), partial(_note_all, batch, effect))
        if len(numbers) > effect.window:
            batch.send()  # some may have to be chained to others before the commit
        return
    if event is not None:
        store_event(batch, event)
    if numbers and not batch.connection.dialect.update_returning:
        batch.add_one((FINISH_AS_ASSUMED_ANEW if effect.checked else FINISH_NODE_ANEW).call(values), what)
        _arrive_unanswered(batch, effect)
        return
    batch.add_one((FINISH_AS_ASSUMED if effect.checked else FINISH_NODE).call(values), what)
    if numbers:
        batch.send()
        batch.ready += arrive(batch.connection, effect)


def _note_all(batch: StatementBatch, effect: FinishNode, answer: StatementResult) -> None:
    """See `_at_once`."""
    arrived = [(number, Phase(phase), left) for number, phase, left in json.loads(answer.rows[0][0])]
    batch.ready += chained(batch.connection, effect, became_ready(arrived, effect.next_in_backlog))


def arrive(connection: Connection, effect: FinishNode) -> Ready:
    """A node is done: count that at those that require it, and tell the one behind the window that it is its turn.

    Only where the server answers to an UPDATE.

    :returns: the nodes that became ready and are to be cast.
    """
    became: list[tuple[int, Phase]] = []
    for numbers in chunks(followers(effect)):
        in_order = connection.dialect.name == 'postgresql' and len(numbers) > 1
        found = (ARRIVE_IN_ORDER if in_order else ARRIVE).all(connection, asked(effect, numbers))
        became += became_ready(found, effect.next_in_backlog)
    return chained(connection, effect, became)


def followers(effect: FinishNode) -> list[int]:
    """The nodes that learn that one is done, in the order in which they are locked."""
    behind_window = effect.next_in_backlog
    return sorted(effect.required_by if behind_window is None else (*effect.required_by, behind_window))


def asked(effect: FinishNode, numbers: Sequence[int]) -> dict[str, Any]:
    """The values of an arrival at some nodes."""
    return {
        'traversal': effect.traversal_id,
        'numbers': list(numbers),
        'behind_window': effect.next_in_backlog,
    }


def became_ready(answer: Iterable[Sequence[Any]], behind_window: int | None) -> list[tuple[int, Phase]]:
    """Return the nodes without open predecessors, by number, from the answer of an arrival."""
    return sorted((number, phase) for number, phase, left in answer if not left and number != behind_window)


def chained(connection: Connection, effect: FinishNode, became: Sequence[tuple[int, Phase]]) -> Ready:
    """Return the nodes to dispatch now; chain the other ready nodes to them."""
    checks = [number for number, phase in became if phase not in LAST]
    _chain(connection, effect.traversal_id, checks, effect.window)
    behind = set(checks[effect.window :])
    return [(effect.traversal_id, number, phase) for number, phase in became if number not in behind]


def _arrive_unanswered(batch: StatementBatch, effect: FinishNode) -> None:
    """As `arrive`, where an UPDATE does not answer with rows."""
    became: list[tuple[int, Phase]] = []
    every = followers(effect)
    if len(every) <= MOST_IN_NUMBER:
        batch.add(ARRIVE_BY_NUMBER.call(asked(effect, every)), partial(_note_number, became, every))
    else:
        for numbers in chunks(every):
            successors = asked(effect, numbers)
            batch.add(LOCK_SUCCESSORS.call(successors), partial(_note_those, became))
            batch.add(ARRIVE_UNANSWERED.call(successors))

    def conclude() -> None:
        batch.ready.extend(chained(batch.connection, effect, became))

    if len(every) > effect.window:
        batch.send()  # some may have to be chained to others before the commit
    batch.afterwards(conclude)


def _note_number(became: list[tuple[int, Phase]], numbers: Sequence[int], arrived: StatementResult) -> None:
    """See `_arriving_by_number`."""
    for place, number in enumerate(numbers):
        phase = arrived.number >> _BITS * place & (1 << _BITS) - 1
        if phase:
            became.append((number, _PHASES[phase - 1]))


def _note_those(became: list[tuple[int, Phase]], before: StatementResult) -> None:
    """Note the nodes whose last open predecessor arrives."""
    became += [(number, phase) for number, phase, left in before.rows if left == 1]


def _chain(connection: Connection, traversal_id: str, numbers: list[int], window: int) -> None:
    """More became ready than are to be cast at once: each wakes the one `window` places after it."""
    pairs = [
        {'traversal': traversal_id, 'node': number, 'new_next': follower}
        for number, follower in zip(numbers, numbers[window:], strict=False)
    ]
    if pairs:
        connection.execute(CHAIN, pairs)
        connection.execute(HIDE, [{'traversal': traversal_id, 'node': number} for number in numbers[window:]])
