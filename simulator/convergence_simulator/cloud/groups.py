"""Groups, and what scales them: the types of production, on the simulated clock."""

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
    """As many members as signals have led to."""

    untold_s = FOR_EVER_S  # as of all simulated stacks


class SimulatedCountedGroup(ResourceGroup):
    """As many members as its template says, but for those that were asked to go."""

    untold_s = FOR_EVER_S


class SimulatedPolicy(ScalingPolicy):
    """Scales a group with each signal."""

    @override
    def create(self, call: Call[Any]) -> Answer:
        """It has no address, and so no key that would be another one in each run."""
        return Done(call.resource_id)


GROUPS: Mapping[str, tuple[str, type[ResourceType[Any]]]] = {
    'Group': (GROUP, SimulatedGroup),
    'CountedGroup': (COUNTED, SimulatedCountedGroup),
    'Policy': (POLICY, SimulatedPolicy),
}
"""What scenarios call them, the names of the types, and these."""
WITH_MEMBERS = frozenset({'Group', 'CountedGroup'})
"""Those of them that are groups."""
