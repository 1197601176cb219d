"""What a worker has done and the database has lost, as after a fail-over: the rows are to tell what is still known."""

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
"""What counts as failed of a row of which an action was lost, so that the next update looks at the object first. One
that was deleted counts as broken: it is replaced where its name is wanted, and cleaned up where not."""


def known_again(
    view: PlanView, claim: Claim, physical_id: str | None, perhaps_made: bool, new_id: Callable[[], str]
) -> Decision[Tracking]:
    """Have a row for what a creation has made.

    An object that may have been in use already becomes a leftover only when its stack is at rest: the operation that
    follows removes it when something else has taken its place. What belongs to others is no concern of the stack any
    more, where that has been forgotten.

    :param view: the whole stack.
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
    """Whether no row knows the object of an action, as when its creation is lost with whoever has carried that out.

    :param view: the whole stack.
    """
    if physical_id is None or claim.action is Action.DELETE:
        return False
    return not any(row.physical_id == physical_id and row.type == claim.resource.type for row in view.resources)


def put_in_doubt(view: PlanView, claim: Claim, reason: str, is_certain: bool = False) -> Decision[Tracking]:
    """Put a row in doubt that says it is just what it was before another action than a creation.

    Where the row is in the middle of something that was begun before, the verdict is `HELD`: only afterwards it can be
    put in doubt.

    :param view: the whole stack.
    :param reason: what the row is to say.
    :param is_certain: whether the row was seen in such a middle already. Then it is in doubt, whatever has happened
        since, unless the same was done again.
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
        # The next update looks at it, or makes it, or somebody has done so since. It does not see what sleeps,
        # and what is to be resumed it only looks at when that fails.
        return Decision(Tracking.KNOWN, marked)
    changes: ResourceChange = {**states.resource_state(row, failed, Status.FAILED, reason), 'updated_at': view.now}
    write = UpdateResource(row.id, None, row.fence, changes)
    return Decision(Tracking.KNOWN, (write, *marked, *nesting.doubted(stack)))


def _has_only_looked(claim: Claim) -> bool:
    """Whether nothing was done to the object: what may still sleep is not changed, and its row goes on saying so."""
    return claim.step is Step.REPAIR and may_still_sleep(claim.resource)


def _is_before(view: PlanView, row: Resource, claim: Claim) -> bool:
    """Whether a row is in a state from before a claim.

    Its fence may have grown since by what an older traversal had still to do: where the stack has forgotten the
    traversal of the claim, and has begun no other one, nobody has come to what was done under it. One that began at the
    same moment may well be the one that took its place, in quick succession: that is no loss.
    """
    current, own = view.traversal, claim.traversal
    is_forgotten = current is not None and current.id != own.id and current.started_at < own.started_at
    return is_forgotten or row.fence < claim.resource.fence
