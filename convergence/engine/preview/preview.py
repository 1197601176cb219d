"""Previews of a creation, an update and a rollback. Performs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from convergence.core.failure import way_back
from convergence.core.model import Json
from convergence.db.null_ports import NO_CREDENTIALS, NOTHING_OBSERVED
from convergence.db.ports import CredentialsPort, KnownObjectsPort, ReaderPort
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.callers.credentials import SuppliedCredentials
from convergence.engine.compile.goal_rows import summary
from convergence.engine.compile.submission import Submission
from convergence.engine.operations.options import StackOptions
from convergence.engine.operations.rollbacks import earlier, is_taken_back
from convergence.engine.operations.stacks import Stacks
from convergence.engine.operations.update_requests import UpdateRequest
from convergence.engine.preview.changes import ChangePreview, StackGoal, deleted_with
from convergence.engine.preview.drifted import mark_drifted
from convergence.engine.questions.inquiry import NO_ID, Inquiry
from convergence.engine.questions.planned_changes import PreviewedAction
from convergence.engine.questions.worker_questions import WANTS_CREDENTIALS, QuestionsPort
from convergence.engine.reads import formats
from convergence.engine.traversals.refusals import may_go_back
from convergence.resources.registry import Registry
from convergence.values import replace

R = TypeVar('R')


class Previews:
    """The preview operations.

    :param objects: reads the observations of objects.
    :param workers: sends questions to resource types; None: no questions.
    :param credentials: rows of the credentials that requests supply for stacks that do not exist yet.
    """

    def __init__(
        self,
        reader: ReaderPort,
        registry: Registry,
        stacks: Stacks,
        objects: KnownObjectsPort = NOTHING_OBSERVED,
        workers: QuestionsPort | None = None,
        credentials: CredentialsPort = NO_CREDENTIALS,
    ) -> None:
        self._reader = reader
        self._registry = registry
        self._stacks = stacks
        self._objects = objects
        self._workers = workers
        self._credentials = credentials

    def preview_stack(
        self,
        context: Caller,
        stack_name: str,
        template: str | Mapping[str, Json],
        params: Mapping[str, Json] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: list[str] | None = None,
        credentials: Mapping[str, Any] | None = None,
    ) -> Document:
        """The stack that a creation with the same arguments would make, with its `resources`. It has no id yet.

        :param credentials: supplied by this request; types query their services with them.
        :returns: in `resources` a resource that is a stack is a list of its resources. With ``show_nested`` in `args`
            there are no such lists: the resources of a nested stack follow it, each with its `path`.
            `WANTS_CREDENTIALS` is present if credentials would allow a better preview.
        """
        options = StackOptions.of(args)
        submission = self._stacks.compiler.submissions.read(template, params, files, environment_files)
        stack, compiled = self._stacks.prospective(context, stack_name, options, submission)
        # The id that it is compiled with is none that it will have.
        shown = replace(stack, id=NO_ID)
        goal = StackGoal(shown, (), compiled, submission)
        lent = SuppliedCredentials.of(self._credentials, context.project_id, credentials)
        inquiry = Inquiry(credentials_id=lent.id if lent is not None else '')

        def foretell(told: ChangePreview) -> list[Any]:
            return [*told.in_order(goal)] if options.show_nested else told.in_lists(goal)

        resources = self._foretold(context, inquiry, foretell)
        document = {**formats.stack_details(shown, summary(compiled)), 'creation_time': None}
        document['parameters']['OS::stack_id'] = NO_ID
        if inquiry.wants_credentials:
            document[WANTS_CREDENTIALS] = True
        return {**document, 'resources': resources}

    def preview_update_stack(
        self,
        context: Caller,
        stack_identity: Document,
        template: str | Mapping[str, Json] | None = None,
        params: Mapping[str, Json] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: list[str] | None = None,
    ) -> dict[str, list[Document]]:
        """The effects of an update with the same arguments; see `preview_update`.

        A resource with known drift has `changed_outside`, the reason, and `since`. It does not mean that the update
        repairs it.
        """
        options, sent = StackOptions.of(args), UpdateRequest(template, params, files, environment_files)
        stack, submission, compiled = self._stacks.proposed(context, stack_identity, options, sent)
        goal = StackGoal(stack, self._reader.resources(stack.id), compiled, submission)

        def foretell(told: ChangePreview) -> dict[str, list[Document]]:
            lists = told.update(goal, observes=options.converge)
            mark_drifted(lists, self._objects.known([stack.id], drifted=True))
            if options.show_nested:
                told.add_nested(lists, goal)
            return lists

        return self._foretold(context, Inquiry(stack.id), foretell)

    def preview_rollback(
        self, context: Caller, stack_identity: Document, show_nested: bool = False
    ) -> dict[str, list[Document]]:
        """The effects of a rollback; see `preview_update`.

        :raises NotSupported: there is no earlier goal.
        """
        stack = self._stacks.find(context, stack_identity)
        may_go_back(stack, stack.name)
        rows = self._reader.resources(stack.id)
        if is_taken_back(stack) and way_back(stack) is None:
            return {**{fate.value: [] for fate in PreviewedAction}, PreviewedAction.DELETED: deleted_with(stack, rows)}
        row, compiled = earlier(self._stacks, stack, context)
        goal = StackGoal(stack, rows, compiled, Submission.from_content(row.content))

        def foretell(told: ChangePreview) -> dict[str, list[Document]]:
            lists = told.update(goal)
            if show_nested:
                told.add_nested(lists, goal)
            return lists

        return self._foretold(context, Inquiry(stack.id), foretell)

    def _foretold(self, context: Caller, inquiry: Inquiry, foretell: Callable[[ChangePreview], R]) -> R:
        """Compute a preview, and compute it again with the replies of resource types."""
        asked = inquiry if self._workers is not None else None
        found = foretell(ChangePreview(self._reader, self._registry, self._stacks, asked))
        if self._workers is None or not inquiry.ask(self._workers, context):
            return found
        return foretell(ChangePreview(self._reader, self._registry, self._stacks, asked))
