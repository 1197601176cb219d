"""``OS::Heat::ScalingPolicy`` and ``AWS::AutoScaling::ScalingPolicy``: what a signal does to a group."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence import signing
from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.signal_urls import AddressOfApi, nowhere, signed, signed_if_known, with_token
from convergence.resources.constraints import AllowedValues, Range
from convergence.resources.contract import Answer, Call, Done
from convergence.resources.scaling import Adjustment, AdjustmentType, PolicyType
from convergence.resources.schema import prop

CFN_TYPES = {
    'ChangeInCapacity': AdjustmentType.CHANGE,
    'ExactCapacity': AdjustmentType.EXACT,
    'PercentChangeInCapacity': AdjustmentType.PERCENT,
}
"""The types of adjustments as CloudFormation writes them."""

_GROUP = 'AutoScaling group ID to apply policy to.'
_SIZE = 'Size of adjustment.'
_TYPE = 'Type of adjustment: a number of members more or less, the number of members, or percent more or less.'
_COOLDOWN = 'Seconds for which the group is left alone afterwards; else as long as the group says.'
_STEP = 'How many members are added or removed at least; only with a change by percent.'


@dataclass(frozen=True)
class ScalingPolicyProperties:
    """See the descriptions of the fields."""

    auto_scaling_group_id: str = prop(description=_GROUP)
    scaling_adjustment: float = prop(update_allowed=True, description=_SIZE)
    adjustment_type: str = prop(
        update_allowed=True,
        constraints=[AllowedValues([each.value for each in AdjustmentType])],
        description=_TYPE,
    )
    cooldown: float | None = prop(None, update_allowed=True, description=_COOLDOWN)
    min_adjustment_step: int | None = prop(None, update_allowed=True, constraints=[Range(minimum=0)], description=_STEP)

    def __post_init__(self) -> None:
        if self.min_adjustment_step is not None and self.type is not AdjustmentType.PERCENT:
            raise ValueError(
                'min_adjustment_step property should only be specified for adjustment_type with value '
                'percent_change_in_capacity.'
            )

    @property
    def type(self) -> AdjustmentType:
        """The meaning of the number."""
        return AdjustmentType(self.adjustment_type)


@dataclass(frozen=True)
class ScalingPolicyAttributes:
    """The attributes of a policy."""

    alarm_url: str | None = attr(
        'A signed address: a POST to it signals the policy and can do nothing else.', of=(), secret=True
    )
    signal_url: str | None = attr('The address to which signals are posted with the token of a member.', of=())


class ScalingPolicy(PolicyType[Any]):
    """Gives an `OS::Heat::AutoScalingGroup` more or fewer members with each signal.

    :param api: see `AddressOfApi`.
    """

    Properties: ClassVar[type[Any]] = ScalingPolicyProperties
    Attributes: ClassVar[type[Any] | None] = ScalingPolicyAttributes
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    def __init__(self, api: AddressOfApi = nowhere) -> None:
        self._api = api

    @override
    def create(self, call: Call[Any]) -> Answer:
        """Make the key of its addresses. A second create makes another key, which is harmless: the first one was not
        published.
        """
        return Done(call.resource_id, {signing.KEY: secrets.token_urlsafe(32)})

    @override
    def group(self, call: Call[Any]) -> str:
        """Its reference."""
        return str(call.properties.auto_scaling_group_id)

    @override
    def adjustment(self, call: Call[Any]) -> Adjustment:
        """As the properties say."""
        wanted = call.properties
        return Adjustment(
            wanted.type,
            wanted.scaling_adjustment,
            wanted.min_adjustment_step,
            None if wanted.cooldown is None else max(0.0, wanted.cooldown),
            wanted.adjustment_type,
        )

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """Return a signal address.

        :raises FinalFailure: the address of the API is not known.
        """
        return with_token(self._api, call) if name == 'signal_url' else signed(self._api, call)


@dataclass(frozen=True)
class AwsScalingPolicyProperties:
    """See the descriptions of the fields."""

    auto_scaling_group_id: str = prop(name='AutoScalingGroupName', description='The group to apply the policy to.')
    scaling_adjustment: int = prop(name='ScalingAdjustment', update_allowed=True, description=_SIZE)
    adjustment_type: str = prop(
        name='AdjustmentType',
        update_allowed=True,
        constraints=[AllowedValues(list(CFN_TYPES))],
        description=_TYPE,
    )
    cooldown: int | None = prop(None, name='Cooldown', update_allowed=True, description=_COOLDOWN)
    min_adjustment_step: int | None = prop(
        None, name='MinAdjustmentStep', update_allowed=True, constraints=[Range(minimum=0)], description=_STEP
    )

    def __post_init__(self) -> None:
        if self.min_adjustment_step is not None and self.type is not AdjustmentType.PERCENT:
            raise ValueError(
                'MinAdjustmentStep property should only be specified for AdjustmentType with value '
                'PercentChangeInCapacity.'
            )

    @property
    def type(self) -> AdjustmentType:
        """The meaning of the number."""
        return CFN_TYPES[self.adjustment_type]


@dataclass(frozen=True)
class AwsScalingPolicyAttributes:
    """The attributes of a policy."""

    alarm_url: str | None = attr(
        'A signed address: a POST to it signals the policy and can do nothing else.',
        name='AlarmUrl',
        of=(),
        secret=True,
    )


class AwsScalingPolicy(ScalingPolicy):
    """Gives an `AWS::AutoScaling::AutoScalingGroup` more or fewer members with each signal.

    Its reference is its signal address.
    """

    Properties = AwsScalingPolicyProperties
    Attributes = AwsScalingPolicyAttributes
    reference_of = ()

    @override
    def reference_id(self, call: Call[Any]) -> str | None:
        """Return the signal address, or the id while the address of the API is not known."""
        return signed_if_known(self._api, call) or call.resource_id
