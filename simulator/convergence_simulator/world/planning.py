"""The planner of ordered mode, in which the scenarios of the prototype count visits of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from convergence.core.request import Planner, Request


@dataclass(frozen=True, slots=True)
class VisitingPlanner(Planner):
    """Plans a visit of every node, as the prototype did, including unchanged nodes."""

    @override
    def skips_unchanged(self, request: Request) -> bool:
        """Return True only if the request names the nodes to visit."""
        return request.visits is not None and not request.performs
