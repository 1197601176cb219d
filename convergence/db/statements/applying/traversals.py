"""Stores a traversal with its nodes, notes its progress, and ends it."""

from __future__ import annotations

from sqlalchemy import Double, bindparam, case, func, update
from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.core.model import NodeStatus, Status, TraversalStatus
from convergence.core.rows import Node, Traversal
from convergence.db.schema.models import SYNC_POINT, TRAVERSAL
from convergence.db.schema.row_columns import stored_columns, stored_names, stored_values
from convergence.db.statements.applying.snapshots import END_SNAPSHOT
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.statements.prepared.inserts import ManyRowsInsert
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.prepared.statement import FewRowsInsert, PreparedStatement

INSERT_TRAVERSAL = FewRowsInsert(TRAVERSAL, stored_names(Traversal))
_OF_NODE = (*stored_names(Node), 'notified_at')
INSERT_NODES = ManyRowsInsert(SYNC_POINT, _OF_NODE, tuple(name for name in _OF_NODE if name != 'traversal_id'))
END_TRAVERSAL = PreparedStatement(
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'), TRAVERSAL.c.status == bindparam('expected'))
    .values(
        status=bindparam('new_status'),
        finished_at=bindparam('new_finished_at'),
        reason=bindparam('new_reason'),
        failed_phase=bindparam('new_failed_phase'),
        failed_name=bindparam('new_failed_name'),
        in_service_at=func.coalesce(bindparam('in_service', type_=Double), TRAVERSAL.c.in_service_at),
    )
)
BEGIN_CANCEL = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'), TRAVERSAL.c.status == TraversalStatus.RUNNING)
    .values(status=TraversalStatus.CANCELLING, deadline=bindparam('until'))
)
# The order of the columns matters: MariaDB sees what it has just assigned.
NOTE_FAILURE = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'), TRAVERSAL.c.status == TraversalStatus.RUNNING)
    .ordered_values(
        (
            TRAVERSAL.c.reason,
            case(
                (TRAVERSAL.c.reason == '', bindparam('said')),
                (func.length(TRAVERSAL.c.reason) > effects.MAX_LISTED, TRAVERSAL.c.reason),
                else_=TRAVERSAL.c.reason + '; ' + bindparam('said'),
            ),
        ),
        (TRAVERSAL.c.failed_name, func.coalesce(TRAVERSAL.c.failed_name, bindparam('name'))),
    )
)
NOTE_IN_SERVICE = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'))
    .values(in_service_at=bindparam('noted_at'))
)
STALL_TRAVERSAL = (
    by_key(update(TRAVERSAL), TRAVERSAL).where(TRAVERSAL.c.id == bindparam('key')).values(stalled_at=bindparam('since'))
)
# The schedule of the root stack is renewed; that gives all nested stacks its policy, if it changed.
ENROL_AGAIN = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id.in_(bindparam('keys', expanding=True)))
    .values(observations_scheduled=False)
)


def insert_traversal(batch: StatementBatch, effect: effects.InsertTraversal) -> None:
    """See the effect."""
    batch.add(INSERT_TRAVERSAL.call([stored_values(effect.traversal)]))
    now = effect.traversal.started_at
    behind = {node.next_in_backlog for node in effect.nodes}

    def notified_at(node: Node) -> float | None:
        return now if node.status is NodeStatus.READY and node.number not in behind else None

    columns = stored_columns(Node, effect.nodes)
    columns['notified_at'] = [notified_at(node) for node in effect.nodes]
    INSERT_NODES.add(batch, columns)


def end_traversal(batch: StatementBatch, effect: effects.EndTraversal) -> None:
    """See the effect."""
    end = END_TRAVERSAL.call(
        {
            'key': effect.traversal_id,
            'expected': effect.expected,
            'new_status': effect.status,
            'new_finished_at': effect.at,
            'new_reason': effect.reason,
            'new_failed_phase': effect.failed_phase,
            'new_failed_name': effect.failed_name,
            'in_service': effect.in_service_at,
        }
    )
    if not effect.took_snapshot:
        batch.add(end)
    elif batch.write(end) == 1:
        status = Status.COMPLETE if effect.status is TraversalStatus.COMPLETE else Status.FAILED
        batch.connection.execute(
            END_SNAPSHOT, {'key': effect.traversal_id, 'new_status': status, 'new_reason': effect.reason}
        )


def begin_cancel(connection: Connection, effect: effects.BeginCancel) -> None:
    """See the effect."""
    connection.execute(BEGIN_CANCEL, {'key': effect.traversal_id, 'until': effect.deadline})


def note_failure(connection: Connection, effect: effects.NoteFailure) -> None:
    """See the effect."""
    connection.execute(NOTE_FAILURE, {'key': effect.traversal_id, 'said': effect.said, 'name': effect.name})


def note_in_service(connection: Connection, effect: effects.NoteInService) -> None:
    """See the effect."""
    connection.execute(NOTE_IN_SERVICE, {'key': effect.traversal_id, 'noted_at': effect.at})


def stall_traversal(connection: Connection, effect: effects.StallTraversal) -> None:
    """See the effect."""
    connection.execute(STALL_TRAVERSAL, {'key': effect.traversal_id, 'since': effect.since})
