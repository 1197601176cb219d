"""Protocols of a place in which a user of stacks works: a simulated world, or a crew on a database server.

The user reads it, and so do the checks that compare the objects with the goals at the end.
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
    """Facts that only the observer of a whole run knows; see `convergence_simulator.rules.checker.InvariantChecker`."""

    @property
    def templates(self) -> Mapping[str | None, Template]:
        """The template of each template row, including removed rows."""

    @property
    def good(self) -> Mapping[str, str | None]:
        """For each stack, the newest template whose traversal completed."""

    @property
    def given(self) -> Mapping[str, Traversal]:
        """For each stack, the last traversal that gave it a goal."""

    @property
    def changed(self) -> Mapping[str, Traversal]:
        """For each stack, the traversal in `given`, or a later repair of its objects."""

    @property
    def known_to(self) -> Mapping[str, Collection[SimulatedProcess]]:
        """For each object, the processes that have acted on it, if that is recorded."""


class Checker(Memories, Protocol):
    """Tests the invariants of a simulated world; see `convergence_simulator.rules.checker.InvariantChecker`."""

    @property
    def broken(self) -> Violation | None:
        """The first violation, or None."""

    @property
    def planned(self) -> Mapping[tuple[str, int], frozenset[int]]:
        """For each node, the numbers of the nodes before it in the plan."""

    @property
    def repairs(self) -> Collection[str]:
        """Ids of the traversals that engines began without a user's request, to repair drift."""

    def committed(self, world: Any, decision: Decision[Any]) -> None:
        """Test a commit in the given `World`."""

    def happened(self, action: Action, thing: PhysicalObject) -> None:
        """Test a change of an object."""

    def went_back(self) -> None:
        """Forget the commits that the database has lost."""

    def at_rest(self) -> None:
        """Test a moment at which nothing can happen until time passes."""

    def raise_any(self) -> None:
        """Raise the first violation, if there is one."""


class ShownRows(Protocol):
    """The rows of a database."""

    @property
    def tables(self) -> Tables:
        """The rows."""


class WatchedPlace(Protocol):
    """The parts of a world that users and checks read; see `convergence_simulator.world.world.World`."""

    @property
    def store(self) -> ShownRows:
        """The database."""

    @property
    def reader(self) -> ReaderPort:
        """Reads the database as engines do."""

    @property
    def snapshots(self) -> SnapshotsPort:
        """The snapshots in the database."""

    @property
    def reality(self) -> Reality:
        """The objects that really exist."""

    @property
    def checker(self) -> Memories:
        """The facts about the run so far."""

    @property
    def losses(self) -> int:
        """Number of times that the database has lost commits."""

    @property
    def crashes(self) -> int:
        """Number of processes that have died."""

    @property
    def left_stacks(self) -> Collection[str]:
        """Ids of nested stacks that were kept on request when their resources were removed."""


class AnEngine(Protocol):
    """An engine that a worker can call."""

    @property
    def parts(self) -> EngineParts:
        """The services of the engine."""
