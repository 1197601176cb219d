"""Drifted objects to repair, and the count of repairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, Update, and_, bindparam, func, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.effects import InsertEvents
from convergence.core.model import DriftPolicy, Status, TraversalStatus
from convergence.core.rows import Event, Resource
from convergence.db.records import Drifted
from convergence.db.repositories.observations.rows import (
    DRIFT,
    FRESH,
    IS_SEEN,
    NEEDED_COLUMNS,
    NEVER_UP,
    OBSERVATION_COLUMNS,
    WITH_ROW,
    ObservationRows,
    known_of,
)
from convergence.db.schema.columns import asked_at, database_now
from convergence.db.schema.models import OBSERVATION, RESOURCE, STACK, TRAVERSAL
from convergence.values import replace

_NAMED = select(OBSERVATION.c.resource_id, OBSERVATION.c.stack_id, OBSERVATION.c.name)
_ROOT, _LAST_OF_ROOT = STACK.alias('root'), TRAVERSAL.alias('last_of_root')
TO_REPAIR = (
    select(*OBSERVATION_COLUMNS, *NEEDED_COLUMNS, _ROOT.c.id)
    .select_from(
        WITH_ROW.join(STACK, STACK.c.id == OBSERVATION.c.stack_id)
        .join(_ROOT, _ROOT.c.id == func.coalesce(STACK.c.root_id, STACK.c.id))
        .join(TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id)
        .join(_LAST_OF_ROOT, _LAST_OF_ROOT.c.id == _ROOT.c.traversal_id)
    )
    .where(
        OBSERVATION.c.policy == DriftPolicy.REPAIR,
        OBSERVATION.c.given_up.is_(False),
        OBSERVATION.c.found.in_(DRIFT),
        IS_SEEN,
        or_(OBSERVATION.c.repair_at.is_(None), OBSERVATION.c.repair_at <= asked_at()),
        RESOURCE.c.status == Status.COMPLETE,
        RESOURCE.c.owner.is_(None),
        _ROOT.c.status == Status.COMPLETE,
        _ROOT.c.action.not_in(NEVER_UP),
        STACK.c.status == Status.COMPLETE,
        TRAVERSAL.c.observations_scheduled.is_(True),
        _LAST_OF_ROOT.c.observations_scheduled.is_(True),  # before that, nested stacks may have another policy
    )
    .order_by(func.coalesce(OBSERVATION.c.repair_at, OBSERVATION.c.since), _ROOT.c.id, RESOURCE.c.name)
    .limit(bindparam('limit'))
)


@cache
def failed_repairs(pauses: tuple[float, ...]) -> Select[Any]:
    """The stacks of which `RepairRows.failed_repairs` tells.

    :param pauses: at least one.
    """
    ended = TRAVERSAL.c.finished_at
    due = [
        and_(TRAVERSAL.c.repair_attempt == attempt, ended <= asked_at() - pause_s)
        for attempt, pause_s in enumerate(pauses, 1)
    ]
    return (
        select(STACK.c.id)
        .select_from(TRAVERSAL.join(STACK, STACK.c.traversal_id == TRAVERSAL.c.id))
        .where(
            or_(*due),
            TRAVERSAL.c.status == TraversalStatus.FAILED,
            STACK.c.status == Status.FAILED,
            STACK.c.deleted_at.is_(None),
        )
        .order_by(ended, STACK.c.id)
        .limit(bindparam('limit'))
    )


class RepairRows(ObservationRows):
    """Finds drifted objects to repair, and counts the repairs."""

    def to_repair(self, limit: int) -> list[Drifted]:
        """Objects that are to be put right and may be now, of stacks in whose tree nothing is in progress.

        Of those of which it is known what their policy is by now; first what might have been begun longest ago.
        """
        with self._store.reading() as connection:
            return [Drifted(row[-1], known_of(row[:-1])) for row in connection.execute(TO_REPAIR, {'limit': limit})]

    def failed_repairs(self, pauses: Sequence[float], limit: int) -> list[str]:
        """Stacks whose last operation was a repair that failed, of which the pause is over; longest ago first."""
        if not pauses:
            return []
        with self._store.reading() as connection:
            return list(connection.execute(failed_repairs(tuple(pauses)), {'limit': limit}).scalars())

    def repair_begun(self, begun: Sequence[tuple[Resource, float]]) -> None:
        """Record that a repair of some objects began. If it is over by now, it counts for the rows that replaced these.

        :param begun: the rows, each with the seconds until the next repair of its object may begin.
        """
        pauses = {row.id: pause_s for row, pause_s in begun}

        def write(connection: Connection) -> None:
            if _count_repairs(connection, pauses) == len(pauses):
                return
            is_known = OBSERVATION.c.resource_id.in_(sorted(pauses))
            counted = {(row.stack_id, row.name) for row in connection.execute(_NAMED.where(is_known))}
            gone = {(row.stack_id, row.name): pause_s for row, pause_s in begun}
            gone = {name: pause_s for name, pause_s in gone.items() if name not in counted}
            if not gone:
                return
            stacks, names = (sorted(set(each)) for each in zip(*gone, strict=True))
            named = _NAMED.where(OBSERVATION.c.stack_id.in_(stacks), OBSERVATION.c.name.in_(names))
            heirs = {row.resource_id: gone.get((row.stack_id, row.name)) for row in connection.execute(named)}
            _count_repairs(connection, {key: pause_s for key, pause_s in heirs.items() if pause_s is not None})

        self._store.write(write, self.repair_begun)

    def repair_put_off(self, resource_ids: Sequence[str], for_s: float) -> None:
        """No repair of some objects could be begun; it is tried again in `for_s` seconds, and others come first."""
        at = database_now() + for_s
        is_sooner = or_(OBSERVATION.c.repair_at.is_(None), OBSERVATION.c.repair_at < at)
        later = update(OBSERVATION).where(OBSERVATION.c.resource_id.in_(resource_ids), is_sooner).values(repair_at=at)
        self._store.write(lambda connection: connection.execute(later).rowcount, self.repair_put_off)

    def give_up(self, told: Mapping[str, Event]) -> None:
        """Give up the repair of some objects and store one event for each, even if several processes do so at once.

        :param told: the event of each, by the key of its row; it gets the time of the database.
        """

        def write(connection: Connection) -> None:
            ended = [event for key, event in sorted(told.items()) if connection.execute(_giving_up(key)).rowcount]
            if ended:
                at = float(connection.execute(select(database_now())).scalar_one())
                events = tuple(replace(event, at=at) for event in ended)
                self._store.carry_out(connection, (InsertEvents(events),))

        self._store.write(write, self.give_up)

    def forget_repairs(self, resource_ids: Sequence[str]) -> None:
        """Reset the repair counts of some objects, and allow repairs that were given up."""
        mine = OBSERVATION.c.resource_id.in_(resource_ids)
        begun = update(OBSERVATION).where(mine).values(**FRESH)
        self._store.write(lambda connection: connection.execute(begun).rowcount, self.forget_repairs)


def _count_repairs(connection: Connection, pauses: Mapping[str, float]) -> int:
    """Note that repairs were begun; of how many objects it is noted."""
    counted = 0
    for pause_s in sorted(set(pauses.values())):
        mine = OBSERVATION.c.resource_id.in_(sorted(key for key, each in pauses.items() if each == pause_s))
        values = {'repairs': OBSERVATION.c.repairs + 1, 'repair_at': database_now() + pause_s}
        counted += connection.execute(update(OBSERVATION).where(mine).values(**values)).rowcount
    return counted


def _giving_up(resource_id: str) -> Update:
    """Return the statement that gives up a repair; it changes no row if another process gave it up first."""
    this = and_(OBSERVATION.c.resource_id == resource_id, OBSERVATION.c.given_up.is_(False))
    return update(OBSERVATION).where(this).values(given_up=True)
