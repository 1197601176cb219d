"""``OS::Heat::ResourceChain``: one resource of each of several types, all with the same properties."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json, Path
from convergence.resources.attributes import attr
from convergence.resources.builtin.groups.members import GroupMember, member, nested_template
from convergence.resources.builtin.groups.told import GroupType
from convergence.resources.contract import Call
from convergence.resources.nesting import DesiredStack, NestingContext, SampleTemplate
from convergence.resources.schema import prop
from convergence.resources.support import since

TYPES = 'resources'
PROPERTIES = 'resource_properties'


@dataclass(frozen=True)
class ResourceChainProperties:
    """See the descriptions of the fields."""

    resources: list[str] = prop(update_allowed=True, description='The types of the resources, in their order.')
    concurrent: bool = prop(
        False, description='Whether they may be made at the same time; else each waits for the one before.'
    )
    resource_properties: dict[str, Json] | None = prop(None, description='The properties that each of them gets.')


@dataclass(frozen=True)
class ResourceChainAttributes:
    """The attributes of a chain, besides ``resource.<number>`` and every attribute of the members, as a list."""

    beginnings: ClassVar[tuple[str, ...]] = ('',)

    refs: list[Json] = attr('What get_resource gives for each resource.', of=())
    attributes: dict[str, Json] = attr(
        'An attribute of all resources, by their numbers: [attributes, name of the attribute].', dear=True
    )


class ResourceChain(GroupType[ResourceChainProperties]):
    """One resource of each of several types, all with the same properties."""

    support = since('6.0.0')
    Properties: ClassVar[type[Any]] = ResourceChainProperties
    Attributes: ClassVar[type[Any] | None] = ResourceChainAttributes

    @override
    def wanted(self, call: Call[ResourceChainProperties], context: NestingContext) -> DesiredStack:
        """A resource for each type."""
        given = call.properties
        members: dict[str, GroupMember] = {}
        for number, type_name in enumerate(given.resources):
            before = [str(number - 1)] if number and not given.concurrent else []
            members[str(number)] = member(
                type_name,
                given.resource_properties,
                depends_on=before,
                masked_paths=_masked(context.masked_paths),
            )
        return nested_template(members)

    @override
    def foreseen(
        self, properties: Mapping[str, Any], files: Mapping[str, str], masked_paths: Sequence[Path]
    ) -> Iterable[SampleTemplate]:
        """Each resource, but for what depends on what."""
        types, given = properties.get(TYPES), properties.get(PROPERTIES)
        for number, type_name in enumerate(types if isinstance(types, list) else ()):
            if isinstance(type_name, str):
                made = member(type_name, given if isinstance(given, dict) else None, masked_paths=_masked(masked_paths))
                at: Path = ('resources', str(number))
                stack = nested_template({str(number): made})
                yield SampleTemplate((TYPES, number), (*at, 'type'), stack)
                if isinstance(given, dict):
                    yield SampleTemplate((PROPERTIES,), (*at, 'properties'), stack)


def _masked(masked_paths: Iterable[Path]) -> list[Path]:
    """Return the places in a member whose values must be masked."""
    return [('properties', *path[1:]) for path in masked_paths if path and path[0] == PROPERTIES]
