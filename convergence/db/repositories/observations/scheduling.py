"""The schedule of observations: objects are added when their stack reaches rest, by the policy in force."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import Select, and_, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.model import UNDER_WAY, Action, DriftPolicy, Status
from convergence.core.observation import DriftPolicies, ObservationSource, ObservedState, Past, succession
from convergence.db.records import UnscheduledStack
from convergence.db.repositories.observations.rows import FRESH, ObservationRows
from convergence.db.schema.columns import asked_at, database_now
from convergence.db.schema.models import OBSERVATION, RESOURCE, SERVICE, STACK, TRAVERSAL
from convergence.db.schema.row_columns import chunks, columns
from convergence.db.statements.applying.traversals import ENROL_AGAIN
from convergence.db.statements.prepared.locking import by_key
from convergence.errors import Conflict

_PAST = select(*columns(OBSERVATION, Past))
_OF_TREE, _PRESENT = STACK.alias('of_tree'), STACK.alias('present')
# The last operation of a stack, if it is seen to be over; whether the stack is complete.
_OVER = (
    select(TRAVERSAL.c.id)
    .join(_PRESENT, _PRESENT.c.traversal_id == TRAVERSAL.c.id)
    .where(
        _PRESENT.c.id == bindparam('stack'),
        _PRESENT.c.status != Status.IN_PROGRESS,
        TRAVERSAL.c.status.not_in(UNDER_WAY),
    )
    .scalar_subquery()
)
_IS_COMPLETE = select(_PRESENT.c.status == Status.COMPLETE).where(_PRESENT.c.id == bindparam('stack')).scalar_subquery()
# Locked first: until the end of the transaction the stack keeps its policy. The operation is read before any row: a
# server that shows its end also shows all rows that it made.
_TOP_OF = (
    select(
        *(STACK.c.id, STACK.c.drift_policy, STACK.c.policy_propagated),
        *(_OVER.label('over'), _IS_COMPLETE.label('is_complete')),
    )
    .where(
        STACK.c.id
        == select(func.coalesce(_OF_TREE.c.root_id, _OF_TREE.c.id))
        .where(_OF_TREE.c.id == bindparam('stack'))
        .scalar_subquery()
    )
    .with_for_update()
)
_SOMEBODY_LOOKS = (
    select(SERVICE.c.id)
    .where(SERVICE.c.kind == 'observer', SERVICE.c.beat_at >= asked_at() - SERVICE.c.lease_s)
    .exists()
)
UNENROLLED = (
    select(STACK.c.id, STACK.c.traversal_id)
    .join(TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id)
    .where(
        TRAVERSAL.c.observations_scheduled.is_(False),
        TRAVERSAL.c.status.not_in(UNDER_WAY),
        STACK.c.status != Status.IN_PROGRESS,
        STACK.c.deleted_at.is_(None),
        _SOMEBODY_LOOKS,
    )
    .limit(bindparam('limit'))
)


class ObservationSchedules(ObservationRows):
    """Schedules the observation of objects."""

    def unscheduled(self, limit: int) -> list[UnscheduledStack]:
        """Stacks at rest that are to be enrolled; none while no observer runs."""
        with self._store.reading() as connection:
            return [UnscheduledStack(*row) for row in connection.execute(UNENROLLED, {'limit': limit})]

    def schedule(
        self, stack: UnscheduledStack, intervals: Mapping[str, float], policies: DriftPolicies, limit: int
    ) -> int:
        """Schedule the objects of a stack that are not scheduled yet, and no others; return the number of new ones.

        If its operation is not seen to be over (in progress, or a lagging server), no observation is removed and the
        stack is found again: there may be objects that this server does not show yet.

        :param intervals: longest pause in seconds between two observations, by type; other types are not observed.
        :param policies: objects with the policy `IGNORE` are not observed. If the root stack got another policy since
            these were read, nothing is written and the stack is found again.
        :param limit: highest number of new objects; if there are more, the stack is found again.
        """
        mine = OBSERVATION.c.stack_id == stack.stack_id
        there = _with_object(stack.stack_id, intervals)
        present = select(STACK.c.traversal_id).where(STACK.c.id == stack.stack_id).scalar_subquery()
        seen_to = and_(
            TRAVERSAL.c.stack_id == stack.stack_id,
            TRAVERSAL.c.observations_scheduled.is_(False),
            or_(TRAVERSAL.c.id == stack.traversal_id, TRAVERSAL.c.id != present),
        )

        def write(connection: Connection) -> int:
            top = connection.execute(_TOP_OF, {'stack': stack.stack_id}).first()
            if top is None or top.drift_policy is not policies.of_stack:
                return 0
            if top.id == stack.stack_id and not top.policy_propagated:
                _tell_policy(connection, top.id)
            # Read before the rows: else an observation added in between would seem to have no row.
            known = [Past(*row) for row in connection.execute(_PAST.where(mine))]
            made = {row: policies.of(row.name, row.type) for row in connection.execute(there)}
            wanted = {row: policy for row, policy in made.items() if policy is not DriftPolicy.IGNORE}
            keys, names = {row.id for row in wanted}, {row.name for row in made}
            follows = succession(known, keys, names, is_complete=bool(top.is_complete))
            _set_policies(connection, wanted)
            missing = {row: policy for row, policy in wanted.items() if row.policy is None}
            new = dict(list(missing.items())[:limit])
            _insert(connection, stack.stack_id, new, intervals, follows.before)
            # Observations requested while the stack was busy were put off.
            put_off = update(OBSERVATION).where(mine, OBSERVATION.c.requested_at.is_not(None))
            connection.execute(put_off.values(due_at=database_now()))
            if top.over == stack.traversal_id and len(missing) <= limit:
                # Not before all that follows them is known of.
                for some in chunks(sorted(follows.over)):
                    connection.execute(delete(OBSERVATION).where(OBSERVATION.c.resource_id.in_(some)))
                connection.execute(update(TRAVERSAL).where(seen_to).values(observations_scheduled=True))
            return len(new)

        return self._store.write(write, self.schedule)


def _with_object(stack_id: str, types: Collection[str]) -> Select[Any]:
    """The rows of a stack whose objects are to be observed, with the policies of those that are."""
    return (
        select(*(RESOURCE.c[name] for name in ('id', 'name', 'type', 'fence')), OBSERVATION.c.policy)
        .join(OBSERVATION, OBSERVATION.c.resource_id == RESOURCE.c.id, isouter=True)
        .where(
            RESOURCE.c.stack_id == stack_id,
            RESOURCE.c.type.in_(sorted(types)),
            RESOURCE.c.action.not_in((Action.INIT, Action.DELETE)),
            RESOURCE.c.physical_id.is_not(None),
            RESOURCE.c.replaced_by.is_(None),
        )
    )


def _tell_policy(connection: Connection, root_id: str) -> None:
    """Schedule all nested stacks again under the new policy of their root, and allow repairs that were given up."""
    tree = or_(STACK.c.id == root_id, STACK.c.root_id == root_id)
    found = select(STACK.c.id, STACK.c.traversal_id).where(tree).order_by(STACK.c.traversal_id)
    for some in chunks(connection.execute(found).all()):
        keys = [row.traversal_id for row in some if row.traversal_id is not None]
        connection.execute(ENROL_AGAIN, {'keys': keys})
        repairs = and_(TRAVERSAL.c.id.in_(keys), TRAVERSAL.c.repair_attempt > 1)
        connection.execute(by_key(update(TRAVERSAL), TRAVERSAL).where(repairs).values(repair_attempt=1))
        mine = OBSERVATION.c.stack_id.in_([row.id for row in some])
        connection.execute(update(OBSERVATION).where(mine).values(**FRESH))
    connection.execute(update(STACK).where(STACK.c.id == root_id).values(policy_propagated=True))


def _set_policies(connection: Connection, wanted: Mapping[Any, DriftPolicy]) -> None:
    """Set the present policies of observed objects; a change of policy resets their repairs."""
    for policy in set(wanted.values()):
        others = [row.id for row, each in wanted.items() if each is policy and row.policy not in (None, policy)]
        for some in chunks(others):
            values = {'policy': policy, **FRESH}
            connection.execute(update(OBSERVATION).where(OBSERVATION.c.resource_id.in_(some)).values(**values))


def _insert(
    connection: Connection,
    stack_id: str,
    new: Mapping[Any, DriftPolicy],
    intervals: Mapping[str, float],
    past: Mapping[str, Past],
) -> None:
    """Insert observations of new objects.

    :param past: earlier observations, by the names of their resources.
    """
    if not new:
        return
    now = connection.execute(select(database_now())).scalar_one()
    rows = [
        {
            **asdict(past.get(row.name, Past(row.id, row.name))),
            **_unseen(row.id, stack_id, row.fence, now),
            'policy': policy,
            'due_at': now + random.random() * intervals[row.type],
        }
        for row, policy in new.items()
    ]
    try:
        connection.execute(insert(OBSERVATION), rows)
    except DBDuplicateEntry as error:
        raise Conflict(f'stack {stack_id} is being enrolled by another transaction') from error


def _unseen(resource_id: str, stack_id: str, fence: int, now: float) -> dict[str, Any]:
    return {
        'resource_id': resource_id,
        'stack_id': stack_id,
        'fence': fence,
        'found': ObservedState.UNKNOWN,
        'names': (),
        'live': None,
        'reason': '',
        'since': now,
        'same_results': 0,
        'source': ObservationSource.POLL,
    }
