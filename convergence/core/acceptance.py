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
    """The result of accepting drift or withdrawing an acceptance.

    * `DONE`: the row is changed.
    * `BUSY`: an action on the resource is in progress.
    * `STALE`: the observation is no longer valid.
    * `ABSENT`: the resource has no object, or no acceptance.
    """

    DONE = 'DONE'
    BUSY = 'BUSY'
    STALE = 'STALE'
    ABSENT = 'ABSENT'


def accept(
    view: FinishView, seen: Observation, names: Collection[str], new_id: Callable[[], str]
) -> Decision[AcceptanceOutcome]:
    """Accept live values of some properties as desired and applied, if no action on the row is in progress.

    The row gets another fence, as with a claim, because earlier observations compared the object with other values.

    :param seen: the observation of the object, with the live values.
    :param names: names of the properties to accept.
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
    text = f'Accepted the live values of: {", ".join(sorted(names))}'
    event = Event.of_resource(new_id(), resource, resource.action, resource.status, text, view.now)
    update = UpdateResource(resource.id, None, resource.fence, changes)
    return Decision(AcceptanceOutcome.DONE, (update, InsertEvents((event,))))


def withdraw(view: FinishView, new_id: Callable[[], str]) -> Decision[AcceptanceOutcome]:
    """Withdraw the acceptance of a resource: the earlier values of the template count as applied again.

    The object then differs from its record again, with the usual consequences of drift.
    """
    resource = view.resource
    if resource is None or resource.accepted is None:
        return Decision(AcceptanceOutcome.ABSENT)
    hindrance = _hindrance(resource)
    if hindrance is not None:
        return Decision(hindrance)
    before = resource.accepted.wanted
    properties = {name: value for name, value in resource.properties.items() if name not in before}
    changes: ResourceChange = {
        'accepted': None,
        'properties': {**properties, **{name: value for name, value in before.items() if value is not None}},
        'fence': resource.fence + 1,
        'updated_at': view.now,
    }
    text = f'Accepted no more: {", ".join(sorted(before))}'
    event = Event.of_resource(new_id(), resource, resource.action, resource.status, text, view.now)
    update = UpdateResource(resource.id, None, resource.fence, changes)
    return Decision(AcceptanceOutcome.DONE, (update, InsertEvents((event,))))


def _hindrance(resource: Resource) -> AcceptanceOutcome | None:
    """Return the reason why the acceptance of a row cannot change now; None if it can."""
    if resource.action in (Action.INIT, Action.DELETE) or resource.replaced_by is not None:
        return AcceptanceOutcome.ABSENT
    is_free = resource.owner is None and resource.status is Status.COMPLETE
    return None if is_free else AcceptanceOutcome.BUSY


class Marked(StrEnum):
    """The result of marking a resource as healthy or unhealthy.

    * `DONE`: the row has the mark now, or had it before.
    * `BUSY`: an action on the resource is in progress.
    * `ABSENT`: the resource has no object.
    """

    DONE = 'DONE'
    BUSY = 'BUSY'
    ABSENT = 'ABSENT'


def mark(view: FinishView, unhealthy: bool, reason: str, new_id: Callable[[], str]) -> Decision[Marked]:
    """Mark a resource as unhealthy or healthy, if no action on it is in progress.

    The next update replaces an unhealthy resource. Only an unhealthy resource can become healthy.
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
