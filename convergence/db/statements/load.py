"""Lock and read: one function per scope. Every statement is built once, when the module is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Integer, Select, Table, and_, bindparam, case, func, literal, or_, select, update
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus, Output, Phase
from convergence.core.rows import Node, Resource, Stack, Traversal
from convergence.core.views import FinishView, NodeView, PlanView, SignalView
from convergence.db.looking import SeenNode, held_row, only_follower, require_lock, row_and_node
from convergence.db.schema.columns import UNREADABLE, database_now
from convergence.db.schema.models import PROJECT, RESOURCE, SIGNAL, STACK, SYNC_POINT, TEMPLATE, TRAVERSAL
from convergence.db.scopes import (
    UNDONE,
    HeldResource,
    LastNode,
    NewStack,
    OneNode,
    OneReplacement,
    Scope,
    SignalledResource,
    StackAlone,
    WholeStack,
)
from convergence.db.statements.connection import GALERA
from convergence.db.statements.locking import by_key
from convergence.db.transaction import Missing
from convergence.errors import Conflict

RowT = TypeVar('RowT', Node, Resource)

CHUNK = 500
"""Members of one IN list."""
_NO_LIMIT = 2**62


_ALIKE = select(TEMPLATE.c.alike_id).where(TEMPLATE.c.id == bindparam('template')).scalar_subquery()
READ_LEFTOVERS = (
    select(RESOURCE.c.name)
    .where(
        RESOURCE.c.stack_id == bindparam('stack'),
        RESOURCE.c.template_id.is_distinct_from(bindparam('template')),
        or_(RESOURCE.c.template_id.is_(None), RESOURCE.c.template_id.is_distinct_from(_ALIKE)),
    )
    .order_by(RESOURCE.c.name)
    .limit(50)
)


def columns(table: Table, kind: type[Any]) -> list[Any]:
    """The columns that make up a row value, in the order of its fields."""
    return [table.c[field.name] for field in fields(kind) if field.metadata.get('stored', True)]


def backend_of(connection: Connection) -> str:
    """``sqlite``, ``postgresql`` or ``mysql``, which MariaDB is too."""
    name = connection.dialect.name
    return 'mysql' if name == 'mariadb' else name


def chunks(members: Sequence[Any], size: int = CHUNK) -> Iterable[Sequence[Any]]:
    """Cut a long list into pieces, in order."""
    return (members[start : start + size] for start in range(0, len(members), size))


STACK_COLUMNS = columns(STACK, Stack)
TRAVERSAL_COLUMNS = columns(TRAVERSAL, Traversal)
NODE_COLUMNS = columns(SYNC_POINT, Node)
RESOURCE_COLUMNS = columns(RESOURCE, Resource)

_ABSENT: dict[str, Any] = {'properties': {}, 'data': {}}
"""What stands for a value that could not be read; None for all others."""


def resource_of(*values: Any) -> Resource:
    """The row of a resource, from its columns. What cannot be read is absent, and named in `Resource.damaged`."""
    return Resource(*values) if UNREADABLE not in values else _damaged(Resource, RESOURCE_COLUMNS, values)


def node_of(*values: Any) -> Node:
    """A node, from its columns. What cannot be read is absent, and named in `Node.damaged`."""
    return Node(*values) if UNREADABLE not in values else _damaged(Node, NODE_COLUMNS, values)


def _damaged(kind: type[RowT], of: Sequence[Any], values: Sequence[Any]) -> RowT:
    names = [column.name for column in of]
    damaged = tuple(name for name, value in zip(names, values, strict=True) if value is UNREADABLE)
    read: list[Any] = [
        _ABSENT.get(name) if value is UNREADABLE else value for name, value in zip(names, values, strict=True)
    ]
    return replace(kind(*read), damaged=damaged)


_AT = len(NODE_COLUMNS)
_AT_STACK = _AT + len(TRAVERSAL_COLUMNS)
_AT_NOW = _AT_STACK + len(STACK_COLUMNS)

_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))

LOCK_STACK = (
    by_key(select(*STACK_COLUMNS, database_now()), STACK).where(STACK.c.id == bindparam('stack')).with_for_update()
)
LOCK_STACK_OF_TRAVERSAL = (
    by_key(select(STACK.c.id), STACK)
    .where(STACK.c.id == select(TRAVERSAL.c.stack_id).where(TRAVERSAL.c.id == bindparam('traversal')).scalar_subquery())
    .with_for_update()
)
READ_RESOURCE_IDS = select(RESOURCE.c.id).where(RESOURCE.c.stack_id == bindparam('stack')).order_by(RESOURCE.c.id)
LOCK_RESOURCE = (
    by_key(select(*RESOURCE_COLUMNS), RESOURCE).where(RESOURCE.c.id == bindparam('resource')).with_for_update()
)
# In a Galera cluster a lock ends at its server: only what two transactions both write keeps one from committing. So
# whoever plans writes each row that it locks. Else a worker on another server could claim a row at the same moment for
# the goal before, and change what the plan takes for settled. And who finds, on a server that lags, no row for what it
# has made would store another one: two rows of one object, of which the one would be removed with the other's.
WRITE_STACK = update(STACK).where(STACK.c.id == bindparam('stack_id')).values(lock_count=STACK.c.lock_count + 1)
WRITE_RESOURCES = (
    update(RESOURCE)
    .where(RESOURCE.c.id.in_(bindparam('resources', expanding=True)))
    .values(lock_count=RESOURCE.c.lock_count + 1)
)
LOCK_RESOURCE_OF_NODE = (
    by_key(select(*RESOURCE_COLUMNS), RESOURCE)
    .where(RESOURCE.c.id == select(SYNC_POINT.c.resource_id).where(_THIS_NODE).scalar_subquery())
    .with_for_update()
)
READ_TRAVERSAL = select(*TRAVERSAL_COLUMNS).where(TRAVERSAL.c.id == bindparam('traversal'))
_OTHER = SYNC_POINT.alias()
# Only of a cleanup node: whether a node of the goal works on the same row.
_IS_CHOSEN = case(
    (
        SYNC_POINT.c.phase == Phase.CLEANUP,
        select(literal(1))
        .where(
            _OTHER.c.traversal_id == SYNC_POINT.c.traversal_id,
            _OTHER.c.resource_id == SYNC_POINT.c.resource_id,
            _OTHER.c.phase == Phase.UPDATE,
        )
        .exists(),
    ),
    else_=literal(False),
)
READ_NODE: Select[Any] = (
    select(*NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now(), _IS_CHOSEN)
    .select_from(SYNC_POINT)
    .join(TRAVERSAL, TRAVERSAL.c.id == SYNC_POINT.c.traversal_id)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .where(_THIS_NODE)
)
READ_NODE_ALONE: Select[Any] = select(*NODE_COLUMNS).where(_THIS_NODE)
READ_HELD: Select[Any] = (
    select(*NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now())
    .select_from(STACK)
    .join(TRAVERSAL, TRAVERSAL.c.id == bindparam('traversal'), isouter=True)
    .join(
        SYNC_POINT,
        and_(SYNC_POINT.c.traversal_id == TRAVERSAL.c.id, SYNC_POINT.c.number == bindparam('node')),
        isouter=True,
    )
    .where(STACK.c.id == bindparam('stack'))
)
_INPUT_BYTES = func.coalesce(func.sum(func.length(SYNC_POINT.c.output, type_=Integer)).over(), 0)
# What is more than a thread can hold does not leave the database.
READ_INPUTS = select(
    SYNC_POINT.c.name, case((bindparam('most') >= _INPUT_BYTES, SYNC_POINT.c.output)), _INPUT_BYTES
).where(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.number.in_(bindparam('numbers', expanding=True)),
    SYNC_POINT.c.status == NodeStatus.DONE,
)
_WORKS_ON = and_(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.resource_id == bindparam('resource'),
)
READ_LATE = (
    select(SYNC_POINT.c.number)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.number >= bindparam('first'),
        SYNC_POINT.c.status == NodeStatus.WAITING,
    )
    .order_by(SYNC_POINT.c.number)
)
HAS_CLEANUP = select(literal(1)).where(_WORKS_ON, SYNC_POINT.c.phase == Phase.CLEANUP)
READ_WAITING = (
    select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.number)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.resource_id == bindparam('resource'),
        SYNC_POINT.c.status == NodeStatus.READY,
    )
    .order_by(SYNC_POINT.c.number)
)
READ_TOLD = select(SYNC_POINT.c.required_by).where(_WORKS_ON, SYNC_POINT.c.phase == Phase.UPDATE)
READ_DEPENDENTS = select(SYNC_POINT.c.resource_id).where(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.number.in_(bindparam('numbers', expanding=True)),
    SYNC_POINT.c.phase == Phase.UPDATE,
    SYNC_POINT.c.status.in_(UNDONE),
)
LOCK_SOME = (
    by_key(select(*RESOURCE_COLUMNS), RESOURCE)
    .where(RESOURCE.c.id.in_(bindparam('resources', expanding=True)))
    .order_by(RESOURCE.c.id)
    .with_for_update()
)
READ_READY = (
    select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.number, SYNC_POINT.c.resource_id)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.resource_id.in_(bindparam('resources', expanding=True)),
        SYNC_POINT.c.status == NodeStatus.READY,
    )
    .order_by(SYNC_POINT.c.number)
)
READ_STACK = select(*STACK_COLUMNS, database_now()).where(STACK.c.id == bindparam('stack'))
READ_NOW = select(database_now())
READ_RECEIVED = select(func.sum(func.length(SIGNAL.c.details, type_=Integer))).where(
    SIGNAL.c.resource_id == bindparam('resource')
)
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


def _node(connection: Connection, traversal_id: str, number: int) -> SeenNode:
    row = connection.execute(READ_NODE, {'traversal': traversal_id, 'node': number}).first()
    if row is None:
        raise Missing
    traversal, stack = Traversal(*row[_AT:_AT_STACK]), Stack(*row[_AT_STACK:_AT_NOW])
    return SeenNode(node_of(*row[:_AT]), traversal, stack, row[_AT_NOW], bool(row[_AT_NOW + 1]))


def _locked_row(connection: Connection, statement: Select[Any], key: Mapping[str, Any]) -> Resource | None:
    row = connection.execute(statement, key).first()
    return resource_of(*row) if row is not None else None


def _lock_row(connection: Connection, resource_id: str) -> Resource | None:
    return _locked_row(connection, LOCK_RESOURCE, {'resource': resource_id})


def _inputs(connection: Connection, node: Node, most: int | None) -> tuple[dict[str, Output], int, tuple[str, ...]]:
    """What a node is given, by name; how many bytes that are; and the names of those whose output cannot be read."""
    inputs: dict[str, Output] = {}
    unread: list[str] = []
    total = 0
    for numbers in chunks(node.requires):
        left = _NO_LIMIT if most is None else most - total
        asked = {'traversal': node.traversal_id, 'numbers': list(numbers), 'most': left}
        found = connection.execute(READ_INPUTS, asked).all()
        for name, output, _ in found:
            if output is UNREADABLE:
                unread.append(name)
            else:
                inputs[name] = output
        total += int(found[0][2]) if found else 0
        if most is not None and total > most:
            return {}, total, ()
    return inputs, total, tuple(sorted(unread))


def _one_node(connection: Connection, scope: OneNode) -> NodeView:
    key = {'traversal': scope.traversal_id, 'node': scope.number}
    resource, seen = row_and_node(
        lambda: _locked_row(connection, LOCK_RESOURCE_OF_NODE, key),
        partial(_lock_row, connection),
        lambda: _node(connection, scope.traversal_id, scope.number),
    )
    node = seen.node
    chosen_id = resource.id if resource is not None and seen.is_chosen else None
    inputs, size, unread = _inputs(connection, node, scope.max_input_bytes) if node.requires else ({}, 0, ())
    return NodeView(seen.now, node, seen.traversal, seen.stack, resource, inputs, size, unread, chosen_id)


def _one_replacement(connection: Connection, scope: OneReplacement) -> NodeView:
    held = connection.execute(LOCK_STACK, {'stack': scope.stack_id}).first()
    locked = _lock_row(connection, scope.resource_id)
    seen = _node(connection, scope.traversal_id, scope.number)
    require_lock(held, seen.stack)
    resource = locked if seen.node.resource_id == scope.resource_id else None
    key = {'traversal': scope.traversal_id, 'resource': scope.resource_id}
    has_cleanup = connection.execute(HAS_CLEANUP, key).first() is not None
    return NodeView(seen.now, seen.node, seen.traversal, seen.stack, resource, has_cleanup=has_cleanup)


def _read_alone(connection: Connection, traversal_id: str, number: int) -> Node | None:
    row = connection.execute(READ_NODE_ALONE, {'traversal': traversal_id, 'node': number}).first()
    return None if row is None else node_of(*row)


def _last_node(connection: Connection, scope: LastNode) -> NodeView:
    held = connection.execute(LOCK_STACK_OF_TRAVERSAL, {'traversal': scope.traversal_id}).first()
    seen = _node(connection, scope.traversal_id, scope.number)
    node, traversal, stack = seen.node, seen.traversal, seen.stack
    require_lock(held, stack)
    last = only_follower(node, traversal, partial(_read_alone, connection))
    late, leftovers = tuple[int, ...](), tuple[str, ...]()
    if node.phase is Phase.IN_SERVICE and traversal.late_numbers:
        added = {'traversal': traversal.id, 'first': traversal.late_numbers[0]}
        late = tuple(connection.execute(READ_LATE, added).scalars())
    if node.phase is Phase.IN_SERVICE and last is None and traversal.template_id is not None:
        found = connection.execute(READ_LEFTOVERS, {'stack': stack.id, 'template': traversal.template_id})
        leftovers = tuple(found.scalars())
    return NodeView(seen.now, node, traversal, stack, leftovers=leftovers, last=last, late=late)


def _held_resource(connection: Connection, scope: HeldResource) -> FinishView:
    resource = held_row(partial(_lock_row, connection), scope)
    if resource is None:
        return FinishView(0.0, None, None, None, None)
    return _held_for(connection, resource, scope.traversal_id, scope.number)


def _around(connection: Connection, parent: Resource | None, held_for: tuple[str, int] | None) -> FinishView | None:
    return None if parent is None or held_for is None else _held_for(connection, parent, *held_for)


def _held_for(connection: Connection, resource: Resource, traversal_id: str | None, number: int | None) -> FinishView:
    """A locked row, and what belongs to the node that it is held for."""
    key = {'traversal': traversal_id, 'node': number, 'stack': resource.stack_id}
    row = connection.execute(READ_HELD, key).first()
    if row is None:
        raise Missing
    node = node_of(*row[:_AT]) if row[0] is not None else None
    traversal = Traversal(*row[_AT:_AT_STACK]) if row[_AT] is not None else None
    stack = Stack(*row[_AT_STACK:_AT_NOW])
    waiting: tuple[tuple[str, int], ...] = ()
    if stack.traversal_id is not None and stack.traversal_id != traversal_id:
        found = connection.execute(READ_WAITING, {'traversal': stack.traversal_id, 'resource': resource.id})
        waiting = tuple((traversal_id, number) for traversal_id, number in found)
    return FinishView(row[_AT_NOW], resource, node, traversal, stack, waiting)


def _signalled(connection: Connection, scope: SignalledResource) -> SignalView:
    seen = connection.execute(READ_STACK, {'stack': scope.stack_id}).first()
    if seen is None:
        raise Missing
    traversal_id = Stack(*seen[:-1]).traversal_id
    built_on: set[str] = set()
    of_row = {'traversal': traversal_id, 'resource': scope.resource_id}
    told = [number for numbers in connection.execute(READ_TOLD, of_row).scalars() for number in numbers]
    for numbers in chunks(sorted(told)):
        asked = {'traversal': traversal_id, 'numbers': list(numbers)}
        built_on.update(connection.execute(READ_DEPENDENTS, asked).scalars())
    rows = sorted({scope.resource_id, *built_on})
    locked = {row.id: row for some in chunks(rows) for row in _locked(connection, some)}
    # Only now: whoever has planned in the meantime has held these rows.
    *values, now = connection.execute(READ_STACK, {'stack': scope.stack_id}).one()
    stack = Stack(*values)
    if stack.traversal_id != traversal_id:
        raise Conflict(f'stack {scope.stack_id} has got another traversal')
    traversal = connection.execute(READ_TRAVERSAL, {'traversal': traversal_id}).first()
    ready = [
        (ready_in, number, resource_id)
        for some in chunks(rows)
        for ready_in, number, resource_id in connection.execute(
            READ_READY, {'traversal': traversal_id, 'resources': list(some)}
        )
    ]
    return SignalView(
        now,
        stack,
        locked.get(scope.resource_id),
        Traversal(*traversal) if traversal else None,
        tuple(sorted(built_on)),
        tuple(ready),
        int(connection.execute(READ_RECEIVED, {'resource': scope.resource_id}).scalar_one() or 0),
    )


def _locked(connection: Connection, keys: Sequence[str]) -> list[Resource]:
    return [resource_of(*row) for row in connection.execute(LOCK_SOME, {'resources': list(keys)})]


def _lock_parent(connection: Connection, resource_id: str | None) -> Resource | None:
    """The row whose object a nested stack is; None also where it is gone."""
    if resource_id is None:
        return None
    row = _lock_row(connection, resource_id)
    if row is not None and connection.info.get(GALERA):
        connection.execute(WRITE_RESOURCES, {'resources': [resource_id]})
    return row


def _stack_alone(connection: Connection, scope: StackAlone) -> PlanView:
    alone = _stack_and_traversal(connection, scope.stack_id)
    return replace(alone, parent=_lock_parent(connection, scope.parent_resource_id))


def _stack_and_traversal(connection: Connection, stack_id: str) -> PlanView:
    locked = connection.execute(LOCK_STACK, {'stack': stack_id}).first()
    if locked is None:
        raise Missing
    stack, now = Stack(*locked[:-1]), locked[-1]
    row = connection.execute(READ_TRAVERSAL, {'traversal': stack.traversal_id}).first()
    return PlanView(now, stack, Traversal(*row) if row else None)


def _whole_stack(connection: Connection, scope: WholeStack) -> PlanView:
    alone = _stack_and_traversal(connection, scope.stack_id)
    # First their keys, then each by its key, as whoever works on one does: an index in between would be locked too.
    # None is added meanwhile, for that takes the lock on the stack.
    keys = connection.execute(READ_RESOURCE_IDS, {'stack': scope.stack_id}).scalars().all()
    resources = tuple(row for some in chunks(keys) for row in _locked(connection, some))
    if connection.info.get(GALERA):
        connection.execute(WRITE_STACK, {'stack_id': scope.stack_id})
        for some in chunks(keys):
            connection.execute(WRITE_RESOURCES, {'resources': list(some)})
    # Read again: a worker may have failed the traversal while we waited for its rows.
    assert alone.stack is not None
    row = connection.execute(READ_TRAVERSAL, {'traversal': alone.stack.traversal_id}).first()
    parent = _lock_parent(connection, scope.parent_resource_id)
    around = _around(connection, parent, scope.held_for)
    return PlanView(alone.now, alone.stack, Traversal(*row) if row else None, resources, parent=parent, around=around)


def lock_project(connection: Connection, project_id: str) -> None:
    """Lock the row of a project, so that what it may have so many of is counted by one at a time.

    The lock comes first, and what is counted is read in a statement of its own: so it sees everything that anybody has
    stored who held the lock before.
    """
    if connection.execute(LOCK_PROJECT, {'project': project_id}).first() is None:
        connection.execute(ADD_PROJECT[backend_of(connection)], {'id': project_id})


def _new_stack(connection: Connection, scope: NewStack) -> PlanView:
    if scope.parent_resource_id is not None:
        parent = _lock_parent(connection, scope.parent_resource_id)
        around = _around(connection, parent, scope.held_for)
        now = connection.execute(READ_NOW).scalar_one() if around is None else around.now
        return PlanView(now, None, parent=parent, around=around)
    lock_project(connection, scope.project_id)
    now = connection.execute(READ_NOW).scalar_one()
    count = connection.execute(COUNT_STACKS, {'project': scope.project_id}).scalar_one()
    return PlanView(now, None, stack_count=count)


_LOADERS: dict[type, Callable[[Connection, Any], Any]] = {
    NewStack: _new_stack,
    WholeStack: _whole_stack,
    StackAlone: _stack_alone,
    OneNode: _one_node,
    OneReplacement: _one_replacement,
    LastNode: _last_node,
    HeldResource: _held_resource,
    SignalledResource: _signalled,
}


def load(connection: Connection, scope: Scope[Any]) -> Any:
    """Lock and read what the scope says.

    :returns: the scope's view.
    :raises Missing: what the scope names is not there.
    :raises Conflict: it changed between the look and the lock.
    """
    return _LOADERS[type(scope)](connection, scope)
