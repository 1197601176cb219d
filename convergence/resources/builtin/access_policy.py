"""``OS::Heat::AccessPolicy``: names the resources whose metadata the users of a stack may see."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from convergence.resources.builtin.waiting import physical_name
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence.resources.schema import prop


@dataclass(frozen=True)
class AccessProperties:
    """See the descriptions of the fields."""

    allowed_resources: list[str] = prop(
        name='AllowedResources',
        description='Names of resources of the same stack whose metadata its users may see.',
    )


class AccessPolicy(ResourceType[AccessProperties]):
    """Names resources that the users of a stack may see. No users are made for stacks here, so it changes nothing."""

    Properties = AccessProperties
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[AccessProperties]) -> Answer:
        """Nothing to do but to have a name."""
        return Done(physical_name(call))

    @override
    def cross_check(self, properties: Mapping[str, Any], names: Collection[str]) -> Iterator[str]:
        """Every allowed resource must be there."""
        allowed = properties.get('AllowedResources')
        for name in allowed if isinstance(allowed, list) else ():
            if isinstance(name, str) and name not in names:
                yield f'AccessPolicy resource {name} not in stack'
