"""Reads the `outputs` section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from convergence.core.model import Json, Path
from convergence.errors import InvalidTemplateSection
from convergence.template.definitions import Definitions
from convergence.template.document import ParsedDocument
from convergence.template.functions.base import Absence, Compiling, nearly
from convergence.template.secrets import outermost
from convergence.template.versions import CONDITIONS_SINCE, Version

NO_DESCRIPTION = 'No description given'

OUTPUT_KEYS = ('value', 'description')


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """An output of a template.

    :param value: the encoded value; `resolve` evaluates it when the resources exist.
    :param hidden: paths of the parts that are computed from hidden parameters; ``()`` is the whole value.
    """

    name: str
    value: Json
    description: str = NO_DESCRIPTION
    hidden: tuple[Path, ...] = ()


def read_outputs(
    section: Mapping[str, Json], definitions: Definitions, scope: Compiling
) -> dict[str, OutputDefinition]:
    """Return the outputs in the order of the template. Their used attributes are recorded in `definitions`."""
    document, conditions = definitions.document, definitions.conditions
    outputs: dict[str, OutputDefinition] = {}
    for name, body in section.items():
        path: Path = ('outputs', name)
        if not isinstance(body, dict) or 'value' not in body:
            misspelt = [key for key in body if nearly([key], ['value'])] if isinstance(body, dict) else []
            hint = f' Did you mean "value" by "{misspelt[0]}"?' if misspelt else ''
            where = (*path, *misspelt[:1])
            document.key_problem(f'The output {name} must be a map with the key value.{hint}', where)
        if not isinstance(body, dict):
            continue
        _check_keys(document, definitions.version, body, path)
        subject = f'outputs.{name}'
        own = dataclasses.replace(scope.of(subject), absence=Absence.NULL, keeps_failures=True)
        condition = body.get('condition') if definitions.version.conditions else None
        reads = scope.hidden_reads.count
        wanted = conditions.holds(condition, (*path, 'condition'), own)
        if scope.hidden_reads.count != reads:
            own.hidden.add((*path, 'value'))  # A missing value would reveal the condition.
        value = definitions.folder.value(body.get('value'), (*path, 'value'), own) if wanted else None
        definitions.ask(own)
        description = body.get('description')
        if isinstance(description, dict | list):
            document.problem(f'The description of the output {name} must be a string.', (*path, 'description'))
        text = NO_DESCRIPTION if description is None else str(description)
        outputs[name] = OutputDefinition(name, value, text, _hidden(own))
    return outputs


def _hidden(scope: Compiling) -> tuple[Path, ...]:
    """Return the paths of hidden parts of the value."""
    return outermost(place[3:] for place in scope.hidden if place[2] == 'value')


def _check_keys(document: ParsedDocument, version: Version, body: Mapping[str, Json], path: Path) -> None:
    keys = (*OUTPUT_KEYS, 'condition') if version.conditions else OUTPUT_KEYS
    for key in body:
        if key not in keys and ('value' in body or not nearly([key], ['value'])):
            what = f'"{key}" is not a valid keyword inside an output definition'
            if key == 'condition':
                message = f'{what}. It came with version {CONDITIONS_SINCE}.'
                document.key_problem(message, (*path, key), InvalidTemplateSection)
            else:
                document.key_warning(f'{what}, and is ignored.{document.problems.suggestion(key, keys)}', (*path, key))
