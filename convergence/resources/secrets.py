"""The secrets of a resource, which are masked in errors, answers and log lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from convergence.core.model import Definition, Json, Path
from convergence.core.rows import Pending, Resource
from convergence.errors import EntityNotFound
from convergence.resources.attributes import is_secret, properties_told
from convergence.resources.contract import ResourceType
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.secrecy import MASK, masked_at, texts_at
from convergence.template.secrets import PROPERTIES, SecretPolicy, tells_hidden, tells_private, within


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
    for properties, made_from in (
        (resource.properties, resource.definition),
        *((each.properties, each.definition) for each in coming),
    ):
        found |= secret_properties(registry, resource.type, properties)
        if made_from is not None:
            found |= masked_texts(made_from, properties)
    return frozenset(found)


def masked_texts(definition: Definition, properties: Mapping[str, Json]) -> frozenset[str]:
    """Return the texts by which values that are computed from hidden values can be recognised.

    :param properties: those of the definition, resolved.
    """
    return texts_at(properties, within(definition.masked_paths, PROPERTIES))


def secret_properties(registry: Registry, type_name: str, properties: Mapping[str, Json]) -> frozenset[str]:
    """The values of the properties that a type declares to be secret; nothing where the type is not known."""
    try:
        kind = registry.get(type_name)
    except EntityNotFound:
        return frozenset()
    return PropertySchema.of(kind.Properties).secrets(properties)


def secret_places(registry: Registry, type_name: str, properties: Mapping[str, Json]) -> tuple[Path, ...]:
    """Return the places of the values of secret properties; none if the type is not known."""
    try:
        kind = registry.get(type_name)
    except EntityNotFound:
        return ()
    return PropertySchema.of(kind.Properties).secret_places(properties)


class DeclaredSecrets:
    """The secret policy that resource types declare for their attributes; see
    `convergence.template.secrets.SecretPolicy`.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def tells(self, type_name: str, attribute: str | None, hidden: Collection[Path]) -> bool:
        """Return True if an attribute may reveal hidden properties: as declared, or else any.

        A reference id is shown as the id of the object, unless the type makes one of its own.
        """
        kind = self._kind(type_name)
        if attribute is None and (kind is None or not _has_own_reference(kind)):
            return False
        told = None
        if kind is not None:
            told = kind.reference_of if attribute is None else properties_told(kind, attribute)
        return told is None or any(not path or path[0] in told for path in hidden)

    def keeps_secret(self, type_name: str, attribute: str | None) -> bool:
        """Return True if an attribute is declared secret. A reference id that a type makes itself is secret like
        those.
        """
        kind = self._kind(type_name)
        if kind is None or (attribute is None and not _has_own_reference(kind)):
            return False
        return is_secret(kind, attribute or '')

    def _kind(self, type_name: str) -> ResourceType[Any] | None:
        try:
            return self._registry.get(type_name)
        except EntityNotFound:
            return None


def _has_own_reference(kind: ResourceType[Any]) -> bool:
    return type(kind).reference_id is not ResourceType.reference_id


def shown_attributes(
    attributes: Mapping[str, Json], resource: Resource, secret_policy: SecretPolicy
) -> dict[str, Json]:
    """Return the attributes of a resource, with those masked that are secret or may reveal hidden values.

    :param attributes: by name, as they were read.
    """
    return {name: MASK if is_masked(resource, name, secret_policy) else value for name, value in attributes.items()}


def shown_properties(properties: Mapping[str, Json], resource: Resource, registry: Registry) -> dict[str, Json]:
    """Return the resolved properties of a resource, with secret values and those computed from hidden values masked.

    :param properties: the present or the future properties of the row.
    """
    paths: list[Path] = []
    for each in made_from(resource):
        paths += [*within(each.masked_paths, PROPERTIES), *secret_places(registry, each.type, properties)]
    shown: dict[str, Json] = masked_at(dict(properties), paths)
    return shown


def is_masked(resource: Resource, attribute: str | None, secret_policy: SecretPolicy) -> bool:
    """Return True if an attribute of a resource, None for its reference id, must be masked."""
    definitions = made_from(resource)
    return secret_policy.keeps_secret(resource.type, attribute) or any(
        tells_hidden(each, attribute, secret_policy) or tells_private(each, attribute, secret_policy)
        for each in definitions
    )


def made_from(resource: Resource) -> tuple[Definition, ...]:
    """Return the definitions of a row, old and new: during an action the object may show either."""
    pending = resource.pending.definition if resource.pending is not None else None
    return tuple(each for each in (resource.definition, pending) if each is not None)
