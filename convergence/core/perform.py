"""One node of a traversal that has no new goal: suspend, resume, check or snapshot the object of its row, as it is."""

from __future__ import annotations

from convergence.core import failure, states
from convergence.core.changes import ResourceChange
from convergence.core.claim import MAX_CRASHES, Step, StepDecision, Worker
from convergence.core.effects import Decision, InsertEvents, KeepItem
from convergence.core.model import PERFORMED, Action, Status
from convergence.core.object_state import is_adopted, is_asleep, may_still_sleep, was_never_made
from convergence.core.replacement import go_on_clearing
from convergence.core.rows import Resource, SnapshotItem
from convergence.core.verdicts import claim_row, event_of, nothing_to_do, refuse_lethal
from convergence.core.views import NodeView

_ASLEEP = frozenset({Action.SUSPEND, Action.RESUME})
"""What may have left an object suspended, or half so."""


def perform(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Do the traversal's action with a row that is free, or bring what was left in the middle to its end first."""
    action = view.traversal.action
    if resource.status is Status.IN_PROGRESS:
        return _go_on(view, worker, resource)
    reason = _obstacle(resource, action)
    if reason is not None:
        return _cannot(view, worker, resource, reason)
    if not _is_concerned(resource, action, worker):
        return nothing_to_do(view, worker, [])
    changes: ResourceChange = {
        **states.resource_state(resource, action, Status.IN_PROGRESS, 'state changed'),
        'progress': None,
    }
    decision = claim_row(view, worker, Step.PERFORM, action, changes)
    if action is not Action.SNAPSHOT:
        return decision
    # The intent, before the type is asked: what it then keeps can be deleted, whatever becomes of the answer.
    intent = KeepItem(item_of(view.traversal.id, resource))
    return Decision(decision.verdict, (*decision.effects, intent), decision.wake)


def item_of(snapshot_id: str, resource: Resource) -> SnapshotItem:
    """The beginning of what is kept of a resource for a snapshot."""
    return SnapshotItem(
        snapshot_id=snapshot_id,
        resource_id=resource.id,
        stack_id=resource.stack_id,
        name=resource.name,
        type=resource.type,
        physical_id=resource.physical_id,
        properties=resource.properties,
        data=resource.data,
    )


def wake_up(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """A goal wants a resource that is suspended: it is resumed, and then looked at again."""
    changes: ResourceChange = {
        **states.resource_state(resource, Action.RESUME, Status.IN_PROGRESS, 'state changed'),
        'progress': None,
    }
    return claim_row(view, worker, Step.PERFORM, Action.RESUME, changes, completes_node=False)


def drop_snapshot(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """A snapshot was left in the middle by a traversal that is over: it is over as well."""
    return claim_row(view, worker, Step.CANCEL, Action.SNAPSHOT, {}, completes_node=False)


def _go_on(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    if resource.is_cleared:
        return go_on_clearing(view, worker, resource)
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    same = resource.action is view.traversal.action
    if resource.action is Action.SNAPSHOT and resource.traversal_id != view.traversal.id:
        return drop_snapshot(view, worker, resource)
    pending = None if resource.action in PERFORMED else resource.pending
    return claim_row(view, worker, Step.RESUME, resource.action, {}, pending, completes_node=same)


def _obstacle(resource: Resource, action: Action) -> str | None:
    """Why the action cannot be done with an object in such a state; None where it can."""
    if resource.action is Action.INIT or was_never_made(resource):
        return 'it was never created; update the stack to create it'
    state = f'{resource.action}_{resource.status}'
    if action not in _ASLEEP and (is_asleep(resource) or may_still_sleep(resource)):
        # Another state would hide that it is to be resumed before it can be used or changed.
        return f'State {state} invalid for {action.lower()}; resume the stack first, or update it'
    if resource.status is Status.COMPLETE or resource.action in (*_ASLEEP, Action.SNAPSHOT):
        return None
    if resource.action is Action.CHECK and action in (Action.CHECK, Action.RESUME):
        return None
    return f'State {state} invalid for {action.lower()}; update the stack to repair it ({resource.status_reason})'


def _is_concerned(resource: Resource, action: Action, worker: Worker) -> bool:
    """Whether there is anything to do. Objects that others have made are looked at, and not touched."""
    if action is Action.CHECK:
        return True
    if is_adopted(resource):
        return False
    if action is Action.SNAPSHOT:
        return worker.keeps_snapshots(resource.type)
    if action is Action.SUSPEND:
        return (resource.action, resource.status) != (Action.SUSPEND, Status.COMPLETE)
    if (resource.action, resource.status) == (Action.RESUME, Status.COMPLETE):
        return False
    # It cannot be told of one that was marked as healthy whether it is suspended: to resume it again does no harm.
    return resource.action in _ASLEEP or (resource.action, resource.status) == (Action.CHECK, Status.COMPLETE)


def _cannot(view: NodeView, worker: Worker, resource: Resource, reason: str) -> Decision[StepDecision]:
    """The node fails, and the row stays what it is."""
    action = view.traversal.action
    event = InsertEvents((event_of(view, worker, resource, action, Status.FAILED, reason),))
    if failure.goes_on(view.traversal):
        noted = failure.noted(view.traversal, action, resource.name, reason)
        return nothing_to_do(view, worker, [event, noted])
    failed = failure.node_failed(view.traversal, view.node, action, resource.name, reason, view.now)
    return Decision(StepDecision(Step.FAIL, None, view.stack.id), (event, *failed))
