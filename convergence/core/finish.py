"""The end of an action: its effects on the row, the node and the traversal, after success, failure or anything else.

Each end must wake the nodes that wait for the row. In the current traversal these are the node's successors, through
their counters. In a superseded traversal it is the current traversal's own node for the row.
"""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core import failure, hooks, states
from convergence.core.begin import applied
from convergence.core.changes import ResourceChange
from convergence.core.claim import NO_NODE, Claim, Step, Worker
from convergence.core.decide import may_replace, restricted
from convergence.core.effects import (
    Decision,
    DeleteResource,
    Effect,
    FinishNode,
    InsertEvents,
    KeepItem,
    UpdateResource,
)
from convergence.core.handoff import Handoff
from convergence.core.handover import (
    STEP_TEXTS,
    after_failed_handover,
    after_handover,
    after_missing_object,
)
from convergence.core.hooks import admit_next
from convergence.core.model import PERFORMED, Action, Json, NodeStatus, Output, Restriction, Status
from convergence.core.object_state import may_still_sleep
from convergence.core.perform import item_of
from convergence.core.replacement import cleared, is_replaceable
from convergence.core.results import (
    End,
    Failed,
    NeedsReplacement,
    NotBegun,
    Parked,
    Postponed,
    Result,
    Succeeded,
)
from convergence.core.rows import Event, Resource, Retry
from convergence.core.views import FinishView
from convergence.values import replace


def as_claimed(claim: Claim, result: Result, now: float) -> FinishView | None:
    """Return the view for the end of an action from the rows that the claim saw, without reading them again.

    It is right if no process has written the rows since the claim, which is nearly always so.

    :param now: estimated time of the database's clock.
    :returns: None if the claim itself has written to the row, or the decision needs other rows.
    """
    if not isinstance(result, Succeeded) or not claim.completes_node or claim.step is Step.REPAIR:
        return None
    return FinishView(now, claim.resource, claim.node, claim.traversal, claim.stack, assumed=True)


def finish(view: FinishView, claim: Claim, result: Result, worker: Worker) -> Decision[End]:
    """Store the result of an action and release the row, in one decision."""
    resource = held_row(view, claim)
    if resource is None:
        return Decision(End.FENCED)
    decision = _finished(view, resource, claim, result, worker)
    if view.is_being_cancelled and not isinstance(result, Parked | Postponed | NotBegun):
        return replace(decision, verdict=End.OVER)
    return decision


def _finished(view: FinishView, resource: Resource, claim: Claim, result: Result, worker: Worker) -> Decision[End]:
    match result:
        case Succeeded() if claim.step is Step.REPAIR and may_still_sleep(resource):
            # The object exists, but a comparison cannot show if it is still suspended: the failed resume counts.
            unresumed = Failed(resource.status_reason, result.physical_id, result.data)
            return _failed(view, resource, claim, unresumed, worker)
        case Succeeded():
            return _succeeded(view, resource, claim, result, worker)
        case Failed():
            return _failed(view, resource, claim, result, worker)
        case Parked(handoff=Handoff()):
            return Decision(End.RELEASED)
        case Parked() | Postponed():
            return _parked(view, resource, claim, result)
        case NotBegun():
            return _not_begun(view, resource, claim, result)
        case NeedsReplacement() if _may_not_replace(resource, claim, result):
            reason = restricted(Restriction.REPLACE, result.reason)
            return _failed(view, resource, claim, Failed(reason, result.physical_id, result.data), worker)
        case NeedsReplacement():
            return _unsuitable(view, resource, claim, result, worker)


def _may_not_replace(resource: Resource, claim: Claim, result: NeedsReplacement) -> bool:
    definition = claim.node.definition
    row = replace(resource, physical_id=result.physical_id or resource.physical_id)
    return definition is not None and not may_replace(row, definition)


# --- the ends -------------------------------------------------------------------------------------------------


def _succeeded(view: FinishView, resource: Resource, claim: Claim, result: Succeeded, worker: Worker) -> Decision[End]:
    held = (resource.owner, resource.fence)
    effects: list[Effect] = []
    physical_id = result.physical_id or resource.physical_id
    hook = hooks.hook_after(view, claim) if claim.step is not Step.CLEAR else None
    mark: ResourceChange = hooks.at(hook, claim.traversal.id) if hook is not None else {}
    if claim.step is Step.CLEAR:
        effects.append(UpdateResource(resource.id, *held, {**rest(), **cleared(resource)}))
    elif claim.action is Action.DELETE and hook is not None:
        effects.append(UpdateResource(resource.id, *held, {**rest(), **mark}))
    elif claim.action is Action.DELETE:
        effects.append(DeleteResource(resource.id, *held, resource.was_signalled))
    elif claim.step in STEP_TEXTS:
        learned = known(result.physical_id, result.data)
        effects.append(
            UpdateResource(resource.id, *held, {**rest(), **learned, **after_handover(view, resource, claim)})
        )
    elif claim.action in PERFORMED and claim.step is not Step.READ:
        effects.append(UpdateResource(resource.id, *held, _performed(view, resource, claim, result)))
        effects += kept_item(claim, result)
    else:
        changes: ResourceChange = {
            **rest(),
            **known(result.physical_id, result.data),
            'output': result.output,
            **mark,
        }
        # If the object was only read, a superseded goal changes nothing in the row: the plan of the next goal relied on
        # the row and could not know of the change.
        if claim.pending is not None and (view.is_current or claim.step is not Step.READ):
            changes |= applied(claim.pending)
        if not _only_looked(resource, claim):
            changes |= _complete(resource, claim)
            changes['updated_at'] = view.now
        if not claim.completes_node:
            changes['digest'] = None
        effects.append(UpdateResource(resource.id, *held, changes))
    if not _only_looked(resource, claim):
        reason = result.note or STEP_TEXTS.get(claim.step, 'state changed')
        event = event_of(view, worker, resource, claim.action, Status.COMPLETE, reason, physical_id)
        effects.append(InsertEvents((event,)))
    if hook is not None:
        # The events have the order of what happened: first the end of the action, then the pause.
        pause = event_of(view, worker, resource, claim.action, Status.COMPLETE, hooks.paused(hook), physical_id)
        effects.append(InsertEvents((pause,)))
        return Decision(End.RELEASED, *admit_next(claim, effects))
    return _onward(view, claim, effects, result.output, worker)


def _performed(view: FinishView, resource: Resource, claim: Claim, result: Succeeded) -> ResourceChange:
    """Return the columns after an action that keeps the definition. The output changes only if the check read it."""
    state = states.resource_state(resource, claim.action, Status.COMPLETE, 'state changed')
    changes: ResourceChange = {} if result.output is None else {'output': result.output}
    return {**rest(), **known(result.physical_id, result.data), **state, **changes, 'updated_at': view.now}


def _only_looked(resource: Resource, claim: Claim) -> bool:
    """Return True if the object was only read or compared, and the comparison found no difference."""
    return claim.step is Step.READ or _looks(resource, claim)


def _looks(resource: Resource, claim: Claim) -> bool:
    """Return True if the claim compares the object of a working row and no update of it has begun."""
    return claim.step is Step.REPAIR and resource.status is Status.COMPLETE


def _found_wanting(resource: Resource, claim: Claim, reason: str, *, repairable: bool) -> ResourceChange:
    """Return the columns of a working row whose comparison found a difference: a failed check. Else nothing."""
    if not _looks(resource, claim):
        return {}
    return {**states.resource_state(resource, Action.CHECK, Status.FAILED, reason), 'repairable': repairable}


def _complete(resource: Resource, claim: Claim) -> ResourceChange:
    if claim.step is Step.REPAIR and resource.status is Status.FAILED:
        # The comparison found the object unchanged and in good order.
        return states.resource_state(resource, resource.action, Status.COMPLETE, 'found in good order')
    return states.resource_state(resource, claim.action, Status.COMPLETE, 'state changed')


def _onward(
    view: FinishView, claim: Claim, effects: list[Effect], output: Output | None, worker: Worker
) -> Decision[End]:
    """Finish the node of a released row if its traversal is running, else wake the nodes that wait for the row."""
    node = view.node
    if not view.is_current or node is None:
        return Decision(End.RELEASED, tuple(effects), view.waiting)
    if not view.is_running or node.status is not NodeStatus.READY:
        return Decision(End.RELEASED, tuple(effects))
    if not claim.completes_node:
        return Decision(End.RELEASED, tuple(effects), ((node.traversal_id, node.number),))
    effects.append(
        FinishNode(
            node.traversal_id,
            node.number,
            node.required_by,
            output and output.handed(),
            worker.window,
            node.next_in_backlog,
            checked=view.assumed,
        )
    )
    follower = ((node.traversal_id, node.next_in_backlog),) if node.next_in_backlog is not None else ()
    return Decision(End.DONE, tuple(effects), follower)


def _failed(view: FinishView, resource: Resource, claim: Claim, result: Failed, worker: Worker) -> Decision[End]:
    result = replace(result, reason=result.reason + failure.after(view.traversal, resource.name))
    changes: ResourceChange = {
        **rest(),
        **known(result.physical_id, result.data),
        'progress': result.progress,
        'status_reason': result.reason,
        'updated_at': view.now,
    }
    if claim.action is Action.CREATE:
        changes['nothing_made'] = result.nothing_made
        if not result.nothing_made and result.physical_id is None:
            changes |= search_limit(view, resource, worker)
    if claim.step is Step.CLEAR:
        changes |= {'clearing': False, 'progress': None}
    if resource.status is Status.IN_PROGRESS:
        changes |= states.resource_state(resource, claim.row_action, Status.FAILED, result.reason)
        changes['repairable'] = result.repairable
    changes |= after_failed_handover(resource, claim, result.reason)
    wanting = _found_wanting(resource, claim, result.reason, repairable=True)
    changes |= wanting
    action = wanting.get('action', claim.action)
    effects: list[Effect] = [
        UpdateResource(resource.id, resource.owner, resource.fence, changes),
        InsertEvents((event_of(view, worker, resource, action, Status.FAILED, result.reason, result.physical_id),)),
        *kept_item(claim, result),
    ]
    node, traversal = view.node, view.traversal
    if not view.is_current or node is None or traversal is None:
        return Decision(End.RELEASED, tuple(effects), view.waiting)
    if not claim.completes_node and claim.step not in (Step.CLEAR, *STEP_TEXTS):
        # The failed or cancelled action belongs to an older traversal: the node of this one is checked again.
        return Decision(End.RELEASED, tuple(effects), ((node.traversal_id, node.number),))
    if not view.is_running or node.status is not NodeStatus.READY:
        return Decision(End.RELEASED, tuple(effects))
    if failure.goes_on(traversal):
        effects.append(failure.noted(traversal, claim.action, resource.name, result.reason))
        return _onward(view, claim, effects, None, worker)
    effects += failure.node_failed(traversal, node, claim.action, resource.name, result.reason, view.now)
    return Decision(End.FAILED, tuple(effects))


def _parked(view: FinishView, resource: Resource, claim: Claim, result: Parked | Postponed) -> Decision[End]:
    """Park the action in its row. If an event arrived since the claim, poll at once: it may be the awaited one."""
    unheard = resource.event_count != claim.resource.event_count
    changes: ResourceChange = {
        **free(),
        **known(result.physical_id, result.data),
        'progress': result.progress,
        'wake_at': view.now if unheard else view.now + result.after_s,
        'polled_event_count': claim.resource.event_count,
        'crash_count': 0,
    }
    changes |= _again(resource, claim, result) if isinstance(result, Postponed) else {'retry': None}
    effects: list[Effect] = [
        UpdateResource(resource.id, resource.owner, resource.fence, changes),
        *kept_item(claim, result),
    ]
    if not view.is_current:
        return Decision(End.RELEASED, tuple(effects), view.waiting)
    node = claim.node
    again = ((node.traversal_id, node.number),) if unheard else ()
    admitted, follower = admit_next(claim, effects)
    return Decision(End.RELEASED, admitted, (*again, *follower))


def _not_begun(view: FinishView, resource: Resource, claim: Claim, result: NotBegun) -> Decision[End]:
    """Release the row in its state before the claim. It keeps the mark that a creation has left nothing behind."""
    changes: ResourceChange = {'owner': None, 'wake_at': None, **known(result.physical_id, result.data)}
    if claim.step is Step.CREATE or claim.clean:
        before = claim.resource.retry
        changes['retry'] = Retry(claim.attempts, before.error if before is not None else '', clean=True)
    effects = (UpdateResource(resource.id, resource.owner, resource.fence, changes),)
    again = () if claim.node.number == NO_NODE else ((claim.node.traversal_id, claim.node.number),)
    return Decision(End.RELEASED, effects, again if view.is_current else view.waiting)


def _again(resource: Resource, claim: Claim, result: Postponed) -> ResourceChange:
    # The row may be in a creation although the claim was for another step: a comparison for a repair adds no knowledge.
    # For a creation that was taken over, or that has answered before, there is no guarantee that it created nothing.
    from_the_start = claim.step is Step.CREATE or (claim.action is Action.CREATE and claim.clean)
    promised = from_the_start and result.progress is None and result.physical_id is None
    creating = resource.action is Action.CREATE
    retry = Retry(result.attempts, result.reason, clean=promised or not creating)
    return {'retry': retry, 'status_reason': f'attempt {result.attempts} failed, retrying: {result.reason}'}


def _unsuitable(
    view: FinishView, resource: Resource, claim: Claim, result: NeedsReplacement, worker: Worker
) -> Decision[End]:
    # The row that replaces this one continues the count: a worker that creates its object may crash in the same way.
    changes: ResourceChange = {
        **rest(),
        'crash_count': resource.crash_count,
        **known(result.physical_id, result.data),
    }
    effects: list[Effect] = []
    if resource.status is Status.IN_PROGRESS:
        # An update that began before the type refused it may have changed a part of the object. Its pending values and
        # requirements stay in the row, and a later goal that uses the old object again must repair it first.
        changes |= states.resource_state(resource, resource.action, Status.FAILED, result.reason)
        event = event_of(view, worker, resource, resource.action, Status.FAILED, result.reason, result.physical_id)
        effects.append(InsertEvents((event,)))
    wanting = _found_wanting(resource, claim, result.reason, repairable=False) or after_missing_object(
        resource, claim, result.reason
    )
    if wanting:
        changes |= wanting
        event = event_of(view, worker, resource, Action.CHECK, Status.FAILED, result.reason, result.physical_id)
        effects.append(InsertEvents((event,)))
    effects.insert(0, UpdateResource(resource.id, resource.owner, resource.fence, changes))
    if not view.is_current:
        return Decision(End.RELEASED, tuple(effects), view.waiting)
    node = claim.node
    woken = () if is_replaceable(node, claim.traversal) else ((node.traversal_id, node.number),)
    return Decision(End.RELEASED, tuple(effects), woken)


# --- columns and events ----------------------------------------------------------------------------------------


def held_row(view: FinishView, claim: Claim) -> Resource | None:
    """Return the row of a claim, or None if the claim was lost."""
    resource = view.resource
    if resource is None or resource.owner != claim.resource.owner or resource.fence != claim.resource.fence:
        return None
    return resource


def kept_item(claim: Claim, result: Succeeded | Failed | Parked | Postponed) -> list[Effect]:
    """Return the effect that stores the data of the type for a snapshot; nothing for any other action."""
    if claim.action is not Action.SNAPSHOT or result.kept is None:
        return []
    return [KeepItem(replace(item_of(claim.traversal.id, claim.resource), kept=result.kept))]


def search_limit(view: FinishView, resource: Resource, worker: Worker, silent_s: float = 0.0) -> ResourceChange:
    """Return the time until which an interrupted creation may still create its object, for a row without an object.

    After this time a search that finds nothing is reliable: the last call may still reach the service, or run there. A
    worker that died made its call before now. `convergence.core.orphans` handles an object that a living worker reports
    after that time.
    """
    if resource.action is not Action.CREATE or resource.physical_id is not None:
        return {}
    settles_s = worker.creation(resource.type).settles_s
    return {'search_until': view.now + max(0.0, settles_s - silent_s)}


def free() -> ResourceChange:
    """Return the columns of a released row."""
    return {'owner': None, 'progress': None, 'wake_at': None}


def rest() -> ResourceChange:
    """Return the columns of a row whose action has ended."""
    return {**free(), 'deadline': None, 'retry': None, 'crash_count': 0}


def known(physical_id: str | None, data: Mapping[str, Json]) -> ResourceChange:
    """Return the columns with the known data of the object. Unknown data never overwrite known data."""
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
    """Return the event of an action of a row.

    :param physical_id: id of its object, if it has become known only now; else None.
    """
    event = Event.of_resource(worker.new_id(), resource, action, status, reason, view.now)
    return replace(event, physical_id=physical_id or resource.physical_id)
