"""Hides properties of resources that become hidden parameters of nested templates. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from convergence import template
from convergence.core.model import Goal
from convergence.engine.compile.nested_preview import PreviewedStack
from convergence.template.secrets import PROPERTIES, SecretPolicy, outermost, reading, tells_hidden, with_places
from convergence.values import replace


def with_hidden(
    compiled: template.Compiled, nested: Iterable[PreviewedStack], secret_policy: SecretPolicy
) -> template.Compiled:
    """Mark the properties as hidden that become hidden parameters of nested stacks.

    Outputs that do not use those parameters are marked as harmless; any other attribute may reveal hidden values.
    """
    definitions = dict(compiled.goal.definitions)
    for each in nested:
        inner = with_hidden(each.compiled, each.below, secret_policy)
        hidden = [
            (PROPERTIES, name) for name, each_one in inner.parameters.items() if each_one.hidden and not each_one.pseudo
        ]
        if not hidden:
            continue
        telling = _telling(inner, secret_policy)
        own = definitions[each.definition.name]
        definitions[own.name] = replace(
            own,
            hidden=outermost((*own.hidden, *hidden)),
            harmless=tuple(sorted(set(inner.outputs) - telling)),
        )
    if definitions == dict(compiled.goal.definitions) and all(
        definitions[name].hidden == one.hidden for name, one in compiled.goal.definitions.items()
    ):
        return compiled
    return replace(compiled, goal=Goal(with_places(definitions, secret_policy), compiled.goal.asked))


def _telling(compiled: template.Compiled, secret_policy: SecretPolicy) -> set[str]:
    """The outputs that may reveal hidden values."""
    definitions = compiled.goal.definitions

    def asked(name: str, attribute: str | None) -> bool:
        return name in definitions and tells_hidden(definitions[name], attribute, secret_policy)

    return {name for name, each in compiled.outputs.items() if each.hidden or list(reading(each.value, asked))}
