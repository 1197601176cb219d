"""Reads the `outputs` section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from convergence.core.model import Json
from convergence.errors import InvalidTemplateSection
from convergence.template.definitions import Definitions
from convergence.template.document import Document
from convergence.template.folding import Folder, Path
from convergence.template.functions.base import Compiling
from convergence.template.versions import CONDITIONS_SINCE, Version

NO_DESCRIPTION = 'No description given'

_KEYS = ('value', 'description')


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """What a template says about one output of the stack.

    :param value: encoded; `resolve` gives the value once the resources are there.
    """

    name: str
    value: Json
    description: str = NO_DESCRIPTION


def read_outputs(
    document: Document, version: Version, folder: Folder, scope: Compiling, definitions: Definitions
) -> dict[str, OutputDefinition]:
    """The outputs, in the order of the template. The attributes they ask for are noted in `definitions`."""
    section = document.root.get('outputs') if isinstance(document.root, dict) else None
    outputs: dict[str, OutputDefinition] = {}
    for name, body in section.items() if isinstance(section, dict) else ():
        path: Path = ('outputs', name)
        if not isinstance(body, dict) or 'value' not in body:
            document.problem(f'The output {name} must be a map with the key value.', path)
        if not isinstance(body, dict):
            continue
        _check_keys(document, version, body, path)
        own = dataclasses.replace(scope, subject=f'outputs.{name}', requires=set(), asked=set())
        value = folder.fold(body.get('value'), (*path, 'value'), own)
        definitions.ask(own)
        description = body.get('description')
        if isinstance(description, dict | list):
            document.problem(f'The description of the output {name} must be a string.', (*path, 'description'))
        outputs[name] = OutputDefinition(name, value, NO_DESCRIPTION if description is None else str(description))
    return outputs


def _check_keys(document: Document, version: Version, body: Mapping[str, Json], path: Path) -> None:
    for key in body:
        if key in _KEYS:
            continue
        if key == 'condition' and version.date >= CONDITIONS_SINCE:
            document.key_problem(
                'The key condition of an output is not offered by this installation; do without it.', (*path, key)
            )
            continue
        hint = document.problems.suggestion(key, _KEYS)
        message = f'"{key}" is not a valid keyword inside an output definition.{hint}'
        document.key_problem(message, (*path, key), InvalidTemplateSection)
