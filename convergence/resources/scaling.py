"""Scaling: what a signal to a scaling policy asks for, and how many members a group has after that.

A type of policies says which group it is about and what it asks for; a type of groups says within which bounds, and
what stack it wants to be with so many members. An engine puts both together: it gives the nested stack of the group
another goal, directly, and nobody touches what the group is in.
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
    """What the number of an adjustment means."""

    CHANGE = 'change_in_capacity'
    EXACT = 'exact_capacity'
    PERCENT = 'percent_change_in_capacity'


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What a policy asks for.

    :param min_step: of a change by percent, how many members it adds or removes at least.
    :param cooldown_s: for how long after it the group is left alone; None: as the group says.
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
    """How many members a group may have, and for how long it is left alone after it has got others."""

    minimum: int
    maximum: int
    cooldown_s: float = 0.0

    def within(self, size: int) -> int:
        """The size, or the bound that it goes beyond."""
        return max(self.minimum, min(size, self.maximum))


def adjusted(current: int, adjustment: Adjustment, bounds: Bounds) -> int:
    """How many members a group of so many has after an adjustment.

    A percentage that is less than one member counts as one; what is more than whole members is left out.
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
    """What a signal says, for the event."""
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
        """What the policy refers to its group by."""

    @abstractmethod
    def adjustment(self, call: Call[P]) -> Adjustment:
        """What is asked for with each signal."""


class ScaledType(NestedType[P]):
    """Base of the types of groups that policies scale. Write `bounds` and `resized` besides `wanted`."""

    @abstractmethod
    def bounds(self, call: Call[P]) -> Bounds:
        """How many members the group may have."""

    @abstractmethod
    def resized(self, call: Call[P], context: NestingContext, size: int, cooldowns: Mapping[str, Json]) -> DesiredStack:
        """The stack that the group should be with so many members. Those that stay are what they are now. Pure.

        :param cooldowns: what the stack's output of that name says then.
        :raises FinalFailure: there can be no such stack.
        """
