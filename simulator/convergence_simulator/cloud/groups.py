"""Groups and the policies that scale them: the types of production, on the simulated clock."""

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
    """A group whose size is set by signals."""

    untold_s = FOR_EVER_S  # as for all simulated stacks


class SimulatedCountedGroup(ResourceGroup):
    """A group whose size is set by its template, without the members that a user has removed."""

    untold_s = FOR_EVER_S


class SimulatedPolicy(ScalingPolicy):
    """Scales a group with each signal."""

    @override
    def create(self, call: Call[Any]) -> Answer:
        """Create the policy without an address: an address has a key, which would be different in each run."""
        return Done(call.resource_id)


GROUPS: Mapping[str, tuple[str, type[ResourceType[Any]]]] = {
    'Group': (GROUP, SimulatedGroup),
    'CountedGroup': (COUNTED, SimulatedCountedGroup),
    'Policy': (POLICY, SimulatedPolicy),
}
"""For each name in scenarios: the name of the resource type, and its class."""
WITH_MEMBERS = frozenset({'Group', 'CountedGroup'})
"""Names, in scenarios, of the types that have members."""
