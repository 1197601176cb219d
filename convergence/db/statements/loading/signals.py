"""Lock and read what a signal from outside is decided by: the row that it is for, and the rows that are built on it."""

from __future__ import annotations

from sqlalchemy import Integer, bindparam, func, select
from sqlalchemy.engine import Connection

from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Stack, Traversal
from convergence.core.views import SignalView
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import SIGNAL, STACK, SYNC_POINT
from convergence.db.schema.row_columns import STACK_COLUMNS, chunks
from convergence.db.scopes import UNDONE, SignalledResource
from convergence.db.statements.loading.plans import READ_TRAVERSAL
from convergence.db.statements.loading.resources import locked
from convergence.db.statements.prepared.statement import PreparedStatement
from convergence.db.transaction import Missing
from convergence.errors import Conflict

READ_STACK = PreparedStatement(select(*STACK_COLUMNS, database_now()).where(STACK.c.id == bindparam('stack')))
READ_TOLD = select(SYNC_POINT.c.required_by).where(
    SYNC_POINT.c.traversal_id == bindparam('traversal'),
    SYNC_POINT.c.resource_id == bindparam('resource'),
    SYNC_POINT.c.phase == Phase.UPDATE,
)
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
READ_RECEIVED = select(func.sum(func.length(SIGNAL.c.details, type_=Integer))).where(
    SIGNAL.c.resource_id == bindparam('resource')
)


def signalled_resource(connection: Connection, scope: SignalledResource) -> SignalView:
    """See the scope."""
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
    # Read after the lock: a plan may have held these rows in the meantime.
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
