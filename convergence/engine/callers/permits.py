"""Which resource types a caller may use.

The API asks the policy and sends the answers with each request; a rule stands for a type, or for all types whose names
begin alike. What they are applied to are the types that resources really get: a name in a template may stand for
another one by the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from convergence import template
from convergence.errors import Forbidden

SEPARATOR, REST = '::', '*'


@dataclass(frozen=True, slots=True)
class Permits:
    """What the policy says about resource types to one caller.

    :param rules: whether the caller may use a type, by its name, or by a beginning of names: ``A::B::*``, ``*``. The
        rule that says most wins. None: the policy was not asked, because the caller is a program of the operator.
    """

    rules: Mapping[str, bool] | None = None

    @classmethod
    def of(cls, context: object) -> Permits:
        """What the context of a request carries."""
        return cls(getattr(context, 'type_rules', None))

    def allows(self, type_name: str) -> bool:
        """Whether the caller may use a type."""
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
