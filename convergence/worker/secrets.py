"""What must not be shown of a resource, whatever its type writes into errors and log lines."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.claim import Claim
from convergence.core.model import Json
from convergence.errors import ConvergenceError
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema


def known_secrets(claim: Claim, registry: Registry) -> frozenset[str]:
    """The secret values that a call for a claimed row may come across, as texts: of what the row is and shall become."""
    resource, pending = claim.resource, claim.pending
    definitions = [claim.node.definition, resource.definition, pending.definition if pending is not None else None]
    found = {secret for definition in definitions if definition is not None for secret in definition.secrets}
    for properties in (resource.properties, pending.properties if pending is not None else {}):
        found |= secret_properties(registry, resource.type, properties)
    return frozenset(found)


def secret_properties(registry: Registry, type_name: str, properties: Mapping[str, Json]) -> frozenset[str]:
    """The values of the properties that a type declares to be secret; nothing where the type is not known."""
    try:
        kind = registry.get(type_name)
    except ConvergenceError:
        return frozenset()
    return PropertySchema.of(kind.Properties).secrets(properties)
