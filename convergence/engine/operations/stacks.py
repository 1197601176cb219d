"""Create, update, delete and cancel: requests of callers, checked and turned into traversals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convergence import errors, template
from convergence.core.effects import DeleteSnapshots
from convergence.core.model import Action, DriftPolicy, Goal, Json, Status
from convergence.core.operation_table import Admission, Operation
from convergence.core.request import Request
from convergence.core.rows import Stack
from convergence.core.views import PlanView
from convergence.db.null_ports import NO_CREDENTIALS
from convergence.db.ports import CredentialsPort, ReaderPort
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.callers.credentials import SuppliedCredentials
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.goal_rows import template_row
from convergence.engine.compile.submission import Submission
from convergence.engine.notifications.sinks import EventSinks
from convergence.engine.operations.adoption import Adoption
from convergence.engine.operations.options import StackLimits, StackOptions
from convergence.engine.operations.preconditions import RequestMark, require_traversal
from convergence.engine.operations.update_requests import UpdateRequest, merge_update
from convergence.engine.reads import formats
from convergence.engine.traversals.endings import AlreadyDeleting, may_leave, not_deleting, still_fails, taken_back
from convergence.engine.traversals.refusals import may_cancel, may_get_goal
from convergence.engine.traversals.start import TraversalStart
from convergence.engine.traversals.traversals import ROUNDS, Overtaken, Traversals
from convergence.values import replace

NAME = re.compile(r'[A-Za-z][A-Za-z0-9_.-]{0,254}')
Proposal = tuple[Stack, Submission, template.Compiled]
"""The effect of an update: the present stack, its new submission, and that compiled."""


class Stacks:
    """Accepts operations. An accepted operation is in the database before a method returns.

    :param release: makes a nested stack independent whose resource is gone.
    :ivar event_sinks: knows the webhooks that environments may name.
    """

    def __init__(
        self,
        reader: ReaderPort,
        compiler: TemplateCompiler,
        traversals: Traversals,
        limits: StackLimits,
        new_id: Callable[[], str],
        release: Callable[[str, str], None],
        credentials: CredentialsPort = NO_CREDENTIALS,
    ) -> None:
        self.reader = reader
        self.compiler = compiler
        self._traversals = traversals
        self._limits = limits
        self._new_id = new_id
        self._credentials = credentials
        self._release = release
        self.event_sinks = EventSinks()

    # --- operations -------------------------------------------------------------------------------------------

    def create_stack(
        self,
        context: Caller,
        stack_name: str,
        template: str | Mapping[str, Json] | None,
        params: Mapping[str, Json] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: list[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """Accept a new stack, and return its identity. Arguments as in the field's RPC of the same name.

        With ``adopt_stack_data`` in `args` the stack takes the objects over that these data name, and makes none.
        """
        options = StackOptions.of(args)
        adoption = _adoption(options, may_adopt=self._limits.enable_stack_adopt)
        if adoption is not None:
            given = adoption.over(self.compiler.submissions.environment(params or {}), files)
            template, params, files = given.template, given.environment, given.files
        elif template is None:
            raise errors.Invalid('template: a new stack needs one')
        submission = self.compiler.submissions.read(template, params, files, environment_files)
        mark = RequestMark.of(options.idempotency_key, stack_name, submission, args)
        made = self._made_by(context, mark)
        if made is not None:
            return formats.identity(made)
        action = Action.CREATE if adoption is None else Action.ADOPT
        try:
            stack, compiled = self.prospective(context, stack_name, options, submission)
            stack = replace(stack, request_key=mark.key, request_digest=mark.digest)
            lent = SuppliedCredentials.of(self._credentials, context.project_id, credentials)
            if lent is not None:
                stack = replace(stack, credentials_id=lent.id)
            request = self._request(action, stack, submission, compiled, options, context, self._may_create)
            if adoption is not None:
                request = replace(request, offered=adoption.offered)
            self._traversals.begin(TraversalStart.of_new(stack, request))
        except errors.StackExists:
            # The same request may have come twice at the same time.
            made = self._made_by(context, mark)
            if made is None:
                raise
            return formats.identity(made)
        self._keep(stack, request, compiled)
        return formats.identity(stack)

    def update_stack(
        self,
        context: Caller,
        stack_identity: Document,
        template: str | Mapping[str, Json] | None = None,
        params: Mapping[str, Json] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: list[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """Accept a new goal for a stack, at any time; its identity.

        With ``existing`` in `args`, the parts that are not given stay unchanged. Without it, tags that are not given
        are removed.
        """
        options = StackOptions.of(args)
        if not options.existing and options.tags is None:
            options = replace(options, tags=())
        sent = UpdateRequest(template, params, files, environment_files)
        lent = None
        for _ in range(ROUNDS):
            try:
                proposal = self.proposed(context, stack_identity, options, sent)
                lent = lent or SuppliedCredentials.of(self._credentials, context.project_id, credentials)
                return self._update(context, proposal, options, lent)
            except Overtaken:
                continue
        raise errors.ActionInProgress(f'Stack {_called(stack_identity)} keeps changing; repeat the update.')

    def _update(
        self, context: Caller, proposal: Proposal, options: StackOptions, lent: SuppliedCredentials | None
    ) -> Document:
        stack, submission, compiled = proposal

        def guard(view: PlanView) -> None:
            assert view.stack is not None
            require_traversal(view.stack, options.expected_traversal)
            may_get_goal(view.stack)
            if lent is not None:
                lent.require(view.stack)
            if options.existing and view.stack.template_id != stack.template_id:
                raise Overtaken(f'stack {stack.name} has got another goal')

        request = self._request(Action.UPDATE, stack, submission, compiled, options, context, guard)
        if lent is not None and lent.is_new:
            request = replace(request, stack_changes={**request.stack_changes, 'credentials_id': lent.id})
        self._traversals.start(stack, request)
        self._keep(stack, request, compiled)
        return formats.identity(stack)

    def delete_stack(
        self,
        context: Caller,
        stack_identity: Document,
        expected_traversal: str | None = None,
        leave: Sequence[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> None:
        """Start to delete a stack in any state. Deleting a stack that is being deleted changes nothing.

        :param expected_traversal: the traversal that it must have; None: any.
        :param leave: names of resources whose objects are left behind. With these, a delete supersedes a running
            delete.
        :raises Invalid: the stack has no resource of such a name.
        """
        stack = self.find(context, stack_identity)
        leaves = frozenset(leave or ())
        lent = SuppliedCredentials.of(self._credentials, context.project_id, credentials)

        def guard(view: PlanView) -> None:
            require_traversal(view.stack, expected_traversal)
            not_deleting(view, superseding=bool(leaves))
            may_leave(stack, leaves, view)

        left = [
            row for row in self.reader.resources_named(stack.id, sorted(leaves)) if self.compiler.types.nests(row.type)
        ]
        try:
            self._traversals.start(
                stack,
                Request(
                    Action.DELETE,
                    Goal(),
                    guard,
                    request_id=context.request_id,
                    cancels=True,
                    leaves=leaves,
                    stack_changes={'credentials_id': lent.id} if lent is not None and lent.is_new else {},
                    beside=lambda view: (DeleteSnapshots(stack.id),),
                ),
            )
        except AlreadyDeleting:
            return
        for (
            row
        ) in left:  # in transactions of their own: if this engine dies before the last, the sweeper releases the others
            if row.token is not None:
                self._release(row.token, row.id)

    def stack_cancel_update(
        self, context: Caller, stack_identity: Document, cancel_with_rollback: bool = True, now: bool = False
    ) -> None:
        """Stop the operation in progress and, on request, go back to the last good template.

        `convergence.core.operation_table` defines the result. An operation that no rollback reverses (a delete, a
        check, a suspension, ...) fails, whether a rollback is requested or not. Then nothing new begins, and running
        actions have `StackLimits.cancel_patience_s` to end before they are stopped.

        :param now: stop running actions at once; a rollback always does.
        :raises NotSupported: nothing is in progress, or the goal is already in service.
        """
        operation = Operation.CANCEL if cancel_with_rollback else Operation.CANCEL_WITHOUT_ROLLBACK
        for _ in range(ROUNDS):
            stack = self.find(context, stack_identity)
            wanted = may_cancel(stack, operation)
            if wanted is Admission.NOTHING:
                return
            try:
                if wanted is Admission.FAILS:
                    patience_s = 0.0 if now else self._limits.cancel_patience_s
                    self._traversals.cancel(stack, lambda view: still_fails(view.stack, operation), patience_s)
                    return
                if taken_back(self.reader, self._traversals, stack, context.request_id):
                    return
            except Overtaken:
                continue
        raise errors.ActionInProgress(f'Stack {stack.name} keeps changing; repeat the request.')

    # --- parts ------------------------------------------------------------------------------------------------

    def find(self, context: Caller, stack_identity: Document) -> Stack:
        """The living stack that an identity means, if it belongs to the caller's project.

        :raises EntityNotFound: there is none.
        """
        stack = self.reader.stack(str(stack_identity.get('stack_id') or ''))
        if stack is None or stack.project_id != context.project_id or stack.deleted_at is not None:
            raise errors.EntityNotFound('Stack', _called(stack_identity))
        if (stack_identity.get('stack_name') or stack.name) != stack.name:
            raise errors.EntityNotFound('Stack', _called(stack_identity))
        return stack

    def prospective(
        self, context: Caller, stack_name: str, options: StackOptions, submission: Submission
    ) -> tuple[Stack, template.Compiled]:
        """A stack that may be created, and its goal. Changes nothing.

        :raises StackExists: a living stack has the name.
        :raises StackValidationFailed: carries everything that is wrong with the goal.
        """
        if not NAME.fullmatch(stack_name):
            raise errors.Invalid(
                f'Invalid stack name {stack_name!r}: it must start with a letter, then letters, digits, _ . - ; '
                'at most 255 characters.'
            )
        if self.reader.stack_named(context.project_id, stack_name) is not None:
            raise errors.StackExists(f'The Stack ({stack_name}) already exists.')
        stack = self._new_stack(context, stack_name, options)
        compiled = self.compiler.compile(stack, submission, Permits.of(context))
        self.event_sinks.require(context.project_id, submission)
        return stack, compiled

    def _made_by(self, context: Caller, mark: RequestMark) -> Stack | None:
        """The stack that an earlier identical request has created."""
        made = self.reader.stack_requested(context.project_id, mark.key) if mark.key is not None else None
        if made is not None:
            mark.check(made)
        return made

    def proposed(
        self, context: Caller, stack_identity: Document, options: StackOptions, sent: UpdateRequest
    ) -> Proposal:
        """The effect of an update: the present stack, and its new goal. Changes nothing.

        :raises StackValidationFailed: carries all problems of the goal.
        """
        stack = self.find(context, stack_identity)
        may_get_goal(stack)
        submission = merge_update(sent, stack, options, self.compiler, self.reader)
        compiled = self.compiler.compile(stack, submission, Permits.of(context))
        self.event_sinks.require(stack.project_id, submission, stack.id)
        return stack, submission, compiled

    def _new_stack(self, context: Caller, name: str, options: StackOptions) -> Stack:
        return Stack(
            id=self._new_id(),
            name=name,
            project_id=context.project_id,
            action=Action.CREATE,
            status=Status.IN_PROGRESS,
            status_reason='',
            template_id=None,
            last_good_template_id=None,
            traversal_id=None,
            timeout_mins=options.timeout_mins or self._limits.stack_timeout_mins,
            disable_rollback=True if options.disable_rollback is None else options.disable_rollback,
            drift_policy=options.drift_policy or DriftPolicy.REPORT,
            created_at=0.0,
            tags=options.tags or (),
        )

    def _may_create(self, view: PlanView) -> None:
        most = self._limits.max_stacks_per_project
        if most is not None and view.stack_count >= most:
            raise errors.RequestLimitExceeded(
                f'You have reached the maximum stacks per project, {most} '
                '([limits] max_stacks_per_project). Please delete some stacks.'
            )

    def _request(
        self,
        action: Action,
        stack: Stack,
        submission: Submission,
        compiled: template.Compiled,
        options: StackOptions,
        context: Caller,
        guard: Callable[[PlanView], None],
    ) -> Request:
        disabled = stack.disable_rollback if options.disable_rollback is None else options.disable_rollback
        return Request(
            action=action,
            goal=compiled.goal,
            guard=guard,
            template=template_row(self._new_id(), stack.id, submission, compiled),
            is_new_template=True,
            rollback_on_failure=not disabled,
            request_id=context.request_id,
            stack_changes={**options.changes(), 'type_rules': Permits.of(context).rules},
            observes=options.converge and action is Action.UPDATE,
        )

    def _keep(self, stack: Stack, request: Request, compiled: template.Compiled) -> None:
        if request.template is not None:
            self.compiler.keep(stack, request.template, compiled)


def _adoption(options: StackOptions, *, may_adopt: bool) -> Adoption | None:
    """The stack to be adopted; None if the request creates a new one."""
    if not options.adopt_stack_data:
        return None
    if not may_adopt:
        raise errors.NotSupported(
            'Stack Adopt is not supported. (The operator can enable it: [engine] enable_stack_adopt)'
        )
    return Adoption.read(options.adopt_stack_data)


def _called(stack_identity: Document) -> str:
    return str(stack_identity.get('stack_name') or stack_identity.get('stack_id') or '')
