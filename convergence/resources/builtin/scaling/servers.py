"""``OS::Heat::InstanceGroup`` and ``AWS::AutoScaling::AutoScalingGroup``: servers by a launch configuration."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.groups.batches import BatchPolicy
from convergence.resources.builtin.groups.members import GroupMember, member
from convergence.resources.builtin.scaling.groups import asked_of_any, one_of, require_sizes, serving, wrong_sizes
from convergence.resources.builtin.scaling.launch import not_implemented, relied_on, require_implemented
from convergence.resources.builtin.scaling.membership import Membership, next_size, stack_of
from convergence.resources.constraints import AllowedValues, CustomConstraint
from convergence.resources.contract import Call, FinalFailure
from convergence.resources.nested import OF_ONE, NestedType
from convergence.resources.nesting import DesiredStack, NestingContext
from convergence.resources.scaling import Bounds, ScaledType
from convergence.resources.schema import PropertySchema, prop
from convergence.resources.support import since

SCALED, INSTANCE = 'OS::Heat::ScaledResource', 'AWS::EC2::Instance'
"""The type of members in the template of a group, and the type that it means unless the environment maps it."""
LONGEST_PAUSE_S = 3600.0
_DURATION = re.compile(r'PT(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?')


@dataclass(frozen=True)
class GroupTag:
    """A tag of a group, which its servers get too."""

    key: str = prop(name='Key')
    value: str = prop(name='Value')


_ZONES = 'Accepted and ignored.'
_NO_INSTANCE = 'InstanceId is not supported; set LaunchConfigurationName'
_CONFIGURATION = 'The launch configuration of the servers.'
_BALANCERS = 'Load balancers: refused, for there is none that takes servers from a group.'
_TAGS = 'Tags of the group and of its servers.'


@dataclass(frozen=True)
class InstanceGroupProperties:
    """See the descriptions of the fields."""

    zones: list[Json] = prop(name='AvailabilityZones', description=_ZONES)
    configuration: str = prop(name='LaunchConfigurationName', update_allowed=True, description=_CONFIGURATION)
    size: int = prop(name='Size', update_allowed=True, description='How many servers there are.')
    balancers: list[Json] | None = prop(None, name='LoadBalancerNames', description=_BALANCERS)
    tags: list[GroupTag] | None = prop(None, name='Tags', description=_TAGS)

    def __post_init__(self) -> None:
        require_no_balancers(self.balancers)


def require_no_balancers(names: Collection[Json] | None) -> None:
    """Refuse load balancers, which would never learn of the servers.

    :raises ValueError: some are named.
    """
    if names:
        raise ValueError(_NO_BALANCERS)


_NO_BALANCERS = (
    'LoadBalancerNames: no type of load balancer that takes servers from a group is offered here; leave the property '
    'out, and have each server added by an OS::Octavia::PoolMember'
)


def named_balancers(properties: Mapping[str, Any]) -> list[str]:
    """Return the problems that `require_no_balancers` would raise, for properties of which some may be unknown."""
    names = properties.get('LoadBalancerNames')
    return [_NO_BALANCERS] if isinstance(names, list) and names else []


@dataclass(frozen=True)
class InstanceGroupAttributes:
    """The attributes of a group of servers, besides ``resource.<number or name>``."""

    beginnings: ClassVar[tuple[str, ...]] = ('resource.',)

    instance_list: str | None = attr(
        'The addresses of the servers, separated by commas; null where there are none.', name='InstanceList'
    )


def pause_s(text: str) -> float:
    """Seconds of a duration as ISO 8601 writes it: hours, minutes and seconds, such as ``PT1M30S``.

    :raises ValueError: it is none, or longer than an hour.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f'PauseTime: {text} is not a duration such as PT1M30S')
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    whole_s = 3600 * hours + 60 * minutes + seconds
    if whole_s > LONGEST_PAUSE_S:
        raise ValueError('Maximum PauseTime is 1 hour.')
    return whole_s


@dataclass(frozen=True)
class ServerRolling:
    """How servers are renewed."""

    least: int = prop(0, name='MinInstancesInService', description='How many are left alone meanwhile, at least.')
    most: int = prop(1, name='MaxBatchSize', description='How many are changed at once, at most.')
    pause: str = prop('PT0S', name='PauseTime', description='How long to wait between two batches, such as PT1M30S.')

    def __post_init__(self) -> None:
        pause_s(self.pause)

    def batches(self) -> BatchPolicy:
        """The same as batches."""
        return BatchPolicy(max(self.most, 1), max(self.least, 0), pause_s(self.pause))


_ROLLING = 'How servers are renewed when their launch configuration changes. Default: they keep the old one.'


@dataclass(frozen=True)
class InstanceGroupPolicy:
    """The update policy of a group of servers."""

    rolling: ServerRolling | None = prop(None, name='RollingUpdate', description=_ROLLING)


@dataclass(frozen=True)
class AwsAutoScalingGroupPolicy:
    """The update policy of a group of servers that is scaled."""

    rolling: ServerRolling | None = prop(None, name='AutoScalingRollingUpdate', description=_ROLLING)


def rolling_of(
    context: NestingContext, kind: type[InstanceGroupPolicy | AwsAutoScalingGroupPolicy]
) -> BatchPolicy | None:
    """Return how servers are renewed, as the update policy says; None: they keep their definition."""
    policy: InstanceGroupPolicy | AwsAutoScalingGroupPolicy = PropertySchema.of(kind).parse(context.update_policy)
    return None if policy.rolling is None else policy.rolling.batches()


def server_of(
    call: Call[Any], context: NestingContext, more: Mapping[str, Json], own_tags: Mapping[str, Json]
) -> GroupMember:
    """Return the definition of the servers of a group: the launch configuration, with the tags of the group.

    :param more: further properties.
    :param own_tags: the tags of every group; the first one is left out if the user gives a tag of that family.
    :raises FinalFailure: the group does not require the configuration.
    """
    reference, given = call.properties.configuration, call.properties.tags or ()
    found = context.required(reference)
    if found is None:
        raise FinalFailure(
            f'LaunchConfigurationName ({reference}) requires a reference to the configuration, not just the name of '
            'the resource.'
        )
    tags: list[Json] = [{'Key': tag.key, 'Value': tag.value} for tag in given]
    has_family = any(tag.key.startswith('metering.') for tag in given)
    tags += [
        {'Key': key, 'Value': value} for number, (key, value) in enumerate(own_tags.items()) if number or not has_family
    ]
    return member(SCALED, {**found.properties, 'Tags': tags, **more}, found.metadata, masked_paths=found.masked_paths)


class InstanceGroup(NestedType[Any]):
    """A group of servers that a launch configuration describes."""

    Properties: ClassVar[type[Any]] = InstanceGroupProperties
    Attributes: ClassVar[type[Any] | None] = InstanceGroupAttributes
    UpdatePolicy: ClassVar[type[Any] | None] = InstanceGroupPolicy

    @override
    def wanted(self, call: Call[Any], context: NestingContext) -> DesiredStack:
        """Return a stack with that number of servers. Present servers change only as the update policy says."""
        server = server_of(call, context, {}, {'metering.groupname': call.token})
        size, rolling = max(call.properties.size, 0), rolling_of(context, InstanceGroupPolicy)
        return stack_of(context, Membership(call.token, server, size, rolling, types={SCALED: INSTANCE}))

    @override
    def cross_check(self, properties: Mapping[str, Any], names: Collection[str]) -> Iterable[str]:
        """Load balancers: the launch configuration is known only once it is there."""
        return named_balancers(properties)

    @override
    def is_told_by_members(self, name: str) -> bool:
        """Each."""
        return True

    @override
    def asked_of_members(self, name: str, members: Collection[str]) -> Mapping[str, str]:
        """Return the attributes for the addresses of the servers, or for a value of one server."""
        return asked_of_servers(name, members)

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """Return the addresses of the servers, or a value of one server."""
        return told_of_servers(call, name)


def asked_of_servers(name: str, members: Collection[str]) -> Mapping[str, str]:
    """Return the attributes that `told_of_servers` reads."""
    if name in ('', 'InstanceList'):
        return dict.fromkeys(members, 'PublicIp')
    return asked_of_any(name.removeprefix(OF_ONE), members)


def told_of_servers(call: Call[Any], name: str) -> Json:
    """Return the addresses of the servers of a group, or a value of one server.

    :raises FinalFailure: there is no such server, or it has no such value.
    """
    members = list(serving(call))
    if name != 'InstanceList':
        return one_of(call, members, name.removeprefix(OF_ONE))
    return ','.join(str(one_of(call, members, f'{key}.PublicIp')) for key in members) or None


@dataclass(frozen=True)
class AwsAutoScalingGroupProperties:
    """See the descriptions of the fields."""

    zones: list[Json] = prop(name='AvailabilityZones', description=_ZONES)
    configuration: str | None = prop(
        None, name='LaunchConfigurationName', update_allowed=True, description=_CONFIGURATION
    )
    instance: str | None = prop(
        None,
        name='InstanceId',
        constraints=[CustomConstraint('nova.server')],
        description='A server to take the properties of: refused, use LaunchConfigurationName.',
    )
    max_size: int = prop(name='MaxSize', update_allowed=True, description='How many servers there may be.')
    min_size: int = prop(name='MinSize', update_allowed=True, description='How many servers there are at least.')
    cooldown: int | None = prop(
        None,
        name='Cooldown',
        update_allowed=True,
        description='Seconds for which no signal changes the group after it has got other servers.',
    )
    desired_capacity: int | None = prop(
        None, name='DesiredCapacity', update_allowed=True, description='How many servers there are in the beginning.'
    )
    grace_period: int | None = not_implemented('HealthCheckGracePeriod')
    health_check: str | None = not_implemented('HealthCheckType', AllowedValues(['EC2', 'ELB']))
    balancers: list[Json] | None = prop(None, name='LoadBalancerNames', description=_BALANCERS)
    subnets: list[str] | None = prop(
        None, name='VPCZoneIdentifier', description='The subnet of the servers: a list of one.'
    )
    tags: list[GroupTag] | None = prop(None, name='Tags', description=_TAGS)

    def __post_init__(self) -> None:
        require_implemented(self)
        require_no_balancers(self.balancers)
        require_sizes(self.min_size, self.max_size, self.desired_capacity)
        if self.subnets and len(self.subnets) != 1:
            raise ValueError('Anything other than one VPCZoneIdentifier is not supported')
        if self.instance:
            raise ValueError(_NO_INSTANCE)
        if not self.configuration:
            raise ValueError("Either 'InstanceId' or 'LaunchConfigurationName' must be provided.")


class AwsAutoScalingGroup(ScaledType[Any]):
    """A group of servers that a launch configuration describes. Scaling policies change how many there are."""

    support = since('2014.1')
    Properties: ClassVar[type[Any]] = AwsAutoScalingGroupProperties
    Attributes: ClassVar[type[Any] | None] = InstanceGroupAttributes
    UpdatePolicy: ClassVar[type[Any] | None] = AwsAutoScalingGroupPolicy

    @override
    def cross_check(self, properties: Mapping[str, Any], names: Collection[str]) -> Iterable[str]:
        """Yield the problems of sizes that do not fit together, and of missing features. The launch configuration is
        not known yet.
        """
        sizes = (properties.get(name) for name in ('MinSize', 'MaxSize', 'DesiredCapacity'))
        missing = relied_on(AwsAutoScalingGroupProperties, properties)
        instance = [_NO_INSTANCE] if isinstance(properties.get('InstanceId'), str) else []
        return [*wrong_sizes(*sizes), *missing, *instance, *named_balancers(properties)]

    @override
    def bounds(self, call: Call[Any]) -> Bounds:
        """As the properties say."""
        return Bounds(call.properties.min_size, call.properties.max_size, float(max(0, call.properties.cooldown or 0)))

    @override
    def wanted(self, call: Call[Any], context: NestingContext) -> DesiredStack:
        """Return a stack with the present, or the requested, number of servers. They change only as the update policy
        says.
        """
        size = next_size(context, call.properties.desired_capacity, call.properties.min_size)
        rolling = rolling_of(context, AwsAutoScalingGroupPolicy)
        return stack_of(context, self._membership(call, context, self.bounds(call).within(size), rolling))

    @override
    def resized(
        self, call: Call[Any], context: NestingContext, size: int, cooldowns: Mapping[str, Json]
    ) -> DesiredStack:
        """Return a stack with the present servers, less the oldest, plus new ones."""
        return stack_of(context, self._membership(call, context, size, None), cooldowns)

    @override
    def is_told_by_members(self, name: str) -> bool:
        """Each."""
        return True

    @override
    def asked_of_members(self, name: str, members: Collection[str]) -> Mapping[str, str]:
        """Return the attributes for the addresses of the servers, or for a value of one server."""
        return asked_of_servers(name, members)

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """Return the addresses of the servers, or a value of one server."""
        return told_of_servers(call, name)

    @staticmethod
    def _membership(call: Call[Any], context: NestingContext, size: int, rolling: BatchPolicy | None) -> Membership:
        wanted = call.properties
        subnet: dict[str, Json] = {'SubnetId': wanted.subnets[0]} if wanted.subnets else {}
        tags: dict[str, Json] = {'metering.groupname': call.token, 'metering.AutoScalingGroupName': call.token}
        server = server_of(call, context, subnet, tags)
        return Membership(call.token, server, size, rolling, wanted.desired_capacity, {SCALED: INSTANCE})
