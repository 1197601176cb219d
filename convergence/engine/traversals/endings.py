"""Ends stacks and their operations on request: the guards of delete and cancel, which run under the stack's lock."""

from __future__ import annotations

from convergence import errors
from convergence.core.model import Action, Status, TraversalStatus
from convergence.core.operation_table import Admission, Operation
from convergence.core.orphans import unknown
from convergence.core.rows import Stack
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.engine.traversals.refusals import may_cancel
from convergence.engine.traversals.traversals import Overtaken, Traversals


class AlreadyDeleting(errors.ConvergenceError):
    """The stack is being deleted already."""


def not_deleting(view: PlanView, *, superseding: bool) -> None:
    """A guard: the stack can be deleted.

    A delete that is being cancelled can be requested again.

    :param superseding: True if this delete supersedes a delete in progress.
    :raises AlreadyDeleting: the stack is being deleted.
    """
    stack = view.stack
    if stack is not None and stack.deleted_at is not None:
        raise errors.EntityNotFound('Stack', stack.name)
    deleting = stack is not None and stack.action is Action.DELETE and stack.status is Status.IN_PROGRESS
    is_over = view.traversal is not None and view.traversal.status is not TraversalStatus.RUNNING
    if deleting and not is_over and not superseding:
        raise AlreadyDeleting


def may_leave(stack: Stack, names: frozenset[str], view: PlanView) -> None:
    """A guard: the stack has all resources that are to be left behind.

    :raises Invalid: it has not; the text names its resources.
    """
    missing = unknown(names, view.resources)
    if missing:
        raise errors.Invalid(
            f'leave: stack {stack.name} has no resource {", ".join(missing)}. '
            f'It has: {", ".join(sorted({row.name for row in view.resources})) or "none any more"}.'
        )


def taken_back(reader: ReaderPort, traversals: Traversals, stack: Stack, request_id: str) -> bool:
    """Stop the operation in progress and roll back. False: the stack has changed since it was read.

    :raises NotSupported: the goal is in service already.
    """
    traversal = reader.traversal(stack.traversal_id or '')
    if traversal is None:
        return False
    if traversal.template_id is not None and traversal.template_id == stack.last_good_template_id:
        raise errors.NotSupported(
            f'Stack {stack.name}: the whole goal is in service already; only leftovers are being removed, '
            'and there is nothing to go back to. Cancel without rollback, or update the stack.'
        )
    traversals.roll_back(stack, traversal, request_id=request_id, cancels=True)
    return True


def still_fails(stack: Stack | None, operation: Operation) -> None:
    """A guard: a cancel still ends the operation in progress, without a rollback."""
    if may_cancel(stack, operation) is not Admission.FAILS:
        raise Overtaken('the stack has moved on')
