"""Decides about nodes of a traversal without a new goal: suspend, resume, check or snapshot an unchanged object."""

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
"""Actions after whose failure an object may be suspended or half suspended."""


def perform(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Claim a free row for the traversal's action, or first for the end of an unfinished action."""
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
    # The intent, stored before the call of the type: its copy can then be deleted even if its answer is lost.
    intent = KeepItem(item_of(view.traversal.id, resource))
    return Decision(decision.verdict, (*decision.effects, intent), decision.wake)


def item_of(snapshot_id: str, resource: Resource) -> SnapshotItem:
    """Return the data of a resource for a snapshot, before its type adds its own."""
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
    """Resume a suspended resource that the goal contains. The node is checked again afterwards."""
    changes: ResourceChange = {
        **states.resource_state(resource, Action.RESUME, Status.IN_PROGRESS, 'state changed'),
        'progress': None,
    }
    return claim_row(view, worker, Step.PERFORM, Action.RESUME, changes, completes_node=False)


def drop_snapshot(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Cancel a snapshot of the object that an ended traversal has left unfinished."""
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
    """Return the reason why the action is not possible in the state of the row; None if it is possible."""
    if resource.action is Action.INIT or was_never_made(resource):
        return 'it was never created; update the stack to create it'
    state = f'{resource.action}_{resource.status}'
    if action not in _ASLEEP and (is_asleep(resource) or may_still_sleep(resource)):
        # A new state would hide that the object must be resumed before it can be used or changed.
        return f'State {state} invalid for {action.lower()}; resume the stack first, or update it'
    if resource.status is Status.COMPLETE or resource.action in (*_ASLEEP, Action.SNAPSHOT):
        return None
    if resource.action is Action.CHECK and action in (Action.CHECK, Action.RESUME):
        return None
    return f'State {state} invalid for {action.lower()}; update the stack to repair it ({resource.status_reason})'


def _is_concerned(resource: Resource, action: Action, worker: Worker) -> bool:
    """Return True if the action applies to the row. Foreign objects are only checked."""
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
    # A resource that a user marked as healthy may be suspended. To resume it again does no harm.
    return resource.action in _ASLEEP or (resource.action, resource.status) == (Action.CHECK, Status.COMPLETE)


def _cannot(view: NodeView, worker: Worker, resource: Resource, reason: str) -> Decision[StepDecision]:
    """Fail the node and leave the row unchanged."""
    action = view.traversal.action
    event = InsertEvents((event_of(view, worker, resource, action, Status.FAILED, reason),))
    if failure.goes_on(view.traversal):
        noted = failure.noted(view.traversal, action, resource.name, reason)
        return nothing_to_do(view, worker, [event, noted])
    failed = failure.node_failed(view.traversal, view.node, action, resource.name, reason, view.now)
    return Decision(StepDecision(Step.FAIL, None, view.stack.id), (event, *failed))
