"""What is known of the objects of resources: who looks at them next, and what was seen."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import (
    ColumnElement,
    Double,
    Select,
    Update,
    and_,
    bindparam,
    case,
    delete,
    false,
    func,
    insert,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.engine import Connection

from convergence.core.effects import InsertEvents
from convergence.core.model import UNDER_WAY, Action, DriftPolicy, Json, Status, TraversalStatus
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
    Past,
    is_observable,
    succession,
)
from convergence.core.rows import Event, Resource, Stack
from convergence.db.schema.columns import UNREADABLE, asked_at, database_now
from convergence.db.schema.models import OBSERVATION, RESOURCE, SERVICE, STACK, TRAVERSAL
from convergence.db.statements.applying.traversals import ENROL_AGAIN
from convergence.db.statements.hot import Hot, HotList, among
from convergence.db.statements.locking import by_key
from convergence.db.statements.row_columns import STACK_COLUMNS, chunks, columns
from convergence.db.statements.store import Store
from convergence.errors import Conflict
from convergence.values import replace

_COLUMNS = columns(OBSERVATION, Observation)
_LIVE = [column.name for column in _COLUMNS].index('live')
_NEVER_UP = (Action.INIT, Action.DELETE, Action.SUSPEND)
# What a look needs of a row: the other sealed columns are not opened for it.
_NEEDED = (
    *('id', 'stack_id', 'name', 'type', 'action', 'status', 'created_at', 'physical_id', 'definition', 'properties'),
    *('data', 'requires', 'replaced_by', 'owner', 'fence', 'token', 'revocation', 'template_id'),
    'accepted',
)
_ROW_COLUMNS = [RESOURCE.c[name] for name in _NEEDED]
_AT_ROW = len(_COLUMNS)
_AT_STACK = [column.name for column in _COLUMNS].index('stack_id')
_FRESH: dict[str, Any] = {'repairs': 0, 'repair_at': None, 'given_up': False}
_PAST = select(*columns(OBSERVATION, Past))
_NAMED = select(OBSERVATION.c.resource_id, OBSERVATION.c.stack_id, OBSERVATION.c.name)
_WITH_ROW = OBSERVATION.join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id)
_IS_SEEN = and_(OBSERVATION.c.fence == RESOURCE.c.fence, OBSERVATION.c.looked_at.is_not(None))
_DRIFT = tuple(each for each in ObservedState if each.is_drift)
_WAS_WANTED_SINCE = OBSERVATION.c.wanted_at >= OBSERVATION.c.leased_at
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
# Locked before anything else: nobody gives it another policy until the transaction is over. The operation is looked at
# before any row: a server that lags, and shows that it is over, shows from then on all that it has made.
_TOP_OF = (
    select(
        *(STACK.c.id, STACK.c.drift_policy, STACK.c.policy_told),
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
        TRAVERSAL.c.enrolled.is_(False),
        TRAVERSAL.c.status.not_in(UNDER_WAY),
        STACK.c.status != Status.IN_PROGRESS,
        STACK.c.deleted_at.is_(None),
        _SOMEBODY_LOOKS,
    )
    .limit(bindparam('limit'))
)
_ROOT, _LAST_OF_ROOT = STACK.alias('root'), TRAVERSAL.alias('last_of_root')
TO_REPAIR = (
    select(*_COLUMNS, *_ROW_COLUMNS, _ROOT.c.id)
    .select_from(
        _WITH_ROW.join(STACK, STACK.c.id == OBSERVATION.c.stack_id)
        .join(_ROOT, _ROOT.c.id == func.coalesce(STACK.c.root_id, STACK.c.id))
        .join(TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id)
        .join(_LAST_OF_ROOT, _LAST_OF_ROOT.c.id == _ROOT.c.traversal_id)
    )
    .where(
        OBSERVATION.c.policy == DriftPolicy.REPAIR,
        OBSERVATION.c.given_up.is_(False),
        OBSERVATION.c.found.in_(_DRIFT),
        _IS_SEEN,
        or_(OBSERVATION.c.repair_at.is_(None), OBSERVATION.c.repair_at <= asked_at()),
        RESOURCE.c.status == Status.COMPLETE,
        RESOURCE.c.owner.is_(None),
        _ROOT.c.status == Status.COMPLETE,
        _ROOT.c.action.not_in(_NEVER_UP),
        STACK.c.status == Status.COMPLETE,
        TRAVERSAL.c.enrolled.is_(True),
        _LAST_OF_ROOT.c.enrolled.is_(True),  # till then what is nested may not know of another policy
    )
    .order_by(func.coalesce(OBSERVATION.c.repair_at, OBSERVATION.c.since), _ROOT.c.id, RESOURCE.c.name)
    .limit(bindparam('limit'))
)


@cache
def failed_repairs(pauses: tuple[float, ...]) -> Select[Any]:
    """The stacks of which `Observations.failed_repairs` tells.

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


# Sent for each batch, again and again.
_DUE = Hot(
    select(OBSERVATION.c.resource_id)
    .where(OBSERVATION.c.due_at <= asked_at())
    .order_by(OBSERVATION.c.due_at)
    .limit(bindparam('most'))
    .with_for_update(skip_locked=True)
)
# The first of an index, as `min` is not on every server where something is taken away from it.
_NEXT_DUE = select(OBSERVATION.c.due_at - database_now()).order_by(OBSERVATION.c.due_at).limit(1)
_LEASE = HotList(
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
_READ_LEASED = HotList(
    'keys',
    lambda length: (
        select(*_COLUMNS, *_ROW_COLUMNS)
        .select_from(OBSERVATION)
        .join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id, isouter=True)
        .where(among(OBSERVATION.c.resource_id, 'keys', length))
    ),
)
_READ_HELD = HotList(
    'keys',
    lambda length: (
        select(OBSERVATION.c.resource_id, RESOURCE.c.fence)
        .join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id)
        .where(among(OBSERVATION.c.resource_id, 'keys', length), OBSERVATION.c.holder == bindparam('lessee'))
    ),
)
_READ_STACKS = HotList('keys', lambda length: select(*STACK_COLUMNS).where(among(STACK.c.id, 'keys', length)))


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
        with self._store.reading() as connection:
            return [Unenrolled(*row) for row in connection.execute(UNENROLLED, {'limit': limit})]

    def enrol(self, stack: Unenrolled, intervals: Mapping[str, float], policies: DriftPolicies, limit: int) -> int:
        """Have the objects of a stack observed that are to be and are not yet, and no others; how many are new.

        Where its operation is not seen to be over (it is under way, or a server lags) there may be others than seen:
        none is forgotten, and the stack is found again.

        :param intervals: longest pause in seconds between two looks, by type; others are not observed.
        :param policies: what is ignored is not observed. Where the stack at the top has got another policy since they
            were read nothing is done, and the stack is found again.
        :param limit: most new ones at a time; where there are more, the stack is found again.
        """
        mine = OBSERVATION.c.stack_id == stack.stack_id
        there = _with_object(stack.stack_id, intervals)
        present = select(STACK.c.traversal_id).where(STACK.c.id == stack.stack_id).scalar_subquery()
        seen_to = and_(
            TRAVERSAL.c.stack_id == stack.stack_id,
            TRAVERSAL.c.enrolled.is_(False),
            or_(TRAVERSAL.c.id == stack.traversal_id, TRAVERSAL.c.id != present),
        )

        def write(connection: Connection) -> int:
            top = connection.execute(_TOP_OF, {'stack': stack.stack_id}).first()
            if top is None or top.drift_policy is not policies.of_stack:
                return 0
            if top.id == stack.stack_id and not top.policy_told:
                _tell_policy(connection, top.id)
            # Read before the rows: else what somebody else enrols in between would seem to have none.
            known = [Past(*row) for row in connection.execute(_PAST.where(mine))]
            made = {row: policies.of(row.name, row.type) for row in connection.execute(there)}
            wanted = {row: policy for row, policy in made.items() if policy is not DriftPolicy.IGNORE}
            keys, names = {row.id for row in wanted}, {row.name for row in made}
            follows = succession(known, keys, names, is_complete=bool(top.is_complete))
            _set_policies(connection, wanted)
            missing = {row: policy for row, policy in wanted.items() if row.policy is None}
            new = dict(list(missing.items())[:limit])
            _insert(connection, stack.stack_id, new, intervals, follows.before)
            # What somebody asked for while the stack was busy could not be looked at, and was put off.
            put_off = update(OBSERVATION).where(mine, OBSERVATION.c.wanted_at.is_not(None))
            connection.execute(put_off.values(due_at=database_now()))
            if top.over == stack.traversal_id and len(missing) <= limit:
                # Not before all that follows them is known of.
                for some in chunks(sorted(follows.over)):
                    connection.execute(delete(OBSERVATION).where(OBSERVATION.c.resource_id.in_(some)))
                connection.execute(update(TRAVERSAL).where(seen_to).values(enrolled=True))
            return len(new)

        return self._store.write(write, self.enrol)

    # --- for repairs ------------------------------------------------------------------------------------------

    def to_repair(self, limit: int) -> list[Drifted]:
        """Objects that are to be put right and may be now, of stacks in whose tree nothing is in progress.

        Of those of which it is known what their policy is by now; first what might have been begun longest ago.
        """
        with self._store.reading() as connection:
            return [Drifted(row[-1], _known(row[:-1])) for row in connection.execute(TO_REPAIR, {'limit': limit})]

    def failed_repairs(self, pauses: Sequence[float], limit: int) -> list[str]:
        """Stacks whose last operation was a repair that failed, of which the pause is over; longest ago first."""
        if not pauses:
            return []
        with self._store.reading() as connection:
            return list(connection.execute(failed_repairs(tuple(pauses)), {'limit': limit}).scalars())

    def repair_begun(self, begun: Sequence[tuple[Resource, float]]) -> None:
        """A repair of some objects was begun. It may be over by now: then it counts for what has taken their places.

        :param begun: their rows, each with the seconds until another one of the same object may begin.
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
        """No repair of some objects is begun any more, and an event of each says so, whoever else comes to that too.

        :param told: the event of each, by the key of its row; it gets the time of now.
        """

        def write(connection: Connection) -> None:
            ended = [event for key, event in sorted(told.items()) if connection.execute(_giving_up(key)).rowcount]
            if ended:
                at = float(connection.execute(select(database_now())).scalar_one())
                events = tuple(replace(event, at=at) for event in ended)
                self._store.carry_out(connection, (InsertEvents(events),))

        self._store.write(write, self.give_up)

    def forget_repairs(self, resource_ids: Sequence[str]) -> None:
        """Earlier repairs of some objects do not count any more, and what was given up is tried again."""
        mine = OBSERVATION.c.resource_id.in_(resource_ids)
        begun = update(OBSERVATION).where(mine).values(**_FRESH)
        self._store.write(lambda connection: connection.execute(begun).rowcount, self.forget_repairs)

    # --- for observers ----------------------------------------------------------------------------------------

    def due_in_s(self) -> float | None:
        """Seconds until the next object is to be looked at, less than 0 if one is already; None: none is observed."""
        with self._store.reading() as connection:
            seconds: float | None = connection.execute(_NEXT_DUE).scalar()
        return seconds

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """What is to be looked at now, each handed to one caller for `for_s` seconds; afterwards it is due again.

        Of what cannot be compared now (somebody works on it, it is suspended) nobody is told for a while, unless
        somebody asks for it. Nobody holds that.

        :param holder: of this lease alone: a new one each time.
        """

        def take(connection: Connection) -> list[Leased]:
            keys = [key for (key,) in _DUE.all(connection, {'most': limit})]
            if not keys:
                return []
            _LEASE.write(connection, {'keys': keys, 'lessee': holder, 'for_s': for_s})
            found = _READ_LEASED.all(connection, {'keys': keys})
            # What is not seen here is gone, also for a server that lags: it is looked for after what is known of its
            # objects, which no state of the database has without it until both are removed.
            stacks = _stacks_of(connection, {row[_AT_STACK] for row in found})
            over = [row[0] for row in found if _is_over(stacks.get(row[_AT_STACK]))]
            if over:
                connection.execute(delete(OBSERVATION).where(OBSERVATION.c.resource_id.in_(over)))
            # What is known of a row that is gone waits for what took its place (`enrol`): how often it was repaired.
            there = [row for row in found if row[_AT_ROW] is not None and row[0] not in over]
            leased = [_leased(row, stacks[row[_AT_STACK]]) for row in there]
            leased = [each for each in leased if is_observable(each.stack, each.row)]
            nobodys = sorted(set(keys) - {each.observation.resource_id for each in leased} - set(over))
            if nobodys:
                connection.execute(_LET_GO, {'keys': nobodys})
            return leased

        return self._store.write(take, self.lease)

    def write(self, holder: str, looks: Sequence[LookOutcome]) -> int:
        """Keep what was seen under a lease; how much of it was taken.

        What somebody else was given since, and what was seen of a row that was claimed since, is not. What somebody
        has asked for meanwhile is due at once.
        """
        keys = [look.resource_id for look in looks]

        def put(connection: Connection) -> int:
            fences = dict(map(tuple, _READ_HELD.all(connection, {'keys': keys, 'lessee': holder})))
            taken = [look for look in looks if fences.get(look.resource_id) == look.fence]
            alike: dict[tuple[LookSource, float], list[str]] = defaultdict(list)
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

    def _tell(self, connection: Connection, look: LookOutcome) -> None:
        if look.news is not None:
            details: dict[str, Json] = {
                'drift_state': look.sight.found.value,
                'drift_properties': list(look.sight.names),
            }
            self._store.carry_out(connection, (InsertEvents((look.news,), details, is_drift=True),))

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
    """Have all that is nested in a stack enrolled by the policy that this has got; what was given up is tried again."""
    tree = or_(STACK.c.id == root_id, STACK.c.root_id == root_id)
    found = select(STACK.c.id, STACK.c.traversal_id).where(tree).order_by(STACK.c.traversal_id)
    for some in chunks(connection.execute(found).all()):
        keys = [row.traversal_id for row in some if row.traversal_id is not None]
        connection.execute(ENROL_AGAIN, {'keys': keys})
        repairs = and_(TRAVERSAL.c.id.in_(keys), TRAVERSAL.c.repair_attempt > 1)
        connection.execute(by_key(update(TRAVERSAL), TRAVERSAL).where(repairs).values(repair_attempt=1))
        mine = OBSERVATION.c.stack_id.in_([row.id for row in some])
        connection.execute(update(OBSERVATION).where(mine).values(**_FRESH))
    connection.execute(update(STACK).where(STACK.c.id == root_id).values(policy_told=True))


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
    past: Mapping[str, Past],
) -> None:
    """Have objects observed that are not yet.

    :param past: what is known of the objects before, by the names of their resources.
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
        'alike': 0,
        'source': LookSource.POLL,
    }


def _count_repairs(connection: Connection, pauses: Mapping[str, float]) -> int:
    """Note that repairs were begun; of how many objects it is noted."""
    counted = 0
    for pause_s in sorted(set(pauses.values())):
        mine = OBSERVATION.c.resource_id.in_(sorted(key for key, each in pauses.items() if each == pause_s))
        values = {'repairs': OBSERVATION.c.repairs + 1, 'repair_at': database_now() + pause_s}
        counted += connection.execute(update(OBSERVATION).where(mine).values(**values)).rowcount
    return counted


def _giving_up(resource_id: str) -> Update:
    """Nothing, where somebody else was first."""
    this = and_(OBSERVATION.c.resource_id == resource_id, OBSERVATION.c.given_up.is_(False))
    return update(OBSERVATION).where(this).values(given_up=True)


def _kept(
    source: Any, pause_s: Any, *, look: LookOutcome | None = None, is_settled: ColumnElement[bool]
) -> list[tuple[Any, Any]]:
    """What a look leaves of an object: that nothing is new, or else `look`.

    MariaDB sees what it has just assigned, so what others depend on comes last.
    """
    now, table = database_now(), OBSERVATION.c
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
            (table.live, dict(sight.live) or None),
            (table.reason, sight.reason),
            *([] if look.news is None else [(table.told, look.drift)]),
        ]
    return values


def _keeping(look: LookOutcome, holder: str) -> Update:
    """The statement that keeps what is new of an object."""
    this = and_(OBSERVATION.c.resource_id == look.resource_id, OBSERVATION.c.holder == holder)
    kept = _kept(look.source, look.pause_s, look=look, is_settled=false())
    return update(OBSERVATION).where(this).ordered_values(*kept)


def _keeping_alike(length: int) -> Update:
    """The statement that keeps of some objects that they are as they were."""
    mine = and_(among(OBSERVATION.c.resource_id, 'keys', length), OBSERVATION.c.holder == bindparam('lessee'))
    is_settled = and_(OBSERVATION.c.found == ObservedState.HEALTHY, OBSERVATION.c.alike >= SETTLED - 1)
    pause_s: Any = bindparam('pause_s', type_=Double())
    kept = _kept(bindparam('seen_by', type_=OBSERVATION.c.source.type), pause_s, is_settled=is_settled)
    return update(OBSERVATION).where(mine).ordered_values(*kept)


_KEEP_ALIKE = HotList('keys', _keeping_alike)


def _observation(values: Sequence[Any]) -> Observation:
    # Most objects are as they were made: nothing is sealed, and opened with each look, where there are no live values.
    values = [None if value is UNREADABLE else value for value in values]
    values[_LIVE] = values[_LIVE] or {}
    return Observation(*values)


def _row(values: Sequence[Any]) -> Resource:
    read = dict(zip(_NEEDED, values[_AT_ROW : _AT_ROW + len(_NEEDED)], strict=True))
    damaged = tuple(name for name, value in read.items() if value is UNREADABLE)
    read |= {name: None if name == 'definition' else {} for name in damaged}
    return Resource(**read, damaged=damaged)


def _known(values: Sequence[Any]) -> KnownObject:
    row = _row(values)
    return KnownObject(_observation(values[:_AT_ROW]).as_of(row.fence), row)


def _leased(values: Sequence[Any], stack: Stack) -> Leased:
    return Leased(_observation(values[:_AT_ROW]), _row(values), stack)


def _stacks_of(connection: Connection, ids: Collection[str]) -> dict[str, Stack]:
    """Some stacks, by their ids: many objects are of one, and each is read once."""
    return {stack.id: stack for stack in (Stack(*row) for row in _READ_STACKS.all(connection, {'keys': sorted(ids)}))}


def _is_over(stack: Stack | None) -> bool:
    return stack is None or stack.deleted_at is not None
