"""The row that stores the goal of a stack, with a summary.

Showing a stack reads only the summary: template, environment and files may be a thousand times as large.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from convergence import template
from convergence.core.model import Json
from convergence.core.rows import Template
from convergence.engine.compile.shown_outputs import ShownOutputs
from convergence.engine.compile.submission import Submission

PARAMETER_TYPES = {
    'string': 'String',
    'number': 'Number',
    'comma_delimited_list': 'CommaDelimitedList',
    'json': 'Json',
    'boolean': 'Boolean',
}


def template_row(template_id: str, stack_id: str, submission: Submission, compiled: template.Compiled) -> Template:
    """The row of a goal that was accepted."""
    return Template(template_id, stack_id, submission.accepted(compiled.goal).content(), summary(compiled))


def summary(compiled: template.Compiled) -> dict[str, Json]:
    """The summary of a goal: ``{'description': …, 'parameters': {name: text}}``.

    Includes ``outputs``, unless they are too large; see `ShownOutputs`.
    """
    told: dict[str, Json] = {
        'description': template_description(compiled),
        'parameters': {**parameter_texts(compiled.parameters)},
    }
    outputs = ShownOutputs.of(compiled).document()
    return told if outputs is None else {**told, 'outputs': outputs}


def template_description(compiled: template.Compiled) -> str:
    """The description of a template."""
    return compiled.description or 'No description'


def parameter_texts(parameters: Mapping[str, template.Parameter]) -> dict[str, str]:
    """The values of parameters as texts, hidden ones masked. Parameters without a value are left out."""
    return {name: _text(parameter) for name, parameter in parameters.items() if parameter.has_value}


def _text(parameter: template.Parameter) -> str:
    value = parameter.masked()
    if isinstance(value, str):
        return value
    if isinstance(value, list) and PARAMETER_TYPES[parameter.type] == 'CommaDelimitedList':
        return ','.join(str(item) for item in value)
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)
