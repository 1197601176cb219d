"""One node: what is to be done for it, and the claim of its row.

The store calls `begin` with the node's row locked and everything else read afterwards. Each of its answers is a value
(`Step`); a replacement or a wait is an expected outcome, not an error.
"""

from __future__ import annotations

from dataclasses import replace

from convergence.core import states
from convergence.core.adoption import is_adopted, is_offered, refusal
from convergence.core.claim import MOST_LOSSES, Assess, Begun, Step, Unwantable, Wanted, Worker
from convergence.core.digest import digest
from convergence.core.effects import Decision, DeleteResource, InsertEvents, UpdateResource
from convergence.core.hooks import is_gone, is_past_the_last, pause_before
from convergence.core.model import (
    PERFORMED,
    Action,
    Change,
    DeletionPolicy,
    NodeStatus,
    Phase,
    Restriction,
    Status,
)
from convergence.core.perform import is_asleep, let_go_of_snapshot, perform, wake_up
from convergence.core.rows import Pending, Resource
from convergence.core.verdicts import claim_row, event_of, leave_to_others, nothing_to_do, refuse, refuse_lethal
from convergence.core.views import NodeView


def begin(view: NodeView, worker: Worker, assess: Assess) -> Decision[Begun]:
    """Decide what to do for a node, and claim its row where a plugin has to be called."""
    node, resource = view.node, view.resource
    if not view.may_start or node.status is not NodeStatus.READY:
        return Decision(Begun(Step.DROP))
    if resource is None:
        return nothing_to_do(view, worker, []) if node.phase is Phase.CLEANUP else Decision(Begun(Step.DROP))
    if resource.owner is not None or _sleeps(view, resource) or resource.waits_at(view.traversal.id):
        return leave_to_others(node)
    if view.traversal.action in PERFORMED:
        return perform(view, worker, resource)
    if node.phase is Phase.CLEANUP:
        return _cleanup(view, worker, resource)
    return _update(view, worker, resource, assess)


def _sleeps(view: NodeView, resource: Resource) -> bool:
    """Whether this very traversal has parked the row until later, and nothing has happened since.

    Then a message that comes early is a double.

    What an older traversal has parked is looked at now: its timers name nodes that nobody visits any more.
    """
    if resource.wake_at is None or resource.wake_at <= view.now or resource.events != resource.heard:
        return False
    return resource.traversal_id == view.traversal.id


# --- cleanup --------------------------------------------------------------------------------------------------


def _cleanup(view: NodeView, worker: Worker, resource: Resource) -> Decision[Begun]:
    if view.chosen_id == resource.id:
        return nothing_to_do(view, worker, [])
    if is_gone(resource, view.traversal) or (resource.token is None and resource.physical_id is None):
        # Deleted already, or never begun: nothing of it exists anywhere.
        return nothing_to_do(view, worker, [DeleteResource(resource.id, None, resource.fence)])
    stays = _why_it_stays(view, resource)
    if stays is not None:
        event = event_of(view, worker, resource, Action.DELETE, Status.COMPLETE, stays)
        return nothing_to_do(view, worker, [DeleteResource(resource.id, None, resource.fence), InsertEvents((event,))])
    # A type whose cancel kills every worker is not told; its object goes all the same.
    if _is_unwanted(view, resource) and resource.action is not Action.DELETE and resource.losses < MOST_LOSSES:
        return claim_row(view, worker, Step.CANCEL, resource.action, {}, resource.pending, completes_node=False)
    resuming = resource.action is Action.DELETE and resource.status is Status.IN_PROGRESS
    if resuming and resource.losses >= MOST_LOSSES:
        return refuse_lethal(view, worker, resource)
    paused = None if resuming else pause_before(view, worker, resource, Action.DELETE)
    if paused is not None:
        return paused
    changes = {} if resuming else {
        **states.resource_state(resource, Action.DELETE, Status.IN_PROGRESS, 'state changed'),
        'progress': None,
    }
    step = Step.RESUME if resuming else Step.DELETE
    return claim_row(view, worker, step, Action.DELETE, changes)


def _why_it_stays(view: NodeView, resource: Resource) -> str | None:
    """Why a row goes and its object does not; None where the object is deleted."""
    if view.traversal.retains:
        return 'abandoned'
    policy = resource.definition.deletion_policy if resource.definition else DeletionPolicy.DELETE
    if policy is DeletionPolicy.RETAIN or is_adopted(resource):
        return 'retained'
    return 'never adopted' if is_offered(resource) else None


# --- update ---------------------------------------------------------------------------------------------------


def _update(view: NodeView, worker: Worker, resource: Resource, assess: Assess) -> Decision[Begun]:
    if is_adopted(resource):
        return _adopt(view, worker, resource, assess)
    first = _before_anything(view, worker, resource)
    if first is not None:
        return first
    if resource.action is not Action.DELETE and not is_offered(resource) and _is_unfinished(view, resource):
        return _resume(view, worker, resource)
    if resource.action is Action.DELETE:
        return Decision(Begun(Step.REPLACE, None, view.stack.id, resource.id))
    definition = view.node.definition
    assert definition is not None
    if definition.external_id is not None:
        return _adopt(view, worker, resource, assess)
    wanted = assess(view)
    if isinstance(wanted, Unwantable):
        return refuse(view, worker, resource, wanted.reason)
    pending = _pending(view, wanted)
    if is_offered(resource):
        return claim_row(view, worker, Step.ADOPT, Action.CREATE, _beginning(resource, pending), pending)
    if resource.action is Action.INIT or not _may_exist(resource):
        paused = pause_before(view, worker, resource, Action.CREATE)
        return paused if paused is not None else _create(view, worker, resource, pending)
    return _change(view, worker, resource, wanted.change, pending)


def _before_anything(view: NodeView, worker: Worker, resource: Resource) -> Decision[Begun] | None:
    """What the state of the row demands, whatever is wanted of it; None for nothing."""
    if is_asleep(resource):
        return wake_up(view, worker, resource)
    if resource.action is Action.SNAPSHOT and resource.status is Status.IN_PROGRESS:
        return let_go_of_snapshot(view, worker, resource)
    if is_past_the_last(resource, view.traversal):
        return nothing_to_do(view, worker, [], resource.output)
    if view.traversal.action is Action.ADOPT and resource.action is Action.INIT and not is_offered(resource):
        return refuse(view, worker, resource, 'Resource ID was not provided.')
    return None


def _change(
    view: NodeView, worker: Worker, resource: Resource, change: Change, pending: Pending
) -> Decision[Begun]:
    """Get from what is there to what is wanted."""
    definition, state = pending.definition, (resource.action, resource.status)
    if state == (Action.SNAPSHOT, Status.FAILED) and change is Change.NONE:
        change = Change.IN_PLACE  # nobody has changed the object; to apply its properties again makes sure of it
    is_other = resource.type != definition.type or change is Change.REPLACE
    must_replace = is_other or state == (Action.CHECK, Status.FAILED)
    if must_replace and Restriction.REPLACE in definition.restrictions:
        return refuse(view, worker, resource, restricted(Restriction.REPLACE))
    if not must_replace and change is Change.IN_PLACE and Restriction.UPDATE in definition.restrictions:
        return refuse(view, worker, resource, restricted(Restriction.UPDATE))
    is_broken = resource.status is not Status.COMPLETE and resource.action is not Action.SNAPSHOT
    if not (must_replace or is_broken or change is Change.IN_PLACE):
        return _keep(view, worker, resource, pending)
    paused = pause_before(view, worker, resource, Action.UPDATE)
    if paused is not None:
        return paused
    if must_replace:
        return Decision(Begun(Step.REPLACE, None, view.stack.id, resource.id))
    if is_broken and resource.losses >= MOST_LOSSES:
        return refuse_lethal(view, worker, resource, 'looking at it')
    if is_broken:
        return claim_row(view, worker, Step.REPAIR, Action.UPDATE, {}, pending)
    return _change_in_place(view, worker, resource, pending)


def _keep(view: NodeView, worker: Worker, resource: Resource, pending: Pending) -> Decision[Begun]:
    """The object is as it is wanted. Read what others ask of it, unless that is known."""
    output = resource.output
    if output is None or any(key not in output.attributes for key in view.node.asked):
        if resource.losses >= MOST_LOSSES:
            return refuse_lethal(view, worker, resource, 'reading its attributes')
        return claim_row(view, worker, Step.READ, resource.action, {}, pending)
    changes = applied(pending)
    return nothing_to_do(
        view, worker, [UpdateResource(resource.id, None, resource.fence, changes)], output
    )


def restricted(restriction: Restriction, cause: str = '') -> str:
    """Why an update fails: the environment does not let it do what it would have to."""
    because = f' ({cause})' if cause else ''
    return f'ResourceActionRestricted: {restriction} is restricted for resource.{because}'


def _adopt(view: NodeView, worker: Worker, resource: Resource, assess: Assess) -> Decision[Begun]:
    """Use an object that others have made; whatever the template says of it, it is not touched."""
    definition = view.node.definition
    assert definition is not None
    reason = refusal(resource, definition)
    if reason is not None:
        return refuse(view, worker, resource, reason)
    if resource.losses >= MOST_LOSSES:
        return refuse_lethal(view, worker, resource)
    if is_adopted(resource) and resource.type != definition.type:
        return Decision(Begun(Step.REPLACE, None, view.stack.id, resource.id))
    wanted = assess(view)
    if isinstance(wanted, Unwantable):
        return refuse(view, worker, resource, wanted.reason)
    pending = _pending(view, wanted)
    if is_adopted(resource) and resource.status is Status.COMPLETE:
        return _keep(view, worker, resource, pending)
    changes = {**_beginning(resource, pending), 'physical_id': definition.external_id}
    return claim_row(view, worker, Step.ADOPT, Action.CREATE, changes, pending)


def _pending(view: NodeView, wanted: Wanted) -> Pending:
    definition = view.node.definition
    assert definition is not None
    return Pending(
        definition=definition,
        properties=wanted.properties,
        requires=tuple(sorted({output.resource_id for output in view.inputs.values()})),
        template_id=view.traversal.template_id,
        digest='' if wanted.is_renewed else digest(definition, view.inputs),
        metadata=wanted.metadata,
    )


def applied(pending: Pending) -> dict[str, object]:
    """The columns of a row for which `pending` has become true."""
    return {
        'definition': pending.definition,
        'properties': pending.properties,
        'requires': pending.requires,
        'template_id': pending.template_id,
        'digest': pending.digest,
        'pending': None,
    }


def _create(view: NodeView, worker: Worker, resource: Resource, pending: Pending) -> Decision[Begun]:
    if resource.losses >= MOST_LOSSES:
        return refuse_lethal(view, worker, resource)
    changes = {**_beginning(resource, pending), 'token': worker.new_id()}
    return claim_row(view, worker, Step.CREATE, Action.CREATE, changes, pending)


def _beginning(resource: Resource, pending: Pending) -> dict[str, object]:
    """The columns of a row whose creation begins."""
    return {
        **states.resource_state(resource, Action.CREATE, Status.IN_PROGRESS, 'state changed'),
        'type': pending.definition.type,
        'definition': pending.definition,
        'properties': pending.properties,
        'pending': pending,
        'requires': pending.requires,
        'template_id': pending.template_id,
    }


def _change_in_place(view: NodeView, worker: Worker, resource: Resource, pending: Pending) -> Decision[Begun]:
    return claim_row(view, worker, Step.UPDATE, Action.UPDATE, updating(resource, pending), pending)


def updating(resource: Resource, pending: Pending) -> dict[str, object]:
    """The columns of a row whose update in place begins. It may depend on what either definition requires."""
    return {
        **states.resource_state(resource, Action.UPDATE, Status.IN_PROGRESS, 'state changed'),
        'pending': pending,
        'requires': tuple(sorted({*resource.requires, *pending.requires})),
        'digest': None,
        'progress': None,
    }


def _may_exist(resource: Resource) -> bool:
    """Whether anything may have been made for the row."""
    if resource.physical_id is not None:
        return True
    retry = resource.retry
    never_made = resource.action is Action.CREATE and resource.progress is None and retry is not None and retry.clean
    return resource.token is not None and not never_made


def _is_unfinished(view: NodeView, resource: Resource) -> bool:
    """Whether an action has to be brought to its end before this node can do what it wants.

    What only waits to be tried again is given up for something else that is wanted now.
    """
    if _is_same(view, resource):
        return True
    backing_off = resource.retry is not None and resource.retry.clean and resource.progress is None
    return resource.status is Status.IN_PROGRESS and not backing_off


def _is_unwanted(view: NodeView, resource: Resource) -> bool:
    """Whether the row is parked in the middle of an action of a traversal that was cancelled by this one."""
    return view.traversal.cancels and resource.status is Status.IN_PROGRESS and resource.progress is not None


def _is_same(view: NodeView, resource: Resource) -> bool:
    """Whether the row was left in the middle of just what this node wants, or is to try that again."""
    pending, definition = resource.pending, view.node.definition
    assert definition is not None
    left = resource.progress is not None or (resource.status is Status.IN_PROGRESS and resource.retry is not None)
    return left and pending is not None and pending.digest == digest(definition, view.inputs)


def _resume(view: NodeView, worker: Worker, resource: Resource) -> Decision[Begun]:
    """An action was left in the middle, by this traversal or an older one: bring it to its end first.

    Where that end is what this node wants too, it finishes the node; else the node is checked again afterwards. What
    a cancelled traversal has left is not waited for.
    """
    pending, definition = resource.pending, view.node.definition
    assert definition is not None
    same = pending is not None and pending.digest == digest(definition, view.inputs)
    if resource.losses >= MOST_LOSSES:
        return refuse_lethal(view, worker, resource)
    if not same and _is_unwanted(view, resource):
        return claim_row(view, worker, Step.CANCEL, resource.action, {}, pending, completes_node=False)
    if same and pending is not None:
        pending = replace(pending, template_id=view.traversal.template_id)
    changes = {} if resource.status is Status.IN_PROGRESS else states.resource_state(
        resource, resource.action, Status.IN_PROGRESS, 'resumed')
    return claim_row(view, worker, Step.RESUME, resource.action, changes, pending, completes_node=same)
