"""Collects the questions of a preview to resource types, and uses the replies.

A preview is computed once to collect the questions. One call sends all of them to a worker. Then the preview is
computed again with the replies.
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
    """The questions of one request: collected first, sent together, then answered.

    :param acts_as: the stack whose credentials the questions use, also for stacks nested in it. Empty: the stack does
        not exist yet.
    :param credentials_id: the credentials that the request supplies in that case.
    """

    def __init__(self, acts_as: str = '', credentials_id: str = '') -> None:
        self._acts_as = acts_as
        self._credentials_id = credentials_id
        self._questions: dict[str, TypeQuestion] = {}
        self._replies: dict[str, TypeReply] = {}

    def ask(self, workers: QuestionsPort, context: Caller) -> bool:
        """Send the collected questions; True if there were any."""
        replies = workers(context, [*self._questions.values()])
        self._replies = dict(zip(self._questions, replies, strict=True))
        return bool(replies)

    @property
    def wants_credentials(self) -> bool:
        """True if a reply is missing only because the request has no credentials to act for the user."""
        return any(each.wants_credentials for each in self._replies.values())

    def can_be_made(
        self,
        stack: template.StackIdentity,
        definition: Definition,
        wanted: Mapping[str, Any],
        secrets: Iterable[str],
    ) -> TypeReply:
        """Ask if an object with these properties can exist. All properties are known."""
        return self._about(QuestionKind.VALIDATE, stack, definition, wanted, secrets)

    def update_of(
        self,
        row: Resource,
        stack: template.StackIdentity,
        definition: Definition,
        wanted: Mapping[str, Any],
        secrets: Iterable[str],
    ) -> TypeReply:
        """Ask for the effect of an update of an object to properties that are all known."""
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
    """A resource type's objection to a resource of a template, or the reason why there was no reply.

    :param is_certain: True if no such object can exist.
    """

    problem: Problem
    is_certain: bool


def doubts(
    compiled: template.Compiled, identity: template.StackIdentity, registry: Registry, inquiry: Inquiry
) -> Iterator[Doubt]:
    """The types' objections to the resources of a template of no stack, as far as their values are known."""
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
            said = reply.refusal or f'it is not known if it can be created: {reply.reason}'
            where = compiled.place('resources', definition.name)
            problem = Problem(f'resources.{definition.name} ({definition.type}): {said}', where)
            yield Doubt(problem, is_certain=bool(reply.refusal))


class TypesAsked:
    """The types' answers about the resources of one stack. Without an inquiry, no questions are collected.

    :param secrets: hidden values of the goal, as texts.
    """

    def __init__(self, inquiry: Inquiry | None, stack: Stack, secrets: frozenset[str]) -> None:
        self._inquiry = inquiry
        self._stack = template.StackIdentity('' if stack.id == NO_ID else stack.id, stack.name, stack.project_id)
        self._secrets = secrets

    def __call__(
        self, planned: PlannedChange, definition: Definition, kind: ResourceType[Any], row: Resource | None
    ) -> tuple[PlannedChange, str]:
        """The fate of a resource, if its type knows better; and the reason why the update must fail, or ''."""
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
            return _but(planned, f'it is not known if it can be created: {reply.reason}'), ''
        if not reply.refusal or planned.certainty is Certainty.CERTAIN:
            return planned, reply.refusal
        return _but(planned, f'it cannot be created again: {reply.refusal}'), ''

    def _updated(
        self, inquiry: Inquiry, planned: PlannedChange, definition: Definition, row: Resource
    ) -> tuple[PlannedChange, str]:
        if template.has_unknown(planned.wanted):
            return replace(_but(planned, 'not known yet if in place'), certainty=Certainty.POSSIBLE), ''
        reply = inquiry.update_of(row, self._stack, definition, planned.wanted, self._secrets)
        if not reply.is_known:
            why = f'not known if in place: {reply.reason}'
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
    """Return True if the update changes properties only: that is all that a type can answer for."""
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
    """The metadata, if they depend on no other resource."""
    metadata = template.preview(definition.metadata, {}, evaluator(), within(definition.masked_paths, METADATA))
    return {} if template.has_unknown(metadata) else metadata
