"""Queries of the sweeper about nested stacks."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, Select, and_, bindparam, literal, select

from convergence.core.model import UNDER_WAY, Action, Status, TraversalStatus
from convergence.core.rows import Stack, Traversal
from convergence.db.records import NestingRow, UnneededNested
from convergence.db.schema.models import RESOURCE, SNAPSHOT, STACK, TRAVERSAL
from convergence.db.schema.row_columns import RESOURCE_COLUMNS, STACK_COLUMNS, TRAVERSAL_COLUMNS, resource_of
from convergence.db.statements.prepared.statement import PreparedListStatement, among
from convergence.db.statements.store import Store

_NESTED = STACK.alias('nested')
_AT_STACK = len(RESOURCE_COLUMNS)
_AT_TRAVERSAL = _AT_STACK + len(STACK_COLUMNS)
_AT_NESTED = _AT_TRAVERSAL + len(TRAVERSAL_COLUMNS)
_HAS_SNAPSHOTS = select(literal(1)).where(SNAPSHOT.c.stack_id == RESOURCE.c.token).exists()
_NESTING = (
    select(
        *RESOURCE_COLUMNS,
        *STACK_COLUMNS,
        *TRAVERSAL_COLUMNS,
        *(_NESTED.c[each.name] for each in STACK_COLUMNS),
        _HAS_SNAPSHOTS,
    )
    .select_from(RESOURCE)
    .join(STACK, STACK.c.id == RESOURCE.c.stack_id)
    .join(TRAVERSAL, TRAVERSAL.c.id == RESOURCE.c.traversal_id)
    .outerjoin(_NESTED, _NESTED.c.id == RESOURCE.c.token)
)
READ_NESTING = PreparedListStatement(
    'resources', lambda length: _NESTING.where(among(RESOURCE.c.id, 'resources', length))
)


def nesting_of(*values: Any) -> NestingRow:
    """From the columns of `READ_NESTING`."""
    nested = Stack(*values[_AT_NESTED:-1]) if values[_AT_NESTED] is not None else None
    stack, traversal = Stack(*values[_AT_STACK:_AT_TRAVERSAL]), Traversal(*values[_AT_TRAVERSAL:_AT_NESTED])
    return NestingRow(resource_of(*values[:_AT_STACK]), stack, traversal, nested, bool(values[-1]))


CURRENT_IN_PROGRESS = and_(
    STACK.c.id == TRAVERSAL.c.stack_id,
    STACK.c.traversal_id == TRAVERSAL.c.id,
    STACK.c.status == Status.IN_PROGRESS,
)
"""Joins a traversal with its stack, if it is the current one and in progress."""
UNWANTED_NESTED = (
    select(TRAVERSAL.c.stack_id, TRAVERSAL.c.id, STACK.c.parent_resource_id)
    .join(STACK, CURRENT_IN_PROGRESS)
    .outerjoin(RESOURCE, RESOURCE.c.id == STACK.c.parent_resource_id)
    .where(
        TRAVERSAL.c.swept.is_(False),
        TRAVERSAL.c.status.in_(UNDER_WAY),
        TRAVERSAL.c.for_parent.is_(True),
        TRAVERSAL.c.action != Action.DELETE,
        STACK.c.parent_resource_id.is_not(None),
        RESOURCE.c.status.is_distinct_from(Status.IN_PROGRESS),
    )
    .limit(bindparam('limit'))
)
_AROUND = STACK.alias('around')
_ITS_TRAVERSAL = TRAVERSAL.alias('its_traversal')
CANCELLED_AROUND = (
    select(TRAVERSAL.c.stack_id, TRAVERSAL.c.id, STACK.c.parent_resource_id)
    .join(STACK, CURRENT_IN_PROGRESS)
    .join(_AROUND, _AROUND.c.id == STACK.c.parent_id)
    .join(_ITS_TRAVERSAL, _ITS_TRAVERSAL.c.id == _AROUND.c.traversal_id)
    .where(
        TRAVERSAL.c.swept.is_(False),
        TRAVERSAL.c.status == TraversalStatus.RUNNING,
        TRAVERSAL.c.for_parent.is_(True),
        _ITS_TRAVERSAL.c.status == TraversalStatus.CANCELLING,
    )
    .limit(bindparam('limit'))
)
_SET_FREE = (
    select(STACK.c.id, STACK.c.traversal_id, STACK.c.parent_resource_id)
    .outerjoin(RESOURCE, RESOURCE.c.id == STACK.c.parent_resource_id)
    .where(
        STACK.c.parent_id.is_not(None),
        STACK.c.live_name.is_not(None),
        STACK.c.status != Status.IN_PROGRESS,
        RESOURCE.c.id.is_(None),
    )
    .limit(bindparam('limit'))
)


class NestedSweeps:
    """The part of `convergence.db.repositories.sweeps.Sweeps` that is about nested stacks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def unneeded_nested(self, limit: int) -> list[UnneededNested]:
        """Nested stacks that do something on behalf of a resource that does not wait for it."""
        return self._nested(UNWANTED_NESTED, limit)

    def nested_to_cancel(self, limit: int) -> list[UnneededNested]:
        """Nested stacks at work on behalf of a stack that is being cancelled, while they are not yet."""
        return self._nested(CANCELLED_AROUND, limit)

    def released_nested(self, limit: int) -> list[UnneededNested]:
        """Nested stacks at rest whose resource is gone while they stayed."""
        return self._nested(_SET_FREE, limit)

    def _nested(self, statement: Select[Any], limit: int) -> list[UnneededNested]:
        with self._store.reading() as connection:
            return [UnneededNested(*row) for row in connection.execute(statement, {'limit': limit})]


def below(stack_id: str, depth: int) -> CTE:
    """A stack and all that are, or were, nested in it: their ``id`` and how many levels below it, ``depth``."""
    tree = select(STACK.c.id.label('id'), literal(0).label('depth')).where(STACK.c.id == stack_id).cte(recursive=True)
    children: Select[Any] = (
        select(STACK.c.id, tree.c.depth + 1).join(tree, STACK.c.parent_id == tree.c.id).where(tree.c.depth < depth)
    )
    return tree.union_all(children)
