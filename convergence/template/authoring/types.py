"""The resource types as the tools for template authors know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from convergence.errors import Problem
from convergence.template import Compiled


class TypeCatalog(Protocol):
    """The installed resource types by name. See `convergence.resources.catalog.RegistryCatalog`."""

    def __contains__(self, name: object) -> bool:
        """Return True if the type is installed."""

    def names(self) -> Sequence[str]:
        """Return the names of all types, sorted."""

    def describe(self, name: str) -> Mapping[str, Any]:
        """Return a type as JSON: resource_type, properties, attributes, support_status, description."""

    def takes_any_property(self, name: str) -> bool:
        """Return True if a type accepts properties that it does not declare."""

    def secret_properties(self, name: str) -> frozenset[str]:
        """Return the names of the properties that a type declares as secret."""


class TypeValidator(Protocol):
    """Checks the properties of a compiled template against the resource types."""

    def validate(
        self, compiled: Compiled, text: str, environment: Mapping[str, Any], files: Mapping[str, str]
    ) -> list[Problem]:
        """Return the warnings.

        :param text: the template that was compiled.
        :param environment: the sections of the environment.
        :raises StackValidationFailed: carries all errors.
        """
