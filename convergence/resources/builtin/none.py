"""``OS::Heat::None``: stands in for any resource and does nothing."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import AnyAttribute
from convergence.resources.builtin.waiting import physical_name
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence.resources.schema import remaining
from convergence.resources.support import since


@dataclass(frozen=True)
class AnyProperties:
    """Accepts every property."""

    values: dict[str, Json] = remaining(description='Any property.')


class NoneType(ResourceType[AnyProperties]):
    """Accepts any property, has any attribute (null), does nothing."""

    support = since('5.0.0')
    Properties = AnyProperties
    Attributes = AnyAttribute
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[AnyProperties]) -> Answer:
        """Nothing to do but to have a name."""
        return Done(physical_name(call))

    @override
    def attribute(self, call: Call[AnyProperties], name: str) -> Json:
        """Return null for every attribute."""
        return None
