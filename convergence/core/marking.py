"""What a person says of a resource, without anybody having looked: that it is broken, or well again."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from convergence.core import states
from convergence.core.changes import ResourceChange
from convergence.core.decide import was_never_made
from convergence.core.effects import Decision, InsertEvents, UpdateResource
from convergence.core.model import Action, Status
from convergence.core.rows import Event
from convergence.core.views import FinishView


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
