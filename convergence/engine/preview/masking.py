"""Masks the properties of a resource in a preview."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence import template
from convergence.core.model import Definition, Json, Path
from convergence.core.rows import Resource
from convergence.documents import AnyJson
from convergence.resources.registry import Registry
from convergence.resources.secrets import (
    known_secrets,
    masked_texts,
    secret_places,
    secret_properties,
    shown_properties,
)
from convergence.secrecy import masked_at, without
from convergence.template.secrets import PROPERTIES, within

UNKNOWN_TEXT = '(known after apply)'
"""Shown for a value that cannot be known before the update."""


class Concealment:
    """Shows the properties of one resource with hidden values masked."""

    def __init__(
        self, registry: Registry, secrets: frozenset[str], definition: Definition, row: Resource | None, wanted: Any
    ) -> None:
        self._registry = registry
        self._definition = definition
        self._row = row
        self._wanted = known_values(wanted)
        self._secrets = secrets | _secret_properties(registry, definition, row, wanted)

    def wanted(self) -> AnyJson:
        """The desired properties; unknown values are marked."""
        return without(masked_at(self._wanted, self._places(self._definition, self._wanted)), self._secrets)

    def before(self, properties: Mapping[str, Json], earlier: frozenset[str]) -> AnyJson:
        """The properties as last applied.

        :param earlier: hidden values of the goal that they came from.
        """
        shown = shown_properties(properties, self._row, self._registry) if self._row else dict(properties)
        return without(shown, self._secrets | earlier)

    def hides(self, name: str) -> bool:
        """Return True if a part of a desired property is masked."""
        wanted = self._wanted.get(name) if isinstance(self._wanted, dict) else None
        shown = self.wanted()
        return any(path[:1] in ((), (name,)) for path in self._places(self._definition, self._wanted)) or (
            isinstance(shown, dict) and shown.get(name) != wanted
        )

    def _places(self, definition: Definition, properties: Any) -> tuple[Path, ...]:
        declared = secret_places(self._registry, definition.type, properties) if isinstance(properties, dict) else ()
        return (*within(definition.masked_paths, PROPERTIES), *declared)


def _secret_properties(registry: Registry, definition: Definition, row: Resource | None, wanted: Any) -> frozenset[str]:
    """The secrets of a resource as texts, present and desired ones."""
    found = known_secrets(row, registry) if row is not None else frozenset()
    known = wanted if isinstance(wanted, dict) else {}
    return found | secret_properties(registry, definition.type, known) | masked_texts(definition, known)


def known_values(value: Any) -> AnyJson:
    """A value in which unknown parts are marked."""
    if value is template.UNKNOWN:
        return UNKNOWN_TEXT
    if isinstance(value, dict):
        return {key: known_values(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [known_values(inner) for inner in value]
    return value
