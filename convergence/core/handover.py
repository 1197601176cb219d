"""Before a replacement and back: an object gives way to the one that replaces it, and takes back what that has.

Some objects hold what there can be only once: an address, a port. Who replaces such a row has it give that up first,
and only then is the new row made. The old one stays as it is otherwise, and is cleaned up when nothing is built on it.
When a later plan chooses it again it takes back what it gave, before anything else is done about it; so does every row
of the name which that leaves with less than it had. The row says so (`Resource.handover`) from before the first call on
until after the last: whoever goes on after a crash makes the same calls again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from convergence.core import states
from convergence.core.changes import ResourceChange
from convergence.core.claim import MAX_CRASHES, Claim, Step, StepDecision, Worker
from convergence.core.effects import Decision, Effect, UpdateResource, UpdateResources
from convergence.core.model import Action, Handover, Status
from convergence.core.object_state import Made, is_adopted, made
from convergence.core.rows import Resource
from convergence.core.verdicts import claim_row, leave_to_others, refuse_lethal
from convergence.core.views import FinishView, NodeView
from convergence.values import replace

HANDED_OVER = 'it has given up what its replacement needs'
RECLAIMED = 'it has taken back what it had given up for a replacement'
STEP_TEXTS: Mapping[Step, str] = {Step.HAND_OVER: HANDED_OVER, Step.RECLAIM: RECLAIMED}
"""What the events say of these steps."""


def must_hand_over(view: NodeView, worker: Worker, old: Resource) -> bool:
    """Whether a row has to give way before the one is made that replaces it, and has not yet."""
    if not worker.creation(old.type).hands_over or old.action is Action.DELETE or is_adopted(old):
        return False
    return made(old) is not Made.NOTHING and not _is(Handover.RELEASED, view, old)


def begin_handover(view: NodeView, old: Resource) -> Decision[str | None]:
    """Decide that a row gives way first; the node is then checked again, and has that done.

    :returns: as the verdict, the key of the row.
    """
    changes: ResourceChange = {
        **_stopped(old),
        'handover': Handover.RELEASING,
        'traversal_id': view.traversal.id,
        'wake_at': None,
    }
    effects = (UpdateResource(old.id, None, old.fence, changes),)
    return Decision(old.id, effects, ((view.node.traversal_id, view.node.number),))


def continue_handover(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision] | None:
    """What is next for a row that gives way in this traversal: that it does, or that it is replaced. Else None."""
    if _is(Handover.RELEASED, view, resource):
        return Decision(StepDecision(Step.REPLACE, None, view.stack.id, resource.id))
    if not _is(Handover.RELEASING, view, resource):
        return None
    return _claimed(view, worker, resource, Step.HAND_OVER, Handover.RELEASING)


def reclaim(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Take the row, to put its object in possession again; the node is checked again afterwards."""
    mark = Handover.DEPRIVED if resource.handover is Handover.DEPRIVED else Handover.RECLAIMING
    return _claimed(view, worker, resource, Step.RECLAIM, mark)


def _claimed(view: NodeView, worker: Worker, resource: Resource, step: Step, mark: Handover) -> Decision[StepDecision]:
    """Who still works on another row of the name may be about to take what is given: that comes to its end first."""
    if any(rival.owner is not None for rival in view.rivals):
        return leave_to_others(view.node)
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource, f'{step} of what there can be only once')
    changes: ResourceChange = {**_stopped(resource), 'handover': mark}
    held = claim_row(view, worker, step, Action.UPDATE, changes, completes_node=False)
    assert held.verdict.claim is not None
    rivals = tuple(rival for rival in view.rivals if made(rival) is not Made.NOTHING)
    return replace(held, verdict=replace(held.verdict, claim=replace(held.verdict.claim, rivals=rivals)))


def _stopped(resource: Resource) -> ResourceChange:
    """The columns of a row whose action is not tried again, if it waits for that."""
    if resource.status is not Status.IN_PROGRESS:
        return {}
    state = states.resource_state(resource, resource.action, Status.FAILED, 'given up for something else')
    return {**state, 'retry': None, 'nothing_made': made(resource) is Made.NOTHING}


def after_handover(view: FinishView, resource: Resource, claim: Claim) -> ResourceChange:
    """The columns of a row that has given way, or has taken back.

    Whoever has planned since then lets other rows take what this one has: then it stays marked as it is.
    """
    if claim.step is Step.HAND_OVER:
        gave = resource.handover is Handover.RELEASING
        return {'handover': Handover.RELEASED, 'status_reason': HANDED_OVER} if gave else {}
    if not view.is_current:
        return {}
    if resource.handover is not Handover.DEPRIVED or resource.status is not Status.COMPLETE:
        return {'handover': None, 'status_reason': RECLAIMED}
    # Others took it, and nobody wrote down what that was: its properties are applied again.
    return {'handover': None, **_in_doubt(resource, 'what it has was taken by another object of its name meanwhile')}


def after_failed_handover(resource: Resource, claim: Claim, reason: str) -> ResourceChange:
    """The columns of a row that perhaps gave way or took back in part. Of any other step: nothing."""
    return _in_doubt(resource, reason) if claim.step in STEP_TEXTS and resource.status is Status.COMPLETE else {}


def after_missing_object(resource: Resource, claim: Claim, reason: str) -> ResourceChange:
    """The columns of a row that cannot take anything back, because its object is gone. Of any other step: nothing."""
    if claim.step is not Step.RECLAIM or resource.status is not Status.COMPLETE or resource.action is Action.INIT:
        return {}
    return {**states.resource_state(resource, Action.CHECK, Status.FAILED, reason), 'repairable': False}


def _in_doubt(resource: Resource, reason: str) -> ResourceChange:
    if resource.action is Action.INIT:
        return {}  # nothing was made in it
    return {**states.resource_state(resource, Action.UPDATE, Status.FAILED, reason), 'digest': None}


def deprived(rows: Collection[Resource], chosen: Mapping[str, Resource]) -> tuple[str, ...]:
    """Keys of the rows that lose what they have when those take back what they gave that a plan has chosen."""
    returning = {row.name: row.id for row in chosen.values() if row.handover is not None}
    return tuple(
        sorted(
            row.id
            for row in rows
            if row.name in returning and row.id != returning[row.name] and row.action is not Action.DELETE
        )
    )


def after_lost_handover(rows: Collection[Resource], resource: Resource, claim: Claim) -> tuple[Effect, ...]:
    """What becomes true when it is forgotten that a row gave way, or took back: nobody knows any more who has what.

    :param rows: all of the stack.
    :param resource: the row as it is now.
    :param claim: under which that was done.
    """
    if claim.step not in STEP_TEXTS or resource.action is Action.INIT:
        return ()
    had = {rival.id for rival in claim.rivals}
    others = tuple(sorted(row.id for row in rows if row.id in had and row.action is not Action.DELETE))
    effects: list[Effect] = []
    if resource.handover is not Handover.DEPRIVED:
        effects.append(UpdateResources((resource.id,), {'handover': Handover.RECLAIMING}))
    if others:
        effects.append(UpdateResources(others, {'handover': Handover.DEPRIVED}))
    return tuple(effects)


def contested(
    rows: Collection[Resource], chosen: Mapping[str, Resource], hands_over: Callable[[str], bool]
) -> tuple[str, ...]:
    """Keys of the chosen rows that may lack what another row of their name has: that one never gave way to them.

    It is a leftover of somebody who had lost his row, or of a time that the database has forgotten.

    :param hands_over: whether the objects of a type hold what there can be only once of a name.
    """
    return tuple(
        sorted(
            {
                chosen[row.name].id
                for row in rows
                if row.name in chosen and row.id != chosen[row.name].id and _holds(row, hands_over)
                if chosen[row.name].handover is None and not is_adopted(chosen[row.name])
            }
        )
    )


def _holds(row: Resource, hands_over: Callable[[str], bool]) -> bool:
    given = row.handover is Handover.RELEASED or row.action is Action.DELETE or is_adopted(row)
    return not given and hands_over(row.type) and made(row) is not Made.NOTHING


def _is(mark: Handover, view: NodeView, resource: Resource) -> bool:
    """Whether a row is marked so for this very traversal."""
    return resource.handover is mark and resource.traversal_id == view.traversal.id
