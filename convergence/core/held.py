"""Writes to a claimed row other than the end of its action: progress, release, and the end of an abandoned action."""

from __future__ import annotations

from convergence.core import failure, states
from convergence.core.begin import updating
from convergence.core.changes import ResourceChange
from convergence.core.claim import NO_NODE, Claim, Step, Worker
from convergence.core.effects import Decision, InsertEvents, UpdateResource
from convergence.core.finish import event_of, finish, held_row, kept_item, known, search_limit
from convergence.core.model import Action, NodeStatus, Phase, Status
from convergence.core.object_state import Made, made
from convergence.core.results import End, Failed, Parked
from convergence.core.rows import Event, Node
from convergence.core.views import FinishView
from convergence.values import replace


def record(view: FinishView, claim: Claim, answer: Parked) -> Decision[bool]:
    """Store the progress of an action while it continues.

    :returns: a decision whose verdict is True if the claim is still valid.
    """
    resource = held_row(view, claim)
    if resource is None:
        return Decision(False)
    changes: ResourceChange = {**known(answer.physical_id, answer.data), 'progress': answer.progress}
    return Decision(
        True, (UpdateResource(resource.id, resource.owner, resource.fence, changes), *kept_item(claim, answer))
    )


def escalate(view: FinishView, claim: Claim, worker: Worker) -> Decision[bool]:
    """Begin the update with which a repair changes the object in place, after it has compared the object.

    :returns: a decision whose verdict is True if the claim is still valid.
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
    """Take a row from an owner that no longer works on it. Its action stays in progress, and a worker resumes it.

    :param worker: the process that takes the row.
    :param lost: True if the owner has died.
    :param silent_s: seconds for which the owner has certainly called no resource type.
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


# --- actions that an ended operation left in progress --------------------------------------------------------


def interrupt(view: FinishView, fence: int, worker: Worker) -> Decision[Claim | None]:
    """Claim the row to cancel its action in the resource type, because no operation needs it any more.

    :returns: a decision whose verdict is the claim; None if another worker handles the row, or it needs no treatment.
    """
    resource, stack, traversal = view.resource, view.stack, view.traversal
    if resource is None or stack is None or traversal is None or not _is_left(view, fence):
        return Decision(None)
    held: ResourceChange = {'owner': worker.id, 'fence': worker.fence(resource), 'wake_at': None}
    node = Node(traversal.id, NO_NODE, Phase.CLEANUP, NodeStatus.FAILED, resource.name, resource.id)
    claim = Claim(
        step=Step.INTERRUPT,
        action=resource.action,
        resource=replace(resource, **held),
        node=node,
        stack=stack,
        traversal=traversal,
        completes_node=False,
        pending=resource.pending,
        at=view.now,
    )
    return Decision(claim, (UpdateResource(resource.id, None, fence, held),))


def give_up(view: FinishView, fence: int, worker: Worker) -> Decision[bool]:
    """Mark the unfinished action of the row as failed. Its progress stays: the next operation continues from there.

    :returns: a decision whose verdict is True if the row had such an action.
    """
    resource, stack = view.resource, view.stack
    if resource is None or stack is None or not _is_left(view, fence):
        return Decision(False)
    reason = f'unfinished when {stack.action} of the stack ended' + failure.after(view.traversal, resource.name)
    if resource.retry is not None and resource.retry.error:
        reason = f'{reason}: {resource.retry.error}'
    changes: ResourceChange = {
        **states.resource_state(resource, resource.action, Status.FAILED, reason),
        'wake_at': None,
        'deadline': None,
        'retry': None,
        'nothing_made': made(resource) is Made.NOTHING,
        'repairable': resource.action is Action.CHECK,
    }
    if resource.clearing:
        changes |= {'clearing': False, 'progress': None}
    event = Event.of_resource(worker.new_id(), resource, resource.action, Status.FAILED, reason, view.now)
    return Decision(True, (UpdateResource(resource.id, None, fence, changes), InsertEvents((event,))))


def _is_left(view: FinishView, fence: int) -> bool:
    resource, stack = view.resource, view.stack
    if resource is None or stack is None or resource.owner is not None or resource.fence != fence:
        return False
    return resource.status is Status.IN_PROGRESS and stack.status is not Status.IN_PROGRESS


def abandon(view: FinishView, claim: Claim, reason: str, worker: Worker) -> Decision[End]:
    """Fail an action whose thread does not stop. The fence grows, so the database refuses the thread's later writes."""
    decision = finish(view, claim, Failed(reason, repairable=claim.action is Action.CHECK), worker)
    effects = tuple(
        replace(effect, changes={**effect.changes, 'fence': effect.fence + 1})
        if isinstance(effect, UpdateResource)
        else effect
        for effect in decision.effects
    )
    return replace(decision, effects=effects)
