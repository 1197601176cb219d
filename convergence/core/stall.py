"""Reports traversals that make no progress. A stalled traversal continues; its stack shows the stall to users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from convergence.core.effects import Decision, InsertEvents, StallTraversal, UpdateStack
from convergence.core.model import Json, Status, TraversalStatus
from convergence.core.rows import Event
from convergence.core.views import PlanView

Details: TypeAlias = Mapping[str, Json]


def stalled(
    view: PlanView, traversal_id: str, since: float, text: str, details: Details, new_id: Callable[[], str]
) -> Decision[bool]:
    """Report that a traversal makes no progress, once per stall.

    :param since: time of its last progress.
    :param text: that time and the resources it waits for, for users; `details` contain the same for notices.
    :returns: a decision whose verdict is True if it reports the stall.
    """
    traversal = view.traversal
    if traversal is None or traversal.stalled_at is not None:
        return Decision(False)
    return _tell(view, traversal_id, since, text, new_id, details)


def moving(view: PlanView, traversal_id: str, new_id: Callable[[], str]) -> Decision[bool]:
    """Report the end of a stall.

    :returns: a decision whose verdict is True if it reports the end.
    """
    traversal = view.traversal
    if traversal is None or traversal.stalled_at is None:
        return Decision(False)
    return _tell(view, traversal_id, None, '', new_id)


def progressed(
    view: PlanView, traversal_id: str, text: str, details: Details, new_id: Callable[[], str]
) -> Decision[bool]:
    """Report the progress of a traversal.

    :param text: the progress, for users; `details` contain the same for notices.
    :returns: a decision whose verdict is True if it reports the progress; False if the traversal has ended.
    """
    stack, traversal = view.stack, view.traversal
    if stack is None or traversal is None or traversal.id != traversal_id or stack.status is not Status.IN_PROGRESS:
        return Decision(False)
    event = Event.of_stack(new_id(), stack.id, traversal.action, Status.IN_PROGRESS, text, view.now)
    return Decision(True, (InsertEvents((event,), details),))


def _tell(
    view: PlanView,
    traversal_id: str,
    since: float | None,
    text: str,
    new_id: Callable[[], str],
    details: Details | None = None,
) -> Decision[bool]:
    stack, traversal = view.stack, view.traversal
    assert traversal is not None
    if stack is None or traversal.id != traversal_id or stack.status is not Status.IN_PROGRESS:
        return Decision(False)
    if traversal.status is not TraversalStatus.RUNNING:
        return Decision(False)
    reason = traversal.reason_of('started') + (f'; no progress since {text}' if text else '')
    told = f'No progress since {text}' if text else 'Progress again'
    event = Event.of_stack(new_id(), stack.id, traversal.action, Status.IN_PROGRESS, told, view.now)
    return Decision(
        True,
        (
            UpdateStack(stack.id, traversal.id, {'status_reason': reason}),
            StallTraversal(traversal.id, since),
            InsertEvents((event,), details),
        ),
    )
