"""Restores the rows after the database has lost commits, for example in a fail-over, from the workers' knowledge."""

from __future__ import annotations

from collections.abc import Callable

from convergence.core import handover, nesting, states
from convergence.core.changes import ResourceChange
from convergence.core.claim import Claim, Step
from convergence.core.effects import Decision, InsertResources, UpdateResource
from convergence.core.model import Action, Status
from convergence.core.object_state import is_adopted, may_still_sleep
from convergence.core.orphans import Tracking, keep_track
from convergence.core.rows import Resource
from convergence.core.views import PlanView

_IN_DOUBT = {
    Action.UPDATE: Action.UPDATE,
    Action.SUSPEND: Action.SUSPEND,
    Action.DELETE: Action.CHECK,
}
"""The action that is marked as failed after an action was lost, so that the next update compares the object first.

After a lost deletion it is CHECK: the row is replaced if the goal contains its name, and cleaned up otherwise."""


def known_again(
    view: PlanView, claim: Claim, physical_id: str | None, perhaps_made: bool, new_id: Callable[[], str]
) -> Decision[Tracking]:
    """Make sure that a row names the object of a creation whose commits were lost.

    The object may have been in use, so it becomes a leftover only while its stack is at rest: the next operation then
    deletes it after its replacement is in service. A lost claim on a foreign object needs no row.

    :param view: the whole stack.
    :param perhaps_made: True if the creation may have created an object without a known id.
    """
    if is_adopted(claim.resource) or (physical_id is None and not perhaps_made):
        return Decision(Tracking.KNOWN)
    decision = keep_track(view, claim, physical_id, new_id)
    adds = any(isinstance(effect, InsertResources) for effect in decision.effects)
    stack = view.stack
    if adds and stack is not None and stack.status is Status.IN_PROGRESS and stack.action is not Action.DELETE:
        return Decision(Tracking.HELD)
    return decision


def is_unknown(view: PlanView, claim: Claim, physical_id: str | None) -> bool:
    """Return True if no row names the object of an action, because its creation was lost too.

    :param view: the whole stack.
    """
    if physical_id is None or claim.action is Action.DELETE:
        return False
    return not any(row.physical_id == physical_id and row.type == claim.resource.type for row in view.resources)


def put_in_doubt(view: PlanView, claim: Claim, reason: str, is_certain: bool = False) -> Decision[Tracking]:
    """Mark a row as failed if it lost an action other than a creation, so that the next update compares its object.

    If an older action is in progress in the row, the verdict is `HELD`: the caller tries again after its end.

    :param view: the whole stack.
    :param reason: status reason for the row.
    :param is_certain: True if an earlier call has found an older action in progress. The row is then marked in any
        case, unless the lost action was repeated since.
    """
    stack = view.stack
    if stack is None or stack.deleted_at is not None:
        return Decision(Tracking.LOST)
    row = next((row for row in view.resources if row.id == claim.resource.id), None)
    failed = None if _has_only_looked(claim) else _IN_DOUBT.get(claim.action)
    if row is None or failed is None or not (is_certain or _is_before(view, row, claim)):
        return Decision(Tracking.KNOWN)
    if row.owner is not None or row.status is Status.IN_PROGRESS:
        return Decision(Tracking.HELD)
    marked = handover.after_lost_handover(view.resources, row, claim)
    slept = failed is Action.SUSPEND and row.action not in (Action.INIT, Action.CREATE, Action.SUSPEND, Action.DELETE)
    is_looked_at = row.status is Status.FAILED and not slept and not may_still_sleep(row)
    if is_looked_at or row.action is Action.INIT or (is_certain and row.action is failed):
        # The next update compares or creates the object, or a worker has done so since. An update compares no suspended
        # object, and it compares an object to resume only if the resume fails.
        return Decision(Tracking.KNOWN, marked)
    changes: ResourceChange = {**states.resource_state(row, failed, Status.FAILED, reason), 'updated_at': view.now}
    write = UpdateResource(row.id, None, row.fence, changes)
    return Decision(Tracking.KNOWN, (write, *marked, *nesting.doubted(stack)))


def _has_only_looked(claim: Claim) -> bool:
    """Return True if the claim was for a comparison only: an object that may be suspended keeps its state."""
    return claim.step is Step.REPAIR and may_still_sleep(claim.resource)


def _is_before(view: PlanView, row: Resource, claim: Claim) -> bool:
    """Return True if a row is in a state from before a claim.

    Actions of an older traversal may have raised its fence since. If the database has lost the traversal of the claim,
    the current traversal began earlier, and no worker has seen the result of the claim. A traversal that began at the
    same time may be one that superseded it; that is no loss.
    """
    current, own = view.traversal, claim.traversal
    is_forgotten = current is not None and current.id != own.id and current.started_at < own.started_at
    return is_forgotten or row.fence < claim.resource.fence
