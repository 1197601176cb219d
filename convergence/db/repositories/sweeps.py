"""Queries of the sweeper for work that no process does. Every query is bounded and uses an index."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.model import DISPATCH_WINDOW, UNDER_WAY, NodeStatus, Status, TraversalStatus
from convergence.db.backoff import Backoff
from convergence.db.connections.drivers import written_alone
from convergence.db.records import EVERYTHING, EndedTraversal, HeldRow, Keep, ReadyNode, TraversalProgress
from convergence.db.repositories.purges import (
    OverTraversal,
    deleted_stacks,
    remove_nodes,
    remove_stack,
    together,
    with_objects,
)
from convergence.db.repositories.reads.inspection import waits_at_hook
from convergence.db.repositories.reads.nested import CURRENT_IN_PROGRESS, NestedSweeps
from convergence.db.schema.columns import asked_at, database_now
from convergence.db.schema.models import DUTY, RESOURCE, SERVICE, STACK, SYNC_POINT, TRAVERSAL
from convergence.db.statements.prepared.locking import by_key
from convergence.db.statements.store import Store
from convergence.db.transaction import LAST
from convergence.errors import Conflict, DatabaseUnavailable

LOG = logging.getLogger(__name__)


# PostgreSQL looks these up first, and once. It takes them for few, as few are at any moment, and would look them up for
# each traversal that runs, among all that have been ready since the server last tidied its index.
_READY = (
    select(
        SYNC_POINT.c.traversal_id,
        SYNC_POINT.c.number,
        SYNC_POINT.c.phase,
        SYNC_POINT.c.resource_id,
        SYNC_POINT.c.notified_at,
    )
    .where(
        SYNC_POINT.c.status == NodeStatus.READY,
        # The first bound keeps to the index.
        SYNC_POINT.c.notified_at < asked_at() - bindparam('older_than_s'),
        or_(
            SYNC_POINT.c.phase.in_(sorted(LAST)),
            SYNC_POINT.c.notified_at < asked_at() - bindparam('patience_s'),
        ),
    )
    .cte('ready')
    .prefix_with('MATERIALIZED', dialect='postgresql')
)
_PLACE = (
    func.row_number()
    .over(partition_by=_READY.c.traversal_id, order_by=(_READY.c.notified_at, _READY.c.number))
    .label('place')
)
_READY_AND_FREE = (
    select(TRAVERSAL.c.stack_id, _READY.c.traversal_id, _READY.c.number, _READY.c.phase, _READY.c.notified_at, _PLACE)
    .select_from(_READY)
    .join(TRAVERSAL, TRAVERSAL.c.id == _READY.c.traversal_id)
    .outerjoin(RESOURCE, RESOURCE.c.id == _READY.c.resource_id)
    .where(
        or_(
            TRAVERSAL.c.status == TraversalStatus.RUNNING,
            # In a traversal that is being cancelled, only actions in progress continue.
            and_(TRAVERSAL.c.status == TraversalStatus.CANCELLING, RESOURCE.c.status == Status.IN_PROGRESS),
        ),
        RESOURCE.c.owner.is_(None),
        or_(
            RESOURCE.c.wake_at.is_(None),
            RESOURCE.c.wake_at <= asked_at(),
            RESOURCE.c.event_count != RESOURCE.c.polled_event_count,
            # A row parked by an older traversal does not sleep for this one: see `convergence.core.begin`.
            RESOURCE.c.traversal_id.is_distinct_from(_READY.c.traversal_id),
        ),
        ~waits_at_hook(_READY.c.traversal_id),
    )
    .subquery()
)
# At most one dispatch window per stack: a long backlog advances by itself and must not delay other stacks.
UNATTENDED = (
    select(
        _READY_AND_FREE.c.stack_id,
        _READY_AND_FREE.c.traversal_id,
        _READY_AND_FREE.c.number,
        _READY_AND_FREE.c.phase,
    )
    .where(_READY_AND_FREE.c.place <= bindparam('window'))
    .order_by(_READY_AND_FREE.c.notified_at, _READY_AND_FREE.c.number)
    .limit(bindparam('limit'))
)
_CAST = (
    by_key(update(SYNC_POINT), SYNC_POINT)
    .where(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
    .values(notified_at=database_now())
)
_ALIVE = (
    select(SERVICE.c.id)
    .where(SERVICE.c.id == RESOURCE.c.owner, SERVICE.c.beat_at > asked_at() - SERVICE.c.lease_s)
    .exists()
)
_HELD = tuple(RESOURCE.c[each.name if each.name != 'resource_id' else 'id'] for each in fields(HeldRow)[:-1])
_SILENT_S = (
    select(database_now() - SERVICE.c.beat_at - SERVICE.c.lease_s / 2)
    .where(SERVICE.c.id == RESOURCE.c.owner, SERVICE.c.stopped.is_(False))
    .scalar_subquery()
)
ORPHANED = (
    select(*_HELD, func.coalesce(_SILENT_S, 0.0))
    .where(RESOURCE.c.owner.is_not(None), ~_ALIVE)
    .limit(bindparam('limit'))
)
# Past its own deadline although its worker is alive: another worker takes the row over.
NEGLECTED = (
    select(*_HELD)
    .where(
        RESOURCE.c.status == Status.IN_PROGRESS,
        RESOURCE.c.owner.is_not(None),
        RESOURCE.c.deadline < asked_at() - bindparam('slack_s'),
    )
    .limit(bindparam('limit'))
)
_INTERRUPTED = (
    select(*_HELD)
    .join(STACK, STACK.c.id == RESOURCE.c.stack_id)
    .where(RESOURCE.c.status == Status.IN_PROGRESS, RESOURCE.c.owner.is_(None), STACK.c.status != Status.IN_PROGRESS)
    .limit(bindparam('limit'))
)
# A worker notifies their types that the action is not needed any more.
TO_BE_TOLD = _INTERRUPTED.where(RESOURCE.c.progress.is_not(None))
TO_BE_GIVEN_UP = _INTERRUPTED.where(
    or_(
        RESOURCE.c.progress.is_(None),
        func.coalesce(STACK.c.updated_at, STACK.c.created_at) <= asked_at() - bindparam('rested_s'),
    )
)
_RUNS = (
    select(RESOURCE.c.id)
    .where(RESOURCE.c.stack_id == TRAVERSAL.c.stack_id, RESOURCE.c.status == Status.IN_PROGRESS)
    .exists()
)
UNSETTLED = (
    select(TRAVERSAL.c.stack_id, TRAVERSAL.c.id)
    .join(STACK, CURRENT_IN_PROGRESS)
    .where(
        TRAVERSAL.c.swept.is_(False),
        or_(
            TRAVERSAL.c.status == TraversalStatus.FAILED,
            and_(TRAVERSAL.c.status == TraversalStatus.CANCELLING, ~_RUNS),
        ),
    )
    .limit(bindparam('limit'))
)
OVERDUE = (
    select(TRAVERSAL.c.stack_id, TRAVERSAL.c.id)
    .where(
        TRAVERSAL.c.swept.is_(False),
        TRAVERSAL.c.status.in_(UNDER_WAY),
        TRAVERSAL.c.deadline < asked_at(),
    )
    .limit(bindparam('limit'))
)
OVER = (
    select(TRAVERSAL.c.id, TRAVERSAL.c.stack_id, TRAVERSAL.c.node_count)
    .join(STACK, STACK.c.id == TRAVERSAL.c.stack_id)
    .where(
        TRAVERSAL.c.swept.is_(False),
        TRAVERSAL.c.status.not_in(UNDER_WAY),
        or_(STACK.c.traversal_id != TRAVERSAL.c.id, STACK.c.status != Status.IN_PROGRESS),
    )
    .limit(bindparam('limit'))
)
_DELETED = (
    select(
        STACK.c.id,
        STACK.c.traversal_id,
        STACK.c.deleted_at,
        or_(
            STACK.c.status == Status.COMPLETE,
            and_(STACK.c.status == Status.FAILED, STACK.c.updated_at < asked_at() - bindparam('again_s')),
        ).label('is_due'),
    )
    .where(
        STACK.c.deleted_at >= bindparam('after'),
        or_(STACK.c.deleted_at > bindparam('after'), STACK.c.id > bindparam('after_id')),
    )
    .order_by(STACK.c.deleted_at, STACK.c.id)
    .limit(bindparam('limit'))
)
_PAGE = 1000
_LAST_FINISHED = (
    select(func.max(SYNC_POINT.c.finished_at)).where(SYNC_POINT.c.traversal_id == TRAVERSAL.c.id).scalar_subquery()
)
_LAST_BEGUN = (
    select(func.max(RESOURCE.c.began_at))
    .where(RESOURCE.c.stack_id == TRAVERSAL.c.stack_id, RESOURCE.c.traversal_id == TRAVERSAL.c.id)
    .scalar_subquery()
)
_LONG_RUNNING = (
    select(
        TRAVERSAL.c.stack_id,
        TRAVERSAL.c.id,
        TRAVERSAL.c.stalled_at,
        TRAVERSAL.c.started_at,
        _LAST_FINISHED.label('finished'),
        _LAST_BEGUN.label('begun'),
        database_now().label('present'),
    )
    .join(STACK, CURRENT_IN_PROGRESS)
    .where(
        TRAVERSAL.c.swept.is_(False),
        TRAVERSAL.c.status == TraversalStatus.RUNNING,
        TRAVERSAL.c.started_at < asked_at() - bindparam('after_s'),
    )
    .subquery()
)
_STANDS = and_(
    _LONG_RUNNING.c.stalled_at.is_(None),
    func.coalesce(_LONG_RUNNING.c.finished, 0.0) < _LONG_RUNNING.c.present - bindparam('after_s'),
    func.coalesce(_LONG_RUNNING.c.begun, 0.0) < _LONG_RUNNING.c.present - bindparam('after_s'),
)
_MOVES = or_(_LONG_RUNNING.c.finished > _LONG_RUNNING.c.stalled_at, _LONG_RUNNING.c.begun > _LONG_RUNNING.c.stalled_at)
_STANDING_STILL = select(_LONG_RUNNING).where(or_(_STANDS, _MOVES)).limit(bindparam('limit'))


class Sweeps(NestedSweeps):
    """Finds, a limited number at a time, the rows that a sweeper has to attend to.

    :param keep: how much of the past is kept.
    """

    def __init__(self, store: Store, keep: Keep = EVERYTHING) -> None:
        super().__init__(store)
        self._keep = keep
        self._not_purged = Backoff()
        self._looked_at = (0.0, '')

    def take_duty(self, name: str, holder: str, for_s: float) -> bool:
        """Become, or stay, the one process that does something for the next `for_s` seconds."""
        free = or_(DUTY.c.holder == holder, DUTY.c.until < database_now())
        take = (
            update(DUTY)
            .where(DUTY.c.name == name, free)
            .values(holder=holder, until=database_now() + for_s, turns=DUTY.c.turns + 1)
        )
        return self._store.write(lambda connection: written_alone(connection, take, {}).rowcount == 1, self.take_duty)

    def duty_held_s(self, name: str, holder: str) -> float:
        """Return the seconds for which another process than `holder` still holds a duty; 0 or less if no other process
        does.
        """
        held = select(DUTY.c.until - database_now()).where(DUTY.c.name == name, DUTY.c.holder != holder)
        with self._store.reading() as connection:
            seconds: float | None = connection.execute(held).scalar()
        return 0.0 if seconds is None else seconds

    def undispatched(
        self, older_than_s: float, limit: int, window: int = DISPATCH_WINDOW, patience_s: float | None = None
    ) -> list[ReadyNode]:
        """Ready nodes of running traversals whose row is free and awake; from now on they count as told.

        :param window: most nodes of one traversal.
        :param patience_s: for how long a node was ready that needs a worker, where that is longer.
        """

        def take(connection: Connection) -> list[ReadyNode]:
            patience = older_than_s if patience_s is None else patience_s
            parameters = {'older_than_s': older_than_s, 'patience_s': patience, 'limit': limit, 'window': window}
            found = [ReadyNode(*row) for row in connection.execute(UNATTENDED, parameters)]
            keys = sorted((node.traversal_id, node.number) for node in found)
            if keys:
                connection.execute(_CAST, [{'traversal': traversal, 'node': number} for traversal, number in keys])
            return found

        return self._store.write(take, self.undispatched)

    def expired_claims(self, limit: int) -> list[HeldRow]:
        """Rows whose owner's lease has run out, by the database's clock."""
        return [HeldRow(*row) for row in self._read(ORPHANED, limit)]

    def overdue_actions(self, limit: int, slack_s: float) -> list[HeldRow]:
        """Held rows in the middle of an action that should have ended `slack_s` seconds ago."""
        return [HeldRow(*row) for row in self._read(NEGLECTED, limit, slack_s=slack_s)]

    def parked_at_rest(self, limit: int) -> list[HeldRow]:
        """Free rows in the middle of a long action, of stacks in which nothing is in progress any more."""
        return [HeldRow(*row) for row in self._read(TO_BE_TOLD, limit)]

    def interrupted(self, limit: int, older_than_s: float = 0.0) -> list[HeldRow]:
        """Free rows in the middle of an action, of stacks in which nothing is in progress any more.

        :param older_than_s: those of long actions only where their stack has been at rest for so long.
        """
        return [HeldRow(*row) for row in self._read(TO_BE_GIVEN_UP, limit, rested_s=older_than_s)]

    def unsettled(self, limit: int) -> list[EndedTraversal]:
        """Failed traversals whose stack has not been failed or rolled back yet, and cancelled ones that can end."""
        return [EndedTraversal(*row) for row in self._read(UNSETTLED, limit)]

    def overdue(self, limit: int) -> list[EndedTraversal]:
        """Traversals under way that are past their deadline."""
        return [EndedTraversal(*row) for row in self._read(OVERDUE, limit)]

    def left_behind(self, limit: int, again_s: float) -> list[EndedTraversal]:
        """Return deleted stacks that still have rows with an object, or with one that may exist.

        Each call checks the next thousand deleted stacks, and begins again after the last.

        :param again_s: seconds after which stacks with a failed removal are returned again.
        """
        after, after_id = self._looked_at
        page = self._read(_DELETED, _PAGE, again_s=again_s, after=after, after_id=after_id)
        self._looked_at = (page[-1].deleted_at, page[-1].id) if len(page) == _PAGE else (0.0, '')
        due = {row.id: row.traversal_id for row in page if row.is_due}
        left = with_objects(self._store, list(due))
        return [EndedTraversal(stack_id, due[stack_id]) for stack_id in due if stack_id in left][:limit]

    def purge_nodes(self, limit: int) -> int:
        """Remove the nodes of traversals that are over: those of many small ones together, of a large one 1,000.

        A traversal for which that fails keeps none of the others from being purged; the log names it.

        :returns: how many nodes were removed.
        """
        removed = 0
        self._not_purged.begin()
        over = [OverTraversal(*row) for row in self._read(OVER, limit + len(self._not_purged))]
        waiting = list(together(each for each in over if not self._not_purged.is_passed_over(each.id)))
        while waiting:
            several = waiting.pop()
            try:
                removed += self._purge(several)
            except DatabaseUnavailable:
                raise
            except Exception as error:
                if len(several) > 1:
                    waiting += [[each] for each in several]  # which of them is it?
                elif isinstance(error, Conflict):
                    LOG.info('Nodes of traversal %s not removed, retrying in the next sweep: %s', several[0].id, error)
                else:
                    LOG.exception(
                        'Removing the nodes of traversal %s failed, retrying later; report this error', several[0].id
                    )
                    self._not_purged.failed(several[0].id)
            else:
                for each in several:
                    self._not_purged.succeeded(each.id)
        return removed

    def _purge(self, over: Sequence[OverTraversal]) -> int:
        return self._store.write(lambda connection: remove_nodes(connection, over, self._keep), self._purge)

    def purge_stacks(self, limit: int) -> int:
        """Remove the rows of stacks that were deleted long ago; return the number of rows."""
        if self._keep.deleted_s is None:
            return 0
        removed = 0
        for stack_id in deleted_stacks(self._store, self._keep.deleted_s, limit):
            LOG.info('Removed the last rows of stack %s, which was deleted long ago', stack_id)
            removed += remove_stack(self._store, stack_id)
        return removed

    def stalled(self, limit: int, after_s: float) -> list[TraversalProgress]:
        """Return current, running traversals that stall and are not reported yet, or move again after a report.

        Only traversals that began more than `after_s` seconds ago are checked.
        """
        found = [TraversalProgress(*row) for row in self._read(_STANDING_STILL, limit, after_s=after_s)]
        return [each for each in found if each.is_news(after_s)]

    def _read(self, statement: Any, limit: int, **parameters: float | str) -> list[Any]:
        with self._store.reading() as connection:
            return list(connection.execute(statement, {'limit': limit, **parameters}))
