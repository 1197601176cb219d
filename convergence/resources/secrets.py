"""What must not be shown of a resource, whatever its type writes into errors, answers and log lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from convergence.core.model import Definition, Json
from convergence.core.rows import Pending, Resource
from convergence.errors import EntityNotFound
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema


def known_secrets(
    resource: Resource, registry: Registry, pending: Pending | None = None, definition: Definition | None = None
) -> frozenset[str]:
    """The secret values that a call for a row may come across, as texts; see `convergence.secrecy`.

    :param pending: what the row shall become, besides what it says itself.
    :param definition: what the template says of it now, where that is known.
    """
    coming = [each for each in (pending, resource.pending) if each is not None]
    definitions: Iterable[Definition | None] = (definition, resource.definition, *(each.definition for each in coming))
    found = {secret for each in definitions if each is not None for secret in each.secrets}
    for properties in (resource.properties, *(each.properties for each in coming)):
        found |= secret_properties(registry, resource.type, properties)
    return frozenset(found)


def secret_properties(registry: Registry, type_name: str, properties: Mapping[str, Json]) -> frozenset[str]:
    """The values of the properties that a type declares to be secret; nothing where the type is not known."""
    try:
        kind = registry.get(type_name)
    except EntityNotFound:
        return frozenset()
    return PropertySchema.of(kind.Properties).secrets(properties)
