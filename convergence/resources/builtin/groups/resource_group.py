"""``OS::Heat::ResourceGroup``: so many resources that are alike but for their number."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json, Path
from convergence.resources.attributes import attr
from convergence.resources.builtin.groups.batches import BatchPolicy
from convergence.resources.builtin.groups.members import (
    GroupMember,
    first_numbers,
    indexed,
    member,
    nested_template,
    numbers,
    output_of,
)
from convergence.resources.builtin.groups.stepping import MembersWanted, is_repeated, next_stack, number_of
from convergence.resources.builtin.groups.told import GroupType
from convergence.resources.constraints import AllowedValues, Length, Range
from convergence.resources.contract import Call
from convergence.resources.nesting import DesiredStack, NestingContext, SampleTemplate
from convergence.resources.schema import PropertySchema, prop
from convergence.resources.support import since

DEFINITION = 'resource_def'
REMOVED = 'removed_rsrc_list'
LONGEST_PAUSE_S = 3600


@dataclass(frozen=True)
class GroupedResource:
    """The definition of the members."""

    type: str = prop(description='The type of the members.')
    properties: dict[str, Json] | None = prop(None, description='Their properties.')
    metadata: dict[str, Json] | None = prop(None, description='Their metadata.', support=since('5.0.0'))


@dataclass(frozen=True)
class RemovalPolicy:
    """The members to remove."""

    resource_list: list[Json] = prop(
        [],
        description='Members that are removed, by name or by reference; their names are not used again. That is done '
        'whether the group becomes smaller or not.',
    )


@dataclass(frozen=True)
class ResourceGroupProperties:
    """See the descriptions of the fields."""

    count: int = prop(1, update_allowed=True, constraints=[Range(minimum=0)], description='How many members there are.')
    index_var: str = prop(
        '%index%',
        support=since('2014.2'),
        constraints=[Length(minimum=3)],
        description='What stands in the properties of the members for the number of each.',
    )
    resource_def: GroupedResource = prop(update_allowed=True, description='What the members are.')
    removal_policies: list[RemovalPolicy] = prop(
        [], update_allowed=True, support=since('2015.1'), description='Which members are removed.'
    )
    removal_policies_mode: str = prop(
        'append',
        update_allowed=True,
        support=since('10.0.0'),
        constraints=[AllowedValues(('append', 'update'))],
        description='append: members that were removed before stay removed; update: only those in the present list.',
    )


@dataclass(frozen=True)
class BatchCreate:
    """How the members are created."""

    max_batch_size: int = prop(1, constraints=[Range(minimum=1)], description='How many are made at once, at most.')
    pause_time: float = prop(0, constraints=[Range(minimum=0)], description='Seconds between two batches.')

    def __post_init__(self) -> None:
        require_short(self.pause_time)


@dataclass(frozen=True)
class RollingUpdate(BatchCreate):
    """How the members are changed when their definition changes."""

    min_in_service: int = prop(
        0, constraints=[Range(minimum=0)], description='How many are left alone meanwhile, at least.'
    )


def require_short(pause_s: float) -> None:
    """Check the pause between two batches.

    :raises ValueError: it is too long.
    """
    if pause_s > LONGEST_PAUSE_S:
        raise ValueError(f'Maximum pause_time allowed is 1hr({LONGEST_PAUSE_S}s), provided {pause_s:g} seconds.')


@dataclass(frozen=True)
class ResourceGroupPolicy:
    """The update policy of a group."""

    batch_create: BatchCreate | None = prop(None, support=since('5.0.0'), description='How the members are made.')
    rolling_update: RollingUpdate | None = prop(
        None, support=since('5.0.0'), description='How the members are changed.'
    )

    def batches(self, action: str) -> BatchPolicy | None:
        """The policy for an action; None: all at once."""
        if action == 'CREATE':
            create = self.batch_create
            return None if create is None else BatchPolicy(create.max_batch_size, 0, create.pause_time)
        update = self.rolling_update
        if update is None:
            return None
        return BatchPolicy(update.max_batch_size, update.min_in_service, update.pause_time)


@dataclass(frozen=True)
class ResourceGroupAttributes:
    """The attributes of a group, besides ``resource.<name>`` and every attribute of the members, as a list."""

    beginnings: ClassVar[tuple[str, ...]] = ('',)

    refs: list[Json] = attr('What get_resource gives for each member.', of=())
    refs_map: dict[str, Json] = attr('The same, by the names of the members.', of=())
    attributes: dict[str, Json] = attr(
        'An attribute of all members, by their names: [attributes, name of the attribute].', dear=True
    )
    removed_rsrc_list: list[Json] = attr('The names that were removed, and are not used again.', of=())


class ResourceGroup(GroupType[ResourceGroupProperties]):
    """So many resources that are alike, but for what they make of their number."""

    support = since('2014.1')
    Properties: ClassVar[type[Any]] = ResourceGroupProperties
    Attributes: ClassVar[type[Any] | None] = ResourceGroupAttributes
    UpdatePolicy: ClassVar[type[Any] | None] = ResourceGroupPolicy
    own = (*GroupType.own, REMOVED)

    @override
    def wanted(self, call: Call[ResourceGroupProperties], context: NestingContext) -> DesiredStack:
        """Return a stack with the desired number of members; all at once, or with the next batch of them."""
        properties = call.properties
        policy: ResourceGroupPolicy = PropertySchema.of(ResourceGroupPolicy).parse(context.update_policy)
        definition = {
            'type': properties.resource_def.type,
            'properties': properties.resource_def.properties,
            'metadata': properties.resource_def.metadata,
        }

        def made(name: str) -> GroupMember:
            return made_from(definition, properties.index_var, name, context.masked_paths)

        def goal() -> MembersWanted:
            if context.adopted is None or len(context.adopted) != properties.count:
                removed = removed_names(properties, context)
                names = first_numbers(properties.count, removed)
            else:
                names = sorted(context.adopted, key=number_of)
                highest = max((number_of(name)[1] for name in names), default=-1)
                removed = [name for name in first_numbers(highest + 1) if name not in names]
            outputs: dict[str, Json] = {REMOVED: [*removed]}
            others = ((name, made(name)) for name in numbers(removed))
            return MembersWanted(
                {name: made(name) for name in names},
                policy.batches(context.action),
                others,
                outputs,
                frozenset(removed),
            )

        return next_stack(context, goal)

    @override
    def foreseen(
        self, properties: Mapping[str, Any], files: Mapping[str, str], masked_paths: Sequence[Path]
    ) -> Iterable[SampleTemplate]:
        """The first member, if there is going to be any."""
        definition = properties.get(DEFINITION)
        if properties.get('count') == 0 or not isinstance(definition, dict):
            return
        variable = properties.get('index_var')
        first = '0'
        if isinstance(definition.get('type'), str):
            made = made_from(definition, variable if isinstance(variable, str) else first, first, masked_paths)
            yield SampleTemplate((DEFINITION,), ('resources', first), nested_template({first: made}))

    @override
    def attribute(self, call: Call[ResourceGroupProperties], name: str) -> Json:
        """Return an attribute that all groups have, or the names of removed members."""
        if name == REMOVED:
            return call.nested.values().outputs.get(REMOVED, [])
        return super().attribute(call, name)


def made_from(definition: Mapping[str, Any], variable: str, name: str, masked_paths: Sequence[Path]) -> GroupMember:
    """Return a member.

    :param definition: the property that defines the members.
    :param variable: the text that stands for the number of the member in its properties.
    :param masked_paths: places in the properties of the group whose values must be masked.
    """
    properties, metadata = (
        value if isinstance(value := definition.get(key), dict) else None for key in ('properties', 'metadata')
    )
    within = [path[1:] for path in masked_paths if path and path[0] == DEFINITION]
    everything: list[Path] = [('properties',), ('metadata',)]
    return member(
        str(definition['type']),
        {key: indexed(value, variable, name) for key, value in (properties or {}).items()},
        metadata,
        masked_paths=everything if () in within else within,
    )


def removed_names(properties: ResourceGroupProperties, context: NestingContext) -> list[str]:
    """Return the sorted names that are not used (any more).

    A name in the removal policy is removed even without such a member, except in a group that exists already.
    """
    noted = output_of(context, REMOVED)
    before = [str(name) for name in noted] if isinstance(noted, list) else []
    if is_repeated(context):
        # A member that is gone by now existed when the step was stored.
        return before
    names = {each.name: each.reference for each in context.members()}
    by_reference = {reference: name for name, reference in names.items() if reference is not None}
    removed = set() if properties.removal_policies_mode == 'update' else set(before)
    for entry in (each for policy in properties.removal_policies for each in policy.resource_list):
        if str(entry) in before or str(entry) in names or context.present is None:
            removed.add(str(entry))
        elif isinstance(entry, str) and entry in by_reference:
            removed.add(by_reference[entry])
    return sorted(removed, key=number_of)
