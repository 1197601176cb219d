"""A row that was left in the middle of an action when its stack came to rest: nobody waits for it any more."""

from __future__ import annotations

from convergence.core import failure, states
from convergence.core.changes import ResourceChange
from convergence.core.claim import Claim, Step, Worker
from convergence.core.creation import Made, made
from convergence.core.effects import Decision, InsertEvents, UpdateResource
from convergence.core.model import Action, NodeStatus, Phase, Status
from convergence.core.rows import Event, Node
from convergence.core.views import FinishView
from convergence.values import replace

NO_NODE = -1
"""Stands for the node of a row whose action belongs to none any more."""


def interrupt(view: FinishView, fence: int, worker: Worker) -> Decision[Claim | None]:
    """Claim the row in order to tell the resource type that its action is not wanted any more.

    :returns: as the verdict, the claim; None where somebody else sees to the row, or nobody has to.
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
    """Tell the truth about the row. The progress is kept: the next operation on the stack goes on from there.

    :returns: as the verdict, whether that was so.
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
