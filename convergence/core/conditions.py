"""Conditions: the state of a stack or resource in a form that programs can wait for.

A condition is true or false, and has a reason, a start time and an operation that caused it. Later versions may add
conditions; programs read those that they know.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from convergence.core.model import PERFORMED, Action, Status, TraversalStatus
from convergence.core.observation import DriftSummary, Observation, ObservedState
from convergence.core.rows import Resource, Stack, Traversal

UNSEEN = DriftSummary()
"""The summary of a stack without observations."""


class ConditionType(StrEnum):
    """The type of a condition.

    * `READY`: all resources of the goal are up. Leftovers may still exist.
    * `PROGRESSING`: an operation makes progress.
    * `DRIFTED`: objects are known to differ from their records. Missing before the first observation.
    """

    READY = 'Ready'
    PROGRESSING = 'Progressing'
    DRIFTED = 'Drifted'


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    :param holds: True if the condition holds.
    :param reason: the reason as one word, for programs.
    :param message: the reason for users.
    :param since: time since when it is so; None: unknown.
    :param traversal_id: id of the operation that caused it.
    """

    type: ConditionType
    holds: bool
    reason: str
    message: str
    since: float | None
    traversal_id: str


def conditions(stack: Stack, traversal: Traversal | None, drift: DriftSummary = UNSEEN) -> tuple[Condition, ...]:
    """Return the conditions of a stack.

    :param traversal: the current traversal of the stack.
    :param drift: summary of the observations of its objects.
    """
    if traversal is None:
        return ()
    return (_ready(stack, traversal), _progressing(stack, traversal), *_drifted(drift, traversal.id))


def conditions_of(row: Resource, observation: Observation | None) -> tuple[Condition, ...]:
    """Return the conditions of a resource.

    :param observation: observation of its object; None: there is none.
    """
    since = row.updated_at or row.created_at
    state = f'{row.action.title()}{"".join(part.title() for part in row.status.split("_"))}'
    is_up = row.status is Status.COMPLETE and row.action not in (Action.INIT, Action.DELETE, Action.SUSPEND)

    def told(kind: ConditionType, holds: bool) -> Condition:
        return Condition(kind, holds, state, row.status_reason, since, row.traversal_id or '')

    own = (
        told(ConditionType.READY, is_up),
        told(ConditionType.PROGRESSING, row.status is Status.IN_PROGRESS),
    )
    if observation is None or observation.observed_at is None or observation.found is ObservedState.UNKNOWN:
        return own
    reason, traversal_id = observation.found.title(), row.traversal_id or ''
    if observation.given_up and observation.found.is_drift:
        reason = 'RepairGivenUp'
    drifted = Condition(
        ConditionType.DRIFTED, observation.found.is_drift, reason, observation.reason, observation.since, traversal_id
    )
    return (*own, drifted)


def _drifted(drift: DriftSummary, traversal_id: str) -> tuple[Condition, ...]:
    if not drift.seen:
        return ()
    if not drift.drifted:
        message = f'{drift.seen} of {drift.observed} objects were observed; all match their records.'
        return (Condition(ConditionType.DRIFTED, False, 'AsMade', message, None, traversal_id),)
    message = f'{drift.drifted} of {drift.observed} observed objects changed outside of the stack.'
    return (Condition(ConditionType.DRIFTED, True, 'ChangedOutside', message, drift.since, traversal_id),)


def _ready(stack: Stack, traversal: Traversal) -> Condition:
    def told(holds: bool, reason: str, message: str, since: float | None) -> Condition:
        return Condition(ConditionType.READY, holds, reason, message, since, traversal.id)

    ended_at = traversal.finished_at or traversal.started_at
    action, failed = traversal.action, traversal.status in (TraversalStatus.FAILED, TraversalStatus.CANCELLED)
    if action is Action.DELETE:
        return told(False, 'Deleting', 'The stack is being deleted, or was to be.', traversal.started_at)
    if action is Action.SUSPEND:
        return told(False, 'Suspended', 'The stack is suspended, or was to be.', traversal.started_at)
    if action in PERFORMED and stack.template_id != stack.last_good_template_id:
        return told(False, 'NeverInService', 'The template was never in service as a whole.', traversal.started_at)
    if action in PERFORMED and failed:
        return told(False, f'{action.title()}Failed', traversal.reason, ended_at)
    if traversal.in_service_at is not None:
        return told(True, 'InService', 'All resources of the goal are up.', traversal.in_service_at)
    if action in (Action.CHECK, Action.SNAPSHOT):
        return told(True, 'InService', 'All resources of the goal were up before.', None)
    if failed:
        return told(False, f'{action.title()}Failed', traversal.reason, ended_at)
    return told(False, 'NotYet', f'The {action} has not brought everything up yet.', traversal.started_at)


def _progressing(stack: Stack, traversal: Traversal) -> Condition:
    def told(holds: bool, reason: str, since: float | None) -> Condition:
        return Condition(ConditionType.PROGRESSING, holds, reason, stack.status_reason, since, traversal.id)

    if stack.status is not Status.IN_PROGRESS:
        return told(False, 'Complete' if stack.status is Status.COMPLETE else 'Failed', traversal.finished_at)
    if traversal.status is TraversalStatus.CANCELLING:
        return told(True, 'Cancelling', None)
    if traversal.stalled_at is not None:
        return told(False, 'Stalled', traversal.stalled_at)
    if traversal.in_service_at is not None:
        return told(True, 'RemovingLeftovers', traversal.in_service_at)
    return told(True, traversal.action.title(), traversal.started_at)
