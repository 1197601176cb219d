"""Scaling: the change that a signal to a scaling policy requests, and the resulting number of members of a group.

A type of policies names its group and the change; a type of groups gives the bounds, and its desired stack for a
number of members. An engine combines both: it gives the nested stack of the group another goal directly. The parent
stack does not change.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, TypeVar

from convergence.core.model import Json
from convergence.resources.contract import Call, ResourceType
from convergence.resources.nested import NestedType
from convergence.resources.nesting import DesiredStack, NestingContext

P = TypeVar('P')

COOLDOWNS = 'cooldowns'
"""The output of a group's nested stack that says after which of its operations it is left alone for how many seconds,
where that is not what the group says."""


class AdjustmentType(StrEnum):
    """The meaning of the number of an adjustment."""

    CHANGE = 'change_in_capacity'
    EXACT = 'exact_capacity'
    PERCENT = 'percent_change_in_capacity'


@dataclass(frozen=True, slots=True)
class Adjustment:
    """The change that a policy requests.

    :param min_step: minimum number of members that a change by percent adds or removes.
    :param cooldown_s: seconds after the change during which the group is not scaled; None: as the group says.
    :param written: how the policy writes the type.
    """

    type: AdjustmentType
    amount: float
    min_step: int | None = None
    cooldown_s: float | None = None
    written: str = ''

    def told(self) -> str:
        """The adjustment in one line."""
        return f'{self.written or self.type} : {self.amount:g}'


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of the number of members of a group, and its cooldown after a change."""

    minimum: int
    maximum: int
    cooldown_s: float = 0.0

    def within(self, size: int) -> int:
        """The size, or the bound that it goes beyond."""
        return max(self.minimum, min(size, self.maximum))


def adjusted(current: int, adjustment: Adjustment, bounds: Bounds) -> int:
    """Return the number of members of a group after an adjustment.

    A percentage of less than one member counts as one; fractions of members are dropped.
    """
    if adjustment.type is AdjustmentType.EXACT:
        return bounds.within(int(adjustment.amount))
    if adjustment.type is AdjustmentType.CHANGE:
        return bounds.within(current + int(adjustment.amount))
    if not adjustment.amount:
        return bounds.within(current)
    change = abs(current * adjustment.amount) / 100.0
    away = max(math.ceil(change) if change < 1.0 else math.floor(change), adjustment.min_step or 0)
    return bounds.within(current + (away if adjustment.amount > 0 else -away))


def told_by(details: Json) -> str:
    """Return the text of a signal, for the event."""
    if details is None:
        return 'No signal details provided'
    if isinstance(details, str):
        return details
    if isinstance(details, dict) and {'previous', 'current', 'reason'} <= set(details):
        return f'alarm state changed from {details["previous"]} to {details["current"]} ({details["reason"]})'
    return 'Unknown'


class PolicyType(ResourceType[P]):
    """Base of the types whose signals scale a group. Write `group` and `adjustment`."""

    takes_signals: ClassVar[bool] = True
    keeps_signals: ClassVar[bool] = False

    @abstractmethod
    def group(self, call: Call[P]) -> str:
        """Return the reference of the policy to its group."""

    @abstractmethod
    def adjustment(self, call: Call[P]) -> Adjustment:
        """Return the change that each signal requests."""


class ScaledType(NestedType[P]):
    """Base of the types of groups that policies scale. Write `bounds` and `resized` besides `wanted`."""

    @abstractmethod
    def bounds(self, call: Call[P]) -> Bounds:
        """Return the bounds of the number of members."""

    @abstractmethod
    def resized(self, call: Call[P], context: NestingContext, size: int, cooldowns: Mapping[str, Json]) -> DesiredStack:
        """Return the desired stack of the group with so many members. Remaining members keep their present definition.
        Pure.

        :param cooldowns: the value of the stack's output of that name then.
        :raises FinalFailure: there can be no such stack.
        """
