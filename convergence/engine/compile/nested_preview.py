"""Looks at the templates of nested stacks before there are any, as far as their parameters are known.

What is wrong in them is told with the stack that they are to be in, not when its resources are made: the same words for
whoever validates, previews, creates or updates, with the file and the line. What is wrong with members of groups at
the top is left to `convergence.engine.compile.member_checks`, which needs only samples of them.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from convergence import errors, template
from convergence.concurrency import Lock
from convergence.core.failure import led_to
from convergence.core.model import Definition, Json
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.nested_content import (
    DEFAULTS,
    UPDATE_POLICY,
    asked_inside,
    facade_of,
    submission_of,
    with_asked,
)
from convergence.engine.compile.submission import Submission
from convergence.errors import Problem
from convergence.expressions import evaluator
from convergence.resources.invocation import Subject, build_call
from convergence.resources.nested import NestedType, ProviderType
from convergence.resources.nesting import DesiredStack, NestingContext
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template.environment import NAME as ENVIRONMENT
from convergence.template.secrets import METADATA, PROPERTIES, within
from convergence.values import replace

MOST_FORESEEN = 100
"""Templates that are looked at for one request; the others are checked when their stacks are made."""

GENERATED = 'the template that it makes'


@dataclass(frozen=True, slots=True)
class PreviewedStack:
    """A nested stack that is to be.

    :param definition: of the resource whose object it is.
    :param compiled: its template, in which the values are missing that are not known yet.
    :param below: what is nested in it.
    """

    definition: Definition
    submission: Submission
    compiled: template.Compiled
    below: tuple[PreviewedStack, ...] = ()


@dataclass(slots=True)
class NestedFindings:
    """What was found out of the stacks that are nested in one.

    :param problems: with the names of the resources that lead there.
    """

    stacks: list[PreviewedStack] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Way:
    """What leads to a template.

    :param depth: how many templates it is nested in.
    :param types: of the resources that lead there, as far back as is known.
    :param is_certain: whether all values are known on which it may depend that it is there.
    """

    depth: int = 0
    types: tuple[str, ...] = ()
    is_certain: bool = True


@dataclass(slots=True)
class _Look:
    """One request: what holds for all levels, and what has been seen of it, by content."""

    project_id: str
    permits: Permits
    ignore_unknown_types: bool
    depth: int = 0
    left: int = MOST_FORESEEN
    seen: dict[str, tuple[template.Compiled, NestedFindings] | None] = field(default_factory=dict)


class NestedPreview:
    """Compiles and checks the templates of nested stacks.

    :param most_bytes: what a resource may store of each kind.
    :param deepest: how many stacks a stack may be in.
    """

    def __init__(
        self,
        registry: Registry,
        installation: template.Installation,
        *,
        most_bytes: int,
        kept: int = 256,
        deepest: int = 5,
    ) -> None:
        self._deepest = deepest
        self._registry = registry
        self._installation = installation
        self._most_bytes = most_bytes
        self._kept = kept
        self._lock = Lock()
        self._sound: OrderedDict[str, None] = OrderedDict()

    def problems(
        self,
        compiled: template.Compiled,
        submission: Submission,
        project_id: str,
        permits: Permits,
        *,
        lenient: bool,
        depth: int = 0,
    ) -> list[Problem]:
        """What is wrong in what is nested. The same content is looked at once, also by later requests.

        :param lenient: that a resource type is not there is no error.
        :param depth: how many templates this one is nested in.
        :raises Forbidden: a resource in it is of a type that the user may not use.
        """
        if not any(self._registry.nests(each.type) for each in compiled.goal.definitions.values()):
            return []
        key = _digest([submission.content(), permits.rules and dict(permits.rules), lenient, depth])
        with self._lock:
            if key in self._sound:
                self._sound.move_to_end(key)
                return []
        found = self._below(compiled, submission, _Look(project_id, permits, lenient, depth), _Way(depth)).problems
        if not found:
            with self._lock:
                self._sound[key] = None
                while len(self._sound) > self._kept:
                    self._sound.popitem(last=False)
        return found

    def stacks(self, compiled: template.Compiled, submission: Submission, project_id: str) -> list[PreviewedStack]:
        """The nested stacks that are to be, each with those in it, as far as they are known. Nothing is refused."""
        return self._below(compiled, submission, _Look(project_id, Permits(), ignore_unknown_types=True), _Way()).stacks

    def of(
        self,
        definition: Definition,
        known: Any,
        submission: Submission,
        identity: template.StackIdentity,
        context: NestingContext | None = None,
    ) -> PreviewedStack | None:
        """The nested stack that a resource will be; None where that cannot be known, or it will be none.

        :param known: its properties, as far as they are known.
        :param identity: of the nested stack.
        :param context: what the resource's type may look at, where there is a nested stack already.
        """
        if not self._registry.nests(definition.type) or definition.external_id is not None:
            return None
        subject = _subject(definition, identity.project_id, identity.stack_id if context is not None else '')
        wanted, undetermined = self._wants(definition, known, submission, subject, context or _nothing(submission))
        if wanted is None:
            return None
        inner = self._inner(definition, submission, wanted)
        try:
            return PreviewedStack(definition, inner, self._analysed(definition, inner, undetermined, identity))
        except errors.StackValidationFailed:
            return None

    def _analysed(
        self, definition: Definition, inner: Submission, undetermined: frozenset[str], identity: template.StackIdentity
    ) -> template.Compiled:
        compiled = template.analyse(
            inner.template,
            identity=identity,
            environment=inner.environment,
            files=inner.files,
            facade=inner.facade,
            installation=self._installation,
            require_parameters=template.Require.NONE,
            name=definition.type if isinstance(inner.template, str) else GENERATED,
            undetermined=undetermined,
        )
        return with_asked(compiled, inner)

    def _inner(self, definition: Definition, submission: Submission, wanted: DesiredStack) -> Submission:
        asked = asked_inside(self._registry.get(definition.type), definition, wanted)
        return submission_of(submission, definition, wanted, _facade(definition, submission), asked)

    def _below(self, compiled: template.Compiled, submission: Submission, look: _Look, way: _Way) -> NestedFindings:
        found = NestedFindings()
        if len(compiled.problems):
            return found
        for definition in compiled.goal.definitions.values():
            if not self._registry.nests(definition.type) or definition.external_id is not None:
                continue
            types = (*way.types, definition.shown_type)
            if way.depth >= self._deepest:
                if way.is_certain:
                    found.problems.append(_led_to(self._too_deep(types), definition, compiled))
                continue
            wanted, undetermined = self._wanted(definition, submission, look.project_id)
            if wanted is None:
                continue
            inner = self._inner(definition, submission, wanted)
            inside = _Way(way.depth + 1, types, way.is_certain and not undetermined)
            seen = self._look_at(definition, inner, undetermined, look, inside)
            if seen is None:
                continue
            nested, below = seen
            found.stacks.append(PreviewedStack(definition, inner, nested, tuple(below.stacks)))
            kind = self._registry.get(definition.type)
            if way.depth > look.depth or type(kind).foreseen is NestedType.foreseen:  # type: ignore[attr-defined]
                # At the top others tell where in their properties the cause stands: see `member_checks`.
                found.problems += [_led_to(problem, definition, compiled) for problem in below.problems]
        return found

    def _too_deep(self, types: tuple[str, ...]) -> Problem:
        told = f'Recursion depth exceeds {self._deepest} ([limits] max_nested_stack_depth): {" > ".join(types)}'
        return Problem(told)

    def _look_at(
        self, definition: Definition, inner: Submission, undetermined: frozenset[str], look: _Look, way: _Way
    ) -> tuple[template.Compiled, NestedFindings] | None:
        """The template with what is wrong in it and in what is nested in it; None where it is no template at all."""
        key = _digest([inner.content(), sorted(undetermined), way.depth, way.is_certain])
        if key in look.seen:
            return look.seen[key]
        if look.left == 0:
            return None
        look.left -= 1
        look.seen[key] = None
        try:
            identity = template.StackIdentity('', '', look.project_id)
            compiled = self._analysed(definition, inner, undetermined, identity)
        except errors.StackValidationFailed:
            return None  # told by whoever checks the resource: the template cannot be read
        look.permits.require_all(compiled)
        found = self._below(compiled, inner, look, way)
        try:
            validate(
                compiled,
                self._registry,
                ignore_unknown_types=look.ignore_unknown_types,
                most_bytes=self._most_bytes,
                defaults=defaults_of(inner),
                further=found.problems,
            )
            found.problems = []
        except errors.StackValidationFailed as error:
            found.problems = [problem for problem in error.problems if not _is_told(problem)]
        look.seen[key] = compiled, found
        return look.seen[key]

    def _wanted(
        self, definition: Definition, submission: Submission, project_id: str
    ) -> tuple[DesiredStack | None, frozenset[str]]:
        """See `_wants`, of a resource of which only what the template says is known."""
        hidden = within(definition.masked_paths, PROPERTIES)
        try:
            known = template.preview(definition.properties, {}, evaluator(), hidden)
        except errors.ConvergenceError:
            return None, frozenset()
        return self._wants(definition, known, submission, _subject(definition, project_id), _nothing(submission))

    def _wants(
        self,
        definition: Definition,
        known: Any,
        submission: Submission,
        subject: Subject,
        context: NestingContext,
    ) -> tuple[DesiredStack | None, frozenset[str]]:
        """What stack a resource will want, and which parameters of it nobody knows yet; None where that is open."""
        kind = self._registry.get(definition.type)
        assert isinstance(kind, NestedType)
        if isinstance(kind, ProviderType):
            return _of_provider(definition, known, submission)
        if template.has_unknown(known):
            return None, frozenset()
        try:
            return kind.wanted(build_call(kind, subject, known), context), frozenset()
        except Exception:  # noqa: BLE001 - a type's own code was asked; what it minds is told when it acts
            return None, frozenset()


def _subject(definition: Definition, project_id: str, token: str = '') -> Subject:
    """A resource of which there need not be a row.

    :param token: id of its nested stack, where that is there.
    """
    return Subject(definition.name, '', '', project_id, '', token, type_name=definition.type)


def _nothing(submission: Submission) -> NestingContext:
    """What a type may look at whose nested stack is not there."""
    return NestingContext(submission.files)


def _facade(definition: Definition, submission: Submission) -> Mapping[str, Json]:
    """What is known of a resource for the template that it is, before there is one."""
    known: dict[str, Json] = {}
    for part, encoded in ((METADATA, definition.metadata), (UPDATE_POLICY, definition.update_policy)):
        with suppress(errors.ConvergenceError):
            known[part] = template.resolve(encoded, {}, evaluator())
    return facade_of(definition, submission.files, known)


def defaults_of(submission: Submission) -> Mapping[str, Json]:
    """Values of parameters that hold on every level."""
    defaults = submission.environment.get(DEFAULTS)
    return defaults if isinstance(defaults, dict) else {}


def _of_provider(
    definition: Definition, known: Any, submission: Submission
) -> tuple[DesiredStack | None, frozenset[str]]:
    text = submission.files.get(definition.type)
    if text is None or not isinstance(known, dict):
        return None, frozenset()
    open_ones = frozenset(name for name, value in known.items() if template.has_unknown(value))
    given = {name: value for name, value in known.items() if name not in open_ones and value is not None}
    return DesiredStack(text, given), open_ones


def _is_told(problem: Problem) -> bool:
    """Whether it is about a value that the resource gives: that is checked as its property."""
    place = problem.place
    return place is not None and place.source == ENVIRONMENT and place.path[:1] == ('parameters',)


def _led_to(problem: Problem, definition: Definition, compiled: template.Compiled) -> Problem:
    """A problem as it is told one level further up; what stands in no file is told where its resource stands.

    :param compiled: the template that the resource is in.
    """
    generated = problem.place is None or problem.place.source == GENERATED
    return replace(
        problem,
        message=led_to(definition.name, problem.message),
        place=compiled.place('resources', definition.name) if generated else problem.place,
        excerpt='' if generated else problem.excerpt,
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(',', ':')).encode()).hexdigest()
