"""The database of a world: rows in dictionaries, or whatever else offers the same and can be looked into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from convergence.core.effects import Decision
from convergence.db.memory import MemoryStore, Tables
from convergence.db.memory_queries import MemoryRoster, MemorySweeps
from convergence.db.memory_reader import MemoryReader
from convergence.db.queries import Reader
from convergence.db.roster import Roster
from convergence.db.sweeps import Sweeps
from convergence.db.transaction import Transactions


class SimulatedStore(Transactions, Protocol):
    """A store in whose transactions others may go on, and whose rows can be looked at.

    The variables are as those of `convergence.db.memory.MemoryStore`.
    """

    pause: Callable[[str], None]
    block: Callable[[], None]
    released: Callable[[], None]
    committed: Callable[[Decision[Any]], None]

    @property
    def tables(self) -> Tables:
        """The rows, as they are committed."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The database of a world, as its processes use it."""

    store: SimulatedStore
    reader: Reader
    roster: Roster
    sweeps: Sweeps
    close: Callable[[], None] = lambda: None


def in_memory(clock: Callable[[], float]) -> Storage:
    """Rows in dictionaries, with modelled locks."""
    store = MemoryStore(clock)
    roster = MemoryRoster(store)
    return Storage(store, MemoryReader(store, roster), roster, MemorySweeps(store, roster))
