"""Leases of due objects, and their results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Double, Update, and_, bindparam, case, delete, false, func, null, select, update
from sqlalchemy.engine import Connection

from convergence.core.effects import InsertEvents
from convergence.core.model import Json, Status
from convergence.core.observation import (
    SETTLED,
    Leased,
    ObservationSource,
    ObservationUpdate,
    ObservedState,
    is_observable,
)
from convergence.core.rows import Stack
from convergence.db.repositories.observations.rows import (
    AT_ROW,
    NEEDED_COLUMNS,
    NEVER_UP,
    OBSERVATION_COLUMNS,
    WITH_ROW,
    ObservationRows,
    needed_row_of,
    observation_of,
)
from convergence.db.schema.columns import asked_at, database_now
from convergence.db.schema.models import OBSERVATION, RESOURCE, STACK
from convergence.db.schema.row_columns import STACK_COLUMNS, chunks
from convergence.db.statements.prepared.statement import PreparedListStatement, PreparedStatement, among

_AT_STACK = [column.name for column in OBSERVATION_COLUMNS].index('stack_id')
_WAS_WANTED_SINCE = OBSERVATION.c.requested_at >= OBSERVATION.c.leased_at
# Sent for each batch, again and again.
_DUE = PreparedStatement(
    select(OBSERVATION.c.resource_id)
    .where(OBSERVATION.c.due_at <= asked_at())
    .order_by(OBSERVATION.c.due_at)
    .limit(bindparam('most'))
    .with_for_update(skip_locked=True)
)
# The first of an index, as `min` is not on every server where something is taken away from it.
_NEXT_DUE = select(OBSERVATION.c.due_at - database_now()).order_by(OBSERVATION.c.due_at).limit(1)
_LEASE = PreparedListStatement(
    'keys',
    lambda length: (
        update(OBSERVATION)
        .where(among(OBSERVATION.c.resource_id, 'keys', length))
        .values(
            holder=bindparam('lessee'),
            leased_at=database_now(),
            due_at=database_now() + bindparam('for_s', type_=Double()),
        )
    ),
)
_LET_GO = (
    update(OBSERVATION).where(OBSERVATION.c.resource_id.in_(bindparam('keys', expanding=True))).values(holder=None)
)
_READ_LEASED = PreparedListStatement(
    'keys',
    lambda length: (
        select(*OBSERVATION_COLUMNS, *NEEDED_COLUMNS)
        .select_from(OBSERVATION)
        .join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id, isouter=True)
        .where(among(OBSERVATION.c.resource_id, 'keys', length))
    ),
)
_READ_HELD = PreparedListStatement(
    'keys',
    lambda length: (
        select(OBSERVATION.c.resource_id, RESOURCE.c.fence)
        .join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id)
        .where(among(OBSERVATION.c.resource_id, 'keys', length), OBSERVATION.c.holder == bindparam('lessee'))
    ),
)
_READ_STACKS = PreparedListStatement(
    'keys', lambda length: select(*STACK_COLUMNS).where(among(STACK.c.id, 'keys', length))
)


class ObservationLeases(ObservationRows):
    """Leases due objects to observers, and stores the results."""

    def due_in_s(self) -> float | None:
        """Return the seconds until the next object is due, less than 0 if one is due already; None if no object is
        observed.
        """
        with self._store.reading() as connection:
            seconds: float | None = connection.execute(_NEXT_DUE).scalar()
        return seconds

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """Return objects that are due, each leased to one caller for `for_s` seconds; afterwards they are due again.

        Objects that cannot be compared now (an action is in progress, or the stack is suspended) are put off for a
        while without
        a lease, unless a caller requested their observation.

        :param holder: id of this lease; a new one each time.
        """

        def take(connection: Connection) -> list[Leased]:
            keys = [key for (key,) in _DUE.all(connection, {'most': limit})]
            if not keys:
                return []
            _LEASE.write(connection, {'keys': keys, 'lessee': holder, 'for_s': for_s})
            found = _READ_LEASED.all(connection, {'keys': keys})
            # A row that is not visible here is gone, even on a lagging server: the query for it runs after the query
            # for its observations, and every state of the database has the row until both are removed.
            stacks = _stacks_of(connection, {row[_AT_STACK] for row in found})
            over = [row[0] for row in found if _is_over(stacks.get(row[_AT_STACK]))]
            if over:
                connection.execute(delete(OBSERVATION).where(OBSERVATION.c.resource_id.in_(over)))
            # The observation of a removed row waits for its successor (`schedule`), which takes over the count of
            # repairs.
            there = [row for row in found if row[AT_ROW] is not None and row[0] not in over]
            leased = [_leased(row, stacks[row[_AT_STACK]]) for row in there]
            leased = [each for each in leased if is_observable(each.stack, each.row)]
            nobodys = sorted(set(keys) - {each.observation.resource_id for each in leased} - set(over))
            if nobodys:
                connection.execute(_LET_GO, {'keys': nobodys})
            return leased

        return self._store.write(take, self.lease)

    def write(self, holder: str, looks: Sequence[ObservationUpdate]) -> int:
        """Store the results of a lease; return the number stored.

        A result is dropped if its object was leased again or its row was claimed since. Objects requested meanwhile are
        due at once.
        """
        keys = [look.resource_id for look in looks]

        def put(connection: Connection) -> int:
            fences = dict(map(tuple, _READ_HELD.all(connection, {'keys': keys, 'lessee': holder})))
            taken = [look for look in looks if fences.get(look.resource_id) == look.fence]
            alike: dict[tuple[ObservationSource, float], list[str]] = defaultdict(list)
            for look in taken:
                if look.same:
                    alike[look.source, look.pause_s].append(look.resource_id)
                else:
                    connection.execute(_keeping(look, holder))
                    self._tell(connection, look)
            for (source, pause_s), same in alike.items():
                given = {'keys': same, 'lessee': holder, 'seen_by': source, 'pause_s': pause_s}
                _KEEP_ALIKE.write(connection, given)
            return len(taken)

        return self._store.write(put, self.write) if looks else 0

    def _tell(self, connection: Connection, look: ObservationUpdate) -> None:
        if look.news is not None:
            details: dict[str, Json] = {
                'drift_state': look.result.found.value,
                'drift_properties': list(look.result.names),
            }
            self._store.carry_out(connection, (InsertEvents((look.news,), details, is_drift=True),))

    def put_off(self, holder: str, resource_ids: Sequence[str], for_s: float) -> None:
        """Return leased objects without a result; they are due again in `for_s` seconds."""
        held = and_(OBSERVATION.c.resource_id.in_(resource_ids), OBSERVATION.c.holder == holder)
        later = update(OBSERVATION).where(held).values(due_at=database_now() + for_s, holder=None)
        if resource_ids:
            self._store.write(lambda connection: connection.execute(later).rowcount, self.put_off)

    def request(self, stack_ids: Sequence[str], source: ObservationSource, rows: Sequence[str] | None = None) -> float:
        """Make objects due at once.

        :param rows: ids of the rows of the objects; None: every observed object of the stacks.
        :returns: the database's time. An observation that begins later shows the state after the request.
        """
        present = and_(OBSERVATION.c.holder.is_not(None), OBSERVATION.c.due_at > database_now())

        def write(connection: Connection) -> float:
            now: float = connection.execute(select(database_now())).scalar_one()
            for some in chunks(list(stack_ids)):
                mine = [OBSERVATION.c.stack_id.in_(some)]
                if rows is not None:
                    mine.append(OBSERVATION.c.resource_id.in_(list(rows)))
                due_at = case((present, OBSERVATION.c.due_at), else_=now)
                values = {'requested_at': now, 'requested_by': source, 'due_at': due_at}
                connection.execute(update(OBSERVATION).where(*mine).values(**values))
            return now

        return self._store.write(write, self.request)

    def waiting(self, stack_ids: Sequence[str]) -> int:
        """Return the number of requested observations that are still open and possible now."""
        waiting = 0
        with self._store.reading() as connection:
            for some in chunks(list(stack_ids)):
                mine = (
                    select(func.count())
                    .select_from(WITH_ROW.join(STACK, STACK.c.id == OBSERVATION.c.stack_id))
                    .where(
                        OBSERVATION.c.stack_id.in_(some),
                        OBSERVATION.c.requested_at.is_not(None),
                        STACK.c.status != Status.IN_PROGRESS,
                        STACK.c.action.not_in(NEVER_UP),
                        RESOURCE.c.status == Status.COMPLETE,
                        RESOURCE.c.action.not_in(NEVER_UP),
                        RESOURCE.c.owner.is_(None),
                    )
                )
                waiting += connection.execute(mine).scalar_one()
        return waiting


def _kept(
    source: Any, pause_s: Any, *, look: ObservationUpdate | None = None, is_settled: ColumnElement[bool]
) -> list[tuple[Any, Any]]:
    """Return the columns to write for a result: the unchanged object, or the values of `look`.

    MariaDB reads columns that it has just assigned, so the columns that others depend on come last.
    """
    now, table = database_now(), OBSERVATION.c
    values: list[tuple[Any, Any]] = [
        (table.due_at, case((_WAS_WANTED_SINCE, now), else_=now + pause_s)),
        (table.requested_by, case((_WAS_WANTED_SINCE, table.requested_by), else_=null())),
        (table.requested_at, case((_WAS_WANTED_SINCE, table.requested_at), else_=null())),
        (table.observed_at, table.leased_at),
        (table.repairs, case((is_settled, 0), else_=table.repairs)),
        (table.given_up, case((is_settled, False), else_=table.given_up)),
        (table.source, source),
        (table.same_results, table.same_results + 1 if look is None else 1),
        (table.holder, None),
    ]
    if look is not None:
        result = look.result
        values += [
            (table.since, table.leased_at),
            (table.fence, look.fence),
            (table.found, result.found),
            (table.names, result.names),
            (table.live, dict(result.live) or None),
            (table.reason, result.reason),
            *([] if look.news is None else [(table.told, look.drift)]),
        ]
    return values


def _keeping(look: ObservationUpdate, holder: str) -> Update:
    """Return the statement that stores a result."""
    this = and_(OBSERVATION.c.resource_id == look.resource_id, OBSERVATION.c.holder == holder)
    kept = _kept(look.source, look.pause_s, look=look, is_settled=false())
    return update(OBSERVATION).where(this).ordered_values(*kept)


def _keeping_alike(length: int) -> Update:
    """The statement that keeps of some objects that they are as they were."""
    mine = and_(among(OBSERVATION.c.resource_id, 'keys', length), OBSERVATION.c.holder == bindparam('lessee'))
    is_settled = and_(OBSERVATION.c.found == ObservedState.HEALTHY, OBSERVATION.c.same_results >= SETTLED - 1)
    pause_s: Any = bindparam('pause_s', type_=Double())
    kept = _kept(bindparam('seen_by', type_=OBSERVATION.c.source.type), pause_s, is_settled=is_settled)
    return update(OBSERVATION).where(mine).ordered_values(*kept)


_KEEP_ALIKE = PreparedListStatement('keys', _keeping_alike)


def _leased(values: Sequence[Any], stack: Stack) -> Leased:
    return Leased(observation_of(values[:AT_ROW]), needed_row_of(values), stack)


def _stacks_of(connection: Connection, ids: Collection[str]) -> dict[str, Stack]:
    """Some stacks, by their ids: many objects are of one, and each is read once."""
    return {stack.id: stack for stack in (Stack(*row) for row in _READ_STACKS.all(connection, {'keys': sorted(ids)}))}


def _is_over(stack: Stack | None) -> bool:
    return stack is None or stack.deleted_at is not None
