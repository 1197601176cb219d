"""Objects that a delete leaves behind, because whoever asked for it said so: their rows go, and say what stays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from convergence.core.effects import DeleteResource, Effect, InsertEvents
from convergence.core.model import Action, Status
from convergence.core.rows import Event, Resource

MANY = 20
"""So many of them are named in the reason of a stack; the events name all."""


def object_of(row: Resource) -> str:
    """What somebody needs to know to find the object of a row: type, physical id, token."""
    known = [row.shown_type]
    known += [f'physical id {row.physical_id}'] if row.physical_id is not None else []
    known += [f'token {row.token}'] if row.token is not None else []
    if row.physical_id is None and row.token is None:
        known.append('never created')
    return ', '.join(known)


def summary(left: Sequence[Resource]) -> str:
    """All of them in one sentence; empty where there are none."""
    if not left:
        return ''
    ordered = sorted(left, key=lambda row: (row.name, row.id))
    named = ', '.join(f'{row.name} ({object_of(row)})' for row in ordered[:MANY])
    more = f' and {len(left) - MANY} more, see the events' if len(left) > MANY else ''
    return f'left behind: {named}{more}'


def leave(left: Sequence[Resource], now: float, new_id: Callable[[], str]) -> list[Effect]:
    """The rows go, whoever holds them, and an event tells of each. What a holder writes late is refused."""
    effects: list[Effect] = [DeleteResource(row.id, row.owner, row.fence) for row in left]
    events = tuple(left_behind_event(row, now, new_id) for row in left)
    return [*effects, InsertEvents(events)] if events else effects


def left_behind_event(row: Resource, now: float, new_id: Callable[[], str]) -> Event:
    """The event that says so of one of them."""
    reason = f'left behind, as was asked for: {object_of(row)}'
    return Event.of_resource(new_id(), row, Action.DELETE, Status.COMPLETE, reason, now)


def unknown(names: Collection[str], rows: Sequence[Resource]) -> list[str]:
    """Those of the names that no row has."""
    return sorted(set(names) - {row.name for row in rows})
