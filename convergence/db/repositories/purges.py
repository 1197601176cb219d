"""Purges of rows that are not needed any more. Each step is bounded and a transaction of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.engine import Connection

from convergence.db.records import Keep
from convergence.db.schema.columns import asked_at
from convergence.db.schema.models import (
    DELIVERY,
    EVENT,
    OBSERVATION,
    RESOURCE,
    SIGNAL,
    SNAPSHOT,
    SNAPSHOT_ITEM,
    STACK,
    SYNC_POINT,
    TEMPLATE,
    TRAVERSAL,
    TREE,
    WEBHOOK,
)
from convergence.db.schema.row_columns import chunks
from convergence.db.statements.store import Store

DAY_S = 86400.0
BATCH = 1000
"""Rows removed by one statement."""


TO_BE_PURGED = (
    select(STACK.c.id)
    .where(STACK.c.deleted_at < asked_at() - bindparam('deleted_s'))
    .order_by(STACK.c.deleted_at)
    .limit(bindparam('limit'))
)
_OF_STACK = (EVENT, SIGNAL, TRAVERSAL, TEMPLATE, RESOURCE, WEBHOOK)


@dataclass(frozen=True, slots=True)
class OverTraversal:
    """A traversal that is over, and whose nodes may go.

    :param node_count: how many there were when it was planned.
    """

    id: str
    stack_id: str
    node_count: int


def together(traversals: Iterable[OverTraversal]) -> Iterator[list[OverTraversal]]:
    """Yield traversals whose nodes are removed in one transaction: many small ones, or a part of a large one."""
    batch: list[OverTraversal] = []
    for each in traversals:
        if batch and sum(other.node_count for other in batch) + each.node_count > BATCH // 2:
            yield batch
            batch = []
        batch.append(each)
    if batch:
        yield batch


def remove_nodes(connection: Connection, over: Sequence[OverTraversal], keep: Keep) -> int:
    """Remove the nodes of some traversals, as `together` gives them, and what their stacks need not keep any more.

    :returns: how many nodes; `BATCH` where there are more.
    """
    ids = sorted(each.id for each in over)
    found: ColumnElement[bool] = SYNC_POINT.c.traversal_id.in_(ids)
    is_large = over[0].node_count > BATCH // 2
    if is_large:
        numbers = connection.execute(select(SYNC_POINT.c.number).where(found).limit(BATCH)).scalars().all()
        found = and_(found, SYNC_POINT.c.number.in_(numbers))
    # Beside those that were planned there is one for each resource that was replaced, at most.
    removed = connection.execute(delete(SYNC_POINT).where(found)).rowcount
    if removed < BATCH or not is_large:
        connection.execute(update(TRAVERSAL).where(TRAVERSAL.c.id.in_(ids)).values(swept=True))
        _trim(connection, sorted({each.stack_id for each in over}), keep)
    return removed


def _trim(connection: Connection, stack_ids: Sequence[str], keep: Keep) -> None:
    """Once for each operation that is over: its stack keeps the newest events and operations."""
    if keep.events is not None:
        for stack_id in _with_more(connection, EVENT.c.stack_id, stack_ids, keep.events):
            of_stack = EVENT.c.stack_id == stack_id
            newest_first = select(EVENT.c.sequence).where(of_stack).order_by(EVENT.c.sequence.desc())
            oldest_to_go = connection.execute(newest_first.offset(keep.events).limit(1)).scalar()
            if oldest_to_go is not None:
                connection.execute(delete(EVENT).where(of_stack, EVENT.c.sequence <= oldest_to_go))
    if keep.operations is not None:
        newest = max(keep.operations, 1)  # the newest one tells why the stack is what it is
        for stack_id in _with_more(connection, TRAVERSAL.c.stack_id, stack_ids, newest):
            past = (
                select(TRAVERSAL.c.id, TRAVERSAL.c.swept)
                .where(TRAVERSAL.c.stack_id == stack_id)
                .order_by(TRAVERSAL.c.started_at.desc())
                .offset(newest)
                .limit(BATCH)
            )
            # One whose nodes are still there comes round again.
            gone = [traversal_id for traversal_id, swept in connection.execute(past) if swept]
            if gone:
                connection.execute(delete(TRAVERSAL).where(TRAVERSAL.c.id.in_(gone)))


def _with_more(connection: Connection, of_stack: ColumnElement[str], stack_ids: Sequence[str], most: int) -> list[str]:
    """The stacks of which there are more rows than `most`."""
    crowded = select(of_stack).where(of_stack.in_(stack_ids)).group_by(of_stack).having(func.count() > most)
    return list(connection.execute(crowded).scalars())


def deleted_stacks(store: Store, deleted_s: float, limit: int) -> list[str]:
    """The stacks that were deleted more than `deleted_s` seconds ago, the longest gone first."""
    with store.reading() as connection:
        return list(connection.execute(TO_BE_PURGED, {'deleted_s': deleted_s, 'limit': limit}).scalars())


@dataclass(frozen=True, slots=True)
class DeletedStack:
    """A stack that was deleted. `deleted_at`: seconds since the epoch."""

    id: str
    name: str
    project_id: str
    deleted_at: float


_LONG_DELETED = select(STACK.c.id, STACK.c.name, STACK.c.project_id, STACK.c.deleted_at).order_by(
    STACK.c.deleted_at, STACK.c.id
)


def long_deleted(
    store: Store, deleted_s: float, limit: int, after: DeletedStack | None = None, project_id: str | None = None
) -> list[DeletedStack]:
    """Stacks that were deleted more than `deleted_s` seconds ago, the longest gone first.

    :param after: those behind this one alone.
    :param project_id: those of this project alone.
    """
    statement = _LONG_DELETED.where(STACK.c.deleted_at < asked_at() - deleted_s).limit(limit)
    if after is not None:
        same = and_(STACK.c.deleted_at == after.deleted_at, STACK.c.id > after.id)
        statement = statement.where(or_(STACK.c.deleted_at > after.deleted_at, same))
    if project_id is not None:
        statement = statement.where(STACK.c.project_id == project_id)
    with store.reading() as connection:
        return [DeletedStack(*row) for row in connection.execute(statement)]


_AROUND = STACK.alias()
_LEFT_BEHIND = select(RESOURCE.c.stack_id).where(
    RESOURCE.c.stack_id.in_(bindparam('stacks', expanding=True)),
    or_(RESOURCE.c.physical_id.is_not(None), RESOURCE.c.token.is_not(None)),
)


def with_objects(store: Store, stack_ids: Sequence[str]) -> set[str]:
    """Return the stacks with rows that have an object, or may have one."""
    with store.reading() as connection:
        return {
            stack_id
            for some in chunks(stack_ids)
            for stack_id in connection.execute(_LEFT_BEHIND, {'stacks': list(some)}).scalars()
        }


_PART_OF_ANOTHER = (
    select(SNAPSHOT.c.id)
    .join(STACK, STACK.c.id == SNAPSHOT.c.stack_id)
    .join(_AROUND, _AROUND.c.id == STACK.c.root_id)
    .where(SNAPSHOT.c.stack_id == bindparam('stack_id'), _AROUND.c.live_name.is_not(None))
    .limit(1)
)


def _is_part_of_another(store: Store, stack_id: str) -> bool:
    with store.reading() as connection:
        return connection.execute(_PART_OF_ANOTHER, {'stack_id': stack_id}).scalar() is not None


def remove_stack(store: Store, stack_id: str) -> int:
    """Remove all that is left of a deleted stack; how many rows that were. The stack's own goes last.

    Not so where it has left objects: its rows are all that is known of them. Nor where a snapshot of the stack that it
    was in may still need it, which lasts as long as the root of the tree.
    """
    if with_objects(store, [stack_id]) or _is_part_of_another(store, stack_id):
        return 0
    removed = 0
    with store.reading() as connection:
        traversals = list(connection.execute(select(TRAVERSAL.c.id).where(TRAVERSAL.c.stack_id == stack_id)).scalars())
    for traversal_id in traversals:
        removed += _remove(store, SYNC_POINT, SYNC_POINT.c.number, SYNC_POINT.c.traversal_id == traversal_id)
    forgotten = select(SNAPSHOT.c.id).where(SNAPSHOT.c.stack_id == stack_id, SNAPSHOT.c.deleting.is_(False))
    removed += _remove(store, SNAPSHOT_ITEM, SNAPSHOT_ITEM.c.resource_id, SNAPSHOT_ITEM.c.snapshot_id.in_(forgotten))
    removed += _remove(store, SNAPSHOT, SNAPSHOT.c.id, SNAPSHOT.c.id.in_(forgotten))
    webhooks = select(WEBHOOK.c.id).where(WEBHOOK.c.stack_id == stack_id)
    removed += _remove(store, DELIVERY, DELIVERY.c.sequence, DELIVERY.c.webhook_id.in_(webhooks))
    removed += _remove(store, OBSERVATION, OBSERVATION.c.resource_id, OBSERVATION.c.stack_id == stack_id)
    for table in _OF_STACK:
        key = table.c.sequence if table in (EVENT, SIGNAL) else table.c.id
        removed += _remove(store, table, key, table.c.stack_id == stack_id)
    removed += _remove(store, TREE, TREE.c.id, TREE.c.id == stack_id)
    return removed + _remove(store, STACK, STACK.c.id, STACK.c.id == stack_id)


def _remove(store: Store, table: Any, key: Any, condition: Any) -> int:
    """Delete matching rows, in batches that keep other transactions from waiting long."""
    removed = 0

    def batch(connection: Connection) -> int:
        keys = list(connection.execute(select(key).where(condition).limit(BATCH)).scalars())
        if keys:
            connection.execute(delete(table).where(condition, key.in_(keys)))
        return len(keys)

    while True:
        found = store.write(batch, remove_stack)
        removed += found
        if found < BATCH:
            return removed
