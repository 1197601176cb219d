"""Statements of users about an object: differences that they accept, and its health."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum

from convergence.core import states
from convergence.core.changes import ResourceChange
from convergence.core.effects import Decision, InsertEvents, UpdateResource
from convergence.core.model import Action, Json, Status
from convergence.core.object_state import was_never_made
from convergence.core.observation import Observation
from convergence.core.rows import Acceptance, Event, Resource
from convergence.core.views import FinishView


class AcceptanceOutcome(StrEnum):
    """What became of it.

    * `DONE`: the row says so now. `BUSY`: something is being done with the resource.
    * `STALE`: what was seen is not known to be so any more. `ABSENT`: there is no object any more.
    """

    DONE = 'DONE'
    BUSY = 'BUSY'
    STALE = 'STALE'
    ABSENT = 'ABSENT'


def accept(
    view: FinishView, seen: Observation, names: Collection[str], new_id: Callable[[], str]
) -> Decision[AcceptanceOutcome]:
    """Take live values of some properties for wanted and applied, if nobody holds the row and nothing is under way.

    The row gets another fence, as with a claim: what an observer saw before was compared with other values.

    :param seen: what is known of the object; it has the live values.
    """
    resource = view.resource
    if resource is None:
        return Decision(AcceptanceOutcome.ABSENT)
    hindrance = _hindrance(resource)
    if hindrance is not None:
        return Decision(hindrance)
    if resource.fence != seen.fence:
        return Decision(AcceptanceOutcome.STALE)
    before = resource.accepted or Acceptance()
    live: dict[str, Json] = {name: seen.live[name] for name in names}
    wanted: Mapping[str, Json] = {name: before.wanted.get(name, resource.properties.get(name)) for name in names}
    changes: ResourceChange = {
        'accepted': Acceptance({**before.wanted, **wanted}, {**before.live, **live}),
        'properties': {**resource.properties, **live},
        'fence': resource.fence + 1,
        'updated_at': view.now,
    }
    text = f'Accepted as it is: {", ".join(sorted(names))}'
    event = Event.of_resource(new_id(), resource, resource.action, resource.status, text, view.now)
    update = UpdateResource(resource.id, None, resource.fence, changes)
    return Decision(AcceptanceOutcome.DONE, (update, InsertEvents((event,))))


def withdraw(view: FinishView, new_id: Callable[[], str]) -> Decision[AcceptanceOutcome]:
    """Take back what was accepted of a resource: what the template said then counts as applied again.

    So the object differs as it did before, and what follows from that is what follows from any difference.
    """
    resource = view.resource
    if resource is None or resource.accepted is None:
        return Decision(AcceptanceOutcome.ABSENT)
    hindrance = _hindrance(resource)
    if hindrance is not None:
        return Decision(hindrance)
    wanted = resource.accepted.wanted
    properties = {name: value for name, value in resource.properties.items() if name not in wanted}
    changes: ResourceChange = {
        'accepted': None,
        'properties': {**properties, **{name: value for name, value in wanted.items() if value is not None}},
        'fence': resource.fence + 1,
        'updated_at': view.now,
    }
    text = f'Accepted no more: {", ".join(sorted(wanted))}'
    event = Event.of_resource(new_id(), resource, resource.action, resource.status, text, view.now)
    update = UpdateResource(resource.id, None, resource.fence, changes)
    return Decision(AcceptanceOutcome.DONE, (update, InsertEvents((event,))))


def _hindrance(resource: Resource) -> AcceptanceOutcome | None:
    """Why nothing can be said of the properties of a row now; None: it can."""
    if resource.action in (Action.INIT, Action.DELETE) or resource.replaced_by is not None:
        return AcceptanceOutcome.ABSENT
    is_free = resource.owner is None and resource.status is Status.COMPLETE
    return None if is_free else AcceptanceOutcome.BUSY


class Marked(StrEnum):
    """What became of it.

    * `DONE`: the row says so now, or did already. `BUSY`: something is being done with the resource.
    * `ABSENT`: there is no object of which anything could be said.
    """

    DONE = 'DONE'
    BUSY = 'BUSY'
    ABSENT = 'ABSENT'


def mark(view: FinishView, unhealthy: bool, reason: str, new_id: Callable[[], str]) -> Decision[Marked]:
    """Mark the row of a resource, if nobody holds it and nothing is under way.

    A broken one is replaced by the next update. Only what was broken can be well again.
    """
    resource = view.resource
    if resource is None or resource.action in (Action.INIT, Action.DELETE) or was_never_made(resource):
        return Decision(Marked.ABSENT)
    if resource.owner is not None or resource.status is Status.IN_PROGRESS:
        return Decision(Marked.BUSY)
    is_unhealthy = (resource.action, resource.status) == (Action.CHECK, Status.FAILED)
    if is_unhealthy is unhealthy and not (unhealthy and resource.repairable):
        return Decision(Marked.DONE)
    status = Status.FAILED if unhealthy else Status.COMPLETE
    state = states.resource_state(resource, Action.CHECK, status, reason)
    changes: ResourceChange = {**state, 'updated_at': view.now, 'repairable': False}
    event = Event.of_resource(new_id(), resource, Action.CHECK, status, reason, view.now)
    update = UpdateResource(resource.id, None, resource.fence, changes)
    return Decision(Marked.DONE, (update, InsertEvents((event,))))
