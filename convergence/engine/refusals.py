"""Which operation a stack refuses in which state: asked before anything is prepared, and again under its lock."""

from __future__ import annotations

from collections.abc import Mapping

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.rows import Stack

DOING: Mapping[Action, str] = {
    Action.SUSPEND: 'Suspending',
    Action.RESUME: 'Resuming',
    Action.CHECK: 'Checking',
    Action.SNAPSHOT: 'Taking a snapshot of',
    Action.UPDATE: 'Updating',
    Action.RESTORE: 'Restoring',
}
"""What an operation is called in a sentence about a stack."""


def may_get_goal(stack: Stack, action: Action = Action.UPDATE) -> None:
    """Whether a stack may get a new goal, or an old one again; also while another operation is in progress.

    :raises ActionInProgress: not now.
    :raises NotSupported: not in this state.
    """
    _not_deleting(stack, action)
    _not_suspended(stack, action)
    if stack.action is Action.ADOPT and stack.status is Status.IN_PROGRESS:
        raise busy(stack)


def may_perform(stack: Stack, action: Action) -> None:
    """Whether something may be done to the objects of a stack as they are: only while nothing else goes on.

    :raises ActionInProgress: not now.
    :raises NotSupported: not in this state.
    """
    if stack.status is Status.IN_PROGRESS:
        raise busy(stack)
    _not_deleting(stack, action)
    if action in (Action.CHECK, Action.SNAPSHOT):
        _not_suspended(stack, action)


def busy(stack: Stack) -> errors.ActionInProgress:
    """That a stack has to come to rest first."""
    return errors.ActionInProgress(f'Stack {stack.name} already has an action ({stack.action}) in progress.')


def _not_deleting(stack: Stack, action: Action) -> None:
    if stack.action is not Action.DELETE:
        return
    if stack.status is Status.IN_PROGRESS:
        raise busy(stack)
    raise errors.NotSupported(
        f'{DOING[action]} a stack when it is being deleted is not supported; delete {stack.name} again.'
    )


def _not_suspended(stack: Stack, action: Action) -> None:
    if stack.action is Action.SUSPEND:
        raise errors.NotSupported(
            f'{DOING[action]} a stack when it is suspended is not supported; resume {stack.name} first.'
        )
