"""Checks samples of the members of groups, together with the template that contains the groups.

`convergence.engine.compile.nested_preview` checks whole nested stacks; for a group it needs all properties. A sample
(`NestedType.foreseen`: the first member, the deployment on any server) can be checked before the number of members is
known. Its type names the properties that each part comes from, so a problem with members is reported at the line that
the user has written, or in the file that the members are made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from convergence import template
from convergence.core.failure import led_to
from convergence.core.model import Definition
from convergence.engine.compile.nested_content import submission_of
from convergence.engine.compile.submission import Submission
from convergence.errors import Problem, RequestLimitExceeded, StackValidationFailed
from convergence.resources.contract import PluginFailure, ResourceType
from convergence.resources.nested import NestedType
from convergence.resources.nesting import SampleTemplate
from convergence.resources.schema import PropertySchema
from convergence.template.secrets import PROPERTIES, within
from convergence.values import replace

CheckSubmission = Callable[[Submission], object]
"""Validates a submission for a nested stack, with the stacks nested in it.

:raises StackValidationFailed: carries all problems.
:raises RequestLimitExceeded: it exceeds a limit.
"""


def problems_below(
    compiled: template.Compiled,
    submission: Submission,
    type_of: Callable[[str], ResourceType[Any] | None],
    check: CheckSubmission,
) -> Iterator[Problem]:
    """Find the problems of the stacks that resources of a template will create, each with the place of its cause.

    :param submission: the source of the template; the template itself is valid.
    :param type_of: the resource type of a name; None if there is none.
    """
    for definition in compiled.goal.definitions.values():
        kind = type_of(definition.type)
        if isinstance(kind, NestedType) and definition.external_id is None:
            yield from _of_resource(compiled, submission, definition, kind, check)


def _of_resource(
    compiled: template.Compiled,
    submission: Submission,
    definition: Definition,
    kind: NestedType[Any],
    check: CheckSubmission,
) -> Iterator[Problem]:
    masked_paths = within(definition.masked_paths, PROPERTIES)
    known = PropertySchema.of(kind.Properties).known(definition.properties)
    told: set[str] = set()
    try:
        for each in kind.foreseen(known, submission.files, masked_paths):
            for problem in _problems(check, submission_of(submission, definition, each.wanted)):
                tail = _tail(problem, each)
                message = led_to(definition.name, problem.message, definition.shown_type)
                if problem.message in told:
                    continue
                if problem.place is not None and problem.place.source in submission.files:
                    told.add(problem.message)
                    yield replace(problem, message=message)
                elif tail is not None:
                    told.add(problem.message)
                    place = compiled.place('resources', definition.name, PROPERTIES, *each.path, *tail)
                    yield Problem(message, place, problem.hint, problem.kind)
    except PluginFailure as error:
        message = led_to(definition.name, str(error), definition.shown_type)
        yield Problem(message, compiled.place('resources', definition.name, PROPERTIES))


def _problems(check: CheckSubmission, nested: Submission) -> tuple[Problem, ...]:
    try:
        check(nested)
    except StackValidationFailed as error:
        return error.problems
    except RequestLimitExceeded as error:
        return (Problem(str(error)),)
    return ()


def _tail(problem: Problem, each: SampleTemplate) -> tuple[str | int, ...] | None:
    """The path from a sample to a problem in it; None if the problem is outside of the sample."""
    path = problem.place.path if problem.place is not None else ()
    if not each.at or not path:
        return ()
    return path[len(each.at) :] if path[: len(each.at)] == each.at else None
