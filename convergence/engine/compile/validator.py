"""Validates compiled templates: permits, resource types, nested stacks and samples of group members."""

from __future__ import annotations

from typing import Any

from convergence import errors, template
from convergence.core.model import Goal
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.analyser import TemplateAnalyser
from convergence.engine.compile.member_checks import problems_below
from convergence.engine.compile.nested_preview import defaults_of
from convergence.engine.compile.submission import Submission
from convergence.resources.contract import ResourceType
from convergence.resources.validation import validate

NO_GOAL = Goal()
"""A goal without resources: no definition has been validated before."""


class TemplateValidator:
    """Validates templates against everything that is installed here.

    :param deepest: how many levels of nested stacks may stand above a nested stack.
    """

    def __init__(self, analyser: TemplateAnalyser, limits: template.Limits, deepest: int) -> None:
        self._analyser = analyser
        self._registry = analyser.types
        self._limits = limits
        self._deepest = deepest

    def inspect(
        self,
        project_id: str,
        submission: Submission,
        permits: Permits,
        *,
        ignore_unknown_types: bool = False,
        depth: int = 0,
    ) -> tuple[template.Compiled, list[errors.Problem]]:
        """Compile and validate a template that belongs to no stack. Parameters need no values.

        :param permits: resource types that the caller may use.
        :param ignore_unknown_types: an unknown resource type is no error, nor an unavailable service that a custom
            constraint queries.
        :param depth: number of templates that contain this one.
        :returns: the template and its warnings.
        :raises StackValidationFailed: carries all problems.
        """
        analyser, tolerant = self._analyser, ignore_unknown_types
        compiled = template.analyse(
            submission.template,
            identity=template.StackIdentity('', '', project_id),
            environment=submission.environment,
            files=submission.files,
            facade=submission.facade,
            installation=analyser.tolerant if tolerant else analyser.installation,
            require_parameters=template.Require.NONE,
        )
        return compiled, self.validate(
            compiled, submission, project_id, permits, ignore_unknown_types=tolerant, depth=depth
        )

    def validate(
        self,
        compiled: template.Compiled,
        submission: Submission,
        project_id: str,
        permits: Permits,
        *,
        ignore_unknown_types: bool = False,
        depth: int = 0,
        valid: Goal = NO_GOAL,
    ) -> list[errors.Problem]:
        """Validate a compiled template; its warnings. See `convergence.resources.validation.validate`.

        :param depth: number of templates that contain this one.
        :param valid: a goal that this engine has validated before; its definitions are not validated again.
        :raises Forbidden: the caller may not use a resource type.
        :raises StackValidationFailed: carries all problems.
        """
        permits.require_all(compiled)
        nested = self._analyser.nested_preview.problems(
            compiled, submission, project_id, permits, lenient=ignore_unknown_types, depth=depth
        )
        warnings = validate(
            compiled,
            self._registry,
            ignore_unknown_types=ignore_unknown_types,
            most_bytes=self._limits.max_stored_bytes,
            defaults=defaults_of(submission),
            further=nested,
            sound=valid.definitions,
        )

        def check(nested: Submission) -> None:
            self.inspect(project_id, nested, permits, ignore_unknown_types=ignore_unknown_types, depth=depth + 1)

        def type_of(name: str) -> ResourceType[Any] | None:
            return self._registry.get(name) if name in self._registry else None

        if depth < self._deepest:
            problems = [*problems_below(compiled, submission, type_of, check)]
            if problems:
                raise errors.StackValidationFailed(problems)
        return warnings
