"""Locks and reads the view of a node: its row, which may be claimed, and its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, literal, select
from sqlalchemy.engine import Connection

from convergence.core.model import Phase
from convergence.core.rows import Resource, Stack, Traversal
from convergence.core.views import NodeView
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT, TRAVERSAL
from convergence.db.schema.row_columns import (
    AT,
    AT_NOW,
    AT_STACK,
    NODE_COLUMNS,
    OF_RESOURCE,
    RESOURCE_COLUMNS,
    STACK_COLUMNS,
    TRAVERSAL_COLUMNS,
    backend_of,
    node_of,
    resource_of,
)
from convergence.db.scopes import FreeNodes, OneNode, OneReplacement
from convergence.db.stale_reads import SeenNode, needs_rivals, require_lock, row_and_node
from convergence.db.statements.loading.inputs import ALONG, Inputs, inputs_of_node, known
from convergence.db.statements.loading.locked_reads import ROW_OF_NODE, LockedRead
from convergence.db.statements.loading.plans import LOCK_STACK
from convergence.db.statements.loading.resources import lock_row
from convergence.db.statements.prepared.batch import Rows, StatementBatch
from convergence.db.statements.prepared.statement import PreparedListStatement, PreparedStatement, among
from convergence.db.transaction import Missing
from convergence.errors import Conflict
from convergence.values import replace

_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))


def _these_nodes(length: int) -> ColumnElement[bool]:
    of_traversal = SYNC_POINT.c.traversal_id == bindparam('traversal')
    return and_(of_traversal, among(SYNC_POINT.c.number, 'numbers', length))


_OTHER = SYNC_POINT.alias()
# For cleanup nodes only: True if a node of the goal works on the same row. PostgreSQL must find that node by the row:
# with an equation it might search by the traversal, and read all of its nodes.
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
READ_NODE = PreparedStatement(
    select(*NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now(), _IS_CHOSEN)
    .select_from(SYNC_POINT)
    .join(TRAVERSAL, TRAVERSAL.c.id == SYNC_POINT.c.traversal_id)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .where(_THIS_NODE)
)
# The row, if it is not locked, and the node in one statement. The columns of the node, and the assumed traversal and
# stack, may be older than the lock: the claim checks them again (see
# `convergence.db.statements.applying.changing.BeginNode`).
_FREE = (
    select(*RESOURCE_COLUMNS, *NODE_COLUMNS, *TRAVERSAL_COLUMNS, *STACK_COLUMNS, database_now(), _IS_CHOSEN)
    .select_from(SYNC_POINT)
    .join(TRAVERSAL, TRAVERSAL.c.id == SYNC_POINT.c.traversal_id)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .join(RESOURCE, RESOURCE.c.id == SYNC_POINT.c.resource_id)
    .with_for_update(of=RESOURCE, skip_locked=True)
)
LOOK_AT_FREE = PreparedStatement(_FREE.where(_THIS_NODE))
LOOK_AT_SOME_FREE = PreparedListStatement('numbers', lambda length: _FREE.where(_these_nodes(length)))
# MariaDB locks every joined row: the node as well, at which no other node arrives any more, but no traversal and no
# stack.
_FREE_AND_NODE = (
    select(*RESOURCE_COLUMNS, *NODE_COLUMNS, database_now(), _IS_CHOSEN, ALONG)
    .select_from(SYNC_POINT)
    .join(RESOURCE, RESOURCE.c.id == SYNC_POINT.c.resource_id)
    .with_for_update(skip_locked=True)
)
LOOK_AT_FREE_AND_NODE = PreparedStatement(_FREE_AND_NODE.where(_THIS_NODE))
LOOK_AT_SOME_FREE_AND_NODES = PreparedListStatement(
    'numbers', lambda length: _FREE_AND_NODE.where(_these_nodes(length))
)
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
HAS_CLEANUP = select(literal(1)).where(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.resource_id == bindparam('resource'),
    SYNC_POINT.c.phase == Phase.CLEANUP,
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


def one_node(connection: Connection, scope: OneNode) -> NodeView:
    """See the scope."""
    key = {'traversal': scope.traversal_id, 'node': scope.number, **known(scope)}
    with_inputs = backend_of(connection) == 'mysql'
    (locked,), rows = (NODE_ROW_AND_INPUTS if with_inputs else NODE_AND_ROW).all(connection, key)
    seen = seen_node([row[OF_RESOURCE:] for row in rows])
    if locked is not None and rows[0][0] != locked:
        raise Conflict(f'node {seen.node.number} of {seen.traversal.id} works on another row by now')
    resource = resource_of(*rows[0][:OF_RESOURCE]) if locked is not None else None
    return _node_view(connection, scope, resource, seen, rows[0][-1] if with_inputs else None)


def read_free_node(batch: StatementBatch, scope: OneNode) -> Rows:
    """Return the locked row of a node and the node, for `view_of_free_node`; no rows if the row is locked by another
    transaction.

    Columns of other rows may be older than the lock.

    :param batch: its waiting statements are sent as well.
    :raises Conflict: see `StatementBatch.send`.
    """
    key = {'traversal': scope.traversal_id, 'node': scope.number, **known(scope)}
    look = LOOK_AT_FREE_AND_NODE if _takes_for_granted(batch.connection, scope) else LOOK_AT_FREE
    (rows,) = batch.read(look.call(key))
    return rows


def read_free_nodes(batch: StatementBatch, nodes: FreeNodes) -> dict[int, Rows]:
    """Return the same for several nodes in one statement, by their numbers, without nodes whose rows are locked.

    :raises Conflict: see `StatementBatch.send`.
    """
    key = {'traversal': nodes.traversal_id, 'numbers': nodes.numbers, **known(nodes.one(nodes.numbers[0]))}
    assumes = _takes_for_granted(batch.connection, nodes.one(nodes.numbers[0]))
    look = LOOK_AT_SOME_FREE_AND_NODES if assumes else LOOK_AT_SOME_FREE
    (rows,) = batch.read(look.call(key))
    return {node_of(*row[OF_RESOURCE:][:AT]).number: (row,) for row in rows}


def view_of_free_node(connection: Connection, scope: OneNode, rows: Rows) -> NodeView:
    """Return the view of a node whose row was not locked.

    :param rows: the answer of `read_free_node`.
    :raises Missing: another transaction has locked the row.
    """
    if not rows:
        raise Missing
    (row,) = rows
    resource, rest = resource_of(*row[:OF_RESOURCE]), row[OF_RESOURCE:]
    if not _takes_for_granted(connection, scope) or scope.assumed is None:
        return _node_view(connection, scope, resource, seen_node([rest]), None)
    now, is_chosen, along = rest[AT:]
    seen = SeenNode(node_of(*rest[:AT]), *scope.assumed, now, bool(is_chosen))
    return _node_view(connection, scope, resource, seen, along)


def _takes_for_granted(connection: Connection, scope: OneNode) -> bool:
    """Return True if traversal and stack are not read, where that would lock them."""
    return scope.assumed is not None and backend_of(connection) == 'mysql'


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


def one_replacement(connection: Connection, scope: OneReplacement) -> NodeView:
    """See the scope."""
    held = LOCK_STACK.first(connection, {'stack': scope.stack_id})
    row = lock_row(connection, scope.resource_id)
    seen = _node(connection, scope.traversal_id, scope.number)
    require_lock(held, seen.stack)
    resource = row if seen.node.resource_id == scope.resource_id else None
    key = {'traversal': scope.traversal_id, 'resource': scope.resource_id}
    has_cleanup = connection.execute(HAS_CLEANUP, key).first() is not None
    return NodeView(seen.now, seen.node, seen.traversal, seen.stack, resource, has_cleanup=has_cleanup)


def _node(connection: Connection, traversal_id: str, number: int) -> SeenNode:
    return seen_node(READ_NODE.all(connection, {'traversal': traversal_id, 'node': number}))


def seen_node(rows: Sequence[Sequence[Any]]) -> SeenNode:
    """A node from the only row that was read.

    :raises Missing: there is none.
    """
    if not rows:
        raise Missing
    (row,) = rows
    traversal, stack = Traversal(*row[AT:AT_STACK]), Stack(*row[AT_STACK:AT_NOW])
    return SeenNode(node_of(*row[:AT]), traversal, stack, row[AT_NOW], bool(row[AT_NOW + 1]))
