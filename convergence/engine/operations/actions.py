"""Actions on the present goal of a stack: suspend, resume, check; and marking a resource as unhealthy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convergence import errors
from convergence.core.acceptance import Marked, mark
from convergence.core.model import Action, Goal, Status
from convergence.core.request import Request
from convergence.core.rows import Resource, Stack, Template
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.db.scopes import HeldResource
from convergence.db.transaction import Transactions
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.operations.stacks import Stacks
from convergence.engine.traversals.refusals import may_perform
from convergence.engine.traversals.traversals import ROUNDS, Overtaken, Traversals

MARKED = 'state changed by resource_mark_unhealthy api'
"""The reason for a marked resource if the caller gives none."""


class Present:
    """Reads the goal of a stack's current traversal."""

    def __init__(self, reader: ReaderPort, compiler: TemplateCompiler) -> None:
        self._reader = reader
        self._compiler = compiler

    def goal(self, stack: Stack) -> tuple[Template | None, Goal]:
        """The template row and goal of a stack; None and an empty goal for a stack that was rolled back to nothing.

        :raises Overtaken: the stack has changed since it was read.
        """
        traversal = self._reader.traversal(stack.traversal_id or '')
        if traversal is None:
            raise Overtaken(f'stack {stack.name} has moved on')
        if traversal.template_id is None:
            return None, Goal()
        try:
            row, compiled = self._compiler.stored(stack, traversal.template_id)
        except errors.EntityNotFound:
            raise Overtaken(f'stack {stack.name} has moved on') from None
        return row, compiled.goal


class Actions:
    """Accepts actions. An accepted action is in the database before a method returns."""

    def __init__(
        self,
        store: Transactions,
        reader: ReaderPort,
        stacks: Stacks,
        present: Present,
        traversals: Traversals,
        new_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._reader = reader
        self._stacks = stacks
        self._present = present
        self._traversals = traversals
        self._new_id = new_id

    def stack_suspend(self, context: Caller, stack_identity: Document) -> None:
        """Suspend every resource, dependents first. Has no effect on a suspended stack.

        :raises ActionInProgress: the stack is in progress.
        """
        self._begin(context, stack_identity, Action.SUSPEND)

    def stack_resume(self, context: Caller, stack_identity: Document) -> None:
        """Resume every suspended resource. Has no effect on a resumed stack.

        :raises ActionInProgress: the stack is not at rest.
        """
        self._begin(context, stack_identity, Action.RESUME)

    def stack_check(self, context: Caller, stack_identity: Document) -> None:
        """Check every resource. The next update replaces those that are found broken.

        :raises ActionInProgress: the stack is in progress.
        :raises NotSupported: the stack is suspended.
        """
        self._begin(context, stack_identity, Action.CHECK)

    def resource_mark_unhealthy(
        self,
        context: Caller,
        stack_identity: Document,
        resource_name: str,
        mark_unhealthy: bool,
        resource_status_reason: str | None = None,
    ) -> None:
        """Mark a resource as unhealthy, so that the next update replaces it, or clear the mark.

        :param resource_name: its name, or the physical id of its object.
        :raises ActionInProgress: something is being done with it.
        """
        stack = self._stacks.find(context, stack_identity)
        row = self._row(stack, resource_name)
        committed = self._store.transact(
            HeldResource(row.id),
            lambda view: mark(view, bool(mark_unhealthy), resource_status_reason or MARKED, self._new_id),
        )
        outcome = committed.verdict if committed is not None else Marked.ABSENT
        if outcome is Marked.BUSY:
            raise errors.ActionInProgress(
                f'Resource {row.name} of stack {stack.name} already has an action ({row.action}) in progress.'
            )
        if outcome is Marked.ABSENT:
            raise errors.NotSupported(f'Resource {row.name} of stack {stack.name} has no object that could be marked.')

    def _begin(self, context: Caller, stack_identity: Document, action: Action) -> None:
        for _ in range(ROUNDS):
            stack = self._stacks.find(context, stack_identity)
            if (stack.action, stack.status) == (action, Status.COMPLETE) and action is not Action.CHECK:
                return
            may_perform(stack, action)
            try:
                row, goal = self._present.goal(stack)
                self._traversals.start(
                    stack, Request(action, goal, still(stack, action), template=row, request_id=context.request_id)
                )
            except Overtaken:
                continue
            return
        raise errors.ActionInProgress(f'Stack {stack.name} keeps changing; repeat the request.')

    def _row(self, stack: Stack, name: str) -> Resource:
        """The row with a name, or else with a physical id.

        :raises ResourceNotFound: none.
        """
        rows = self._reader.resources(stack.id)
        shown = in_service(rows, stack.template_id)
        if name in shown:
            return shown[name]
        found = [row for row in rows if row.physical_id == name]
        if not found:
            raise errors.ResourceNotFound(f'The Resource ({name}) could not be found in Stack {stack.name}.')
        if len(found) > 1:
            names = ', '.join(sorted(row.name for row in found))
            raise errors.Invalid(f'Multiple resources ({names}) have the physical id {name}; use a name.')
        return found[0]


def still(stack: Stack, action: Action) -> Callable[[PlanView], Any]:
    """A guard: the stack has not changed since the operation was prepared, and may perform the action."""

    def guard(view: PlanView) -> None:
        now = view.stack
        if now is None or now.deleted_at is not None:
            raise errors.EntityNotFound('Stack', stack.name)
        may_perform(now, action)
        if now.traversal_id != stack.traversal_id:
            raise Overtaken(f'stack {stack.name} has moved on')

    return guard
