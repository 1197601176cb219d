"""``OS::Heat::Delay``: lets time pass between two resources."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.builtin.waiting import Clock, physical_name, still_waiting, system_clock, wait
from convergence.resources.constraints import AllowedValues, Range
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence.resources.schema import prop
from convergence.resources.support import since

ACTIONS = ('CREATE', 'DELETE', 'SUSPEND', 'RESUME')
NOT_NEGATIVE = (Range(minimum=0),)


@dataclass(frozen=True)
class DelayProperties:
    """See the descriptions of the fields."""

    min_wait: float = prop(0, update_allowed=True, constraints=NOT_NEGATIVE, description='Seconds to wait at least.')
    max_jitter: float = prop(
        0, update_allowed=True, constraints=NOT_NEGATIVE, description='Seconds to wait longer at most, by chance.'
    )
    jitter_multiplier: float = prop(
        1.0, update_allowed=True, constraints=NOT_NEGATIVE, description='Multiplies max_jitter.'
    )
    actions: list[str] = prop(
        ['CREATE'], update_allowed=True, constraints=[AllowedValues(ACTIONS)], description='Actions that wait.'
    )


class Delay(ResourceType[DelayProperties]):
    """Waits in the listed actions, for a time that is partly random."""

    support = since('11.0.0')
    Properties = DelayProperties
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    def __init__(self, clock: Clock = system_clock, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._clock = clock
        self._uniform = uniform

    @override
    def create(self, call: Call[DelayProperties]) -> Answer:
        """Wait, if this action is to wait."""
        return self._wait(call, 'CREATE', physical_name(call))

    @override
    def update(self, call: Call[DelayProperties]) -> Answer:
        """Nothing to do: from now on other actions wait, or as long as is said now."""
        return Done()

    @override
    def delete(self, call: Call[DelayProperties]) -> Answer:
        """Wait, if this action is to wait."""
        return self._wait(call, 'DELETE')

    @override
    def suspend(self, call: Call[DelayProperties]) -> Answer:
        """Wait, if this action is to wait."""
        return self._wait(call, 'SUSPEND')

    @override
    def resume(self, call: Call[DelayProperties]) -> Answer:
        """Wait, if this action is to wait."""
        return self._wait(call, 'RESUME')

    @override
    def poll(self, call: Call[DelayProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Wait on."""
        return still_waiting(self._clock, progress) or Done()

    def _wait(self, call: Call[DelayProperties], action: str, physical_id: str | None = None) -> Answer:
        properties = call.properties
        if action not in properties.actions:
            return Done(physical_id)
        seconds = properties.min_wait + self._uniform(0, properties.max_jitter * properties.jitter_multiplier)
        return wait(self._clock, seconds, physical_id) if seconds > 0 else Done(physical_id)
