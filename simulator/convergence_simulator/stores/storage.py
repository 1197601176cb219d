"""The database of a world: rows in dictionaries, or another store with the same interface and readable rows."""

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
    """A store in whose transactions other fibers may run, and whose rows can be read.

    The variables are those of `convergence_simulator.memory.store.MemoryStore`.
    """

    pause: Callable[[str], None]
    block: Callable[[], None]
    released: Callable[[], None]
    committed: Callable[[Decision[Any]], None]
    lag: Callable[[], Lag]

    def spread(self, commits: int) -> None:
        """From now on simulate several servers, which may lag behind by up to `commits` commits."""

    def promote(self, commits: int) -> None:
        """Lose the last commits. `spread` must have been called with at least as many."""

    @property
    def tables(self) -> Tables:
        """The committed rows."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The database of a world, as its processes use it."""

    store: SimulatedStore
    ports: Ports
    close: Callable[[], None] = lambda: None


def ports(store: MemoryStore) -> Ports:
    """Return the ports of a store in memory."""
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
    """Create a store with rows in dictionaries and modelled locks."""
    store = MemoryStore(clock)
    return Storage(store, ports(store))
