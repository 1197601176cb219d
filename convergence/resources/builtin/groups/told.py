"""The values of members that the types of groups give."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, TypeVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.builtin.groups.stepping import number_of
from convergence.resources.contract import Call
from convergence.resources.nested import OF_ONE, NestedType, asked_of_one, by_attribute, of_member

P = TypeVar('P')

ATTRIBUTES = 'attributes'


class GroupType(NestedType[P]):
    """Base of the groups whose members have numbers for names. Every attribute of the members is one of the group."""

    own: ClassVar[tuple[str, ...]] = ('refs', 'refs_map', ATTRIBUTES)

    @override
    def attribute_prefix_len(self, name: str) -> int | None:
        """Return 1 for ``attributes``, 0 for any other attribute of the members, None for those of the group."""
        if name == ATTRIBUTES:
            return 1
        return None if name in self.own or name.startswith(OF_ONE) else 0

    @override
    def is_told_by_members(self, name: str) -> bool:
        """All but its own."""
        return name == ATTRIBUTES or name not in self.own

    @override
    def asked_of_members(self, name: str, members: Collection[str]) -> Mapping[str, str]:
        """The attribute itself, of one or of all."""
        if name in ('', ATTRIBUTES):
            return dict.fromkeys(members, '')
        if name in self.own:
            return {}
        if name.startswith(OF_ONE) or name.partition('.')[0] in members:
            return asked_of_one(name.removeprefix(OF_ONE), members)
        return dict.fromkeys(members, name)

    @override
    def attribute(self, call: Call[P], name: str) -> Json:
        """Return a value of the group, of one member (``resource.<name>``), or of all members, as a list.

        :raises FinalFailure: there is no such member, or one has no such value.
        """
        members = in_order(call)
        if name == 'refs':
            return [each.get('reference') for each in members.values()]
        if name == 'refs_map':
            return {key: each.get('reference') for key, each in members.items()}
        if name == ATTRIBUTES:
            return {**by_attribute(members)}
        if name.startswith(OF_ONE):
            return of_member(call, name.removeprefix(OF_ONE))
        if name.partition('.')[0] in members:
            return of_member(call, name)
        return [of_member(call, key, (name,)) for key in members]


def in_order(call: Call[Any]) -> dict[str, Mapping[str, Json]]:
    """Return the values of the members by name, in the order of their numbers."""
    resources = call.nested.values().resources
    return dict(sorted(resources.items(), key=lambda item: number_of(item[0])))
