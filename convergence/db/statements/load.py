"""Lock and read: one function per scope. Every statement is built once, when the module is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Resource, Stack, Traversal
from convergence.core.upwards import is_awaited
from convergence.core.views import FinishView, NodeView, SignalView
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
from convergence.db.schema.models import RESOURCE, SIGNAL, STACK, SYNC_POINT, TEMPLATE, TRAVERSAL
from convergence.db.scopes import (
    UNDONE,
    FreeNodes,
    HeldResource,
    LastNode,
    NewStack,
    OneNode,
    OneReplacement,
    Scope,
    SeveralStacks,
    SignalledResource,
    StackAlone,
    ViewT,
    WholeStack,
)
from convergence.db.statements.hot import Hot, HotList, among
from convergence.db.statements.inputs import ALONG, Inputs, inputs_of_node, known
from convergence.db.statements.load_plans import (
    LOCK_STACK,
    READ_TRAVERSAL,
    held_for,
    lock_row,
    locked,
    new_stack,
    several_stacks,
    stack_alone,
    whole_stack,
)
from convergence.db.statements.locked_reads import LAST, ROW_OF_NODE, LockedRead
from convergence.db.statements.row_columns import (
    AT,
    AT_FOLLOWER,
    AT_NOW,
    AT_STACK,
    AT_WEBHOOK,
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
READ_RECEIVED = select(func.sum(func.length(SIGNAL.c.details, type_=Integer))).where(
    SIGNAL.c.resource_id == bindparam('resource')
)


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
    resource, seen = row_and_node(lambda: (locked, looked), partial(lock_row, connection), read_node)
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
    row = lock_row(connection, scope.resource_id)
    seen = _node(connection, scope.traversal_id, scope.number)
    require_lock(held, seen.stack)
    resource = row if seen.node.resource_id == scope.resource_id else None
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


def _held_resource(connection: Connection, scope: HeldResource) -> FinishView:
    resource = held_row(partial(lock_row, connection), scope)
    if resource is None:
        return FinishView(0.0, None, None, None, None)
    return held_for(connection, resource, scope.traversal_id, scope.number)


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
    held = {row.id: row for some in chunks(rows) for row in locked(connection, some)}
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
        held.get(scope.resource_id),
        Traversal(*traversal) if traversal else None,
        tuple(sorted(built_on)),
        tuple(ready),
        int(connection.execute(READ_RECEIVED, {'resource': scope.resource_id}).scalar_one() or 0),
    )


_LOADERS: dict[type, Callable[[Connection, Any], Any]] = {
    NewStack: new_stack,
    WholeStack: whole_stack,
    SeveralStacks: several_stacks,
    StackAlone: stack_alone,
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
