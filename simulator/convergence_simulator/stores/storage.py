"""The database of a world: rows in dictionaries, or whatever else offers the same and can be looked into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from convergence.core.effects import Decision
from convergence.core.software import Holder
from convergence.db.null_ports import ALL_PENDING, NO_CREDENTIALS
from convergence.db.ports import Ports
from convergence.db.transaction import Transactions
from convergence.testing.software import MemorySoftware
from convergence_simulator.memory.look import Lag, Tables
from convergence_simulator.memory.observations import MemoryObservations, MemoryWatched
from convergence_simulator.memory.queries import MemoryRoster, MemorySweeps
from convergence_simulator.memory.reader import MemoryReader
from convergence_simulator.memory.snapshots import MemorySnapshots
from convergence_simulator.memory.store import MemoryStore


class SimulatedStore(Transactions, Protocol):
    """A store in whose transactions others may go on, and whose rows can be looked at.

    The variables are as those of `convergence_simulator.memory.store.MemoryStore`.
    """

    pause: Callable[[str], None]
    block: Callable[[], None]
    released: Callable[[], None]
    committed: Callable[[Decision[Any]], None]
    lag: Callable[[], Lag]

    def spread(self, commits: int) -> None:
        """From now on there are several servers, which may be so many commits behind."""

    def promote(self, commits: int) -> None:
        """So many of the last commits are lost. The store has to be spread that far."""

    @property
    def tables(self) -> Tables:
        """The rows, as they are committed."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The database of a world, as its processes use it."""

    store: SimulatedStore
    ports: Ports
    close: Callable[[], None] = lambda: None


def ports(store: MemoryStore) -> Ports:
    """Those of a store in memory."""
    roster = MemoryRoster(store)

    def holds(holder: Holder) -> bool:
        row = store.tables.resource.get(holder.resource_id)
        return row is not None and row.fence == holder.fence

    observations = MemoryObservations(store, roster)
    return Ports(
        store,
        MemoryReader(store, roster),
        roster,
        MemorySweeps(store, roster),
        MemorySnapshots(store),
        MemorySoftware(store.clock, holds),
        observations,
        MemoryWatched(store, observations),
        ALL_PENDING,
        NO_CREDENTIALS,
    )


def in_memory(clock: Callable[[], float]) -> Storage:
    """Rows in dictionaries, with modelled locks."""
    store = MemoryStore(clock)
    return Storage(store, ports(store))
