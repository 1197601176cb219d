"""What the outputs of a stack need of its goal: kept beside the goal, so that whoever shows them compiles nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence import template
from convergence.core.model import Definition, Json
from convergence.values import replace

MOST_BYTES = 16 * 1024
"""What that may have as JSON: everybody who shows the stack reads it. Of larger outputs the goal is compiled."""


@dataclass(frozen=True, slots=True)
class ShownOutputs:
    """The outputs of a goal, and what must not be shown in them.

    :param outputs: by name.
    :param definitions: of the resources that they refer to and in which something is hidden, as far as that matters.
    :param secrets: the values of hidden parameters, as texts.
    """

    outputs: Mapping[str, template.OutputDefinition]
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, compiled: template.Compiled) -> ShownOutputs:
        """What the outputs of a goal need of it."""
        names: set[str] = set()
        for output in compiled.outputs.values():
            references, attributes = template.references(output.value)
            names.update(references, attributes)
        goal = compiled.goal.definitions
        hiding = {name: _hiding(goal[name]) for name in sorted(names) if name in goal and goal[name].hidden}
        return cls(compiled.outputs, hiding, compiled.secrets if compiled.outputs else frozenset())

    def document(self) -> dict[str, Json] | None:
        """As it is kept in a row; None where it is too large for that."""
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
        """What a row keeps."""
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
    """A definition without all that says nothing of what is hidden in it."""
    return replace(Definition(definition.name, definition.type), hidden=definition.hidden, harmless=definition.harmless)
