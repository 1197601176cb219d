"""Rollbacks on request: of the operation in progress, or to the goal before the last operation."""

from __future__ import annotations

from convergence import errors
from convergence.core.failure import way_back
from convergence.core.model import Action, Status
from convergence.core.operation_table import Admission
from convergence.core.request import Request
from convergence.core.rows import Stack, Template
from convergence.core.views import PlanView
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.submission import Submission
from convergence.engine.operations.preconditions import require_traversal
from convergence.engine.operations.stacks import Stacks
from convergence.engine.reads import formats
from convergence.engine.traversals.refusals import may_go_back, no_way_back
from convergence.engine.traversals.traversals import ROUNDS, Overtaken, Traversals
from convergence.template import Compiled


class Rollbacks:
    """Accepts rollbacks. An accepted rollback is in the database before a method returns."""

    def __init__(self, stacks: Stacks, traversals: Traversals) -> None:
        self._stacks = stacks
        self._traversals = traversals

    def stack_rollback(
        self, context: Caller, stack_identity: Document, expected_traversal: str | None = None
    ) -> Document:
        """Bring a stack back to an earlier goal; its identity.

        An operation in progress whose goal is not yet in service is reversed, as by a cancel. Otherwise the stack goes
        back to the last good template or, if it has that one, to the one before it.

        :param expected_traversal: the traversal that the stack must have; None: any.
        :raises ActionInProgress: the operation in progress cannot be reversed.
        :raises NotSupported: the stack is suspended, or there is no earlier template.
        """
        for _ in range(ROUNDS):
            stack = self._stacks.find(context, stack_identity)
            require_traversal(stack, expected_traversal)
            if may_go_back(stack, stack.name) is Admission.NOTHING:
                return formats.identity(stack)
            try:
                self._go_back(context, stack, expected_traversal)
            except Overtaken:
                continue
            return formats.identity(stack)
        raise errors.ActionInProgress(f'Stack {stack.name} keeps changing; repeat the request.')

    def _go_back(self, context: Caller, stack: Stack, expected_traversal: str | None) -> None:
        if is_taken_back(stack):
            traversal = self._stacks.reader.traversal(stack.traversal_id or '')
            if traversal is None:
                raise Overtaken(f'stack {stack.name} has moved on')
            self._traversals.roll_back(stack, traversal, request_id=context.request_id, cancels=True)
            return
        row, compiled = earlier(self._stacks, stack, context)

        def guard(view: PlanView) -> None:
            require_traversal(view.stack, expected_traversal)
            may_go_back(view.stack, stack.name)
            assert view.stack is not None
            if (view.stack.traversal_id, way_back(view.stack)) != (stack.traversal_id, row.id):
                raise Overtaken(f'stack {stack.name} has moved on')

        self._traversals.start(
            stack,
            Request(
                Action.ROLLBACK,
                compiled.goal,
                guard,
                template=row,
                request_id=context.request_id,
                stack_changes={'type_rules': Permits.of(context).rules},
                cause=f'requested after {stack.action}_{stack.status}',
            ),
        )


def is_taken_back(stack: Stack) -> bool:
    """Return True if a rollback reverses the operation in progress: its goal was never in service."""
    return stack.status is Status.IN_PROGRESS and stack.template_id != stack.last_good_template_id


def earlier(stacks: Stacks, stack: Stack, context: Caller) -> tuple[Template, Compiled]:
    """The template to which a stack would go back, compiled with the permits of the caller.

    :raises NotSupported: there is none.
    :raises StackValidationFailed: the template is not valid any more.
    :raises Overtaken: the stack has changed since it was read.
    """
    template_id = way_back(stack)
    if template_id is None:
        raise no_way_back(stack)
    row = stacks.reader.template(template_id)
    if row is None:
        raise Overtaken(f'stack {stack.name} has moved on')
    return row, stacks.compiler.compile(stack, Submission.from_content(row.content), Permits.of(context))
