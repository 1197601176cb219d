"""Changes or removes the row of a claimed resource, and stores the event of the change.

Each round trip takes longer than the work of the server. PostgreSQL takes the change and its event in one statement;
for MariaDB see `convergence.db.statements.prepared.batch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Table, Update, and_, bindparam, case, delete, func, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import Insert

from convergence.core.effects import DeleteResource, UpdateResource
from convergence.core.model import NodeStatus, TraversalStatus
from convergence.core.nesting import DOUBTED
from convergence.core.rows import Event
from convergence.db.schema.models import EVENT, RESOURCE, SIGNAL, STACK, SYNC_POINT, TRAVERSAL
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import FewRowsInsert, PreparedStatement

NO_OWNER = '-'
# Written so that no index serves the owner. PostgreSQL takes no hint, and MariaDB none for a DELETE. In a new table, or
# where nearly all rows are free, an index on owners may seem as selective as the key, and then reads all free rows, or
# all rows that the worker ever held.
_HELD_BY = and_(
    RESOURCE.c.fence == bindparam('held_fence'), func.coalesce(RESOURCE.c.owner, NO_OWNER) == bindparam('holder')
)
DELETE_RESOURCE = PreparedStatement(delete(RESOURCE).where(RESOURCE.c.id == bindparam('key'), _HELD_BY))
FORGET_SIGNALS = PreparedStatement(delete(SIGNAL).where(SIGNAL.c.resource_id == bindparam('resource')))
_OF_EVENT = tuple(field.name for field in fields(Event) if field.name != 'sequence')
STORE_EVENT: Insert = insert(EVENT).values(
    {name: bindparam(f'event_{name}', type_=EVENT.c[name].type) for name in _OF_EVENT}
)
EVENTS = FewRowsInsert(EVENT, _OF_EVENT)


@dataclass(frozen=True, slots=True)
class BeginNode(UpdateResource):
    """A row is claimed for a node that was not read under the lock of the row.

    It is a conflict where the node is not ready, not of the running traversal of its stack, or works on another row.
    """

    traversal_id: str = ''
    number: int = 0


def is_running() -> ColumnElement[bool]:
    """That the traversal `traversal` runs, and is the one of its stack.

    From the traversal to its stack, by keys: from a stack to its traversal there is no way but through all stacks.
    """
    stack_id = select(TRAVERSAL.c.stack_id).where(
        TRAVERSAL.c.id == bindparam('traversal'), TRAVERSAL.c.status == TraversalStatus.RUNNING
    )
    current = select(STACK.c.traversal_id).where(STACK.c.id == stack_id.scalar_subquery())
    return current.scalar_subquery() == bindparam('traversal')


_NODE_IS_READY = and_(
    RESOURCE.c.id
    == select(SYNC_POINT.c.resource_id)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.number == bindparam('node'),
        SYNC_POINT.c.status == NodeStatus.READY,
    )
    .scalar_subquery(),
    is_running(),
)


@cache
def update_by_id(table: Table, names: frozenset[str]) -> Update:
    """UPDATE of some columns of the row with one id; built once for each set of columns."""
    values: dict[str, Any] = {name: bindparam(f'new_{name}') for name in names}
    return by_key(update(table), table).where(table.c.id == bindparam('key')).values(values)


def new(changes: Mapping[str, object]) -> dict[str, object]:
    """Columns as the parameters of `update_by_id`."""
    return {f'new_{name}': value for name, value in changes.items()}


def event_values(event: Event) -> dict[str, Any]:
    """An event as the parameters of `STORE_EVENT`."""
    return {f'event_{name}': getattr(event, name) for name in _OF_EVENT}


def store_event(batch: StatementBatch, event: Event) -> None:
    """Store an event in a statement of its own, or with others of the transaction."""
    batch.add_row(EVENTS, {name: getattr(event, name) for name in _OF_EVENT})


def change_row(batch: StatementBatch, effect: UpdateResource, event: Event | None = None) -> None:
    """Change a row under its fence. Another claim, or a removed row, is a conflict.

    :param event: an event that the same statement stores: only where `combines_changes`.
    """
    statement = change_of(frozenset(effect.changes), event is not None, isinstance(effect, BeginNode))
    values = {**new(effect.changes), **_guard(effect)}
    if isinstance(effect, BeginNode):
        values |= {'traversal': effect.traversal_id, 'node': effect.number}
    if event is not None:
        values |= event_values(event)
    batch.add_one(statement.call(values), f'resource {effect.resource_id}')


def remove_row(batch: StatementBatch, effect: DeleteResource) -> None:
    """Remove a row under the guard of its holder; see `change_row`."""
    batch.add_one(DELETE_RESOURCE.call(_guard(effect)), f'resource {effect.resource_id}')
    if effect.signalled:
        batch.add(FORGET_SIGNALS.call({'resource': effect.resource_id}))


def combines_changes(connection: Connection) -> bool:
    """Return True if the server carries out several changes in one statement."""
    return connection.dialect.name == 'postgresql'


def _guard(effect: UpdateResource | DeleteResource) -> dict[str, Any]:
    holder = NO_OWNER if effect.owner is None else effect.owner
    return {'key': effect.resource_id, 'held_fence': effect.fence, 'holder': holder}


@cache
def change_of(names: frozenset[str], stores_event: bool, begins: bool = False) -> PreparedStatement:
    """The statement that changes some columns; built once for each set of them."""
    statement = update_by_id(RESOURCE, names).where(_HELD_BY)
    if begins:
        statement = statement.where(_NODE_IS_READY)
    if 'digest' in names:
        # The writer of a digest may not have read the row: a doubt stored meanwhile stays.
        statement = statement.values(digest=case((RESOURCE.c.digest == DOUBTED, None), else_=bindparam('new_digest')))
    return PreparedStatement(statement.add_cte(STORE_EVENT.cte('told')) if stores_event else statement)
