"""The handover between an object and its replacement: the object releases exclusive parts, and can reclaim them.

Some objects have an exclusive part: an address, a port. Before such a row is replaced, its object releases the part,
and only then the new row is created. Otherwise the old row stays unchanged, and cleanup deletes it when nothing depends
on it. If a later plan chooses the old row again, its object first reclaims its parts. A row of the same name that loses
parts by this reclaims them too if it is chosen later. `Resource.handover` is set from before the first call until after
the last one, so that a worker that continues after a crash repeats the same calls.
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

HANDED_OVER = 'released the exclusive parts that its replacement needs'
RECLAIMED = 'reclaimed the exclusive parts that it had released for a replacement'
STEP_TEXTS: Mapping[Step, str] = {Step.HAND_OVER: HANDED_OVER, Step.RECLAIM: RECLAIMED}
"""The texts of the events of these steps."""


def must_hand_over(view: NodeView, worker: Worker, old: Resource) -> bool:
    """Return True if the object of a row must release parts before its replacement is created, and has not yet."""
    if not worker.creation(old.type).hands_over or old.action is Action.DELETE or is_adopted(old):
        return False
    return made(old) is not Made.NOTHING and not _is(Handover.RELEASED, view, old)


def begin_handover(view: NodeView, old: Resource) -> Decision[str | None]:
    """Decide that the object of a row releases its exclusive parts. The next node check calls the type for it.

    :returns: a decision whose verdict is the id of the row.
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
    """Decide the next step of a row in a handover of this traversal: the release or the replacement.

    Return None if the row is not in a handover of this traversal.
    """
    if _is(Handover.RELEASED, view, resource):
        return Decision(StepDecision(Step.REPLACE, None, view.stack.id, resource.id))
    if not _is(Handover.RELEASING, view, resource):
        return None
    return _claimed(view, worker, resource, Step.HAND_OVER, Handover.RELEASING)


def reclaim(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Claim the row so that its object reclaims its exclusive parts. The node is checked again afterwards."""
    mark = Handover.DEPRIVED if resource.handover is Handover.DEPRIVED else Handover.RECLAIMING
    return _claimed(view, worker, resource, Step.RECLAIM, mark)


def _claimed(view: NodeView, worker: Worker, resource: Resource, step: Step, mark: Handover) -> Decision[StepDecision]:
    """Claim the row for a step of the handover, unless a worker has claimed another row of the same name.

    An action on such a row may just be taking the exclusive parts, so it must end first.
    """
    if any(rival.owner is not None for rival in view.rivals):
        return leave_to_others(view.node)
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource, f'{step} of exclusive parts')
    changes: ResourceChange = {**_stopped(resource), 'handover': mark}
    held = claim_row(view, worker, step, Action.UPDATE, changes, completes_node=False)
    assert held.verdict.claim is not None
    rivals = tuple(rival for rival in view.rivals if made(rival) is not Made.NOTHING)
    return replace(held, verdict=replace(held.verdict, claim=replace(held.verdict.claim, rivals=rivals)))


def _stopped(resource: Resource) -> ResourceChange:
    """Return the columns of a row whose action waits for a retry and is not retried any more; else none."""
    if resource.status is not Status.IN_PROGRESS:
        return {}
    state = states.resource_state(resource, resource.action, Status.FAILED, 'not retried, because the goal has changed')
    return {**state, 'retry': None, 'nothing_made': made(resource) is Made.NOTHING}


def after_handover(view: FinishView, resource: Resource, claim: Claim) -> ResourceChange:
    """Return the columns of a row after its object has released or reclaimed its parts.

    If a plan was made meanwhile, other rows may get the parts; then the mark of this row stays.
    """
    if claim.step is Step.HAND_OVER:
        gave = resource.handover is Handover.RELEASING
        return {'handover': Handover.RELEASED, 'status_reason': HANDED_OVER} if gave else {}
    if not view.is_current:
        return {}
    if resource.handover is not Handover.DEPRIVED or resource.status is not Status.COMPLETE:
        return {'handover': None, 'status_reason': RECLAIMED}
    # Another row took parts, and no column records which: the next update applies the properties again.
    return {'handover': None, **_in_doubt(resource, 'another object of its name took its exclusive parts meanwhile')}


def after_failed_handover(resource: Resource, claim: Claim, reason: str) -> ResourceChange:
    """Return the columns of a row after a failed step of a handover, which may have taken partial effect.

    Return nothing for any other step.
    """
    return _in_doubt(resource, reason) if claim.step in STEP_TEXTS and resource.status is Status.COMPLETE else {}


def after_missing_object(resource: Resource, claim: Claim, reason: str) -> ResourceChange:
    """Return the columns of a row that cannot reclaim parts, because its object is gone. Nothing for other steps."""
    if claim.step is not Step.RECLAIM or resource.status is not Status.COMPLETE or resource.action is Action.INIT:
        return {}
    return {**states.resource_state(resource, Action.CHECK, Status.FAILED, reason), 'repairable': False}


def _in_doubt(resource: Resource, reason: str) -> ResourceChange:
    if resource.action is Action.INIT:
        return {}  # the row has no object
    return {**states.resource_state(resource, Action.UPDATE, Status.FAILED, reason), 'digest': None}


def deprived(rows: Collection[Resource], chosen: Mapping[str, Resource]) -> tuple[str, ...]:
    """Return the ids of the rows that lose exclusive parts when the rows that a plan has chosen reclaim theirs."""
    returning = {row.name: row.id for row in chosen.values() if row.handover is not None}
    return tuple(
        sorted(
            row.id
            for row in rows
            if row.name in returning and row.id != returning[row.name] and row.action is not Action.DELETE
        )
    )


def after_lost_handover(rows: Collection[Resource], resource: Resource, claim: Claim) -> tuple[Effect, ...]:
    """Return the effects after the database has lost a step of a handover: the owner of the parts is unknown now.

    :param rows: all rows of the stack.
    :param resource: the row now.
    :param claim: the claim of the lost step.
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
    """Return the ids of the chosen rows that may lack exclusive parts, because another row of their name has them.

    Such a row is a leftover of a lost claim or of commits that the database has lost; it was in no handover.

    :param hands_over: returns True if the objects of a type have exclusive parts.
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
    """Return True if a row has the mark for this traversal."""
    return resource.handover is mark and resource.traversal_id == view.traversal.id
