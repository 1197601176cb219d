"""Where a user of stacks is: a simulated world, or a crew at work on a database server.

What the user looks at, and whoever compares in the end what there is with what was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from convergence.core.rows import Traversal
from convergence.db.ports import ReaderPort, SnapshotsPort
from convergence.engine.wiring import EngineParts
from convergence_simulator.kernel import SimulatedProcess
from convergence_simulator.memory.look import Tables
from convergence_simulator.reality import Reality
from convergence_simulator.templates import Template


class Memories(Protocol):
    """What only a run as a whole can know; see `convergence_simulator.checker.InvariantChecker`."""

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


class ShownRows(Protocol):
    """What is stored."""

    @property
    def tables(self) -> Tables:
        """The rows."""


class WatchedPlace(Protocol):
    """What there is to look at; see `convergence_simulator.world.World`."""

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
