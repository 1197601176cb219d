"""Abandons stacks: forgets them without deleting their objects, and returns the data needed to adopt the objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convergence import errors, signing, template
from convergence.core.model import Action, Goal, Json, Status
from convergence.core.object_state import ADOPTED
from convergence.core.request import Request
from convergence.core.rows import Resource, Stack
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.submission import Submission
from convergence.engine.operations.stacks import Stacks
from convergence.engine.reads import formats
from convergence.engine.reads.reading import Reading
from convergence.engine.traversals.refusals import busy
from convergence.engine.traversals.traversals import ROUNDS, Overtaken, Traversals
from convergence.resources.registry import Registry
from convergence.resources.secrets import known_secrets
from convergence.secrecy import MASK, masked_at, without
from convergence.template.secrets import METADATA, within


def data_of(
    stack: Stack,
    content: Document,
    rows: Sequence[Resource],
    parameters: Mapping[str, template.Parameter] | None,
    types: Registry,
    nested: Mapping[str, Document] | None = None,
) -> Document:
    """All data needed to adopt the objects of a stack; the values of hidden parameters are masked.

    :param content: template, environment and files of the stack; the template as a map.
    :param parameters: the declared parameters; None: unknown, so every value is masked.
    :param types: declare which values are secret.
    :param nested: the same data of nested stacks, by the ids of the rows whose objects they are.
    """
    shown = in_service(rows, stack.template_id)

    def resource(row: Resource) -> Document:
        document = without(_resource(row), known_secrets(row, types))
        below = (nested or {}).get(row.id) or row.data.get(ADOPTED)
        return nested_data(document, below) if isinstance(below, dict) else document

    return {
        'name': stack.name,
        'id': stack.id,
        'action': stack.action.value,
        'status': stack.status.value,
        'template': content['template'],
        'environment': formats.environment(content['environment'], parameters),
        'files': content['files'],
        'resources': {name: resource(row) for name, row in shown.items()},
        'project_id': stack.project_id,
        'stack_user_project_id': None,
        'tags': list(stack.tags),
    }


def nested_data(resource: Document, stack: Document) -> Document:
    """The data of a resource whose object is a stack: the data of any resource, and those of the stack.

    Its files are some of those of the parent stack.
    """
    return {**{name: value for name, value in stack.items() if name not in ('files', 'tags')}, **resource}


def _resource(row: Resource) -> Document:
    return {
        'name': row.name,
        'type': row.shown_type,
        'resource_id': row.physical_id,
        'action': row.action.value,
        'status': row.status.value,
        'metadata': _metadata(row),
        'resource_data': _data(row),
    }


def _data(row: Resource) -> Document:
    """The private data of the type, without the key of signal addresses: its owner could create more addresses."""
    return {name: MASK if name == signing.KEY else value for name, value in row.data.items() if name != ADOPTED}


def _metadata(row: Resource) -> Json:
    """The parts of the template that may be shown."""
    if row.definition is None:
        return {}
    shown: Json = masked_at(row.definition.metadata, within(row.definition.masked_paths, METADATA))
    return shown


class Abandonment(Reading[ReaderPort]):
    """Exports the data of stacks, and abandons stacks.

    :param enabled: True if stacks may be abandoned.
    """

    def __init__(
        self, stacks: Stacks, compiler: TemplateCompiler, traversals: Traversals, *, enabled: bool = False
    ) -> None:
        super().__init__(stacks.reader, compiler)
        self._stacks = stacks
        self._traversals = traversals
        self._enabled = enabled

    def export_stack(self, context: Caller, stack_identity: Mapping[str, Any]) -> Document:
        """The data needed to adopt the objects of a stack. Changes nothing."""
        stack = self._stacks.find(context, dict(stack_identity))
        rows = self._reader.resources(stack.id)
        return self._data(stack, rows, nested=self._below(rows))

    def abandon_stack(self, context: Caller, stack_identity: Mapping[str, Any]) -> Document:
        """Forget a stack without deleting its objects; the data needed to adopt them.

        :raises NotSupported: abandoning is not enabled.
        :raises ActionInProgress: the stack is in progress, so its remaining objects are not known yet.
        """
        self._stacks.find(
            context, dict(stack_identity)
        )  # check the project first, so that the answer reveals nothing about stacks of others
        if not self._enabled:
            raise errors.NotSupported(
                'Stack Abandon is not supported. (An operator can allow it: [engine] enable_stack_abandon)'
            )
        for _ in range(ROUNDS):
            stack = self._stacks.find(context, dict(stack_identity))
            try:
                return self._abandon(context, stack)
            except Overtaken:
                continue
        raise errors.ActionInProgress(f'Stack {stack.name} keeps changing; repeat the request.')

    def _abandon(self, context: Caller, stack: Stack) -> Document:
        content, left = self._content(stack), Document()
        nested = self._below(self._reader.resources(stack.id), at_rest=True)

        def guard(view: PlanView) -> None:
            now = view.stack
            if now is None or now.deleted_at is not None:
                raise errors.EntityNotFound('Stack', stack.name)
            if now.status is Status.IN_PROGRESS:
                raise busy(now)
            if now.template_id != stack.template_id:
                raise Overtaken(f'stack {stack.name} has got another goal')
            # The data must be those at the time of the abandonment, so they are read under the stack's lock.
            left.update(self._data(now, view.resources, content, nested))

        request_id = context.request_id
        # A failed stack may still have running actions besides the one that failed, and no traversal waits for them.
        request = Request(Action.DELETE, Goal(), guard, request_id=request_id, cancels=True, retains=True)
        self._traversals.start(stack, request)
        return left

    def _content(self, stack: Stack) -> tuple[Document, Mapping[str, template.Parameter] | None]:
        """The submission of a stack, and the parameters that its template declares."""
        submission = Submission.from_content(self._template(stack).content)
        compiled = self._compiled(stack)
        content = {**submission.content(), 'template': self._compiler.submissions.document(submission.template)}
        return content, compiled.parameters if compiled else None

    def _data(
        self,
        stack: Stack,
        rows: Sequence[Resource],
        content: tuple[Document, Mapping[str, template.Parameter] | None] | None = None,
        nested: Mapping[str, Document] | None = None,
    ) -> Document:
        parts, parameters = content or self._content(stack)
        return data_of(stack, parts, rows, parameters, self._compiler.types, nested)

    def _below(self, rows: Sequence[Resource], *, at_rest: bool = False) -> dict[str, Document]:
        """The data of the stacks that are the objects of some rows, by the ids of the rows.

        :param at_rest: refuse nested stacks in progress.
        :raises ActionInProgress: one of them is in progress.
        """
        found: dict[str, Document] = {}
        for row in rows:
            stack = self._reader.stack(row.token) if self._compiler.types.nests(row.type) and row.token else None
            if stack is None or stack.deleted_at is not None or stack.template_id is None:
                continue
            if at_rest and stack.status is Status.IN_PROGRESS:
                raise busy(stack)
            inside = self._reader.resources(stack.id)
            found[row.id] = self._data(stack, inside, nested=self._below(inside, at_rest=at_rest))
        return found
