"""Read-only questions about parts of a stack: single resources, events by page, the frontier of a traversal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select

from convergence.core.model import Action, NodeStatus, Status
from convergence.core.rows import Event, ReceivedSignal, Resource
from convergence.db.records import FrontierNode
from convergence.db.repositories.reads.nested import below
from convergence.db.schema.columns import UNREADABLE, asked_at, database_now
from convergence.db.schema.models import EVENT, RESOURCE, SERVICE, SIGNAL, SNAPSHOT_ITEM, STACK, SYNC_POINT
from convergence.db.schema.row_columns import RESOURCE_COLUMNS, chunks, columns, resource_of
from convergence.db.statements.prepared.statement import PreparedStatement
from convergence.db.statements.store import Store

R = TypeVar('R')

AT_ONCE = 50
"""Rows held in memory at once where most of them are only filtered."""

StateFilter = tuple[Action | None, Status | None]
"""A state to filter by; None stands for any action, or any status."""

EVENT_SORT_KEYS: Mapping[str, ColumnElement[Any]] = {
    'event_time': EVENT.c.sequence,
    'created_at': EVENT.c.sequence,
    'resource_name': func.coalesce(EVENT.c.resource_name, ''),
    'logical_resource_id': func.coalesce(EVENT.c.resource_name, ''),
    'resource_type': func.coalesce(EVENT.c.resource_type, ''),
    'resource_action': EVENT.c.action,
    'resource_status': EVENT.c.status,
}


@dataclass(frozen=True, slots=True)
class EventPage:
    """Filters and page of a list of events.

    :param filters: accepted values by column (``id``, ``resource_name``, ``resource_type``). Events of the stack itself
        have
    its name; for the type, the value None stands for them.
    :param nested_depth: number of levels of nested stacks to include.
    :param states: accepted states; None: all.
    :param marker: id of the last event of the page before.
    :param sort_keys: names of `EVENT_SORT_KEYS`; events equal in these keys keep the order in which they happened.
    """

    stack_id: str
    filters: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    nested_depth: int = 0
    states: Sequence[StateFilter] | None = None
    marker: str | None = None
    limit: int | None = None
    sort_keys: tuple[str, ...] = ()
    descending: bool = False


@dataclass(frozen=True, slots=True)
class FrontierCounts:
    """How many of the ready nodes are held by a worker, and how many are parked, or paused at a hook."""

    claimed: int
    parked: int


def waits_at_hook(traversal_id: Any) -> ColumnElement[bool]:
    """The condition that a row is paused for a traversal until a hook is cleared. Never unknown, even without a row."""
    passed = and_(
        func.coalesce(RESOURCE.c.cleared_traversal_id, '') == traversal_id,
        func.coalesce(RESOURCE.c.cleared, '') == RESOURCE.c.hook,
    )
    return and_(func.coalesce(RESOURCE.c.hook_traversal_id, '') == traversal_id, ~passed)


_EVENT_NAME = func.coalesce(
    EVENT.c.resource_name, select(STACK.c.name).where(STACK.c.id == EVENT.c.stack_id).scalar_subquery()
)
"""The name under which an event is shown: one of a stack itself has the name of the stack."""

_IS_UP = and_(SERVICE.c.stopped.is_(False), SERVICE.c.beat_at > asked_at() - SERVICE.c.lease_s)
_IS_LOST = and_(RESOURCE.c.physical_id.is_(None), RESOURCE.c.output.is_(None))
_IS_PARKED = and_(RESOURCE.c.owner.is_(None), or_(RESOURCE.c.progress.is_not(None), RESOURCE.c.retry.is_not(None)))
_FRONTIER = (
    select(
        SYNC_POINT.c.number,
        SYNC_POINT.c.phase,
        SYNC_POINT.c.name,
        SYNC_POINT.c.resource_id,
        RESOURCE.c.type,
        RESOURCE.c.action,
        RESOURCE.c.status,
        RESOURCE.c.status_reason,
        RESOURCE.c.owner,
        SERVICE.c.host,
        case((_IS_UP, 1), else_=0),
        case((_IS_PARKED, 1), else_=0),
        RESOURCE.c.wake_at - database_now(),
        database_now() - SYNC_POINT.c.notified_at,
        case((RESOURCE.c.status == Status.IN_PROGRESS, database_now() - RESOURCE.c.began_at)),
        RESOURCE.c.deadline - database_now(),
        RESOURCE.c.crash_count,
        RESOURCE.c.retry,
        case((waits_at_hook(SYNC_POINT.c.traversal_id), RESOURCE.c.hook)),
        case((_IS_LOST, RESOURCE.c.token)),
        case((and_(_IS_LOST, RESOURCE.c.search_until > asked_at()), RESOURCE.c.search_until)),
    )
    .select_from(SYNC_POINT)
    .outerjoin(RESOURCE, RESOURCE.c.id == SYNC_POINT.c.resource_id)
    .outerjoin(SERVICE, SERVICE.c.id == RESOURCE.c.owner)
    .order_by(case((RESOURCE.c.owner.is_not(None), 0), else_=1), SYNC_POINT.c.notified_at, SYNC_POINT.c.number)
)
_COUNTS = (
    select(
        func.count(RESOURCE.c.owner),
        func.count(case((or_(_IS_PARKED, waits_at_hook(SYNC_POINT.c.traversal_id)), 1))),
    )
    .select_from(SYNC_POINT)
    .join(RESOURCE, RESOURCE.c.id == SYNC_POINT.c.resource_id)
)
_SIGNALS = select(RESOURCE.c.name, *columns(SIGNAL, ReceivedSignal)).join(
    RESOURCE, RESOURCE.c.id == SIGNAL.c.resource_id
)


class Inspector:
    """Answers questions about parts of a stack; `.stacks.Reader` adds those about whole stacks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def resources_named(self, stack_id: str, names: Sequence[str]) -> list[Resource]:
        """All rows of some resources of a stack: also replaced ones, and those that are being removed."""
        found: list[Resource] = []
        for some in chunks(sorted(set(names))):
            matches = and_(RESOURCE.c.stack_id == stack_id, RESOURCE.c.name.in_(some))
            found += self._many(resource_of, select(*RESOURCE_COLUMNS).where(matches))
        return found

    def damaged(self, stack_id: str) -> list[Resource]:
        """The rows of a stack in which something cannot be read, by name."""
        found: list[Resource] = []
        with self._store.reading() as connection:
            keys = connection.execute(select(RESOURCE.c.id).where(RESOURCE.c.stack_id == stack_id)).scalars().all()
            for some in chunks(keys, AT_ONCE):
                rows = connection.execute(select(*RESOURCE_COLUMNS).where(RESOURCE.c.id.in_(some)))
                found += [row for row in (resource_of(*values) for values in rows) if row.damaged]
        return sorted(found, key=lambda row: (row.name, row.created_at))

    def signals(self, resource_ids: Sequence[str]) -> list[tuple[str, ReceivedSignal]]:
        """The signals that some rows have received, oldest first, each with the name of the resource."""
        found: list[tuple[str, ReceivedSignal]] = []
        with self._store.reading() as connection:
            for some in chunks(sorted(set(resource_ids))):
                statement = _SIGNALS.where(SIGNAL.c.resource_id.in_(some))
                found += [(name, ReceivedSignal(*row)) for name, *row in connection.execute(statement)]
        return sorted(found, key=lambda each: each[1].sequence or 0)

    def has_signal(self, resource_id: str, signal_id: str) -> bool:
        """Return True if a row has received a signal."""
        statement = select(SIGNAL.c.id).where(SIGNAL.c.id == signal_id, SIGNAL.c.resource_id == resource_id)
        with self._store.reading() as connection:
            return connection.execute(statement).first() is not None

    def count_signals(self, resource_id: str) -> int:
        """How many signals a row has received."""
        statement = select(func.count()).select_from(SIGNAL).where(SIGNAL.c.resource_id == resource_id)
        with self._store.reading() as connection:
            return int(connection.execute(statement).scalar_one())

    def unfinished(self, stack_id: str, limit: int) -> list[Resource]:
        """Rows of a stack that failed, or were never begun, by name."""
        left = or_(RESOURCE.c.status == Status.FAILED, RESOURCE.c.action == Action.INIT)
        statement = select(*RESOURCE_COLUMNS).where(RESOURCE.c.stack_id == stack_id, left).order_by(RESOURCE.c.name)
        return self._many(resource_of, statement.limit(limit))

    def busy(self, stack_id: str, limit: int) -> list[Resource]:
        """Rows of a stack that are in the middle of an action, by name."""
        is_busy = and_(RESOURCE.c.stack_id == stack_id, RESOURCE.c.status == Status.IN_PROGRESS)
        return self._many(resource_of, select(*RESOURCE_COLUMNS).where(is_busy).order_by(RESOURCE.c.name).limit(limit))

    def has_event(self, page: EventPage, event_id: str) -> bool:
        """Return True if an event is one of those stacks that a page is about."""
        statement = select(EVENT.c.id).where(_is_of(page), EVENT.c.id == event_id)
        with self._store.reading() as connection:
            return connection.execute(statement).first() is not None

    def event_page(self, page: EventPage) -> list[Event]:
        """A page of the events of a stack, oldest first unless it says otherwise."""
        statement = select(*columns(EVENT, Event)).where(_is_of(page))
        for name, values in page.filters.items():
            column = _EVENT_NAME if name == 'resource_name' else EVENT.c[name]
            named = column.in_([value for value in values if value is not None])
            statement = statement.where(or_(named, EVENT.c[name].is_(None)) if None in values else named)
        if page.states is not None:
            statement = statement.where(in_states(EVENT.c.action, EVENT.c.status, page.states))
        keys = [*(EVENT_SORT_KEYS[name] for name in page.sort_keys), EVENT.c.sequence]
        if page.marker is not None:
            statement = statement.where(_behind(keys, page))
        order = [key.desc() if page.descending else key.asc() for key in keys]
        return self._many(Event, statement.order_by(*order).limit(page.limit))

    def frontier(self, traversal_id: str, limit: int) -> list[FrontierNode]:
        """At most `limit` ready nodes of a traversal: those held by a worker first, then the longest ready."""
        statement = _FRONTIER.where(_is_ready(traversal_id)).limit(limit)
        with self._store.reading() as connection:
            return [
                FrontierNode(
                    *row[:10],
                    bool(row[10]),
                    bool(row[11]),
                    *(None if each is UNREADABLE else each for each in row[12:]),
                )
                for row in connection.execute(statement)
            ]

    def frontier_counts(self, traversal_id: str) -> FrontierCounts:
        """Return the number of ready nodes that are claimed or parked."""
        with self._store.reading() as connection:
            claimed, parked = connection.execute(_COUNTS.where(_is_ready(traversal_id))).one()
        return FrontierCounts(int(claimed), int(parked))

    def now(self) -> float:
        """The database's clock, in seconds since the epoch."""
        with self._store.reading() as connection:
            return float(connection.execute(select(database_now())).scalar_one())

    def _one(self, kind: Callable[..., R], statement: Select[Any] | PreparedStatement, **key: str) -> R | None:
        with self._store.reading() as connection:
            row: Sequence[Any] | None
            if isinstance(statement, PreparedStatement):
                row = statement.first(connection, key)
            else:
                row = connection.execute(statement).first()
        return kind(*row) if row is not None else None

    def _many(self, kind: Callable[..., R], statement: Select[Any]) -> list[R]:
        with self._store.reading() as connection:
            return [kind(*row) for row in connection.execute(statement)]


def in_states(action: Any, status: Any, states: Sequence[StateFilter]) -> ColumnElement[bool]:
    """The condition that two columns are in one of some states; never, if there are none."""
    conditions = [
        and_(*([action == wanted[0]] if wanted[0] else []), *([status == wanted[1]] if wanted[1] else []))
        for wanted in states
        if any(wanted)
    ]
    return or_(*conditions) if conditions else action.in_([])


def _is_ready(traversal_id: str) -> ColumnElement[bool]:
    return and_(SYNC_POINT.c.traversal_id == traversal_id, SYNC_POINT.c.status == NodeStatus.READY)


def _is_of(page: EventPage) -> ColumnElement[bool]:
    if page.nested_depth < 1:
        return EVENT.c.stack_id == page.stack_id
    return EVENT.c.stack_id.in_(select(below(page.stack_id, page.nested_depth).c.id))


def _behind(keys: Sequence[ColumnElement[Any]], page: EventPage) -> ColumnElement[bool]:
    """The condition that an event comes after the marker in the order of `keys`."""
    alternatives: list[ColumnElement[bool]] = []
    equal: list[ColumnElement[bool]] = []
    for key in keys:
        value = select(key).where(EVENT.c.id == page.marker).correlate(None).scalar_subquery()
        alternatives.append(and_(*equal, key < value if page.descending else key > value))
        equal.append(key == value)
    return or_(*alternatives)


@dataclass(frozen=True, slots=True)
class Claims:
    """Objects that rows refer to: physical ids, and tokens of creations whose result is unknown."""

    physical_ids: frozenset[str]
    tokens: frozenset[str]


def types_of_rows(store: Store) -> set[str]:
    """The types of all rows for which there may be an object."""
    with_object = or_(RESOURCE.c.physical_id.is_not(None), RESOURCE.c.token.is_not(None))
    with store.reading() as connection:
        return set(connection.execute(select(RESOURCE.c.type).where(with_object).distinct()).scalars())


def claims(store: Store) -> Claims:
    """Return the objects that rows refer to, including rows kept for snapshots."""
    with store.reading() as connection:
        rows = connection.execute(select(RESOURCE.c.physical_id, RESOURCE.c.token)).all()
        kept = connection.execute(select(SNAPSHOT_ITEM.c.physical_id)).scalars().all()
    return Claims(
        frozenset(
            physical_id for physical_id in (*(row.physical_id for row in rows), *kept) if physical_id is not None
        ),
        frozenset(row.token for row in rows if row.token is not None),
    )
