"""Checks a template as an engine would, on this machine, and collects everything that is wrong with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convergence import template
from convergence.cli.template_files import Bundle
from convergence.core.model import Json
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.member_checks import problems_below
from convergence.engine.compile.nested_preview import NestedPreview, defaults_of
from convergence.engine.compile.submission import Submission
from convergence.engine.nesting.converger import NestingLimits
from convergence.errors import Place, Problem, RequestLimitExceeded, StackValidationFailed
from convergence.resources.contract import ResourceType
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template.excerpts import Excerpts
from convergence.template.merging import merge_environments
from convergence.template.problems import Problems
from convergence.template.sources import read

DEEPEST = NestingLimits().max_depth
"""How many stacks a stack may be in, where nobody has configured another number."""
_IDENTITY = template.StackIdentity('stack-id', 'stack', 'project')


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found out about one template.

    :param name: the template's path.
    :param compiled: the template, if anything could be made of it.
    :param errors: for which an engine would refuse it.
    :param warnings: what is probably not meant so, and what could not be checked.
    """

    name: str
    compiled: template.Compiled | None
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateChecker:
    """How templates are checked.

    :param registry: the resource types.
    :param installation: limits and custom constraints.
    :param parameters: values that a request would give.
    :param require: whether parameters must have values.
    :param ignore_unknown_types: a type that is not installed is no error.
    """

    registry: Registry
    installation: template.Installation
    parameters: Mapping[str, Json]
    require: template.Require = template.Require.NONE
    ignore_unknown_types: bool = False

    def check(self, bundle: Bundle) -> Findings:
        """Check one template with its environments and files."""
        compiled, warnings, errors = None, [], list(bundle.problems)
        try:
            environment = self._environment(bundle)
            compiled = self._analyse(bundle, environment, self.require)
            warnings = self._validate(compiled, self._submission(bundle, environment))
        except StackValidationFailed as error:
            errors += _not_told_yet(error.problems, bundle.problems)
            warnings = compiled.warnings if compiled else []
        except RequestLimitExceeded as error:
            errors.append(Problem(str(error), kind=type(error).__name__))
        names = BundleNames(bundle)
        return Findings(
            bundle.name,
            compiled,
            tuple(sorted(map(names.give, errors), key=_position)),
            tuple(map(names.give, _not_told_yet(warnings, bundle.problems))),
        )

    def _submission(self, bundle: Bundle, environment: str | Mapping[str, Any]) -> Submission:
        if isinstance(environment, str):
            root = read(environment, 'environment', self.installation.limits, Problems()).root
            environment = root if isinstance(root, dict) else {}
        values = environment.get('parameters')
        given = {**(values if isinstance(values, dict) else {}), **self.parameters}
        return Submission(bundle.text, {**environment, 'parameters': given}, bundle.files)

    def _validate(self, compiled: template.Compiled, submission: Submission, depth: int = 0) -> list[Problem]:
        """Check it against the resource types, and what is nested in it, as an engine does before anything is made.

        :raises StackValidationFailed: carries everything that is wrong with it.
        """
        most_bytes, lenient = self.installation.limits.max_stored_bytes, self.ignore_unknown_types
        foresight = NestedPreview(self.registry, self.installation, most_bytes=most_bytes, deepest=DEEPEST)
        warnings = validate(
            compiled,
            self.registry,
            ignore_unknown_types=lenient,
            most_bytes=most_bytes,
            defaults=defaults_of(submission),
            further=foresight.problems(
                compiled, submission, _IDENTITY.project_id, Permits(), lenient=lenient, depth=depth
            ),
        )

        def check(nested: Submission) -> None:
            inner = template.analyse(
                nested.template,
                identity=_IDENTITY,
                environment=nested.environment,
                files=nested.files,
                facade=nested.facade,
                installation=self.installation,
                require_parameters=template.Require.NONE,
            )
            self._validate(inner, nested, depth + 1)

        def type_of(name: str) -> ResourceType[Any] | None:
            return self.registry.get(name) if name in self.registry else None

        problems = [*problems_below(compiled, submission, type_of, check)] if depth < DEEPEST else []
        if problems:
            raise StackValidationFailed(problems)
        return warnings

    def _analyse(
        self, bundle: Bundle, environment: str | Mapping[str, Any] | None, require: template.Require
    ) -> template.Compiled:
        return template.analyse(
            bundle.text,
            identity=_IDENTITY,
            environment=environment,
            files=bundle.files,
            parameters=self.parameters if environment is not None or require is self.require else {},
            installation=self.installation,
            require_parameters=require,
        )

    def _environment(self, bundle: Bundle) -> str | Mapping[str, Any]:
        """All environments as one. The text of a single one, which has lines."""
        names: Sequence[str] = tuple(bundle.environments)
        if len(names) < 2:
            return bundle.environments[names[0]] if names else {}
        bare = dataclasses.replace(bundle, files=bundle.files)
        declared = self._analyse(bare, None, template.Require.NONE).parameters
        return merge_environments(names, bundle.environments, {}, declared, self.installation.limits)


class BundleNames:
    """Gives places the names of the files that the user has named, and excerpts where they have none."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._texts = {'template': bundle.text, **bundle.environments, **bundle.files}

    def give(self, problem: Problem) -> Problem:
        """The problem as it is to be shown."""
        place = problem.place
        if place is None:
            return problem
        source, environments = place.source, tuple(self._bundle.environments)
        if source == 'environment' and environments:
            place = dataclasses.replace(place, source=environments[0]) if place.line else self._in_environments(place)
        excerpt = problem.excerpt
        if not excerpt and place.line and place.source in self._texts:
            excerpt = Excerpts(self._texts[place.source]).at(place)
        if source == 'template':
            place = dataclasses.replace(place, source=self._bundle.name)
        return dataclasses.replace(problem, place=place, excerpt=excerpt)

    def _in_environments(self, place: Place) -> Place:
        """The place in the last environment that has something there: that is the one whose value won."""
        for name, text in reversed(list(self._bundle.environments.items())):
            try:
                document = read(text, name, template.Limits(), Problems())
            except (StackValidationFailed, RequestLimitExceeded):
                continue
            node: Json = document.root
            for key in place.path:
                node = node.get(str(key)) if isinstance(node, dict) else None
            if node is not None:
                return document.place(place.path)
        return place


def _not_told_yet(problems: Sequence[Problem], told: Sequence[Problem]) -> list[Problem]:
    """Without those about files that could not be read: why is told already."""
    places = {(problem.place.source, problem.place.path) for problem in told if problem.place}
    return [
        problem for problem in problems if not problem.place or (problem.place.source, problem.place.path) not in places
    ]


def _position(problem: Problem) -> tuple[bool, int, int]:
    place = problem.place
    return (place is None, place.line, place.column) if place else (True, 0, 0)
