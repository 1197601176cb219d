"""Lock and read what a plan is made from, or what ends one early.

That are stacks, their rows, and the rows whose objects the stacks are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection

from convergence.core.handoff import Handoff
from convergence.core.rows import Resource, Stack, Traversal
from convergence.core.views import FinishView, PlanView
from convergence.db.connections.database import GALERA
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import PROJECT, RESOURCE, STACK, TRAVERSAL
from convergence.db.schema.row_columns import (
    AT_NOW,
    CHUNK,
    OF_RESOURCE,
    STACK_COLUMNS,
    TRAVERSAL_COLUMNS,
    backend_of,
    chunks,
    resource_of,
)
from convergence.db.scopes import NewStack, SeveralStacks, StackAlone, WholeStack
from convergence.db.statements.loading.locked_reads import HELD, LOCK_HELD, READ_HELD, rows_by_key
from convergence.db.statements.loading.resources import held_view, lock_row, locked
from convergence.db.statements.loading.unopened import UNOPENED_COLUMNS, unopened
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import PreparedListStatement, PreparedStatement, among
from convergence.db.transaction import Missing

LOCK_STACK = PreparedStatement(
    by_key(select(*STACK_COLUMNS, database_now()), STACK).where(STACK.c.id == bindparam('stack')).with_for_update()
)
LOCK_STACK_ROWS = rows_by_key(STACK, 'stacks')
READ_RESOURCE_IDS = PreparedListStatement(
    'stacks',
    lambda length: select(RESOURCE.c.id).where(among(RESOURCE.c.stack_id, 'stacks', length)).order_by(RESOURCE.c.id),
)
# In a Galera cluster a lock holds on one server only: two transactions conflict if both write the same row. So a plan
# writes each row that it locks. Otherwise a worker on another server could claim a row at the same moment for the old
# goal and change what the plan relies on; and a claim on a lagging server that does not see the row would insert a
# second one for the same object, and the cleanup of one would delete the object of both.
WRITE_STACK = update(STACK).where(STACK.c.id == bindparam('stack_id')).values(lock_count=STACK.c.lock_count + 1)
WRITE_RESOURCES = (
    update(RESOURCE)
    .where(RESOURCE.c.id.in_(bindparam('resources', expanding=True)))
    .values(lock_count=RESOURCE.c.lock_count + 1)
)
READ_TRAVERSAL = PreparedStatement(select(*TRAVERSAL_COLUMNS).where(TRAVERSAL.c.id == bindparam('traversal')))
# Not on MySQL: the index that leads to the rows of a stack would be locked too.
LOCK_ALL = PreparedListStatement(
    'stacks',
    lambda length: (
        select(*UNOPENED_COLUMNS)
        .where(among(RESOURCE.c.stack_id, 'stacks', length))
        .order_by(RESOURCE.c.id)
        .with_for_update()
    ),
)
READ_STACK_AND_TRAVERSAL = PreparedStatement(
    select(*STACK_COLUMNS, database_now(), *TRAVERSAL_COLUMNS)
    .select_from(STACK)
    .join(TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id, isouter=True)
    .where(STACK.c.id == bindparam('stack'))
)
READ_NOW = select(database_now())
COUNT_STACKS = select(func.count()).where(
    STACK.c.project_id == bindparam('project'), STACK.c.live_name.is_not(None), STACK.c.parent_id.is_(None)
)
LOCK_PROJECT = select(PROJECT.c.id).where(PROJECT.c.id == bindparam('project')).with_for_update()
# Stores the row and locks it, also where another transaction has just stored it: that one is waited for.
ADD_PROJECT = {
    'mysql': mysql.insert(PROJECT).on_duplicate_key_update(id=PROJECT.c.id),
    'postgresql': postgresql.insert(PROJECT).on_conflict_do_update(index_elements=['id'], set_={'id': PROJECT.c.id}),
    'sqlite': sqlite.insert(PROJECT).on_conflict_do_nothing(),
}


class _Around(TypedDict, total=False):
    """The part of a `PlanView` about the parent stack; with `around` comes the nested stack itself."""

    now: float
    stack: Stack | None
    traversal: Traversal | None
    parent: Resource | None
    around: FinishView | None
    tree_count: int | None
    has_webhook: bool


def _lock_around(
    connection: Connection, resource_id: str | None, handoff: Handoff | None, stack_id: str = ''
) -> _Around:
    """The row whose object a nested stack is, locked; and what belongs to the node that it is held for, if to any.

    :param stack_id: the nested stack; empty where it is about to be created.
    """
    if resource_id is None or handoff is None:
        return {'parent': _lock_parent(connection, resource_id)}
    traversal_id, number = handoff.claimed_for
    key = {'resource': resource_id, 'traversal': traversal_id, 'node': number, 'stack': stack_id}
    (is_locked,), rows = HELD.all(connection, key)
    if not is_locked:
        return {}
    if connection.info.get(GALERA):
        connection.execute(WRITE_RESOURCES, {'resources': [resource_id]})
    return _around_of(connection, traversal_id, rows[0])


def _around_of(connection: Connection, traversal_id: str, row: Sequence[Any]) -> _Around:
    """:param row: as `HELD` answers it."""
    parent, rest = resource_of(*row[:OF_RESOURCE]), row[OF_RESOURCE:]
    held, (tree_count, has_webhook, *nested) = rest[: AT_NOW + 1], rest[AT_NOW + 1 :]
    its_traversal, stack = nested[: len(TRAVERSAL_COLUMNS)], nested[len(TRAVERSAL_COLUMNS) :]
    around = held_view(connection, parent, traversal_id, held)
    return {
        'now': around.now,
        'stack': Stack(*stack) if stack[0] is not None else None,
        'traversal': Traversal(*its_traversal) if its_traversal[0] is not None else None,
        'parent': parent,
        'around': around,
        'tree_count': tree_count,
        'has_webhook': bool(has_webhook),
    }


def _lock_parent(connection: Connection, resource_id: str | None) -> Resource | None:
    """The row whose object a nested stack is; None also where it is gone."""
    if resource_id is None:
        return None
    row = lock_row(connection, resource_id)
    if row is not None and connection.info.get(GALERA):
        connection.execute(WRITE_RESOURCES, {'resources': [resource_id]})
    return row


def stack_alone(connection: Connection, scope: StackAlone) -> PlanView:
    """See the scope."""
    stack, now = _lock_stack(connection, scope.stack_id)
    traversal = _traversal_of(connection, stack)
    return PlanView(now, stack, traversal, parent=_lock_parent(connection, scope.parent_resource_id))


def _lock_stack(connection: Connection, stack_id: str) -> tuple[Stack, float]:
    locked = LOCK_STACK.first(connection, {'stack': stack_id})
    if locked is None:
        raise Missing
    return Stack(*locked[:-1]), locked[-1]


def _traversal_of(connection: Connection, stack: Stack) -> Traversal | None:
    row = READ_TRAVERSAL.first(connection, {'traversal': stack.traversal_id})
    return Traversal(*row) if row else None


def _lock_whole(connection: Connection, scopes: Sequence[WholeStack]) -> dict[str, tuple[Resource, ...]]:
    """Lock stacks and all of their rows, in the order of their keys. New rows need the lock of the stack.

    The rows of a large stack are read in pieces: first the keys, then each row by its key, as a claim does.
    """
    batch, of_stacks = StatementBatch(connection), {'stacks': sorted(scope.stack_id for scope in scopes)}
    lock = LOCK_STACK_ROWS.call(of_stacks)
    counted = [scope.counted for scope in scopes if scope.counted is not None]
    if len(counted) == len(scopes) and sum(counted) <= CHUNK and backend_of(connection) != 'mysql':
        batch.add(lock)
        (rows,) = batch.read(LOCK_ALL.call(of_stacks))
        resources = unopened(rows, connection.dialect)
    else:
        _, keys = batch.read(lock, READ_RESOURCE_IDS.call(of_stacks))
        resources = [row for some in chunks([key for (key,) in keys]) for row in locked(connection, some)]
    if connection.info.get(GALERA):
        for stack_id in of_stacks['stacks']:
            connection.execute(WRITE_STACK, {'stack_id': stack_id})
        for some in chunks([row.id for row in resources]):
            connection.execute(WRITE_RESOURCES, {'resources': list(some)})
    found: dict[str, list[Resource]] = {stack_id: [] for stack_id in of_stacks['stacks']}
    for row in resources:
        found[row.stack_id].append(row)
    return {stack_id: tuple(each) for stack_id, each in found.items()}


def whole_stack(connection: Connection, scope: WholeStack) -> PlanView:
    """See the scope."""
    resources = _lock_whole(connection, [scope])[scope.stack_id]
    # Not before: a worker may have failed the traversal while we waited for its rows.
    seen = _lock_around(connection, scope.parent_resource_id, scope.handoff, scope.stack_id)
    if 'stack' not in seen:
        read = READ_STACK_AND_TRAVERSAL.first(connection, {'stack': scope.stack_id})
        if read is None:
            raise Missing
        stack, (now, *traversal) = read[: len(STACK_COLUMNS)], read[len(STACK_COLUMNS) :]
        seen |= {'now': now, 'stack': Stack(*stack), 'traversal': Traversal(*traversal) if traversal[0] else None}
    if seen['stack'] is None:
        raise Missing
    return PlanView(resources=resources, **seen)


def several_stacks(connection: Connection, scope: SeveralStacks) -> tuple[PlanView | None, ...]:
    """See the scope."""
    wholes = [each for each in scope.scopes if isinstance(each, WholeStack)]
    resources = _lock_whole(connection, wholes) if wholes else {}
    around = _lock_all_around(connection, scope)
    views: list[PlanView | None] = []
    for each in scope.scopes:
        seen = around.get(each.parent_resource_id or '')
        wanted = each.stack_id if isinstance(each, WholeStack) else None
        if seen is None or (seen['stack'].id if seen['stack'] is not None else None) != wanted:
            views.append(None)
        elif isinstance(each, NewStack):
            views.append(PlanView(**seen))
        else:
            views.append(PlanView(resources=resources[each.stack_id], **seen))
    return tuple(views)


def _lock_all_around(connection: Connection, scope: SeveralStacks) -> dict[str, _Around]:
    """For each row whose object a stack is what `_lock_around` finds."""
    claimed_for = {
        each.parent_resource_id or '': each.handoff.claimed_for for each in scope.scopes if each.handoff is not None
    }
    traversal_id = next(node[0] for node in claimed_for.values())
    key = {'traversal': traversal_id, 'resources': sorted(claimed_for)}
    batch = StatementBatch(connection)
    batch.add(LOCK_HELD.call(key))
    (rows,) = batch.read(READ_HELD.call(key))
    if connection.info.get(GALERA):
        connection.execute(WRITE_RESOURCES, {'resources': key['resources']})
    found: dict[str, _Around] = {}
    for row in rows:
        seen = _around_of(connection, traversal_id, row)
        around = seen['around']
        assert around is not None
        parent, number = around.resource, around.node.number if around.node is not None else None
        if parent is not None and claimed_for[parent.id] == (traversal_id, number):
            found[parent.id] = seen
    return found


def lock_project(connection: Connection, project_id: str) -> None:
    """Lock the row of a project, so that one transaction at a time counts its stacks.

    The count is a statement of its own behind the lock: so it sees all commits of earlier holders of the lock.
    """
    if connection.execute(LOCK_PROJECT, {'project': project_id}).first() is None:
        connection.execute(ADD_PROJECT[backend_of(connection)], {'id': project_id})


def new_stack(connection: Connection, scope: NewStack) -> PlanView:
    """See the scope."""
    if scope.parent_resource_id is not None:
        around = _lock_around(connection, scope.parent_resource_id, scope.handoff)
        if 'now' not in around:
            around |= {'now': connection.execute(READ_NOW).scalar_one(), 'stack': None}
        return PlanView(**around)
    lock_project(connection, scope.project_id)
    now = connection.execute(READ_NOW).scalar_one()
    count = connection.execute(COUNT_STACKS, {'project': scope.project_id}).scalar_one()
    return PlanView(now, None, stack_count=count)
