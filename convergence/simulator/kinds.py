"""All resource types of the simulated cloud."""

from __future__ import annotations

from convergence.resources.registry import Registry
from convergence.simulator.reality import Reality
from convergence.simulator.sorts import SORTS
from convergence.simulator.trees import STACK, SimulatedStack


def registry(reality: Reality) -> Registry:
    """All types on one reality."""
    return Registry({**{kind.type_name: kind(reality) for kind in SORTS.values()}, STACK: SimulatedStack()})
