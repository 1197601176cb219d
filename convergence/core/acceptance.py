"""What is there is taken for wanted: of a property that changed outside of its stack, by a person who says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum

from convergence.core.changes import ResourceChange
from convergence.core.effects import Decision, InsertEvents, UpdateResource
from convergence.core.model import Action, Json, Status
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
