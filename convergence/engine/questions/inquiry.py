"""What resource types themselves say of what is foretold of their resources, each after it has asked its service.

A preview is computed, all its questions travel to a worker in one call, and it is computed once more with the replies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from convergence import template
from convergence.core import decide
from convergence.core.model import Action, Change, Definition, Restriction, Status
from convergence.core.rows import Resource, Stack
from convergence.engine.callers.caller import Caller
from convergence.engine.questions.planned_changes import Certainty, PlannedChange, PreviewedAction
from convergence.engine.questions.worker_questions import UNASKED, QuestionsPort
from convergence.errors import ConvergenceError, Problem
from convergence.expressions import evaluator
from convergence.resources.contract import ResourceType
from convergence.resources.questions import QuestionKind, TypeQuestion, TypeReply
from convergence.resources.registry import Registry
from convergence.resources.secrets import masked_texts
from convergence.template.secrets import METADATA, PROPERTIES, within
from convergence.values import replace

NO_ID = 'None'
"""The id of a stack that is not there yet, as previews show it."""


class Inquiry:
    """The questions of one request: collected from whoever would like to know, asked together, then known.

    :param acts_as: the stack that is asked about; its credentials are those of the stacks nested in it. Empty: it is
        not there yet.
    :param credentials_id: those that the request has brought for it then.
    """

    def __init__(self, acts_as: str = '', credentials_id: str = '') -> None:
        self._acts_as = acts_as
        self._credentials_id = credentials_id
        self._questions: dict[str, TypeQuestion] = {}
        self._replies: dict[str, TypeReply] = {}

    def ask(self, workers: QuestionsPort, context: Caller) -> bool:
        """Have what was collected answered; whether there was anything."""
        replies = workers(context, [*self._questions.values()])
        self._replies = dict(zip(self._questions, replies, strict=True))
        return bool(replies)

    @property
    def wants_credentials(self) -> bool:
        """Whether something is not known only because there is nothing to act with for the user."""
        return any(each.wants_credentials for each in self._replies.values())

    def can_be_made(
        self,
        stack: template.StackIdentity,
        definition: Definition,
        wanted: Mapping[str, Any],
        secrets: Iterable[str],
    ) -> TypeReply:
        """Whether there can be an object with properties that are wholly known."""
        return self._about(QuestionKind.VALIDATE, stack, definition, wanted, secrets)

    def update_of(
        self,
        row: Resource,
        stack: template.StackIdentity,
        definition: Definition,
        wanted: Mapping[str, Any],
        secrets: Iterable[str],
    ) -> TypeReply:
        """What an update of an object to properties that are wholly known would do."""
        return self._about(QuestionKind.PLAN, stack, definition, wanted, secrets, row.id)

    def _about(
        self,
        asked: QuestionKind,
        stack: template.StackIdentity,
        definition: Definition,
        wanted: Mapping[str, Any],
        secrets: Iterable[str],
        resource_id: str = '',
    ) -> TypeReply:
        question = TypeQuestion(
            asked,
            definition.type,
            definition.name,
            stack.stack_id,
            stack.stack_name,
            stack.project_id,
            self._acts_as,
            self._credentials_id,
            resource_id,
            dict(wanted),
            _metadata(definition),
            secrets=tuple(sorted({*secrets, *definition.secrets, *masked_texts(definition, wanted)})),
        )
        self._questions.setdefault(question.key, question)
        return self._replies.get(question.key, UNASKED)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a type says against a resource of a template, or why it could not be asked.

    :param is_certain: whether there can be no such object.
    """

    problem: Problem
    is_certain: bool


def doubts(
    compiled: template.Compiled, identity: template.StackIdentity, registry: Registry, inquiry: Inquiry
) -> Iterator[Doubt]:
    """What types say of the resources of a template all of whose values are known; it belongs to no stack."""
    for definition in compiled.goal.definitions.values():
        kind = registry.get(definition.type) if definition.type in registry else None
        if kind is None or kind.nests or not kind.implements('validate') or definition.external_id is not None:
            continue
        try:
            hidden = within(definition.masked_paths, PROPERTIES)
            wanted = template.preview(definition.properties, {}, evaluator(), hidden)
        except ConvergenceError:
            continue
        if template.has_unknown(wanted) or not isinstance(wanted, dict):
            continue
        reply = inquiry.can_be_made(identity, definition, wanted, compiled.secrets)
        if reply.refusal or not reply.is_known:
            said = reply.refusal or f'whether it can be made is not known: {reply.reason}'
            where = compiled.place('resources', definition.name)
            problem = Problem(f'resources.{definition.name} ({definition.type}): {said}', where)
            yield Doubt(problem, is_certain=bool(reply.refusal))


class TypesAsked:
    """What the types say of the resources of one stack. Without an inquiry nobody is asked.

    :param secrets: hidden values of the goal, as texts.
    """

    def __init__(self, inquiry: Inquiry | None, stack: Stack, secrets: frozenset[str]) -> None:
        self._inquiry = inquiry
        self._stack = template.StackIdentity('' if stack.id == NO_ID else stack.id, stack.name, stack.project_id)
        self._secrets = secrets

    def __call__(
        self, planned: PlannedChange, definition: Definition, kind: ResourceType[Any], row: Resource | None
    ) -> tuple[PlannedChange, str]:
        """What would become of a resource, as far as its type knows better; and why the update must fail, or ''."""
        if self._inquiry is None or kind.nests or definition.external_id is not None:
            return planned, ''
        if planned.fate in (PreviewedAction.ADDED, PreviewedAction.REPLACED) and kind.implements('validate'):
            return self._made(self._inquiry, planned, definition)
        if planned.fate is PreviewedAction.UPDATED and kind.implements('plan') and _is_plain(planned, definition, row):
            assert row is not None
            return self._updated(self._inquiry, planned, definition, row)
        return planned, ''

    def _made(self, inquiry: Inquiry, planned: PlannedChange, definition: Definition) -> tuple[PlannedChange, str]:
        if template.has_unknown(planned.wanted):
            return planned, ''
        reply = inquiry.can_be_made(self._stack, definition, planned.wanted, self._secrets)
        if not reply.is_known:
            return _but(planned, f'whether it can be made is not known: {reply.reason}'), ''
        if not reply.refusal or planned.certainty is Certainty.CERTAIN:
            return planned, reply.refusal
        return _but(planned, f'it could not be made anew: {reply.refusal}'), ''

    def _updated(
        self, inquiry: Inquiry, planned: PlannedChange, definition: Definition, row: Resource
    ) -> tuple[PlannedChange, str]:
        if template.has_unknown(planned.wanted):
            return replace(_but(planned, 'whether in place is not known yet'), certainty=Certainty.POSSIBLE), ''
        reply = inquiry.update_of(row, self._stack, definition, planned.wanted, self._secrets)
        if not reply.is_known:
            why = f'whether in place is not known: {reply.reason}'
            return replace(_but(planned, why), certainty=Certainty.POSSIBLE), ''
        if reply.refusal:
            return planned, reply.refusal
        if reply.change is Change.NONE:
            same = _but(planned, 'it means the same as before')
            return replace(same, fate=PreviewedAction.UNCHANGED, changed=(), output=row.output), ''
        if reply.change is Change.REPLACE:
            if not decide.may_replace(row, definition):
                return planned, decide.restricted(Restriction.REPLACE)
            anew = _but(planned, 'that needs a new object')
            return replace(anew, fate=PreviewedAction.REPLACED, output=None), ''
        return planned, ''


def _is_plain(planned: PlannedChange, definition: Definition, row: Resource | None) -> bool:
    """Whether nothing but a change of properties leads to an update: of that alone the type can tell."""
    return (
        row is not None
        and planned.certainty is Certainty.CERTAIN
        and row.status is Status.COMPLETE
        and row.action is not Action.SUSPEND
        and definition.restored_from is None
        and bool(planned.changed)
    )


def _but(planned: PlannedChange, more: str) -> PlannedChange:
    return replace(planned, reason=f'{planned.reason}; {more}' if planned.reason else more)


def _metadata(definition: Definition) -> Any:
    """The metadata, where they are known without what other resources tell."""
    metadata = template.preview(definition.metadata, {}, evaluator(), within(definition.masked_paths, METADATA))
    return {} if template.has_unknown(metadata) else metadata
