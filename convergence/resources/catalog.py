"""The resource types as the tools for template authors need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.template.authoring.types import TypeCatalog


@dataclass(frozen=True, slots=True)
class RegistryCatalog(TypeCatalog):
    """The types of a registry."""

    registry: Registry

    @override
    def __contains__(self, name: object) -> bool:
        """See `TypeCatalog.__contains__`."""
        return name in self.registry

    @override
    def names(self) -> Sequence[str]:
        """See `TypeCatalog.names`."""
        return self.registry.names()

    @override
    def describe(self, name: str) -> Mapping[str, Any]:
        """See `TypeCatalog.describe`."""
        return self.registry.describe(name)

    @override
    def takes_any_property(self, name: str) -> bool:
        """See `TypeCatalog.takes_any_property`."""
        return self._schema(name).rest is not None

    @override
    def secret_properties(self, name: str) -> frozenset[str]:
        """See `TypeCatalog.secret_properties`."""
        return frozenset(name for name, each in self._schema(name).properties.items() if each.declaration.secret)

    def _schema(self, name: str) -> PropertySchema:
        return PropertySchema.of(self.registry.get(name).Properties)
