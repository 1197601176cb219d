"""The resource types, constraints and functions that are installed on this machine."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from typing_extensions import override

from convergence import template as language
from convergence.core.model import Json
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.member_checks import problems_below
from convergence.engine.compile.nested_preview import NestedPreview, defaults_of
from convergence.engine.compile.submission import Submission
from convergence.engine.nesting.converger import NestingLimits
from convergence.errors import Problem, StackValidationFailed
from convergence.expressions import evaluator
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.catalog import RegistryCatalog
from convergence.resources.contract import ResourceType
from convergence.resources.custom import installed_checks
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template.authoring.check import IDENTITY, TemplateChecker
from convergence.template.authoring.types import TypeValidator

MAX_DEPTH = NestingLimits().max_depth
"""Levels of nested stacks that are checked: the default of an engine."""


@dataclass(frozen=True, slots=True)
class EngineValidator(TypeValidator):
    """Checks a template, and the templates nested in it, with the code that an engine uses before it creates a stack.

    :param ignore_unknown_types: report types that are not installed as warnings.
    """

    registry: Registry
    installation: language.Installation
    ignore_unknown_types: bool = False

    @override
    def validate(
        self, compiled: language.Compiled, text: str, environment: Mapping[str, Any], files: Mapping[str, str]
    ) -> list[Problem]:
        """See `TypeValidator.validate`."""
        return self._validate(compiled, Submission(text, environment, files), depth=0)

    def _validate(self, compiled: language.Compiled, submission: Submission, depth: int) -> list[Problem]:
        most_bytes, lenient = self.installation.limits.max_stored_bytes, self.ignore_unknown_types
        preview = NestedPreview(self.registry, self.installation, most_bytes=most_bytes, deepest=MAX_DEPTH)
        warnings = validate(
            compiled,
            self.registry,
            ignore_unknown_types=lenient,
            most_bytes=most_bytes,
            defaults=defaults_of(submission),
            further=preview.problems(
                compiled, submission, IDENTITY.project_id, Permits(), lenient=lenient, depth=depth
            ),
        )

        def check(nested: Submission) -> None:
            inner = language.analyse(
                nested.template,
                identity=IDENTITY,
                environment=nested.environment,
                files=nested.files,
                facade=nested.facade,
                installation=self.installation,
                require_parameters=language.Require.NONE,
            )
            self._validate(inner, nested, depth + 1)

        def type_of(name: str) -> ResourceType[Any] | None:
            return self.registry.get(name) if name in self.registry else None

        problems = [*problems_below(compiled, submission, type_of, check)] if depth < MAX_DEPTH else []
        if problems:
            raise StackValidationFailed(problems)
        return warnings


def template_checker(
    parameters: Mapping[str, Json],
    require: language.Require = language.Require.NONE,
    *,
    ignore_unknown_types: bool = False,
    tolerant: bool = False,
) -> TemplateChecker:
    """Return a checker with the types of this machine.

    :param tolerant: constraints that need a service which is not reachable accept every value.
    """
    types, installation = installed_types(), local_installation(tolerant=tolerant)
    validator = EngineValidator(types, installation, ignore_unknown_types)
    return TemplateChecker(RegistryCatalog(types), validator, installation, parameters, require)


def local_installation(*, tolerant: bool = False) -> language.Installation:
    """Return limits, constraints and functions for reading templates on this machine.

    :param tolerant: constraints that need a service which is not reachable accept every value.
    """
    checks = installed_checks().tolerating() if tolerant else installed_checks()
    return language.Installation(checks=checks, yaql=evaluator())


def installed_types() -> Registry:
    """Return the installed types, those of the local provider included. Nothing is created with them."""
    # The author of a template cannot repair a package that fails to load; its types are reported as unknown.
    logger = logging.getLogger('convergence.resources')
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        return Registry.installed(local=LocalProvider(Path(tempfile.gettempdir())), for_checks=True)
    finally:
        logger.setLevel(level)


def unreadable(name: str, error: OSError) -> click.UsageError:
    """Return the error for a file that cannot be read."""
    return click.UsageError(f'{name}: {error.strerror or error}')


def given(parameters: Sequence[str]) -> dict[str, Json]:
    """Return the values of ``--parameter``, each a text."""
    given: dict[str, Json] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition('=')
        if not equals or not name:
            raise click.BadParameter(f'"{parameter}" must have the form NAME=VALUE', param_hint="'--parameter'")
        given[name] = value
    return given
