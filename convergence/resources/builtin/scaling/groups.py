"""``OS::Heat::AutoScalingGroup``: as many resources of one kind as signals have led to."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json, Path
from convergence.resources.attributes import attr
from convergence.resources.builtin.groups.batches import BatchPolicy
from convergence.resources.builtin.groups.members import GroupMember, nested_template
from convergence.resources.builtin.scaling.membership import Membership, next_size, stack_of
from convergence.resources.constraints import Range
from convergence.resources.contract import Call, FinalFailure
from convergence.resources.nested import OF_ONE, asked_of_one, by_attribute, of_member
from convergence.resources.nesting import DesiredStack, NestingContext, SampleTemplate
from convergence.resources.scaling import Bounds, ScaledType
from convergence.resources.schema import prop
from convergence.resources.support import since
from convergence.template import has_unknown

RESOURCE = 'resource'
SAMPLE = 'member'
"""Name of a member in a template that is only checked."""


@dataclass(frozen=True)
class RollingUpdates:
    """How members are renewed when their definition changes."""

    min_in_service: int = prop(
        0, constraints=[Range(minimum=0)], description='How many members are left alone meanwhile, at least.'
    )
    max_batch_size: int = prop(1, constraints=[Range(minimum=1)], description='How many are changed at once, at most.')
    pause_time: float = prop(0, constraints=[Range(minimum=0)], description='Seconds between two batches.')


def wrong_sizes(least: Any, most: Any, desired: Any) -> list[str]:
    """Return the problems that `require_sizes` would raise, for sizes of which some may be unknown."""
    if not isinstance(least, int) or not isinstance(most, int):
        return []
    try:
        require_sizes(least, most, desired if isinstance(desired, int) else None)
    except ValueError as error:
        return [str(error)]
    return []


def require_sizes(least: int, most: int, desired: int | None) -> None:
    """Check that the sizes of a group fit together.

    :raises ValueError: they do not.
    """
    if most < least:
        raise ValueError('MinSize can not be greater than MaxSize')
    if least < 0:
        raise ValueError('The size of AutoScalingGroup can not be less than zero')
    if desired is not None and not least <= desired <= most:
        raise ValueError('DesiredCapacity must be between MinSize and MaxSize')


@dataclass(frozen=True)
class AutoScalingGroupProperties:
    """See the descriptions of the fields."""

    resource: dict[str, Json] = prop(
        update_allowed=True, description='What the members are: a resource as a template defines it.'
    )
    max_size: int = prop(
        update_allowed=True, constraints=[Range(minimum=0)], description='How many members there may be.'
    )
    min_size: int = prop(
        update_allowed=True, constraints=[Range(minimum=0)], description='How many members there are at least.'
    )
    cooldown: int | None = prop(
        None,
        update_allowed=True,
        description='Seconds for which no signal changes the group after it has got other members.',
    )
    desired_capacity: int | None = prop(
        None,
        update_allowed=True,
        description='How many members there are in the beginning. A change of it is followed at once; else the group '
        'keeps the size that signals have led to.',
    )
    rolling_updates: RollingUpdates = prop(
        {'min_in_service': 0, 'max_batch_size': 1, 'pause_time': 0},
        update_allowed=True,
        description='How members are renewed when their definition changes.',
    )

    def __post_init__(self) -> None:
        if not isinstance(self.resource.get('type'), str) or not self.resource['type']:
            raise ValueError('resource: a definition needs a type')
        require_sizes(self.min_size, self.max_size, self.desired_capacity)


@dataclass(frozen=True)
class AutoScalingGroupAttributes:
    """The attributes of a group, besides ``resource.<number or name>``."""

    beginnings: ClassVar[tuple[str, ...]] = ('resource.',)

    outputs: dict[str, Json] = attr('An attribute of all members, by their names: [outputs, attribute].')
    outputs_list: list[Json] = attr('An attribute of all members: [outputs_list, attribute].')
    current_size: int = attr('How many members there are.', of=())
    refs: list[Json] = attr('What get_resource gives for each member.', of=())
    refs_map: dict[str, Json] = attr('The same by the names of the members.', of=())


class AutoScalingGroup(ScaledType[AutoScalingGroupProperties]):
    """A group of resources of one kind. Scaling policies change how many there are."""

    support = since('2014.1')
    Properties: ClassVar[type[Any]] = AutoScalingGroupProperties
    Attributes: ClassVar[type[Any] | None] = AutoScalingGroupAttributes

    @override
    def bounds(self, call: Call[AutoScalingGroupProperties]) -> Bounds:
        """As the properties say."""
        wanted = call.properties
        return Bounds(wanted.min_size, wanted.max_size, float(max(0, wanted.cooldown or 0)))

    @override
    def wanted(self, call: Call[AutoScalingGroupProperties], context: NestingContext) -> DesiredStack:
        """Return a stack with members of the present definition: as many as there are, or as the group should have
        now.
        """
        properties = call.properties
        size = next_size(context, properties.desired_capacity, properties.min_size)
        policy = properties.rolling_updates
        rolling = BatchPolicy(policy.max_batch_size, policy.min_in_service, policy.pause_time)
        return stack_of(
            context,
            Membership(
                call.token,
                member_of(properties.resource, context.masked_paths),
                self.bounds(call).within(size),
                rolling,
                properties.desired_capacity,
            ),
        )

    @override
    def resized(
        self,
        call: Call[AutoScalingGroupProperties],
        context: NestingContext,
        size: int,
        cooldowns: Mapping[str, Json],
    ) -> DesiredStack:
        """Return a stack with the present members, less the oldest, plus new ones."""
        member = member_of(call.properties.resource, context.masked_paths)
        desired = call.properties.desired_capacity
        return stack_of(context, Membership(call.token, member, size, desired=desired), cooldowns)

    @override
    def cross_check(self, properties: Mapping[str, Any], names: Collection[str]) -> Iterable[str]:
        """Sizes that do not fit together: what the members are made from is hardly ever known as a whole."""
        return wrong_sizes(*(properties.get(name) for name in ('min_size', 'max_size', 'desired_capacity')))

    @override
    def foreseen(
        self, properties: Mapping[str, Any], files: Mapping[str, str], masked_paths: Sequence[Path]
    ) -> Iterable[SampleTemplate]:
        """A member, if there may be any."""
        definition = properties.get(RESOURCE)
        if properties.get('max_size') == 0 or not isinstance(definition, dict):
            return
        known = {
            key: value
            for key, value in definition.items()
            if key in ('properties', 'metadata') or not has_unknown(value)
        }
        if isinstance(known.get('type'), str):
            made = nested_template({SAMPLE: member_of(known, masked_paths)})
            yield SampleTemplate((RESOURCE,), ('resources', SAMPLE), made)

    @override
    def attribute_prefix_len(self, name: str) -> int | None:
        """Return 1 for ``outputs`` and ``outputs_list``, whose first key is the name of an attribute of the members."""
        return 1 if name in ('outputs', 'outputs_list') else None

    @override
    def is_told_by_members(self, name: str) -> bool:
        """All but its size and the references."""
        return name not in ('current_size', 'refs', 'refs_map')

    @override
    def asked_of_members(self, name: str, members: Collection[str]) -> Mapping[str, str]:
        """All attributes for lists and maps of them, else one."""
        if name in ('', 'outputs', 'outputs_list'):
            return dict.fromkeys(members, '')
        return asked_of_any(name.removeprefix(OF_ONE), members) if self.is_told_by_members(name) else {}

    @override
    def attribute(self, call: Call[AutoScalingGroupProperties], name: str) -> Json:
        """Return a value of the group or of its members.

        :raises FinalFailure: there is no such member, or it has no such value.
        """
        members = serving(call)
        if name == 'current_size':
            return len(members)
        if name == 'refs':
            return [member.get('reference') for member in members.values()]
        if name == 'refs_map':
            return {key: member.get('reference') for key, member in members.items()}
        if name in ('outputs', 'outputs_list'):
            told = by_attribute(members)
            if name == 'outputs':
                return {**told}
            if not members:
                return []
            return {key: [*values.values()] for key, values in told.items()}
        return one_of(call, list(members), name.removeprefix(OF_ONE))


def member_of(definition: Mapping[str, Json], masked_paths: Sequence[Path]) -> GroupMember:
    """The members that a definition makes."""
    within = tuple(path[1:] for path in masked_paths if path and path[0] == RESOURCE)
    body = {key: value for key, value in definition.items() if value is not None}
    return GroupMember(body, (tuple((key,) for key in body if key != 'type') if () in within else within))


def serving(call: Call[Any]) -> dict[str, Mapping[str, Json]]:
    """Return the values of the working members, oldest first."""
    resources = call.nested.values().resources
    good = {name: member for name, member in resources.items() if not member.get('failed')}
    return dict(sorted(good.items(), key=lambda item: (float(str(item[1].get('made_at', 0.0))), item[0])))


def asked_of_any(path: str, members: Collection[str]) -> Mapping[str, str]:
    """Return the attributes that `one_of` may read. The number of a member depends on creation times, so any member
    counts.
    """
    number, _, rest = path.partition('.')
    if number in members or not number.isdecimal():
        return asked_of_one(path, members)
    attribute = rest.partition('.')[0]
    return dict.fromkeys(members, attribute) if attribute else {}


def one_of(call: Call[Any], order: Sequence[str], path: str) -> Json:
    """Return a value of one member: ``number`` or ``name``, perhaps with ``.attribute``.

    :param order: the names of the members; the number counts from 0.
    :raises FinalFailure: there is no such member.
    """
    number, _, rest = path.partition('.')
    if number in order or not number.isdecimal():
        return of_member(call, path)
    if int(number) >= len(order):
        raise FinalFailure(f"Member '{number}' not found in group resource '{call.name}'.")
    name = order[int(number)]
    return of_member(call, f'{name}.{rest}' if rest else name)
