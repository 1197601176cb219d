"""The resource types that a caller may use.

The API evaluates the policy and sends the results with each request. A rule stands for one type, or for all types with
a common prefix. Rules apply to the actual type of a resource: an environment can map the name in a template to another
type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from convergence import template
from convergence.errors import Forbidden

SEPARATOR, REST = '::', '*'


@dataclass(frozen=True, slots=True)
class Permits:
    """The policy's rules about resource types for one caller.

    :param rules: True if the caller may use a type, by the type's name or by a prefix: ``A::B::*``, ``*``. The most
        specific rule wins. None: no policy applies, because the caller is a program of the operator.
    """

    rules: Mapping[str, bool] | None = None

    @classmethod
    def of(cls, context: object) -> Permits:
        """The permits in the context of a request."""
        return cls(getattr(context, 'type_rules', None))

    def allows(self, type_name: str) -> bool:
        """Return True if the caller may use a type."""
        if self.rules is None:
            return True
        parts = type_name.split(SEPARATOR)
        beginnings = (SEPARATOR.join((*parts[:count], REST)) for count in range(len(parts) - 1, -1, -1))
        return next((self.rules[name] for name in (type_name, *beginnings) if name in self.rules), True)

    def require(self, type_name: str) -> None:
        """Refuse a type that the caller may not use.

        :raises Forbidden: the policy says no.
        """
        if not self.allows(type_name):
            raise Forbidden(f'You are not authorized to use the resource type {type_name}.')

    def require_all(self, compiled: template.Compiled) -> None:
        """Refuse a template in which a resource is of a type that the caller may not use.

        :raises Forbidden: names the first such resource.
        """
        for definition in compiled.goal.definitions.values():
            if not self.allows(definition.type):
                raise Forbidden(
                    f'You are not authorized to use the resource type {definition.type}, which is that of '
                    f'resources.{definition.name}.'
                )
