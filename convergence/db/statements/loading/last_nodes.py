"""Lock and read what the last nodes of a traversal are decided by: all is in service, or the traversal ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, or_, select
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Stack, Traversal
from convergence.core.upwards import is_awaited
from convergence.core.views import FinishView, NodeView
from convergence.db.schema.models import RESOURCE, SYNC_POINT, TEMPLATE
from convergence.db.schema.row_columns import (
    AT,
    AT_FOLLOWER,
    AT_STACK,
    AT_WEBHOOK,
    OF_RESOURCE,
    chunks,
    node_of,
    resource_of,
)
from convergence.db.scopes import LastNode
from convergence.db.stale_reads import MANY_LEFTOVERS, SeenNode, awaits_end, only_follower, require_lock
from convergence.db.statements.loading.locked_reads import LAST
from convergence.db.statements.loading.nodes import seen_node
from convergence.db.statements.prepared.statement import PreparedListStatement, PreparedStatement, among

READ_EQUIVALENT = PreparedStatement(
    select(TEMPLATE.c.equivalent_template_id, TEMPLATE.c.changed_names).where(TEMPLATE.c.id == bindparam('template'))
)
_OTHERS = select(RESOURCE.c.name).order_by(RESOURCE.c.name).limit(MANY_LEFTOVERS)
READ_LEFTOVERS = PreparedStatement(
    _OTHERS.where(
        RESOURCE.c.stack_id == bindparam('stack'),
        RESOURCE.c.template_id.is_distinct_from(bindparam('template')),
        or_(RESOURCE.c.template_id.is_(None), RESOURCE.c.template_id.is_distinct_from(bindparam('equivalent'))),
    )
)
READ_UNLIKE = PreparedListStatement(
    'names',
    lambda length: _OTHERS.where(
        RESOURCE.c.stack_id == bindparam('stack'),
        RESOURCE.c.template_id == bindparam('equivalent'),
        among(RESOURCE.c.name, 'names', length),
    ),
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


def last_node(connection: Connection, scope: LastNode) -> NodeView:
    """See the scope."""
    key = {'traversal': scope.traversal_id, 'node': scope.number}
    (held, held_around), rows = LAST.all(connection, key)
    seen = seen_node(rows)
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
    found = READ_EQUIVALENT.first(connection, {'template': template_id})
    equivalent_template_id, changed_names = found or (None, ())
    of_stack = {'stack': stack_id, 'template': template_id, 'equivalent': equivalent_template_id}
    names = READ_LEFTOVERS.all(connection, of_stack)
    for some in chunks(changed_names):
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
