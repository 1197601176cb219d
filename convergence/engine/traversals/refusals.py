"""Refusals: the states in which a stack refuses an operation, checked before preparation and under the lock."""

from __future__ import annotations

from collections.abc import Mapping

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.operation_table import Admission, Operation, answer
from convergence.core.rows import Stack

DOING: Mapping[Action, str] = {
    Action.SUSPEND: 'Suspending',
    Action.RESUME: 'Resuming',
    Action.CHECK: 'Checking',
    Action.SNAPSHOT: 'Taking a snapshot of',
    Action.UPDATE: 'Updating',
    Action.RESTORE: 'Restoring',
    Action.ROLLBACK: 'Rolling back',
}
"""The name of an operation in a sentence about a stack."""


def may_get_goal(stack: Stack, action: Action = Action.UPDATE) -> None:
    """Check that a user may give a stack a new goal, or an earlier one; an operation in progress does not prevent that.

    :raises ActionInProgress: not now.
    :raises NotSupported: not in this state.
    """
    may_be_given(stack)
    if answer(stack.action, stack.status, Operation.UPDATE) is Admission.RESUME_FIRST:
        raise _suspended(stack, action)


def may_be_given(stack: Stack) -> None:
    """Check that a nested stack may get a goal from its parent. A suspended one may: the goal resumes each resource
    first.

    The row in the parent stack says if the stack must be resumed before that. The row does not know of a resume whose
    worker died before it could report it, nor of operations that a user has started on the nested stack.

    :raises ActionInProgress: not now.
    """
    if answer(stack.action, stack.status, Operation.UPDATE) is Admission.BUSY:
        raise busy(stack)


def may_go_back(stack: Stack | None, name: str) -> Admission:
    """The effect of a requested rollback on a stack: `ROLLS_BACK`, `BEGINS` or `NOTHING`.

    :raises EntityNotFound: the stack is gone.
    :raises ActionInProgress: the operation in progress cannot be reversed.
    :raises NotSupported: not in this state.
    """
    found = answer(stack.action, stack.status, Operation.ROLLBACK) if stack is not None else Admission.GONE
    if stack is None or found is Admission.GONE:
        raise errors.EntityNotFound('Stack', name)
    if found is Admission.BUSY:
        raise busy(stack)
    if found is Admission.RESUME_FIRST:
        raise _suspended(stack, Action.ROLLBACK)
    return found


def no_way_back(stack: Stack) -> errors.NotSupported:
    """The error that a stack has no earlier goal."""
    if stack.last_good_template_id is None:
        return errors.NotSupported(
            f'Stack {stack.name} has nothing to go back to: no template of it was ever in service as a whole. '
            'Update it, or delete it.'
        )
    return errors.NotSupported(
        f'Stack {stack.name} has nothing to go back to: the template that it has is the only one that was ever in '
        'service. Update it with another one.'
    )


def may_cancel(stack: Stack | None, operation: Operation) -> Admission:
    """The effect of a cancel on a stack: `ROLLS_BACK`, `FAILS` or `NOTHING`.

    :raises NotSupported: nothing is in progress.
    """
    found = answer(stack.action, stack.status, operation) if stack is not None else Admission.GONE
    if stack is None or found not in (Admission.ROLLS_BACK, Admission.FAILS, Admission.NOTHING):
        state = f'{stack.action}_{stack.status}' if stack is not None else 'gone'
        raise errors.NotSupported(
            f'Cancelling a stack that is {state} is not supported; only an operation in progress can be cancelled.'
        )
    return found


def may_perform(stack: Stack, action: Action) -> None:
    """Check that an action on the present objects of a stack may start: only if nothing else is in progress.

    :raises ActionInProgress: not now.
    :raises NotSupported: not in this state.
    """
    if stack.status is Status.IN_PROGRESS:
        raise busy(stack)
    if stack.action is Action.DELETE:
        raise errors.NotSupported(
            f'{DOING[action]} a stack when it is being deleted is not supported; delete {stack.name} again, '
            'or update it to keep it.'
        )
    if stack.action is Action.SUSPEND and action in (Action.CHECK, Action.SNAPSHOT):
        raise _suspended(stack, action)


def may_repair(stack: Stack) -> None:
    """Check that resources of a stack may be compared and repaired: only if the stack is at rest and not suspended.

    :raises ActionInProgress: not now.
    :raises NotSupported: not in this state.
    """
    if stack.status is Status.IN_PROGRESS:
        raise busy(stack)
    if (stack.action, stack.status) == (Action.SUSPEND, Status.COMPLETE):
        raise errors.NotSupported(
            f'Repairing a resource of a stack when it is suspended is not supported; resume {stack.name} first.'
        )
    if stack.status is Status.FAILED or stack.template_id != stack.last_good_template_id:
        raise errors.NotSupported(
            f'Repairing a resource of a stack that is {stack.action}_{stack.status} is not supported; update '
            f'{stack.name} first, with converge: that also repairs drift.'
        )


def busy(stack: Stack) -> errors.ActionInProgress:
    """The error that an operation is in progress."""
    return errors.ActionInProgress(
        f'Stack {stack.name} already has an action ({stack.action}) in progress. Wait for its end, or cancel it.'
    )


def _suspended(stack: Stack, action: Action) -> errors.NotSupported:
    return errors.NotSupported(
        f'{DOING[action]} a stack when it is suspended is not supported; resume {stack.name} first.'
    )
