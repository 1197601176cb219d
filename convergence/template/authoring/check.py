"""Checks a template as an engine does, and collects all errors and warnings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convergence import template
from convergence.core.model import Json
from convergence.errors import Problem, RequestLimitExceeded, StackValidationFailed
from convergence.template.authoring.bundle import Bundle, BundleNames
from convergence.template.authoring.types import TypeCatalog, TypeValidator
from convergence.template.merging import merge_environments
from convergence.template.problems import Problems
from convergence.template.sources import read

IDENTITY = template.StackIdentity('stack-id', 'stack', 'project')
"""The stack for which templates are compiled: a check has none."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of checking one template.

    :param name: the template's path.
    :param compiled: the compiled template; None if it cannot be compiled.
    :param errors: problems for which an engine refuses the template.
    :param warnings: probable mistakes, and parts that could not be checked.
    """

    name: str
    compiled: template.Compiled | None
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class TemplateChecker:
    """Checks templates with fixed settings.

    :param types: the resource types.
    :param validator: checks properties against the types.
    :param installation: limits and custom constraints.
    :param parameters: parameter values, as a request gives them.
    :param require: the parameters that must have values.
    """

    types: TypeCatalog
    validator: TypeValidator
    installation: template.Installation
    parameters: Mapping[str, Json]
    require: template.Require = template.Require.NONE

    def check(self, bundle: Bundle) -> Findings:
        """Check one template with its environments and files."""
        compiled, warnings, errors = None, [], list(bundle.problems)
        try:
            environment = self._environment(bundle)
            compiled = self._analyse(bundle, environment, self.require)
            sections = self._sections(environment)
            warnings = self.validator.validate(compiled, bundle.text, sections, bundle.files)
        except StackValidationFailed as error:
            errors += _without_reported(error.problems, bundle.problems)
            warnings = compiled.warnings if compiled else []
        except RequestLimitExceeded as error:
            errors.append(Problem(str(error), kind=type(error).__name__))
        names = BundleNames(bundle)
        return Findings(
            bundle.name,
            compiled,
            tuple(sorted(map(names.give, errors), key=_position)),
            tuple(map(names.give, _without_reported(warnings, bundle.problems))),
        )

    def _sections(self, environment: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the sections of the environment; the checker's parameters win over those in it."""
        if isinstance(environment, str):
            root = read(environment, 'environment', self.installation.limits, Problems()).root
            environment = root if isinstance(root, dict) else {}
        values = environment.get('parameters')
        given = {**(values if isinstance(values, dict) else {}), **self.parameters}
        return {**environment, 'parameters': given}

    def _analyse(
        self, bundle: Bundle, environment: str | Mapping[str, Any] | None, require: template.Require
    ) -> template.Compiled:
        return template.analyse(
            bundle.text,
            identity=IDENTITY,
            environment=environment,
            files=bundle.files,
            parameters=self.parameters if environment is not None or require is self.require else {},
            installation=self.installation,
            require_parameters=require,
        )

    def _environment(self, bundle: Bundle) -> str | Mapping[str, Any]:
        """Return all environments as one. A single one stays text, so that its problems have lines."""
        names: Sequence[str] = tuple(bundle.environments)
        if len(names) < 2:
            return bundle.environments[names[0]] if names else {}
        bare = dataclasses.replace(bundle, files=bundle.files)
        declared = self._analyse(bare, None, template.Require.NONE).parameters
        return merge_environments(names, bundle.environments, {}, declared, self.installation.limits)


def _without_reported(problems: Sequence[Problem], reported: Sequence[Problem]) -> list[Problem]:
    """Return the problems whose places are not among those of files that could not be read."""
    places = {(problem.place.source, problem.place.path) for problem in reported if problem.place}
    return [
        problem for problem in problems if not problem.place or (problem.place.source, problem.place.path) not in places
    ]


def _position(problem: Problem) -> tuple[bool, int, int]:
    place = problem.place
    return (place is None, place.line, place.column) if place else (True, 0, 0)
