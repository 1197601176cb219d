"""Reads and validates the templates of nested stacks before the stacks exist, as far as their parameters are known.

A problem in a nested template is reported for the stack that will contain it, not when its resources are created: in
the same words for validate, preview, create and update, with file and line. Problems of the members of groups in the
outermost template are left to `convergence.engine.compile.member_checks`, which needs only samples.
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
"""Maximum number of nested templates read for one request; the others are validated when their stacks are created."""

GENERATED = 'the template that it makes'


@dataclass(frozen=True, slots=True)
class PreviewedStack:
    """A nested stack that a resource will create.

    :param definition: definition of the resource.
    :param compiled: its template; values that are not known yet are missing.
    :param below: the stacks nested in it.
    """

    definition: Definition
    submission: Submission
    compiled: template.Compiled
    below: tuple[PreviewedStack, ...] = ()


@dataclass(slots=True)
class NestedFindings:
    """The stacks nested in a template, and their problems.

    :param problems: with the path of resource names that lead to them.
    """

    stacks: list[PreviewedStack] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Way:
    """The position of a nested template.

    :param depth: number of templates that contain it.
    :param types: types of the resources that lead to it, as far as they are known.
    :param is_certain: True if its existence depends on no unknown value.
    """

    depth: int = 0
    types: tuple[str, ...] = ()
    is_certain: bool = True


@dataclass(slots=True)
class _Look:
    """The state of one request: settings for all levels, and the templates read so far, by content."""

    project_id: str
    permits: Permits
    ignore_unknown_types: bool
    depth: int = 0
    left: int = MOST_FORESEEN
    seen: dict[str, tuple[template.Compiled, NestedFindings] | None] = field(default_factory=dict)


class NestedPreview:
    """Compiles and validates the templates of nested stacks.

    :param most_bytes: maximum size of the stored properties, and of the stored output, of a resource.
    :param deepest: how many levels of nested stacks may stand above a nested stack.
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
        """The problems in nested templates. Equal content is validated once, also for later requests.

        :param lenient: True if an unknown resource type is no error.
        :param depth: number of templates that contain this one.
        :raises Forbidden: the user may not use the type of a resource in it.
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
        """The nested stacks that will exist, each with the stacks in it, as far as they are known. Refuses nothing."""
        return self._below(compiled, submission, _Look(project_id, Permits(), ignore_unknown_types=True), _Way()).stacks

    def of(
        self,
        definition: Definition,
        known: Any,
        submission: Submission,
        identity: template.StackIdentity,
        context: NestingContext | None = None,
    ) -> PreviewedStack | None:
        """The nested stack that a resource will create; None if that is unknown, or if it creates none.

        :param known: its properties, as far as they are known.
        :param identity: of the nested stack.
        :param context: the context for the resource type, if the nested stack exists already.
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
                # In the outermost template, `member_checks` reports them with the place of their cause.
                found.problems += [_led_to(problem, definition, compiled) for problem in below.problems]
        return found

    def _too_deep(self, types: tuple[str, ...]) -> Problem:
        told = f'Recursion depth exceeds {self._deepest} ([limits] max_nested_stack_depth): {" > ".join(types)}'
        return Problem(told)

    def _look_at(
        self, definition: Definition, inner: Submission, undetermined: frozenset[str], look: _Look, way: _Way
    ) -> tuple[template.Compiled, NestedFindings] | None:
        """A nested template, with its problems and those of the templates in it; None if it cannot be read."""
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
            return None  # the template cannot be read: the validation of the resource reports that
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
            found.problems = [problem for problem in error.problems if not _is_of_given_value(problem)]
        look.seen[key] = compiled, found
        return look.seen[key]

    def _wanted(
        self, definition: Definition, submission: Submission, project_id: str
    ) -> tuple[DesiredStack | None, frozenset[str]]:
        """See `_wants`; for a resource without a row."""
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
        """The desired nested stack of a resource, and the parameters whose values are unknown; None if it is
        undetermined.
        """
        kind = self._registry.get(definition.type)
        assert isinstance(kind, NestedType)
        if isinstance(kind, ProviderType):
            return _of_provider(definition, known, submission)
        if template.has_unknown(known):
            return None, frozenset()
        try:
            return kind.wanted(build_call(kind, subject, known), context), frozenset()
        except Exception:  # noqa: BLE001 - runs the code of a resource type; it reports its objections when it acts
            return None, frozenset()


def _subject(definition: Definition, project_id: str, token: str = '') -> Subject:
    """A resource that may have no row.

    :param token: id of its nested stack, where that is there.
    """
    return Subject(definition.name, '', '', project_id, '', token, type_name=definition.type)


def _nothing(submission: Submission) -> NestingContext:
    """The context for a resource type whose nested stack does not exist."""
    return NestingContext(submission.files)


def _facade(definition: Definition, submission: Submission) -> Mapping[str, Json]:
    """The facade of a resource that does not exist yet, as far as it is known."""
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


def _is_of_given_value(problem: Problem) -> bool:
    """Return True if a problem concerns a value that the resource gives: that is validated as its property."""
    place = problem.place
    return place is not None and place.source == ENVIRONMENT and place.path[:1] == ('parameters',)


def _led_to(problem: Problem, definition: Definition, compiled: template.Compiled) -> Problem:
    """A problem as reported one level up. A problem in no file gets the place of its resource.

    :param compiled: the template that contains the resource.
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
