"""Groups and their scaling policies: the resource types of production, on the simulated clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from convergence.resources.builtin.groups.resource_group import ResourceGroup
from convergence.resources.builtin.scaling.groups import AutoScalingGroup
from convergence.resources.builtin.scaling.policies import ScalingPolicy
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence_simulator.cloud.trees import COUNTED, FOR_EVER_S, GROUP, POLICY


class SimulatedGroup(AutoScalingGroup):
    """A group whose number of members changes with signals."""

    untold_s = FOR_EVER_S  # as in all simulated stacks


class SimulatedCountedGroup(ResourceGroup):
    """A group with the number of members that its template sets, less the members that a user removed."""

    untold_s = FOR_EVER_S


class SimulatedPolicy(ScalingPolicy):
    """Scales a group with each signal."""

    @override
    def create(self, call: Call[Any]) -> Answer:
        """Create it without an address, because the key in an address would differ in each run."""
        return Done(call.resource_id)


GROUPS: Mapping[str, tuple[str, type[ResourceType[Any]]]] = {
    'Group': (GROUP, SimulatedGroup),
    'CountedGroup': (COUNTED, SimulatedCountedGroup),
    'Policy': (POLICY, SimulatedPolicy),
}
"""The group types: the name in scenarios, the type name and the class."""
WITH_MEMBERS = frozenset({'Group', 'CountedGroup'})
"""The entries of `GROUPS` that have members."""
