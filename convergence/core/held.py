"""A row that somebody holds: what is written of it while its action goes on, and what changes when it is let go of."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.changes import ResourceChange
from convergence.core.check import updating
from convergence.core.claim import Claim, Worker
from convergence.core.effects import Decision, Effect, InsertEvents, KeepItem, UpdateResource
from convergence.core.model import Action, Json, Status
from convergence.core.perform import item_of
from convergence.core.results import End, Failed, Parked, Postponed, Succeeded
from convergence.core.rows import Event, Resource
from convergence.core.views import FinishView
from convergence.values import replace


def held_row(view: FinishView, claim: Claim) -> Resource | None:
    """The row of a claim; None where whoever claimed it does not hold it any more."""
    resource = view.resource
    if resource is None or resource.owner != claim.resource.owner or resource.fence != claim.resource.fence:
        return None
    return resource


def record(view: FinishView, claim: Claim, answer: Parked) -> Decision[bool]:
    """Write, while the action goes on, what has become known of it.

    :returns: as the verdict, whether the row is still held.
    """
    resource = held_row(view, claim)
    if resource is None:
        return Decision(False)
    changes: ResourceChange = {**known(answer.physical_id, answer.data), 'progress': answer.progress}
    return Decision(
        True, (UpdateResource(resource.id, resource.owner, resource.fence, changes), *kept_item(claim, answer))
    )


def escalate(view: FinishView, claim: Claim, worker: Worker) -> Decision[bool]:
    """A repair has found the object and is about to update it in place: now the update begins.

    :returns: as the verdict, whether the row is still held.
    """
    resource = held_row(view, claim)
    if resource is None:
        return Decision(False)
    assert claim.pending is not None
    changes = updating(resource, claim.pending)
    event = event_of(view, worker, resource, Action.UPDATE, Status.IN_PROGRESS, 'state changed', None)
    return Decision(
        True,
        (UpdateResource(resource.id, resource.owner, resource.fence, changes), InsertEvents((event,))),
    )


def release(
    view: FinishView, fence: int, worker: Worker, *, lost: bool = False, silent_s: float = 0.0
) -> Decision[End]:
    """Take a row from an owner that does not work on it any more; its action stays in the middle, to be resumed.

    :param worker: whoever takes it.
    :param lost: whether the owner has died.
    :param silent_s: for how many seconds it has certainly called nothing.
    """
    resource = view.resource
    if resource is None or resource.owner is None or resource.fence != fence:
        return Decision(End.FENCED)
    changes: ResourceChange = {
        'owner': None,
        'fence': fence + 1,
        'wake_at': None,
        **search_limit(view, resource, worker, silent_s),
    }
    if lost:
        changes['crash_count'] = resource.crash_count + 1
    effects = (UpdateResource(resource.id, resource.owner, fence, changes),)
    return Decision(End.RELEASED, effects, view.waiting)


# --- what changes, whatever the end --------------------------------------------------------------------------


def kept_item(claim: Claim, result: Succeeded | Failed | Parked | Postponed) -> list[Effect]:
    """What stores for a snapshot what the type keeps for it; nothing for any other action."""
    if claim.action is not Action.SNAPSHOT or result.kept is None:
        return []
    return [KeepItem(replace(item_of(claim.traversal.id, claim.resource), kept=result.kept))]


def search_limit(view: FinishView, resource: Resource, worker: Worker, silent_s: float = 0.0) -> ResourceChange:
    """For a row whose creation is left in the middle without a known object: when "not found" will mean something.

    The call may still land in the service that it was made to, or what it has begun go on there. Who died has made it
    before; of whoever lives, and comes back later than that, `convergence.core.leftover` keeps track.
    """
    if resource.action is not Action.CREATE or resource.physical_id is not None:
        return {}
    settles_s = worker.creation(resource.type).settles_s
    return {'search_until': view.now + max(0.0, settles_s - silent_s)}


def free() -> ResourceChange:
    """For a row that is let go of."""
    return {'owner': None, 'progress': None, 'wake_at': None}


def rest() -> ResourceChange:
    """For a row whose action has come to an end."""
    return {**free(), 'deadline': None, 'retry': None, 'crash_count': 0}


def known(physical_id: str | None, data: Mapping[str, Json]) -> ResourceChange:
    """What is known of the physical object; what is not known (any more) never overwrites what was."""
    changes: ResourceChange = {}
    if physical_id is not None:
        changes['physical_id'] = physical_id
    if data:
        changes['data'] = data
    return changes


def event_of(
    view: FinishView,
    worker: Worker,
    resource: Resource,
    action: Action,
    status: Status,
    reason: str,
    physical_id: str | None,
) -> Event:
    """The event of an action of a row.

    :param physical_id: of its object, where it has become known only now.
    """
    event = Event.of_resource(worker.new_id(), resource, action, status, reason, view.now)
    return replace(event, physical_id=physical_id or resource.physical_id)
