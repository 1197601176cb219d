"""How a stack is, said so that programs can wait for it: one condition for each question.

A condition has an answer, and why, since when and by which operation it is so. What else is asked of a stack becomes
another condition, and readers look for those that they know.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from convergence.core.model import PERFORMED, Action, Status, TraversalStatus
from convergence.core.rows import Stack, Traversal


class ConditionType(StrEnum):
    """What is asked.

    * `READY`: whether everything wanted is up. Leftovers may still be there.
    * `PROGRESSING`: whether an operation is getting on.
    """

    READY = 'Ready'
    PROGRESSING = 'Progressing'


@dataclass(frozen=True, slots=True)
class Condition:
    """One answer.

    :param reason: why it is so, in one word of a few that a program may look for.
    :param message: the same for people.
    :param since: when that came about; None: it is not known.
    :param traversal_id: the operation by which.
    """

    type: ConditionType
    holds: bool
    reason: str
    message: str
    since: float | None
    traversal_id: str


def conditions(stack: Stack, traversal: Traversal | None) -> tuple[Condition, ...]:
    """How a stack is.

    :param traversal: its current one.
    """
    return (_ready(stack, traversal), _progressing(stack, traversal)) if traversal is not None else ()


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
        return told(True, 'InService', 'Everything that is wanted is up.', traversal.in_service_at)
    if action in (Action.CHECK, Action.SNAPSHOT):
        return told(True, 'InService', 'Everything that is wanted was up before.', None)
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
