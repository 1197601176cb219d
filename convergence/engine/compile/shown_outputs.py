"""The parts of a goal that its outputs need, stored beside the goal: showing outputs compiles nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence import template
from convergence.core.model import Definition, Json
from convergence.values import replace

MOST_BYTES = 16 * 1024
"""Maximum size in bytes of the stored parts as JSON, because every request that shows the stack reads them."""


@dataclass(frozen=True, slots=True)
class ShownOutputs:
    """The outputs of a goal, and the values to be masked in them.

    :param outputs: by name.
    :param definitions: of the resources that outputs refer to and that hide something, reduced to the hidden places.
    :param secrets: the values of hidden parameters, as texts.
    """

    outputs: Mapping[str, template.OutputDefinition]
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, compiled: template.Compiled) -> ShownOutputs:
        """The parts that the outputs of a goal need."""
        names: set[str] = set()
        for output in compiled.outputs.values():
            references, attributes = template.references(output.value)
            names.update(references, attributes)
        goal = compiled.goal.definitions
        hiding = {name: _hiding(goal[name]) for name in sorted(names) if name in goal and goal[name].hidden}
        return cls(compiled.outputs, hiding, compiled.secrets if compiled.outputs else frozenset())

    def document(self) -> dict[str, Json] | None:
        """The document to be stored; None if it is too large."""
        document: dict[str, Json] = {
            'outputs': [
                {
                    'name': each.name,
                    'value': each.value,
                    'description': each.description,
                    'hidden': [[*path] for path in each.hidden],
                }
                for each in self.outputs.values()
            ],
            'definitions': [each.document() for each in self.definitions.values()],
            'secrets': [*sorted(self.secrets)],
        }
        return document if len(json.dumps(document)) <= MOST_BYTES else None

    @classmethod
    def from_document(cls, document: Any) -> ShownOutputs:
        """Read the document of `document`."""
        outputs = [
            template.OutputDefinition(
                each['name'], each['value'], each['description'], tuple(tuple(path) for path in each['hidden'])
            )
            for each in document['outputs']
        ]
        definitions = [Definition.from_document(each) for each in document['definitions']]
        return cls(
            {each.name: each for each in outputs},
            {each.name: each for each in definitions},
            frozenset(document['secrets']),
        )


def _hiding(definition: Definition) -> Definition:
    """A definition reduced to its hidden places."""
    return replace(Definition(definition.name, definition.type), hidden=definition.hidden, harmless=definition.harmless)
