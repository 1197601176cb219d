"""Which operation a stack refuses in which state: asked before anything is prepared, and again under its lock."""

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
"""What an operation is called in a sentence about a stack."""


def may_get_goal(stack: Stack, action: Action = Action.UPDATE) -> None:
    """Whether a user may give a stack a new goal, or an old one again; also while another operation is in progress.

    :raises ActionInProgress: not now.
    :raises NotSupported: not in this state.
    """
    may_be_given(stack)
    if answer(stack.action, stack.status, Operation.UPDATE) is Admission.RESUME_FIRST:
        raise _suspended(stack, action)


def may_be_given(stack: Stack) -> None:
    """Whether a nested stack may get a goal from its parent. One that sleeps may: the goal wakes each resource first.

    Its row tells the parent whether it is to be resumed before that, and cannot tell of a resume that it never heard
    of, because a worker died, or of what a user has done to the stack itself.

    :raises ActionInProgress: not now.
    """
    if answer(stack.action, stack.status, Operation.UPDATE) is Admission.BUSY:
        raise busy(stack)


def may_go_back(stack: Stack | None, name: str) -> Admission:
    """What a rollback that a user asks for does to a stack: `ROLLS_BACK`, `BEGINS` or `NOTHING`.

    :raises EntityNotFound: it has gone.
    :raises ActionInProgress: what is in progress cannot be taken back.
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
    """That there is nothing to which a stack could go back."""
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
    """What a cancel does to a stack: `ROLLS_BACK`, `FAILS` or `NOTHING`.

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
    """Whether something may be done to the objects of a stack as they are: only while nothing else goes on.

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
    """Whether resources of a stack may be compared and put right: only where it is at rest, and everything is up.

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
            f'{stack.name} first, with converge: that also puts right what changed outside of it.'
        )


def busy(stack: Stack) -> errors.ActionInProgress:
    """That a stack has to come to rest first."""
    return errors.ActionInProgress(
        f'Stack {stack.name} already has an action ({stack.action}) in progress. Wait for its end, or cancel it.'
    )


def _suspended(stack: Stack, action: Action) -> errors.NotSupported:
    return errors.NotSupported(
        f'{DOING[action]} a stack when it is suspended is not supported; resume {stack.name} first.'
    )
