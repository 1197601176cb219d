"""The possible decisions about a node: it needs no work, a worker claims its row, or it fails."""

from __future__ import annotations

from convergence.core import failure, states
from convergence.core.changes import ResourceChange
from convergence.core.claim import Claim, Step, StepDecision, Worker
from convergence.core.decide import RESTRICTED, unreadable
from convergence.core.effects import Decision, Effect, FinishNode, InsertEvents, NotifyNode, UpdateResource
from convergence.core.model import Action, Output, Phase, Status
from convergence.core.object_state import Made, made, was_never_made
from convergence.core.rows import Event, Node, Pending, Resource, Retry
from convergence.core.views import NodeView
from convergence.values import replace


def leave_to_others(node: Node) -> Decision[StepDecision]:
    """Leave the row to another worker, and dispatch the next node of the backlog meanwhile."""
    if node.next_in_backlog is None:
        return Decision(StepDecision(Step.WAIT))
    return Decision(StepDecision(Step.WAIT), (NotifyNode(node.traversal_id, node.next_in_backlog),), _follower(node))


def nothing_to_do(
    view: NodeView, worker: Worker, effects: list[Effect], output: Output | None = None
) -> Decision[StepDecision]:
    """Finish the node without a call of its resource type.

    :param effects: further effects of the decision.
    :param output: the output for the nodes that require this one.
    """
    node = view.node
    handed = output and output.handed()
    finish = FinishNode(node.traversal_id, node.number, node.required_by, handed, worker.window, node.next_in_backlog)
    return Decision(StepDecision(Step.NOTHING), (*effects, finish), _follower(node))


def claim_row(
    view: NodeView,
    worker: Worker,
    step: Step,
    action: Action,
    changes: ResourceChange,
    pending: Pending | None = None,
    *,
    completes_node: bool = True,
) -> Decision[StepDecision]:
    """Claim the row for a call of its resource type.

    :param changes: columns that change with the claim.
    :param pending: the values that the row gets when the step has succeeded.
    :param completes_node: True if the success of the step finishes the node.
    """
    resource = view.resource
    assert resource is not None
    held: ResourceChange = {
        **changes,
        'owner': worker.id,
        'fence': worker.fence(resource),
        'wake_at': None,
        'traversal_id': view.traversal.id,
    }
    retry = resource.retry
    begins = step in (Step.CREATE, Step.UPDATE, Step.PERFORM, Step.DELETE) or (step is Step.ADOPT and retry is None)
    if begins or _has_a_time_of_its_own(step, changes, retry):
        held |= {'began_at': view.now, 'deadline': _deadline(view, worker, action), 'retry': None}
    if begins:
        held['crash_count'] = _crashes_so_far(step, resource)
    elif retry is not None:
        # From now on the call may have an effect. Only the worker that makes the call knows that it had none.
        held['retry'] = replace(retry, clean=False)
    effects: list[Effect] = [UpdateResource(resource.id, None, resource.fence, held)]
    if 'status' in changes:
        effects.append(InsertEvents((event_of(view, worker, resource, action, Status.IN_PROGRESS, 'state changed'),)))
    claim = Claim(
        step=step,
        action=action,
        resource=replace(resource, **held),
        node=view.node,
        stack=view.stack,
        traversal=view.traversal,
        completes_node=completes_node,
        pending=pending,
        at=view.now,
        clean=retry is not None and retry.clean,
    )
    return Decision(StepDecision(step, claim), tuple(effects))


def _has_a_time_of_its_own(step: Step, changes: ResourceChange, retry: Retry | None) -> bool:
    """Return True if a step that begins no action gets a time limit of its own.

    That is a failed action that continues, and a comparison that may lead to an update.
    """
    if step in (Step.RESUME, Step.CANCEL):
        return 'status' in changes
    if step in (Step.HAND_OVER, Step.RECLAIM) and 'status' in changes:
        return True
    return step in (Step.REPAIR, Step.HAND_OVER, Step.RECLAIM) and retry is None


def _crashes_so_far(step: Step, resource: Resource) -> int:
    """Return the number of crashes to start with.

    A creation whose object cannot be found begins again in another row, and the crashes of all attempts count.
    """
    return resource.crash_count if step is Step.CREATE else 0


def refuse(view: NodeView, worker: Worker, resource: Resource, reason: str) -> Decision[StepDecision]:
    """Fail the node before any action. A working resource keeps its state."""
    new = was_never_made(resource)
    first = Action.ADOPT if view.traversal.action is Action.ADOPT else Action.CREATE
    action = first if new else Action.UPDATE
    effects: list[Effect] = []
    if new:
        changes = states.resource_state(resource, first, Status.FAILED, reason)
        effects.append(UpdateResource(resource.id, None, resource.fence, changes))
    said = reason.removeprefix(RESTRICTED)  # clients of Heat compare the whole text
    effects.append(InsertEvents((event_of(view, worker, resource, action, Status.FAILED, said),)))
    effects += failure.node_failed(view.traversal, view.node, action, resource.name, reason, view.now)
    return Decision(StepDecision(Step.FAIL, None, view.stack.id), tuple(effects))


def refuse_lethal(view: NodeView, worker: Worker, resource: Resource, doing: str = '') -> Decision[StepDecision]:
    """Fail an action that has crashed several workers in a row, so that it does not crash every worker.

    :param doing: name of the work during which they crashed, if it is no action of the resource: then the resource
        keeps its state.
    """
    action = Action.UPDATE if doing else Action.CREATE if resource.action is Action.INIT else resource.action
    reason = (
        f'{resource.crash_count} workers in a row have died in the middle of {doing or action}; '
        'see their logs, then update or delete the stack to try again'
    )
    changes: ResourceChange = {'crash_count': 0}
    if not doing:
        changes |= {
            **states.resource_state(resource, action, Status.FAILED, reason),
            'deadline': None,
            'retry': None,
            'nothing_made': made(resource) is Made.NOTHING,
            'clearing': False,
            'repairable': action is Action.CHECK,
        }
    effects: list[Effect] = [
        UpdateResource(resource.id, None, resource.fence, changes),
        InsertEvents((event_of(view, worker, resource, action, Status.FAILED, reason),)),
        *failure.node_failed(view.traversal, view.node, action, resource.name, reason, view.now),
    ]
    return Decision(StepDecision(Step.FAIL, None, view.stack.id), tuple(effects))


def refuse_damaged(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Fail the node, because columns of its row cannot be read and so no action on its object is possible."""
    action = Action.DELETE if view.node.phase is Phase.CLEANUP else Action.UPDATE
    reason = unreadable(resource)
    event = InsertEvents((event_of(view, worker, resource, action, Status.FAILED, reason),))
    if failure.goes_on(view.traversal):
        noted = failure.noted(view.traversal, view.traversal.action, resource.name, reason)
        return nothing_to_do(view, worker, [event, noted])
    failed = failure.node_failed(view.traversal, view.node, action, resource.name, reason, view.now)
    return Decision(StepDecision(Step.FAIL, None, view.stack.id), (event, *failed))


def refuse_unread(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Fail the node, because the data that the operation stored for it cannot be read.

    The next operation on the stack stores them again.
    """
    parts = ['the stored plan of this operation for it'] if view.node.damaged else []
    parts += [f'the stored output of {", ".join(view.unread)}'] if view.unread else []
    reason = f'{" and ".join(parts)} cannot be read. Update the stack, which stores it again, or delete the stack'
    return refuse(view, worker, resource, reason)


def event_of(view: NodeView, worker: Worker, resource: Resource, action: Action, status: Status, reason: str) -> Event:
    """Return an event about the row of a node."""
    definition = view.node.definition
    event = Event.of_resource(worker.new_id(), resource, action, status, reason, view.now)
    return replace(event, resource_type=definition.shown_type) if definition is not None else event


def _deadline(view: NodeView, worker: Worker, action: Action) -> float | None:
    """Return the deadline of an action that begins now, or None if it has no time limit."""
    resource = view.resource
    assert resource is not None
    definition = view.node.definition if action is not Action.DELETE else None
    definition = definition or resource.definition
    limit_s = definition.time_limits.get(action) if definition is not None else None
    if limit_s is None:
        limit_s = worker.time_limit(definition.type if definition is not None else resource.type, action)
    return view.now + limit_s if limit_s is not None else None


def _follower(node: Node) -> tuple[tuple[str, int], ...]:
    return ((node.traversal_id, node.next_in_backlog),) if node.next_in_backlog is not None else ()
