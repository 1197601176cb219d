"""The desired stack of a resource whose object is a nested stack, as the resource's type defines it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convergence import errors, template
from convergence.core.model import Action, Definition, Status
from convergence.core.object_state import ADOPTED, brings_nested
from convergence.core.request import Offer
from convergence.core.rows import Resource, Stack
from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.documents import Document
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.nested_content import UPDATE_POLICY, asked_inside, facade_of, submission_of
from convergence.engine.compile.stored_submissions import StoredSubmissions
from convergence.engine.compile.submission import Submission
from convergence.engine.nesting.claimed import NestingResource
from convergence.engine.operations.adoption import offered_by
from convergence.engine.traversals.traversals import Overtaken
from convergence.resources.builtin.groups.members import output_of
from convergence.resources.contract import Call, PluginFailure, ResourceType
from convergence.resources.invocation import Subject, build_call
from convergence.resources.nested import NestedType
from convergence.resources.nesting import DesiredStack, Member, NestingContext, RequiredResource
from convergence.resources.registry import Registry
from convergence.resources.scaling import COOLDOWNS
from convergence.template.secrets import METADATA, PROPERTIES, within
from convergence.values import replace


@dataclass(frozen=True, slots=True)
class RestingGroup:
    """A resource at rest whose object is a stack, with its last applied values.

    :param parent: submission of the stack that contains the resource.
    :param members: resources of the nested stack, read once.
    """

    kind: ResourceType[Any]
    row: Resource
    definition: Definition
    parent: Submission
    call: Call[Any]
    context: NestingContext
    members: tuple[Member, ...]

    def size(self) -> int:
        """The number of members that have not failed."""
        return sum(not member.failed for member in self.members)

    def cooldowns(self) -> dict[str, float]:
        """The output of that name."""
        noted = output_of(self.context, COOLDOWNS)
        return {key: float(str(value)) for key, value in noted.items()} if isinstance(noted, dict) else {}

    def submission(self, ask: Callable[[], DesiredStack]) -> Submission:
        """The submission for a desired stack.

        :raises Invalid: no such stack can exist.
        """
        wanted = asked(ask)
        return submission_of(
            self.parent, self.definition, wanted, asked=asked_inside(self.kind, self.definition, wanted)
        )


class DesiredStacks:
    """Asks resource types for the desired stacks of their resources.

    :ivar submissions: those of stored templates.
    """

    def __init__(self, reader: ReaderPort, compiler: TemplateCompiler, types: Registry) -> None:
        self._reader = reader
        self._compiler = compiler
        self.submissions = StoredSubmissions(reader, compiler.submissions)
        self._types = types

    def of(self, held: NestingResource, present: Stack | None) -> tuple[Submission, DesiredStack]:
        """The desired stack of a claimed resource, from the resource's type."""
        row, pending = held.row, held.row.pending
        kind = self._types.get(row.type)
        assert isinstance(kind, NestedType)
        if pending is None:
            raise errors.Conflict(f'resource {row.name} is at rest by now')
        parent = self.submissions.of_template(pending.template_id or '')
        if parent is None:
            raise Overtaken(f'stack {held.stack.name} has got another goal')

        def ask() -> DesiredStack:
            context = replace(
                self.context(held.stack, parent, pending.definition, present),
                step=held.step,
                action=Action.ROLLBACK if held.traversal.action is Action.ROLLBACK else row.action,
                goal=pending.template_id or '',
                adopted=tuple(adopted_by(row)) if present is None and brings_nested(row) else None,
            )
            return kind.wanted(_call(held, kind), context)

        wanted = asked(ask)
        definition = pending.definition
        said = {METADATA: pending.metadata, UPDATE_POLICY: self._policy(definition)}
        facade = facade_of(definition, parent.files, said)
        return submission_of(parent, definition, wanted, facade, asked_inside(kind, definition, wanted)), wanted

    def resting(self, stack: Stack, row: Resource, present: Stack) -> RestingGroup:
        """A resource at rest, with the context that its type may read.

        :param stack: the stack that contains it.
        :param present: its nested stack.
        :raises Overtaken: the source of its last applied values is gone.
        """
        parent, definition = self.submissions.of_template(row.template_id or ''), row.definition
        if parent is None or definition is None:
            raise Overtaken(f'stack {stack.name} has got another goal')
        kind = self._types.get(row.type)
        call = build_call(kind, Subject.of(stack, row), row.properties)
        try:
            context = self.context(stack, parent, definition, present)
        except template.EvaluationFailed as error:
            raise errors.Invalid(str(error)) from error
        members = context.members()
        return RestingGroup(kind, row, definition, parent, call, replace(context, members=lambda: members), members)

    def context(
        self, stack: Stack, parent: Submission, definition: Definition, present: Stack | None
    ) -> NestingContext:
        """The context that a resource's type may read.

        :param stack: the stack that contains the resource, and `parent` its submission.
        :param present: the nested stack.
        :raises EvaluationFailed: the update policy of the resource is invalid.
        :raises Overtaken: the template of the nested stack is not visible, perhaps because a database server lags.
            Without this error, a group would seem to have no members, and would get the size of a new one.
        """
        now = None
        if present is not None and present.template_id is not None:
            now = self.submissions.of_template(present.template_id)
            if now is None:
                raise Overtaken(f'stack {present.name} has got another goal, or a database does not show it yet')
        return NestingContext(
            files=parent.files,
            present=self.submissions.document(now.template) if now is not None else None,
            members=lambda: self._members(present),
            present_parameters=_parameters(now),
            update_policy=self._policy(definition),
            masked_paths=within(definition.masked_paths, PROPERTIES),
            required=lambda reference: self._required(stack, definition, reference),
        )

    def _required(self, stack: Stack, definition: Definition, reference: str) -> RequiredResource | None:
        rows = self._reader.resources_named(stack.id, list(definition.requires))
        found = [row for row in in_service(rows, stack.template_id).values() if is_referred(row, reference)]
        if not found or found[0].definition is None:
            return None
        row, made_from = found[0], found[0].definition
        try:
            metadata = template.resolve(made_from.metadata, {}, self._compiler.analyser.yaql)
        except template.EvaluationFailed:
            metadata = {}
        masked_paths = tuple((PROPERTIES, *path) for path in within(made_from.masked_paths, PROPERTIES))
        return RequiredResource(row.properties, metadata if isinstance(metadata, dict) else {}, masked_paths)

    def _policy(self, definition: Definition) -> Document:
        policy = template.resolve(definition.update_policy, {}, self._compiler.analyser.yaql)
        return policy if isinstance(policy, dict) else {}

    def _members(self, stack: Stack | None) -> tuple[Member, ...]:
        if stack is None:
            return ()
        return members_of(self._reader.resources(stack.id), stack.template_id)


def members_of(rows: Sequence[Resource], template_id: str | None) -> tuple[Member, ...]:
    """The resources of a nested stack that are in service, oldest first.

    :param rows: all of the stack, and `template_id` the id of its template.
    """
    members = [
        Member(
            row.name,
            row.physical_id,
            row.created_at,
            row.status is Status.FAILED,
            row.output.reference if row.output is not None else None,
        )
        for row in in_service(rows, template_id).values()
    ]
    return tuple(sorted(members, key=lambda member: (member.made_at, member.name)))


def adopted_by(row: Resource) -> Mapping[str, Offer]:
    """The existing objects that the nested stack of a row adopts, by the names of their resources."""
    data = row.data.get(ADOPTED)
    return offered_by(data) if isinstance(data, dict) else {}


def asked(ask: Callable[[], DesiredStack]) -> DesiredStack:
    """The desired stack, from a type.

    :raises Invalid: the type refuses.
    """
    try:
        return ask()
    except (PluginFailure, template.EvaluationFailed) as error:
        raise errors.Invalid(str(error)) from error


def is_referred(row: Resource, reference: str) -> bool:
    """Return True if a reference means the resource of a row."""
    told = row.output.reference if row.output is not None else None
    return reference in (told, row.physical_id)


def _parameters(submission: Submission | None) -> Document:
    given = submission.environment.get('parameters') if submission is not None else None
    return given if isinstance(given, dict) else {}


def _call(held: NestingResource, kind: NestedType[Any]) -> Call[Any]:
    row, pending = held.row, held.row.pending
    assert pending is not None
    previous = row.properties if row.action is Action.UPDATE else None
    return build_call(kind, Subject.of(held.stack, row, pending), pending.properties, previous=previous)
