"""Lock and read: one function per scope. Every statement is built once, when the module is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Resource, Stack, Traversal
from convergence.core.upwards import is_awaited
from convergence.core.views import FinishView, NodeView, PlanView, SignalView
from convergence.db.looking import (
    MANY_LEFTOVERS,
    SeenNode,
    awaits_end,
    held_row,
    needs_rivals,
    only_follower,
    require_lock,
    row_and_node,
)
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import PROJECT, RESOURCE, SIGNAL, STACK, SYNC_POINT, TEMPLATE, TRAVERSAL
from convergence.db.scopes import (
    UNDONE,
    FreeNodes,
    HeldResource,
    LastNode,
    NewStack,
    OneNode,
    OneReplacement,
    Scope,
    SignalledResource,
    StackAlone,
    ViewT,
    WholeStack,
)
from convergence.db.statements.connection import GALERA
from convergence.db.statements.hot import Hot, HotList, among
from convergence.db.statements.inputs import ALONG, Inputs, inputs_of_node, known
from convergence.db.statements.locked_reads import HELD, LAST, ROW_OF_NODE, LockedRead
from convergence.db.statements.locking import by_key
from convergence.db.statements.row_columns import (
    AT,
    AT_FOLLOWER,
    AT_NOW,
    AT_STACK,
    AT_WEBHOOK,
    CHUNK,
    NODE_COLUMNS,
    OF_RESOURCE,
    RESOURCE_COLUMNS,
    STACK_COLUMNS,
    TRAVERSAL_COLUMNS,
    backend_of,
    chunks,
    node_of,
    resource_of,
)
from convergence.db.statements.together import Rows, Writes
from convergence.db.statements.unopened import UNOPENED_COLUMNS, unopened
from convergence.db.transaction import Missing
from convergence.errors import Conflict
from convergence.values import replace

READ_ALIKE = Hot(select(TEMPLATE.c.alike_id, TEMPLATE.c.unlike).where(TEMPLATE.c.id == bindparam('template')))
_OTHERS = select(RESOURCE.c.name).order_by(RESOURCE.c.name).limit(MANY_LEFTOVERS)
READ_LEFTOVERS = Hot(
    _OTHERS.where(
        RESOURCE.c.stack_id == bindparam('stack'),
        RESOURCE.c.template_id.is_distinct_from(bindparam('template')),
        or_(RESOURCE.c.template_id.is_(None), RESOURCE.c.template_id.is_distinct_from(bindparam('alike'))),
    )
)
READ_UNLIKE = HotList(
    'names',
    lambda length: _OTHERS.where(
        RESOURCE.c.stack_id == bindparam('stack'),
        RESOURCE.c.template_id == bindparam('alike'),
        among(RESOURCE.c.name, 'names', length),
    ),
)


_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))


def _these_nodes(length: int) -> ColumnElement[bool]:
    of_traversal = SYNC_POINT.c.traversal_id == bindparam('traversal')
    return and_(of_traversal, among(SYNC_POINT.c.number, 'numbers', length))


LOCK_STACK = Hot(
    by_key(select(*STACK_COLUMNS, database_now()), STACK).where(STACK.c.id == bindparam('stack')).with_for_update()
)
LOCK_STACK_ROW = Hot(by_key(select(STACK.c.id), STACK).where(STACK.c.id == bindparam('stack')).with_for_update())
READ_RESOURCE_IDS = Hot(select(RESOURCE.c.id).where(RESOURCE.c.stack_id == bindparam('stack')).order_by(RESOURCE.c.id))
LOCK_RESOURCE = Hot(
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
READ_TRAVERSAL = Hot(select(*TRAVERSAL_COLUMNS).where(TRAVERSAL.c.id == bindparam('traversal')))
_OTHER = SYNC_POINT.alias()
# Only of a cleanup node: whether a node of the goal works on the same row. PostgreSQL has to come to that by the row:
# an equation would let it come by the traversal, and read all of its nodes.
_IS_CHOSEN = case(
    (
        SYNC_POINT.c.phase == Phase.CLEANUP,
        select(literal(1))
        .where(
            _OTHER.c.traversal_id.is_not_distinct_from(SYNC_POINT.c.traversal_id),
            _OTHER.c.resource_id == SYNC_POINT.c.resource_id,
            _OTHER.c.phase == Phase.UPDATE,
        )
        .exists(),
    ),
    else_=literal(False),
)
READ_NODE = Hot(
    select(*NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now(), _IS_CHOSEN)
    .select_from(SYNC_POINT)
    .join(TRAVERSAL, TRAVERSAL.c.id == SYNC_POINT.c.traversal_id)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .where(_THIS_NODE)
)
# The row, if nobody else holds it, and the node in one statement. What is read of the node, or taken for granted of its
# traversal and stack, may be older than the lock: whoever claims the row looks again (see
# `convergence.db.statements.changing.BeginNode`).
_FREE = (
    select(*RESOURCE_COLUMNS, *NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now(), _IS_CHOSEN)
    .select_from(SYNC_POINT)
    .join(TRAVERSAL, TRAVERSAL.c.id == SYNC_POINT.c.traversal_id)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .join(RESOURCE, RESOURCE.c.id == SYNC_POINT.c.resource_id)
    .with_for_update(of=RESOURCE, skip_locked=True)
)
LOOK_AT_FREE = Hot(_FREE.where(_THIS_NODE))
LOOK_AT_SOME_FREE = HotList('numbers', lambda length: _FREE.where(_these_nodes(length)))
# MariaDB locks whatever is joined: the node as well, at which nobody arrives any more, but no traversal and no stack.
_FREE_AND_NODE = (
    select(*RESOURCE_COLUMNS, *NODE_COLUMNS, database_now(), _IS_CHOSEN, ALONG)
    .select_from(SYNC_POINT)
    .join(RESOURCE, RESOURCE.c.id == SYNC_POINT.c.resource_id)
    .with_for_update(skip_locked=True)
)
LOOK_AT_FREE_AND_NODE = Hot(_FREE_AND_NODE.where(_THIS_NODE))
LOOK_AT_SOME_FREE_AND_NODES = HotList('numbers', lambda length: _FREE_AND_NODE.where(_these_nodes(length)))
_NODE_AND_ROW = (
    select(*RESOURCE_COLUMNS, *NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now(), _IS_CHOSEN)
    .select_from(SYNC_POINT)
    .join(TRAVERSAL, TRAVERSAL.c.id == SYNC_POINT.c.traversal_id)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .join(RESOURCE, RESOURCE.c.id == SYNC_POINT.c.resource_id, isouter=True)
    .where(_THIS_NODE)
)
NODE_AND_ROW = LockedRead.of(ROW_OF_NODE, reading=_NODE_AND_ROW)
NODE_ROW_AND_INPUTS = LockedRead.of(ROW_OF_NODE, reading=_NODE_AND_ROW.add_columns(ALONG))
READ_HELD = Hot(
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
# Of a row that others are to take from: these as well.
READ_WAITING_TO_TAKE = (
    select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.number)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        SYNC_POINT.c.status == NodeStatus.READY,
        or_(
            SYNC_POINT.c.resource_id == bindparam('resource'),
            and_(SYNC_POINT.c.phase == Phase.UPDATE, SYNC_POINT.c.name == bindparam('name')),
        ),
    )
    .order_by(SYNC_POINT.c.number)
)
READ_RIVALS = (
    select(*RESOURCE_COLUMNS)
    .where(
        RESOURCE.c.stack_id == bindparam('stack'),
        RESOURCE.c.name == bindparam('name'),
        RESOURCE.c.id != bindparam('resource'),
    )
    .order_by(RESOURCE.c.id)
)
READ_TOLD = select(SYNC_POINT.c.required_by).where(_WORKS_ON, SYNC_POINT.c.phase == Phase.UPDATE)
READ_DEPENDENTS = select(SYNC_POINT.c.resource_id).where(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.number.in_(bindparam('numbers', expanding=True)),
    SYNC_POINT.c.phase == Phase.UPDATE,
    SYNC_POINT.c.status.in_(UNDONE),
)


def _lock_some(length: int) -> Select[Any]:
    some = by_key(select(*UNOPENED_COLUMNS), RESOURCE).where(among(RESOURCE.c.id, 'resources', length))
    return some.order_by(RESOURCE.c.id).with_for_update()


LOCK_SOME = HotList('resources', _lock_some)
# Not on MySQL: the index that leads to the rows of a stack would be locked too.
LOCK_ALL = Hot(
    select(*UNOPENED_COLUMNS).where(RESOURCE.c.stack_id == bindparam('stack')).order_by(RESOURCE.c.id).with_for_update()
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
READ_STACK = Hot(select(*STACK_COLUMNS, database_now()).where(STACK.c.id == bindparam('stack')))
READ_STACK_AND_TRAVERSAL = Hot(
    select(*STACK_COLUMNS, database_now(), *TRAVERSAL_COLUMNS)
    .select_from(STACK)
    .join(TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id, isouter=True)
    .where(STACK.c.id == bindparam('stack'))
)
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
    return _seen(READ_NODE.all(connection, {'traversal': traversal_id, 'node': number}))


def _seen(rows: Sequence[Sequence[Any]]) -> SeenNode:
    """A node from the only row that was read.

    :raises Missing: there is none.
    """
    if not rows:
        raise Missing
    (row,) = rows
    traversal, stack = Traversal(*row[AT:AT_STACK]), Stack(*row[AT_STACK:AT_NOW])
    return SeenNode(node_of(*row[:AT]), traversal, stack, row[AT_NOW], bool(row[AT_NOW + 1]))


def _locked_row(connection: Connection, statement: Hot, key: Mapping[str, Any]) -> Resource | None:
    row = statement.first(connection, key)
    return resource_of(*row) if row is not None else None


def _lock_row(connection: Connection, resource_id: str) -> Resource | None:
    return _locked_row(connection, LOCK_RESOURCE, {'resource': resource_id})


def _one_node(connection: Connection, scope: OneNode) -> NodeView:
    key = {'traversal': scope.traversal_id, 'node': scope.number, **known(scope)}
    with_inputs = backend_of(connection) == 'mysql'
    (locked,), rows = (NODE_ROW_AND_INPUTS if with_inputs else NODE_AND_ROW).all(connection, key)
    seen = _seen([row[OF_RESOURCE:] for row in rows])
    if locked is not None and rows[0][0] != locked:
        raise Conflict(f'node {seen.node.number} of {seen.traversal.id} works on another row by now')
    resource = resource_of(*rows[0][:OF_RESOURCE]) if locked is not None else None
    return _node_view(connection, scope, resource, seen, rows[0][-1] if with_inputs else None)


def look_at_free(writes: Writes, scope: OneNode) -> Rows:
    """The row of a node, locked, and the node, as `view_of_free` takes them; nothing where somebody holds the row.

    What is seen beside the row may be older than its lock.

    :param writes: what is to be written before is sent with it.
    :raises Conflict: see `Writes.send`.
    """
    key = {'traversal': scope.traversal_id, 'node': scope.number, **known(scope)}
    look = LOOK_AT_FREE_AND_NODE if _takes_for_granted(writes.connection, scope) else LOOK_AT_FREE
    (rows,) = writes.read(look.call(key))
    return rows


def look_at_some_free(writes: Writes, nodes: FreeNodes) -> dict[int, Rows]:
    """The same of some nodes in one statement, by their numbers: of those whose rows nobody holds.

    :raises Conflict: see `Writes.send`.
    """
    key = {'traversal': nodes.traversal_id, 'numbers': nodes.numbers, **known(nodes.one(nodes.numbers[0]))}
    assumes = _takes_for_granted(writes.connection, nodes.one(nodes.numbers[0]))
    look = LOOK_AT_SOME_FREE_AND_NODES if assumes else LOOK_AT_SOME_FREE
    (rows,) = writes.read(look.call(key))
    return {node_of(*row[OF_RESOURCE:][:AT]).number: (row,) for row in rows}


def _takes_for_granted(connection: Connection, scope: OneNode) -> bool:
    """Whether traversal and stack are not read, where that would lock them."""
    return scope.assumed is not None and backend_of(connection) == 'mysql'


def view_of_free(connection: Connection, scope: OneNode, rows: Rows) -> NodeView:
    """What there is to be seen of a node whose row nobody held.

    :param rows: what `look_at_free` has answered.
    :raises Missing: somebody holds it.
    """
    if not rows:
        raise Missing
    (row,) = rows
    resource, rest = resource_of(*row[:OF_RESOURCE]), row[OF_RESOURCE:]
    if not _takes_for_granted(connection, scope) or scope.assumed is None:
        return _node_view(connection, scope, resource, _seen([rest]), None)
    now, is_chosen, along = rest[AT:]
    seen = SeenNode(node_of(*rest[:AT]), *scope.assumed, now, bool(is_chosen))
    return _node_view(connection, scope, resource, seen, along)


def _node_view(
    connection: Connection, scope: OneNode, locked: Resource | None, looked: SeenNode, along: Inputs | None
) -> NodeView:
    """See `row_and_node`.

    :param along: what the node is given, if that was read with it.
    """
    read_node = partial(_node, connection, scope.traversal_id, scope.number)
    resource, seen = row_and_node(lambda: (locked, looked), partial(_lock_row, connection), read_node)
    node = seen.node
    chosen_id = resource.id if resource is not None and seen.is_chosen else None
    inputs, size, unread = inputs_of_node(connection, node, scope, along if seen is looked else None)
    view = NodeView(seen.now, node, seen.traversal, seen.stack, resource, inputs, size, unread, chosen_id)
    if resource is None or not needs_rivals(resource, node):
        return view
    named = {'stack': resource.stack_id, 'name': resource.name, 'resource': resource.id}
    return replace(view, rivals=tuple(resource_of(*row) for row in connection.execute(READ_RIVALS, named)))


def _one_replacement(connection: Connection, scope: OneReplacement) -> NodeView:
    held = LOCK_STACK.first(connection, {'stack': scope.stack_id})
    locked = _lock_row(connection, scope.resource_id)
    seen = _node(connection, scope.traversal_id, scope.number)
    require_lock(held, seen.stack)
    resource = locked if seen.node.resource_id == scope.resource_id else None
    key = {'traversal': scope.traversal_id, 'resource': scope.resource_id}
    has_cleanup = connection.execute(HAS_CLEANUP, key).first() is not None
    return NodeView(seen.now, seen.node, seen.traversal, seen.stack, resource, has_cleanup=has_cleanup)


def _last_node(connection: Connection, scope: LastNode) -> NodeView:
    key = {'traversal': scope.traversal_id, 'node': scope.number}
    (held, held_around), rows = LAST.all(connection, key)
    seen = _seen(rows)
    (row,) = rows
    node, traversal, stack = seen.node, seen.traversal, seen.stack
    require_lock(held, stack)
    follower, has_webhook, rest = row[AT_FOLLOWER:AT_WEBHOOK], row[AT_WEBHOOK], row[AT_WEBHOOK + 1 :]
    last = only_follower(node, traversal, node_of(*follower) if follower[0] is not None else None)
    late, leftovers = tuple[int, ...](), tuple[str, ...]()
    if node.phase is Phase.IN_SERVICE and traversal.late_numbers:
        added = {'traversal': traversal.id, 'first': traversal.late_numbers[0]}
        late = tuple(connection.execute(READ_LATE, added).scalars())
    if node.phase is Phase.IN_SERVICE and last is None and traversal.template_id is not None:
        leftovers = _leftovers(connection, stack.id, traversal.template_id)
    awaits = awaits_end(node, last, traversal, stack)
    around = _awaiting(seen, rest) if awaits is not None and awaits == held_around else None
    return NodeView(
        seen.now,
        node,
        traversal,
        stack,
        leftovers=leftovers,
        last=last,
        late=late,
        around=around,
        has_webhook=bool(has_webhook),
    )


def _leftovers(connection: Connection, stack_id: str, template_id: str) -> tuple[str, ...]:
    """Names of rows that are not of a template; see `Template.others`."""
    found = READ_ALIKE.first(connection, {'template': template_id})
    alike_id, unlike = found or (None, ())
    of_stack = {'stack': stack_id, 'template': template_id, 'alike': alike_id}
    names = READ_LEFTOVERS.all(connection, of_stack)
    for some in chunks(unlike):
        names += READ_UNLIKE.all(connection, {**of_stack, 'names': some})
    return tuple(sorted(name for (name,) in names))[:MANY_LEFTOVERS]


def _awaiting(seen: SeenNode, rest: Sequence[Any]) -> FinishView | None:
    """The row that waits for the end of what a nested stack does; None where none does.

    :param rest: the row, locked, and what belongs to it, as `LAST` reads them.
    """
    row, found = rest[:OF_RESOURCE], rest[OF_RESOURCE:]
    if row[0] is None or found[AT] is None or found[AT_STACK] is None:
        return None
    resource = resource_of(*row)
    if not is_awaited(resource, seen.stack.id, seen.traversal.id):
        return None
    node = node_of(*found[:AT]) if found[0] is not None else None
    return FinishView(seen.now, resource, node, Traversal(*found[AT:AT_STACK]), Stack(*found[AT_STACK:]))


def _row_and_rest(locked: Sequence[str | None], rows: Rows) -> tuple[Resource | None, Sequence[Any] | None]:
    """What a `LockedRead` of a row has answered: the row, if it is locked, and what belongs to it."""
    return (resource_of(*rows[0][:OF_RESOURCE]), rows[0][OF_RESOURCE:]) if locked[0] else (None, None)


def _held_resource(connection: Connection, scope: HeldResource) -> FinishView:
    resource = held_row(partial(_lock_row, connection), scope)
    if resource is None:
        return FinishView(0.0, None, None, None, None)
    return _held_for(connection, resource, scope.traversal_id, scope.number)


class _Around(TypedDict, total=False):
    """What of a `PlanView` is about the stack around; with `around` comes the nested stack itself."""

    now: float
    stack: Stack | None
    traversal: Traversal | None
    parent: Resource | None
    around: FinishView | None
    tree_count: int | None
    has_webhook: bool


def _lock_around(
    connection: Connection, resource_id: str | None, held_for: tuple[str, int] | None, stack_id: str = ''
) -> _Around:
    """The row whose object a nested stack is, locked; and what belongs to the node that it is held for, if to any.

    :param stack_id: the nested stack; empty where it is about to be created.
    """
    if resource_id is None or held_for is None:
        return {'parent': _lock_parent(connection, resource_id)}
    traversal_id, number = held_for
    key = {'resource': resource_id, 'traversal': traversal_id, 'node': number, 'stack': stack_id}
    parent, rest = _row_and_rest(*HELD.all(connection, key))
    if parent is None or rest is None:
        return {}
    if connection.info.get(GALERA):
        connection.execute(WRITE_RESOURCES, {'resources': [resource_id]})
    held, (tree_count, has_webhook, *nested) = rest[: AT_NOW + 1], rest[AT_NOW + 1 :]
    its_traversal, stack = nested[: len(TRAVERSAL_COLUMNS)], nested[len(TRAVERSAL_COLUMNS) :]
    around = _held_view(connection, parent, traversal_id, held)
    return {
        'now': around.now,
        'stack': Stack(*stack) if stack[0] is not None else None,
        'traversal': Traversal(*its_traversal) if its_traversal[0] is not None else None,
        'parent': parent,
        'around': around,
        'tree_count': tree_count,
        'has_webhook': bool(has_webhook),
    }


def _held_for(connection: Connection, resource: Resource, traversal_id: str | None, number: int | None) -> FinishView:
    """A locked row, and what belongs to the node that it is held for."""
    key = {'traversal': traversal_id, 'node': number, 'stack': resource.stack_id}
    row = READ_HELD.first(connection, key)
    if row is None:
        raise Missing
    return _held_view(connection, resource, traversal_id, row)


def _held_view(connection: Connection, resource: Resource, traversal_id: str | None, row: Sequence[Any]) -> FinishView:
    node = node_of(*row[:AT]) if row[0] is not None else None
    traversal = Traversal(*row[AT:AT_STACK]) if row[AT] is not None else None
    stack = Stack(*row[AT_STACK:AT_NOW])
    waiting: tuple[tuple[str, int], ...] = ()
    if stack.traversal_id is not None and stack.traversal_id != traversal_id:
        statement = READ_WAITING if resource.yielding is None else READ_WAITING_TO_TAKE
        named = {'traversal': stack.traversal_id, 'resource': resource.id, 'name': resource.name}
        found = connection.execute(statement, named)
        waiting = tuple((traversal_id, number) for traversal_id, number in found)
    return FinishView(row[AT_NOW], resource, node, traversal, stack, waiting)


def _signalled(connection: Connection, scope: SignalledResource) -> SignalView:
    seen = READ_STACK.first(connection, {'stack': scope.stack_id})
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
    again = READ_STACK.first(connection, {'stack': scope.stack_id})
    if again is None:
        raise Missing
    *values, now = again
    stack = Stack(*values)
    if stack.traversal_id != traversal_id:
        raise Conflict(f'stack {scope.stack_id} has got another traversal')
    traversal = READ_TRAVERSAL.first(connection, {'traversal': traversal_id})
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
    return unopened(LOCK_SOME.all(connection, {'resources': keys}), connection.dialect)


def _lock_parent(connection: Connection, resource_id: str | None) -> Resource | None:
    """The row whose object a nested stack is; None also where it is gone."""
    if resource_id is None:
        return None
    row = _lock_row(connection, resource_id)
    if row is not None and connection.info.get(GALERA):
        connection.execute(WRITE_RESOURCES, {'resources': [resource_id]})
    return row


def _stack_alone(connection: Connection, scope: StackAlone) -> PlanView:
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


def _lock_whole(connection: Connection, scope: WholeStack) -> tuple[Resource, ...]:
    """Lock a stack and all of its rows, in the order of their keys. None is added meanwhile: that takes its lock.

    Those of a large stack are read in pieces: first their keys, then each by its key, as whoever works on one does.
    """
    writes, of_stack = Writes(connection), {'stack': scope.stack_id}
    lock = LOCK_STACK_ROW.call(of_stack)
    if scope.counted is not None and scope.counted <= CHUNK and backend_of(connection) != 'mysql':
        writes.add(lock)
        (rows,) = writes.read(LOCK_ALL.call(of_stack))
        return tuple(unopened(rows, connection.dialect))
    _, keys = writes.read(lock, READ_RESOURCE_IDS.call(of_stack))
    return tuple(row for some in chunks([key for (key,) in keys]) for row in _locked(connection, some))


def _whole_stack(connection: Connection, scope: WholeStack) -> PlanView:
    resources = _lock_whole(connection, scope)
    if connection.info.get(GALERA):
        connection.execute(WRITE_STACK, {'stack_id': scope.stack_id})
        for some in chunks([row.id for row in resources]):
            connection.execute(WRITE_RESOURCES, {'resources': list(some)})
    # Not before: a worker may have failed the traversal while we waited for its rows.
    seen = _lock_around(connection, scope.parent_resource_id, scope.held_for, scope.stack_id)
    if 'stack' not in seen:
        read = READ_STACK_AND_TRAVERSAL.first(connection, {'stack': scope.stack_id})
        if read is None:
            raise Missing
        stack, (now, *traversal) = read[: len(STACK_COLUMNS)], read[len(STACK_COLUMNS) :]
        seen |= {'now': now, 'stack': Stack(*stack), 'traversal': Traversal(*traversal) if traversal[0] else None}
    if seen['stack'] is None:
        raise Missing
    return PlanView(resources=resources, **seen)


def lock_project(connection: Connection, project_id: str) -> None:
    """Lock the row of a project, so that what it may have so many of is counted by one at a time.

    The lock comes first, and what is counted is read in a statement of its own: so it sees everything that anybody has
    stored who held the lock before.
    """
    if connection.execute(LOCK_PROJECT, {'project': project_id}).first() is None:
        connection.execute(ADD_PROJECT[backend_of(connection)], {'id': project_id})


def _new_stack(connection: Connection, scope: NewStack) -> PlanView:
    if scope.parent_resource_id is not None:
        around = _lock_around(connection, scope.parent_resource_id, scope.held_for)
        if 'now' not in around:
            around |= {'now': connection.execute(READ_NOW).scalar_one(), 'stack': None}
        return PlanView(**around)
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


def load(connection: Connection, scope: Scope[ViewT]) -> ViewT:
    """Lock and read what the scope says.

    :returns: the scope's view.
    :raises Missing: what the scope names is not there.
    :raises Conflict: it changed between the look and the lock.
    """
    view: ViewT = _LOADERS[type(scope)](connection, scope)
    return view
