"""The submission of an update: all that was sent, or the present submission with the sent parts merged in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convergence import errors
from convergence.core.model import Json
from convergence.core.rows import Stack
from convergence.db.ports import ReaderPort
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.submission import Submission, merged
from convergence.engine.operations.options import StackOptions
from convergence.engine.traversals.traversals import Overtaken
from convergence.template.environment import ENCRYPTED, VALUES
from convergence.template.merging import laid_over
from convergence.values import replace


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """The parts that an update sends; None: not sent."""

    template: str | Mapping[str, Json] | None
    params: Mapping[str, Json] | None
    files: Mapping[str, str] | None
    environment_files: Sequence[str] | None


def merge_update(
    sent: UpdateRequest, stack: Stack, options: StackOptions, compiler: TemplateCompiler, reader: ReaderPort
) -> Submission:
    """The submission of `stack` after an update.

    :raises Invalid: the update has no template, and does not say that the present one stays.
    :raises Overtaken: another request has given the stack another goal.
    """
    if not options.existing:
        if sent.template is None:
            raise errors.Invalid('template: an update needs one, unless it says that the existing one stays')
        return compiler.submissions.read(sent.template, sent.params, sent.files, sent.environment_files)
    row = reader.template(stack.template_id or '')
    if row is None:
        raise Overtaken(f'stack {stack.name} has got another goal')
    present = Submission.from_content(row.content)
    source = present.template if sent.template is None else sent.template
    everything = {**present.files, **(sent.files or {})}
    change = compiler.submissions.read(source, sent.params, everything, sent.environment_files)
    hidden = _kept_hidden(compiler, stack, present.environment, change.environment)
    whole = merged(present, None if sent.template is None else change, laid_over(change.environment, hidden))
    shown = {**present.environment_files, **change.environment_files}
    environment = _without(whole.environment, options.clear_parameters)
    return replace(whole, environment=environment, files=change.files, environment_files=shown)


def _without(environment: Mapping[str, Json], cleared: Sequence[str]) -> Mapping[str, Json]:
    """An environment without the values of some parameters, which get their defaults back."""
    parameters = environment.get('parameters')
    if not isinstance(parameters, dict) or not parameters:
        return environment
    return {**environment, 'parameters': {name: value for name, value in parameters.items() if name not in cleared}}


def _kept_hidden(
    compiler: TemplateCompiler, stack: Stack, present: Mapping[str, Json], sent: Mapping[str, Json]
) -> dict[str, list[Json]]:
    """The section of an environment that keeps the taken-over values of a partial update hidden.

    A new template must not reveal values that were given as secrets: a parameter that is hidden now stays hidden under
    any template, until a user gives its value again.

    :param present: the environment of the stack.
    :param sent: the environment of the update.
    """
    kept = _names_of_values(present) - _names_of_values(sent)
    if stack.template_id is None or not kept:
        return {}
    try:
        parameters = compiler.stored(stack, stack.template_id)[1].parameters
    except (
        errors.EntityNotFound,
        errors.StackValidationFailed,
        errors.RequestLimitExceeded,
        errors.GoalUnreadable,
    ):
        return {ENCRYPTED: [*sorted(kept)]}  # the present template is unreadable: hide every value
    return {ENCRYPTED: [name for name in sorted(kept) if name in parameters and parameters[name].hidden]}


def _names_of_values(environment: Mapping[str, Json]) -> set[str]:
    """Names of the parameters to which an environment gives values."""
    sections = [environment.get(name) for name in VALUES]
    return {name for section in sections if isinstance(section, dict) for name in section}
