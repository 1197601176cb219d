"""Where a user of stacks is: a simulated world, or a crew at work on a database server.

What the user looks at, and whoever compares in the end what there is with what was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from convergence.core.effects import Decision
from convergence.core.model import Action
from convergence.core.rows import Traversal
from convergence.db.ports import ReaderPort, SnapshotsPort
from convergence.engine.wiring import EngineParts
from convergence_simulator.cloud.reality import PhysicalObject, Reality
from convergence_simulator.memory.look import Tables
from convergence_simulator.scenarios.templates import Template
from convergence_simulator.scenarios.verification import Violation
from convergence_simulator.world.kernel import SimulatedProcess


class Memories(Protocol):
    """What only a run as a whole can know; see `convergence_simulator.rules.checker.InvariantChecker`."""

    @property
    def templates(self) -> Mapping[str | None, Template]:
        """What each template row stands for, also of those that are gone."""

    @property
    def good(self) -> Mapping[str, str | None]:
        """For each stack, the newest template that has been up."""

    @property
    def given(self) -> Mapping[str, Traversal]:
        """For each stack, the last traversal that gave it a goal."""

    @property
    def changed(self) -> Mapping[str, Traversal]:
        """The same, or a repair of what that had made, if there was one since."""

    @property
    def known_to(self) -> Mapping[str, Collection[SimulatedProcess]]:
        """The processes that have done anything to each object, where that is noted."""


class Checker(Memories, Protocol):
    """Tests the invariants of a simulated world; see `convergence_simulator.rules.checker.InvariantChecker`."""

    @property
    def broken(self) -> Violation | None:
        """The first violation."""

    @property
    def planned(self) -> Mapping[tuple[str, int], frozenset[int]]:
        """For each node, the numbers of the nodes before it, as planned."""

    @property
    def repairs(self) -> Collection[str]:
        """Ids of the traversals that engines began by themselves to repair drift."""

    def committed(self, world: Any, decision: Decision[Any]) -> None:
        """Test a commit. `world` is the `World` in which it happened."""

    def happened(self, action: Action, thing: PhysicalObject) -> None:
        """Test a change of an object."""

    def went_back(self) -> None:
        """Forget the commits that the database has lost."""

    def at_rest(self) -> None:
        """Test a moment at which nothing can happen but that time passes."""

    def raise_any(self) -> None:
        """Raise the first violation, if there is one."""


class ShownRows(Protocol):
    """What is stored."""

    @property
    def tables(self) -> Tables:
        """The rows."""


class WatchedPlace(Protocol):
    """What there is to look at; see `convergence_simulator.world.world.World`."""

    @property
    def store(self) -> ShownRows:
        """The database."""

    @property
    def reader(self) -> ReaderPort:
        """Asks it as engines do."""

    @property
    def snapshots(self) -> SnapshotsPort:
        """The snapshots in it."""

    @property
    def reality(self) -> Reality:
        """What really exists."""

    @property
    def checker(self) -> Memories:
        """What was seen so far."""

    @property
    def losses(self) -> int:
        """How often the database has lost commits."""

    @property
    def crashes(self) -> int:
        """How many processes have died."""

    @property
    def left_stacks(self) -> Collection[str]:
        """Ids of nested stacks that stayed when their resources were left behind, as was asked for."""


class AnEngine(Protocol):
    """An engine that may be asked for something."""

    @property
    def parts(self) -> EngineParts:
        """Its services."""
