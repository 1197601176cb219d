"""All resource types of the simulated cloud."""

from __future__ import annotations

from typing import Any

from convergence.resources.contract import ResourceType
from convergence.resources.registry import Registry
from convergence_simulator.cloud.groups import GROUPS
from convergence_simulator.cloud.reality import Reality
from convergence_simulator.cloud.sorts import SORTS
from convergence_simulator.cloud.trees import STACK, SimulatedStack


def registry(reality: Reality) -> Registry:
    """Return the registry of all types, which use one reality."""
    types: dict[str, ResourceType[Any]] = {kind.type_name: kind(reality) for kind in SORTS.values()}
    types |= {type_name: kind() for type_name, kind in GROUPS.values()}
    return Registry({**types, STACK: SimulatedStack()})
