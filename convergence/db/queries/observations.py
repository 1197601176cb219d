"""What is known of the objects of resources: who looks at them next, and what was seen."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import and_, case, delete, false, func, insert, null, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.model import UNDER_WAY, Action, DriftPolicy, Status
from convergence.core.observation import (
    SETTLED,
    DriftPolicies,
    DriftSummary,
    KnownObject,
    Leased,
    LookOutcome,
    LookSource,
    Observation,
    ObservedState,
    is_observable,
)
from convergence.core.rows import Resource, Stack
from convergence.db.schema.columns import UNREADABLE, database_now
from convergence.db.schema.models import OBSERVATION, RESOURCE, SERVICE, STACK, TRAVERSAL
from convergence.db.statements.load import STACK_COLUMNS, chunks, columns
from convergence.db.statements.store import Store
from convergence.errors import Conflict

_COLUMNS = columns(OBSERVATION, Observation)
_NEVER_UP = (Action.INIT, Action.DELETE, Action.SUSPEND)
# What a look needs of a row: the other sealed columns are not opened for it.
_NEEDED = (
    *('id', 'stack_id', 'name', 'type', 'action', 'status', 'created_at', 'physical_id', 'definition', 'properties'),
    *('data', 'requires', 'replaced_by', 'owner', 'fence', 'token', 'revocation', 'template_id'),
)
_ROW_COLUMNS = [RESOURCE.c[name] for name in _NEEDED]
_FRESH: dict[str, Any] = {'repairs': 0, 'repair_at': None, 'given_up': False}
_PAST = select(OBSERVATION.c.resource_id, *(OBSERVATION.c[name] for name in _FRESH))
_WITH_ROW = OBSERVATION.join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id)
_IS_SEEN = and_(OBSERVATION.c.fence == RESOURCE.c.fence, OBSERVATION.c.looked_at.is_not(None))
_DRIFT = tuple(each for each in ObservedState if each.is_drift)
_WAS_WANTED_SINCE = OBSERVATION.c.wanted_at >= OBSERVATION.c.leased_at
_SOMEBODY_LOOKS = (
    select(SERVICE.c.id)
    .where(SERVICE.c.kind == 'observer', SERVICE.c.beat_at >= database_now() - SERVICE.c.lease_s)
    .exists()
)


@dataclass(frozen=True, slots=True)
class Unenrolled:
    """A stack that has come to rest, and of which nobody has looked yet what is to be observed."""

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class Drifted:
    """An object that is to be put right.

    :param root_id: the stack at the top of the tree that it belongs to.
    """

    root_id: str
    known: KnownObject


class Observations:
    """Enrols the objects that are to be looked at, hands them out, and keeps what was seen.

    An observation is good for as long as its row has the fence under which it was made; so what was seen of a row that
    somebody has claimed since is as if it had not been seen.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- what is observed -------------------------------------------------------------------------------------

    def unenrolled(self, limit: int) -> list[Unenrolled]:
        """Stacks at rest that are to be enrolled; none while no observer runs."""
        statement = (
            select(STACK.c.id, STACK.c.traversal_id)
            .join(TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id)
            .where(
                TRAVERSAL.c.enrolled.is_(False),
                TRAVERSAL.c.status.not_in(UNDER_WAY),
                STACK.c.status != Status.IN_PROGRESS,
                STACK.c.deleted_at.is_(None),
                _SOMEBODY_LOOKS,
            )
            .limit(limit)
        )
        with self._store.reading() as connection:
            return [Unenrolled(*row) for row in connection.execute(statement)]

    def enrol(self, stack: Unenrolled, intervals: Mapping[str, float], policies: DriftPolicies, limit: int) -> int:
        """Have the objects of a stack observed that are to be and are not yet, and no others; how many are new.

        :param intervals: longest pause in seconds between two looks, by type; others are not observed.
        :param policies: what is ignored is not observed.
        :param limit: most new ones at a time; where there are more, the stack is found again.
        """
        mine = OBSERVATION.c.stack_id == stack.stack_id
        there = (
            select(*(RESOURCE.c[name] for name in ('id', 'name', 'type', 'fence', 'replaces')), OBSERVATION.c.policy)
            .join(OBSERVATION, OBSERVATION.c.resource_id == RESOURCE.c.id, isouter=True)
            .where(
                RESOURCE.c.stack_id == stack.stack_id,
                RESOURCE.c.type.in_(sorted(intervals)),
                RESOURCE.c.action.not_in((Action.INIT, Action.DELETE)),
                RESOURCE.c.physical_id.is_not(None),
                RESOURCE.c.replaced_by.is_(None),
            )
        )
        present = select(STACK.c.traversal_id).where(STACK.c.id == stack.stack_id).scalar_subquery()
        seen_to = and_(
            TRAVERSAL.c.stack_id == stack.stack_id,
            TRAVERSAL.c.enrolled.is_(False),
            or_(TRAVERSAL.c.id == stack.traversal_id, TRAVERSAL.c.id != present),
        )

        def write(connection: Connection) -> int:
            wanted = {row: policies.of(row.name, row.type) for row in connection.execute(there)}
            wanted = {row: policy for row, policy in wanted.items() if policy is not DriftPolicy.IGNORE}
            past = {row.resource_id: row for row in connection.execute(_PAST.where(mine))}
            for some in chunks(sorted(past.keys() - {row.id for row in wanted})):
                connection.execute(delete(OBSERVATION).where(OBSERVATION.c.resource_id.in_(some)))
            _set_policies(connection, wanted)
            missing = {row: policy for row, policy in wanted.items() if row.policy is None}
            new = dict(list(missing.items())[:limit])
            _insert(connection, stack.stack_id, new, intervals, past)
            if len(missing) <= limit:
                connection.execute(update(TRAVERSAL).where(seen_to).values(enrolled=True))
            return len(new)

        return self._store.write(write, self.enrol)

    def enrol_again(self, root_id: str) -> None:
        """The policies of a stack, and of those nested in it, are others: what was given up is tried again."""
        tree = or_(STACK.c.id == root_id, STACK.c.root_id == root_id)

        def write(connection: Connection) -> None:
            found = connection.execute(select(STACK.c.id, STACK.c.traversal_id).where(tree)).all()
            for some in chunks(found):
                current = TRAVERSAL.c.id.in_([row.traversal_id for row in some])
                connection.execute(update(TRAVERSAL).where(current).values(enrolled=False))
                mine = OBSERVATION.c.stack_id.in_([row.id for row in some])
                connection.execute(update(OBSERVATION).where(mine).values(**_FRESH))

        self._store.write(write, self.enrol_again)

    # --- for repairs ------------------------------------------------------------------------------------------

    def to_repair(self, limit: int) -> list[Drifted]:
        """Objects that are to be put right and may be now, of stacks in whose tree nothing is in progress."""
        root = STACK.alias('root')
        statement = (
            select(*_COLUMNS, *_ROW_COLUMNS, root.c.id)
            .select_from(
                _WITH_ROW.join(STACK, STACK.c.id == OBSERVATION.c.stack_id).join(
                    root, root.c.id == func.coalesce(STACK.c.root_id, STACK.c.id)
                )
            )
            .where(
                OBSERVATION.c.policy == DriftPolicy.REPAIR,
                OBSERVATION.c.given_up.is_(False),
                OBSERVATION.c.found.in_(_DRIFT),
                _IS_SEEN,
                or_(OBSERVATION.c.repair_at.is_(None), OBSERVATION.c.repair_at <= database_now()),
                RESOURCE.c.status == Status.COMPLETE,
                RESOURCE.c.owner.is_(None),
                root.c.status == Status.COMPLETE,
                root.c.action.not_in(_NEVER_UP),
                STACK.c.status == Status.COMPLETE,
            )
            .order_by(root.c.id, RESOURCE.c.name)
            .limit(limit)
        )
        with self._store.reading() as connection:
            return [Drifted(row[-1], _known(row[:-1])) for row in connection.execute(statement)]

    def repair_begun(self, pauses: Mapping[str, float]) -> None:
        """A repair of some objects was begun.

        :param pauses: seconds until another one of the same object may begin, by the keys of the rows.
        """

        def write(connection: Connection) -> None:
            for pause_s in sorted(set(pauses.values())):
                mine = OBSERVATION.c.resource_id.in_([key for key, each in pauses.items() if each == pause_s])
                values = {'repairs': OBSERVATION.c.repairs + 1, 'repair_at': database_now() + pause_s}
                connection.execute(update(OBSERVATION).where(mine).values(**values))

        self._store.write(write, self.repair_begun)

    def give_up(self, resource_ids: Sequence[str]) -> None:
        """No repair of some objects is begun any more."""
        mine = OBSERVATION.c.resource_id.in_(resource_ids)
        ended = update(OBSERVATION).where(mine).values(given_up=True)
        self._store.write(lambda connection: connection.execute(ended).rowcount, self.give_up)

    # --- for observers ----------------------------------------------------------------------------------------

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """What is to be looked at now, each handed to one caller for `for_s` seconds; afterwards it is due again.

        Of what cannot be compared now (somebody works on it, it is suspended) nobody is told for a while.

        :param holder: of this lease alone: a new one each time.
        """
        due = (
            select(OBSERVATION.c.resource_id)
            .where(OBSERVATION.c.due_at <= database_now())
            .order_by(OBSERVATION.c.due_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )

        def take(connection: Connection) -> list[Leased]:
            keys = list(connection.execute(due).scalars())
            if not keys:
                return []
            these = OBSERVATION.c.resource_id.in_(keys)
            now = database_now()
            connection.execute(
                update(OBSERVATION).where(these).values(holder=holder, leased_at=now, due_at=now + for_s)
            )
            found = connection.execute(
                select(*_COLUMNS, *_ROW_COLUMNS, *STACK_COLUMNS)
                .select_from(OBSERVATION)
                .join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id, isouter=True)
                .join(STACK, STACK.c.id == OBSERVATION.c.stack_id, isouter=True)
                .where(these)
            ).all()
            at_row, at_stack = len(_COLUMNS), len(_COLUMNS) + len(_NEEDED)
            gone = [row[0] for row in found if row[at_stack] is None or row.deleted_at is not None]
            if gone:
                connection.execute(delete(OBSERVATION).where(OBSERVATION.c.resource_id.in_(gone)))
            return [_leased(row) for row in found if row[0] not in gone and row[at_row] is not None]

        leased = self._store.write(take, self.lease)
        return [each for each in leased if is_observable(each.stack, each.row)]

    def write(self, holder: str, looks: Sequence[LookOutcome]) -> int:
        """Keep what was seen under a lease; how much of it was taken.

        What somebody else was given since, and what was seen of a row that was claimed since, is not. What somebody
        has asked for meanwhile is due at once.
        """
        keys = [look.resource_id for look in looks]

        def put(connection: Connection) -> int:
            held = (
                select(OBSERVATION.c.resource_id, RESOURCE.c.fence)
                .join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id)
                .where(OBSERVATION.c.resource_id.in_(keys), OBSERVATION.c.holder == holder)
            )
            fences = dict(connection.execute(held).all())
            taken = [look for look in looks if fences.get(look.resource_id) == look.fence]
            alike: dict[tuple[LookSource, float], list[str]] = defaultdict(list)
            for look in taken:
                if look.same:
                    alike[look.source, look.pause_s].append(look.resource_id)
                else:
                    connection.execute(_keeping([look.resource_id], holder, look.source, look.pause_s, look))
            for (source, pause_s), same in alike.items():
                connection.execute(_keeping(same, holder, source, pause_s))
            return len(taken)

        return self._store.write(put, self.write) if looks else 0

    def put_off(self, holder: str, resource_ids: Sequence[str], for_s: float) -> None:
        """Nobody has looked at what was leased; it is due again in `for_s` seconds."""
        held = and_(OBSERVATION.c.resource_id.in_(resource_ids), OBSERVATION.c.holder == holder)
        later = update(OBSERVATION).where(held).values(due_at=database_now() + for_s, holder=None)
        if resource_ids:
            self._store.write(lambda connection: connection.execute(later).rowcount, self.put_off)

    def ask(self, stack_ids: Sequence[str], source: LookSource, resource_ids: Sequence[str] | None = None) -> float:
        """Have objects looked at as soon as possible.

        :param resource_ids: those of these rows alone; None: of all that are observed of the stacks.
        :returns: the time. A look that begins later tells how things were after this.
        """
        present = and_(OBSERVATION.c.holder.is_not(None), OBSERVATION.c.due_at > database_now())

        def ask(connection: Connection) -> float:
            now: float = connection.execute(select(database_now())).scalar_one()
            for some in chunks(list(stack_ids)):
                mine = [OBSERVATION.c.stack_id.in_(some)]
                if resource_ids is not None:
                    mine.append(OBSERVATION.c.resource_id.in_(list(resource_ids)))
                due_at = case((present, OBSERVATION.c.due_at), else_=now)
                values = {'wanted_at': now, 'wanted_by': source, 'due_at': due_at}
                connection.execute(update(OBSERVATION).where(*mine).values(**values))
            return now

        return self._store.write(ask, self.ask)

    # --- what is known ----------------------------------------------------------------------------------------

    def of_row(self, row: Resource) -> Observation | None:
        """What is known of the object of one row as that is now; None: it is not observed."""
        mine = select(*_COLUMNS).where(OBSERVATION.c.resource_id == row.id)
        with self._store.reading() as connection:
            found = connection.execute(mine).first()
        return _observation(found).as_of(row.fence) if found is not None else None

    def summary(self, stack_id: str) -> DriftSummary:
        """How many objects of a stack are observed, and how many are known to be otherwise than they were made."""
        drifted = and_(_IS_SEEN, OBSERVATION.c.found.in_(_DRIFT))
        figures = (
            func.count(),
            func.coalesce(func.sum(case((_IS_SEEN, 1), else_=0)), 0),
            func.coalesce(func.sum(case((drifted, 1), else_=0)), 0),
            func.min(case((drifted, OBSERVATION.c.since))),
            func.max(case((_IS_SEEN, OBSERVATION.c.looked_at))),
        )
        of_stack = select(*figures).select_from(_WITH_ROW).where(OBSERVATION.c.stack_id == stack_id)
        with self._store.reading() as connection:
            observed, seen, drifting, since, looked_at = connection.execute(of_stack).one()
        return DriftSummary(int(observed), int(seen), int(drifting), since, looked_at)

    def known(self, stack_ids: Sequence[str], *, drifted: bool = False, limit: int | None = None) -> list[KnownObject]:
        """What is known of the objects of some stacks, as they are now, by name; also that nobody has seen one yet.

        :param drifted: only of those that are known to be otherwise than they were made.
        """
        found: list[KnownObject] = []
        with self._store.reading() as connection:
            for some in chunks(list(stack_ids)):
                mine = select(*_COLUMNS, *_ROW_COLUMNS).select_from(_WITH_ROW).where(OBSERVATION.c.stack_id.in_(some))
                if drifted:
                    mine = mine.where(_IS_SEEN, OBSERVATION.c.found.in_(_DRIFT))
                rows = connection.execute(mine.order_by(RESOURCE.c.name, RESOURCE.c.id).limit(limit))
                found += [_known(row) for row in rows]
        return found[:limit]

    def waiting(self, stack_ids: Sequence[str]) -> int:
        """How many objects of some stacks somebody waits to be looked at that can be compared now."""
        waiting = 0
        with self._store.reading() as connection:
            for some in chunks(list(stack_ids)):
                mine = (
                    select(func.count())
                    .select_from(_WITH_ROW.join(STACK, STACK.c.id == OBSERVATION.c.stack_id))
                    .where(
                        OBSERVATION.c.stack_id.in_(some),
                        OBSERVATION.c.wanted_at.is_not(None),
                        STACK.c.status != Status.IN_PROGRESS,
                        STACK.c.action.not_in(_NEVER_UP),
                        RESOURCE.c.status == Status.COMPLETE,
                        RESOURCE.c.action.not_in(_NEVER_UP),
                        RESOURCE.c.owner.is_(None),
                    )
                )
                waiting += connection.execute(mine).scalar_one()
        return waiting


def _set_policies(connection: Connection, wanted: Mapping[Any, DriftPolicy]) -> None:
    """Give what is observed already the policies that hold now: with another one everything begins anew."""
    for policy in set(wanted.values()):
        others = [row.id for row, each in wanted.items() if each is policy and row.policy not in (None, policy)]
        for some in chunks(others):
            values = {'policy': policy, **_FRESH}
            connection.execute(update(OBSERVATION).where(OBSERVATION.c.resource_id.in_(some)).values(**values))


def _insert(
    connection: Connection,
    stack_id: str,
    new: Mapping[Any, DriftPolicy],
    intervals: Mapping[str, float],
    past: Mapping[str, Any],
) -> None:
    """Have objects observed that are not yet.

    :param past: what is known of repairs. An object that was made again keeps changing just as the one before it.
    """
    if not new:
        return
    now = connection.execute(select(database_now())).scalar_one()
    rows = [
        {
            **_unseen(row.id, stack_id, row.fence, now),
            **{name: getattr(past.get(row.replaces), name, _FRESH[name]) for name in _FRESH},
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
        'live': {},
        'reason': '',
        'since': now,
        'alike': 0,
        'source': LookSource.POLL,
    }


def _keeping(
    keys: Sequence[str], holder: str, source: LookSource, pause_s: float, look: LookOutcome | None = None
) -> Any:
    """The statement that keeps what was seen of some objects: that nothing is new, or else `look`.

    MariaDB sees what it has just assigned, so what others depend on comes last.
    """
    now, table = database_now(), OBSERVATION.c
    is_settled = and_(table.found == ObservedState.HEALTHY, table.alike >= SETTLED - 1)
    is_settled = is_settled if look is None else false()
    values: list[tuple[Any, Any]] = [
        (table.due_at, case((_WAS_WANTED_SINCE, now), else_=now + pause_s)),
        (table.wanted_by, case((_WAS_WANTED_SINCE, table.wanted_by), else_=null())),
        (table.wanted_at, case((_WAS_WANTED_SINCE, table.wanted_at), else_=null())),
        (table.looked_at, table.leased_at),
        (table.repairs, case((is_settled, 0), else_=table.repairs)),
        (table.given_up, case((is_settled, False), else_=table.given_up)),
        (table.source, source),
        (table.alike, table.alike + 1 if look is None else 1),
        (table.holder, None),
    ]
    if look is not None:
        sight = look.sight
        values += [
            (table.since, table.leased_at),
            (table.fence, look.fence),
            (table.found, sight.found),
            (table.names, sight.names),
            (table.live, dict(sight.live)),
            (table.reason, sight.reason),
        ]
    return update(OBSERVATION).where(table.resource_id.in_(keys), table.holder == holder).ordered_values(*values)


def _observation(values: Sequence[Any]) -> Observation:
    return Observation(*({} if value is UNREADABLE else value for value in values))


def _known(row: Any) -> KnownObject:
    start, end = len(_COLUMNS), len(_COLUMNS) + len(_NEEDED)
    read = dict(zip(_NEEDED, row[start:end], strict=True))
    damaged = tuple(name for name, value in read.items() if value is UNREADABLE)
    read |= {name: None if name == 'definition' else {} for name in damaged}
    read_row = Resource(**read, damaged=damaged)
    return KnownObject(_observation(row[:start]).as_of(read_row.fence), read_row)


def _leased(row: Any) -> Leased:
    known = _known(row)
    return Leased(_observation(row[: len(_COLUMNS)]), known.row, Stack(*row[len(_COLUMNS) + len(_NEEDED) :]))
