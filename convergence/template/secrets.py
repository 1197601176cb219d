"""Where the values of hidden parameters go to, so that nobody shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from convergence import secrecy
from convergence.core.model import Definition
from convergence.template.parameters import Parameter


def hidden_values(parameters: Mapping[str, Parameter]) -> frozenset[str]:
    """The values of hidden parameters, as texts in which they may turn up."""
    texts: set[str] = set()
    for parameter in parameters.values():
        if parameter.hidden and parameter.has_value:
            texts |= secrecy.texts(parameter.value)
            if isinstance(parameter.value, list):
                texts |= secrecy.texts(','.join(str(item) for item in parameter.value))
    return frozenset(texts)


def with_secrets(
    definitions: Mapping[str, Definition], parameters: Mapping[str, Parameter]
) -> dict[str, Definition]:
    """The definitions, each with the hidden values that it may come across.

    Those are in what it says itself, or come with the attributes of what it requires.
    """
    hidden = hidden_values(parameters)
    if not hidden:
        return dict(definitions)
    met = {
        name: set(secrecy.occurring(hidden, [definition.properties, definition.metadata]))
        for name, definition in definitions.items()
    }
    dependents: dict[str, list[str]] = {}
    for name, definition in definitions.items():
        for required in definition.requires:
            dependents.setdefault(required, []).append(name)
    news = [name for name, secrets in met.items() if secrets]
    while news:
        source = news.pop()
        for name in dependents.get(source, ()):
            if not met[source] <= met[name]:
                met[name] |= met[source]
                news.append(name)
    return {name: replace(definition, secrets=tuple(sorted(met[name]))) for name, definition in definitions.items()}
