"""Begins a node check: decides the step that a node needs and claims its row.

The store calls `begin` with the node's row locked and all other rows read after that. Each answer is a value (`Step`);
a replacement or a wait is an expected answer, not an error.
"""

from __future__ import annotations

from convergence.core import states
from convergence.core.changes import ResourceChange
from convergence.core.claim import MAX_CRASHES, Assess, Desired, Step, StepDecision, Undesirable, Worker
from convergence.core.decide import PlannedStep, ResourceGoal, StepKind, after_comparing, before_comparing, difference
from convergence.core.digest import digest, repeatable
from convergence.core.effects import Decision, DeleteResource, InsertEvents, UpdateResource
from convergence.core.handover import continue_handover, reclaim
from convergence.core.hooks import is_gone, is_past_the_last, pause_before, pauses_at_all
from convergence.core.model import PERFORMED, Action, DeletionPolicy, NodeStatus, Phase, Status
from convergence.core.nesting import is_doubted
from convergence.core.object_state import Made, is_adopted, is_going_on, is_offered, made, was_never_made
from convergence.core.perform import drop_snapshot, perform, wake_up
from convergence.core.replacement import go_on_clearing
from convergence.core.rows import Pending, Resource
from convergence.core.verdicts import (
    claim_row,
    event_of,
    leave_to_others,
    nothing_to_do,
    refuse,
    refuse_damaged,
    refuse_lethal,
    refuse_unread,
)
from convergence.core.views import NodeView
from convergence.values import replace


def begin(view: NodeView, worker: Worker, assess: Assess) -> Decision[StepDecision]:
    """Decide the step for a node, and claim its row if the step calls a resource type."""
    node, resource = view.node, view.resource
    if view.is_under_way and not view.may_start and node.status is NodeStatus.READY:
        return _let_end(view, worker, resource)
    if not view.may_start or node.status is not NodeStatus.READY:
        return Decision(StepDecision(Step.DROP))
    if resource is None:
        return nothing_to_do(view, worker, []) if node.phase is Phase.CLEANUP else Decision(StepDecision(Step.DROP))
    if resource.owner is not None or _sleeps(view, resource) or resource.waits_at(view.traversal.id):
        return leave_to_others(node)
    if resource.damaged and not view.traversal.retains and view.chosen_id != resource.id:
        return refuse_damaged(view, worker, resource)
    if view.traversal.action in PERFORMED:
        return perform(view, worker, resource)
    if node.phase is Phase.CLEANUP:
        return _cleanup(view, worker, resource)
    return _update(view, worker, resource, assess)


def _sleeps(view: NodeView, resource: Resource) -> bool:
    """Return True if this traversal has parked the row until later, and no event has arrived since.

    An early message is then a duplicate. A row that an older traversal has parked is polled now, because its timer
    names a node that no worker visits any more.
    """
    if resource.wake_at is None or resource.wake_at <= view.now or resource.event_count != resource.polled_event_count:
        return False
    return resource.traversal_id == view.traversal.id


def _let_end(view: NodeView, worker: Worker, resource: Resource | None) -> Decision[StepDecision]:
    """Decide the step in a traversal that is being cancelled: running actions continue, and no other action begins."""
    node = view.node
    if resource is None or resource.status is not Status.IN_PROGRESS:
        return Decision(StepDecision(Step.OVER, None, view.stack.id))
    if resource.owner is not None or _sleeps(view, resource):
        return Decision(StepDecision(Step.WAIT))
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    if resource.action is Action.SNAPSHOT and resource.traversal_id != view.traversal.id:
        return drop_snapshot(view, worker, resource)
    if resource.is_cleared:
        return go_on_clearing(view, worker, resource)
    pending, action = resource.pending, resource.action
    if action in PERFORMED or action is Action.DELETE:
        return claim_row(view, worker, Step.RESUME, action, {}, completes_node=action is view.traversal.action)
    same = node.phase is Phase.UPDATE and node.definition is not None and _repeats(view, resource)
    if same and pending is not None:
        pending = replace(pending, template_id=view.traversal.template_id)
    return claim_row(view, worker, Step.RESUME, action, {}, pending, completes_node=same)


# --- cleanup --------------------------------------------------------------------------------------------------


def _cleanup(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    if view.chosen_id == resource.id:
        return nothing_to_do(view, worker, [])
    gone = DeleteResource(resource.id, None, resource.fence, resource.was_signalled)
    if is_gone(resource, view.traversal) or was_never_made(resource):
        # The object was deleted already or never created.
        return nothing_to_do(view, worker, [gone])
    stays = _why_it_stays(view, resource)
    if stays is not None and not _is_let_go(resource, worker):
        event = event_of(view, worker, resource, Action.DELETE, Status.COMPLETE, stays)
        return nothing_to_do(view, worker, [gone, InsertEvents((event,))])
    if _ends_first(resource) and not worker.nests(resource.type):
        return _stop(view, worker, resource, resource.pending)
    if resource.action is Action.DELETE and resource.status is Status.IN_PROGRESS:
        return _go_on_deleting(view, worker, resource)
    paused = pause_before(view, worker, resource, Action.DELETE)
    if paused is not None:
        return paused
    changes: ResourceChange = {
        **states.resource_state(resource, Action.DELETE, Status.IN_PROGRESS, 'state changed'),
        'progress': None,
        'nothing_made': made(resource) is Made.NOTHING,
    }
    return claim_row(view, worker, Step.DELETE, Action.DELETE, changes)


def _go_on_deleting(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Claim the row for the end of its deletion. The deletion of a nested stack begins again in each traversal.

    An operation of the nested stack for an older traversal may be late, cancelled at any moment, or failed.
    """
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    if worker.nests(resource.type) and resource.traversal_id != view.traversal.id:
        return claim_row(view, worker, Step.DELETE, Action.DELETE, {'progress': None})
    return claim_row(view, worker, Step.RESUME, Action.DELETE, {})


def _why_it_stays(view: NodeView, resource: Resource) -> str | None:
    """Return the reason why the object of a deleted row stays; None if the object is deleted too."""
    if view.traversal.retains:
        return 'abandoned'
    policy = resource.definition.deletion_policy if resource.definition else DeletionPolicy.DELETE
    if policy is DeletionPolicy.RETAIN or is_adopted(resource):
        return 'retained'
    return 'never adopted' if is_offered(resource) else None


def _is_let_go(resource: Resource, worker: Worker) -> bool:
    """Return True if the object of a deleted row is an own nested stack, which must be abandoned as well."""
    return worker.nests(resource.type) and not is_adopted(resource) and not is_offered(resource)


# --- update ---------------------------------------------------------------------------------------------------


def _update(view: NodeView, worker: Worker, resource: Resource, assess: Assess) -> Decision[StepDecision]:
    if view.node.damaged or view.unread:
        return refuse_unread(view, worker, resource)
    if worker.max_input_bytes is not None and view.input_bytes > worker.max_input_bytes:
        size = f'what it takes from other resources has {view.input_bytes} bytes'
        return refuse(view, worker, resource, f'{size}; the limit [limits] max_input_bytes is {worker.max_input_bytes}')
    definition = view.node.definition
    assert definition is not None
    recreated = worker.creation(resource.type).is_repeated
    nests = worker.nests(definition.type)
    woken = resource.traversal_id == view.traversal.id  # for a row whose resume has failed: it failed in this traversal
    # An operation of a nested stack for another traversal may be late, or cancelled at any moment.
    adopts, repeats = view.traversal.action is Action.ADOPT, _repeats(view, resource) and (woken or not nests)
    goal = ResourceGoal(definition, adopts, repeats, recreated, nests, view.traversal.observes, woken)
    if is_past_the_last(resource, view.traversal) and not is_adopted(resource):
        return nothing_to_do(view, worker, [], resource.output)
    giving = continue_handover(view, worker, resource)
    if giving is not None:
        return giving
    planned = before_comparing(resource, goal)
    at_once = _before_assessing(view, worker, resource, planned) if planned is not None else None
    if at_once is not None:
        return at_once
    if definition.external_id is not None and resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    wanted = assess(view)
    if isinstance(wanted, Undesirable):
        return refuse(view, worker, resource, wanted.reason)
    if planned is None:
        change = difference(resource, definition, wanted.change, view.traversal.template_id, wanted.is_renewed)
        planned = after_comparing(resource, goal, change)
    return _carry_out(view, worker, resource, planned, _pending(view, wanted))


def _before_assessing(
    view: NodeView, worker: Worker, resource: Resource, planned: PlannedStep
) -> Decision[StepDecision] | None:
    """Decide a planned step that does not depend on the desired properties; return None if it depends on them."""
    match planned.kind:
        case StepKind.RESUME:
            return wake_up(view, worker, resource)
        case StepKind.DROP_SNAPSHOT:
            return drop_snapshot(view, worker, resource)
        case StepKind.FINISH:
            return _resume(view, worker, resource)
        case StepKind.REFUSE:
            return refuse(view, worker, resource, planned.reason)
        case StepKind.REPLACE:
            return _replace(view, resource)
        case StepKind.CLEAR:
            return go_on_clearing(view, worker, resource)
        case StepKind.RECLAIM:
            return reclaim(view, worker, resource)
    return None


def _replace(view: NodeView, resource: Resource) -> Decision[StepDecision]:
    return Decision(StepDecision(Step.REPLACE, None, view.stack.id, resource.id))


def _carry_out(
    view: NodeView, worker: Worker, resource: Resource, planned: PlannedStep, pending: Pending
) -> Decision[StepDecision]:
    """Claim the row for the planned step, unless the node pauses at a hook first."""
    kind = planned.kind
    if kind is StepKind.REFUSE:
        return refuse(view, worker, resource, planned.reason)
    if kind is StepKind.KEEP:
        pauses = pauses_at_all(view.traversal.action)
        paused = pause_before(view, worker, resource, Action.UPDATE) if pauses else None
        return paused or _keep(view, worker, resource, pending)
    if kind is StepKind.ADOPT:
        external_id = pending.definition.external_id
        taken: ResourceChange = {} if external_id is None else {'physical_id': external_id}
        changes: ResourceChange = {**_beginning(resource, pending, Action.ADOPT), **taken}
        return claim_row(view, worker, Step.ADOPT, Action.ADOPT, changes, pending)
    paused = pause_before(view, worker, resource, Action.CREATE if kind is StepKind.CREATE else Action.UPDATE)
    if paused is not None:
        return paused
    if kind is StepKind.CREATE:
        return _create(view, worker, resource, pending)
    if kind is StepKind.REPLACE:
        return _replace(view, resource)
    if kind is StepKind.UPDATE:
        return claim_row(view, worker, Step.UPDATE, Action.UPDATE, updating(resource, pending), pending)
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource, 'comparing it with its record')
    # Rows that the object may refer to from now on must not be deleted before it by a concurrent plan.
    return claim_row(view, worker, Step.REPAIR, Action.UPDATE, {'requires': _either(resource, pending)}, pending)


def _keep(view: NodeView, worker: Worker, resource: Resource, pending: Pending) -> Decision[StepDecision]:
    """Keep the object, which matches the goal. Claim the row only to read attributes that are used and unknown."""
    output = resource.output
    # Its nested stack got another goal from another source than this resource.
    is_stale = is_doubted(resource) and worker.nests(resource.type)
    if output is None or is_stale or any(key not in output.attributes for key in view.node.asked):
        if resource.crash_count >= MAX_CRASHES:
            return refuse_lethal(view, worker, resource, 'reading its attributes')
        return claim_row(view, worker, Step.READ, resource.action, {}, pending)
    changes = applied(pending)
    return nothing_to_do(view, worker, [UpdateResource(resource.id, None, resource.fence, changes)], output)


def _pending(view: NodeView, wanted: Desired) -> Pending:
    definition = view.node.definition
    assert definition is not None
    return Pending(
        definition=definition,
        properties=wanted.properties,
        requires=tuple(sorted({output.resource_id for output in view.inputs.values()})),
        template_id=view.traversal.template_id,
        digest='' if wanted.is_renewed else digest(definition, view.inputs),
        metadata=wanted.metadata,
        accepted=wanted.accepted,
    )


def applied(pending: Pending) -> ResourceChange:
    """Return the columns of a row to which `pending` was applied."""
    return {
        'definition': pending.definition,
        'properties': pending.properties,
        'requires': pending.requires,
        'template_id': pending.template_id,
        'digest': pending.digest,
        'accepted': pending.accepted,
        'pending': None,
    }


def _create(view: NodeView, worker: Worker, resource: Resource, pending: Pending) -> Decision[StepDecision]:
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    changes: ResourceChange = {**_beginning(resource, pending, Action.CREATE), **_named(view, resource, worker)}
    return claim_row(view, worker, Step.CREATE, Action.CREATE, changes, pending)


def _named(view: NodeView, resource: Resource, worker: Worker) -> ResourceChange:
    """Return the columns with the token of a creation. For a nested stack the token is its id and never changes.

    If the service creates no second object for the same token, a repeated creation of the row gets the same token, even
    if the database has lost its start. Otherwise each creation gets a token of its own.
    """
    definition = view.node.definition
    assert definition is not None
    if worker.nests(definition.type):
        token = resource.token or worker.new_id()
        return {'token': token, 'physical_id': token, 'progress': None}
    creation = worker.creation(definition.type)
    if creation.is_enforced and not creation.is_exclusive:  # a cleared row needs another object
        return {'token': repeatable(resource.id, resource.token, view.traversal.template_id, view.inputs)}
    return {'token': worker.new_id()}


def _beginning(resource: Resource, pending: Pending, action: Action) -> ResourceChange:
    """Return the columns of a row for which the creation or adoption of an object begins."""
    return {
        **states.resource_state(resource, action, Status.IN_PROGRESS, 'state changed'),
        'type': pending.definition.type,
        'definition': pending.definition,
        'properties': pending.properties,
        'pending': pending,
        'requires': pending.requires,
        'template_id': pending.template_id,
        'digest': None,
        'nothing_made': False,
    }


def updating(resource: Resource, pending: Pending) -> ResourceChange:
    """Return the columns of a row whose update in place begins. It requires the rows of both definitions."""
    return {
        **states.resource_state(resource, Action.UPDATE, Status.IN_PROGRESS, 'state changed'),
        'pending': pending,
        'requires': _either(resource, pending),
        'digest': None,
        'progress': None,
        'clearing': False,
    }


def _either(resource: Resource, pending: Pending) -> tuple[str, ...]:
    """Return the ids of the rows that a row requires before or after an update: both until the update succeeds."""
    return tuple(sorted({*resource.requires, *pending.requires}))


def _is_unwanted(view: NodeView, resource: Resource) -> bool:
    """Return True if the running action of the row belongs to a traversal that this one cancels, or that has ended."""
    return is_going_on(resource) and (view.traversal.cancels or resource.status is Status.FAILED)


def _ends_first(resource: Resource) -> bool:
    """Return True if the running action of a row must stop or end before its object is deleted.

    A failed action counts as ended if the object is known. If the cancel or poll of the type has killed several
    workers, the object is deleted without them.
    """
    if not is_going_on(resource) or resource.crash_count >= MAX_CRASHES:
        return False
    return resource.status is Status.IN_PROGRESS or made(resource) is Made.PERHAPS


def _stop(view: NodeView, worker: Worker, resource: Resource, pending: Pending | None) -> Decision[StepDecision]:
    """Claim the row to cancel its running action, or to poll it if its type cannot cancel; then the check repeats."""
    changes = _resumed(resource)
    return claim_row(view, worker, Step.CANCEL, resource.action, changes, pending, completes_node=False)


def _resumed(resource: Resource) -> ResourceChange:
    if resource.status is Status.IN_PROGRESS:
        return {}
    return states.resource_state(resource, resource.action, Status.IN_PROGRESS, 'resumed')


def _repeats(view: NodeView, resource: Resource) -> bool:
    """Return True if the unfinished action of the row has the definition and inputs of this node."""
    pending, definition = resource.pending, view.node.definition
    assert definition is not None
    if resource.handover is not None:
        return False  # its object must reclaim parts as well
    return pending is not None and pending.digest == digest(definition, view.inputs)


def _resume(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Claim the row for the end of an unfinished action of this or an older traversal.

    The end of the action finishes the node if it also reaches the goal of the node; else the node is checked again. The
    action of a cancelled traversal is cancelled instead.
    """
    pending = resource.pending
    same = _repeats(view, resource)
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    wakes = resource.action is Action.RESUME
    if not same and _is_unwanted(view, resource) and not (wakes and resource.traversal_id == view.traversal.id):
        if wakes:
            return wake_up(view, worker, resource)  # if it were cancelled, another resume would be necessary
        return _stop(view, worker, resource, pending)
    if same and pending is not None:
        pending = replace(pending, template_id=view.traversal.template_id)
    return claim_row(view, worker, Step.RESUME, resource.action, _resumed(resource), pending, completes_node=same)
