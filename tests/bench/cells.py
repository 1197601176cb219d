"""What more workers and more installations would do: simulated, with what a resource was measured to cost.

A closed network of queues, as in the theory of such systems (central server model: J. P. Buzen, Communications of the
ACM 16 (9), 1973): each thread of a worker takes the next resource when it is done with one, there is always one more,
and so all parts have as much to do as they can. What it shows beyond arithmetic is what waiting costs where a part is
nearly full, and that it goes away when workers are divided among installations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import simpy

from tests.bench.costs import BROKER_CORES, DATABASE_CORES, Cost, capacity

WAYS = 3
"""To the database server and back for each resource; see docs/performance.rst."""
THREADS = 8
"""Of a worker, by default."""
COMMIT_S = 0.005
"""How long a durable commit takes on an ordinary disk; any number of them at once."""
NETWORK_S = 0.0003
"""To another machine and back."""
WARM_UP_S, MEASURED_S = 1.0, 2.0
"""Simulated seconds."""


@dataclass(frozen=True, slots=True)
class Cells:
    """So many workers, divided among installations that share nothing.

    :param rate: resources in a second, of all of them.
    :param bound: what arithmetic says that they would do at most.
    :param workers_busy: the part of the time that their cores work. :param database_busy: the same of a database.
    """

    workers: int
    installations: int
    rate: float
    bound: float
    workers_busy: float
    database_busy: float


class _Part:
    """Cores for which jobs wait in the order in which they come."""

    def __init__(self, environment: simpy.Environment, cores: int, chance: random.Random) -> None:
        self._environment = environment
        self._cores = simpy.Resource(environment, cores)
        self._number = cores
        self._chance = chance
        self._busy_s = 0.0

    def job(self, mean_s: float) -> Iterator[Any]:
        """Wait for a core and work on it, for a time that is distributed exponentially."""
        if not mean_s:
            return
        with self._cores.request() as turn:
            yield turn
            spent_s = self._chance.expovariate(1 / mean_s)
            yield self._environment.timeout(spent_s)
        if self._environment.now > WARM_UP_S:
            self._busy_s += spent_s

    def busy(self) -> float:
        """The part of the measured time that the cores have worked."""
        return min(1.0, self._busy_s / self._number / MEASURED_S)


def simulated(cost: Cost, workers: int, installations: int = 1, *, seed: int = 1) -> Cells:
    """Have workers do as much as they can.

    :param cost: of a resource; an engine is not in the way of it.
    :param workers: of all installations, each on a core of its own. Those of one of them are simulated, and the others
        do just as much: nothing is shared.
    """
    own = -(-workers // installations)
    environment, chance = simpy.Environment(), random.Random(seed)
    database = _Part(environment, DATABASE_CORES, chance)
    broker = _Part(environment, BROKER_CORES, chance)
    crew = [_Part(environment, 1, chance) for _ in range(own)]
    done = 0

    def thread(worker: _Part) -> Iterator[Any]:
        nonlocal done
        while True:
            for _ in range(WAYS):
                yield from worker.job(cost.worker / WAYS)
                yield environment.timeout(NETWORK_S)
                yield from database.job(cost.database / WAYS)
            yield environment.timeout(COMMIT_S)
            yield from broker.job(cost.broker)
            done += environment.now > WARM_UP_S

    for worker in crew:
        for _ in range(THREADS):
            environment.process(thread(worker))
    environment.run(WARM_UP_S + MEASURED_S)
    alone = capacity(cost, own).reached
    return Cells(
        workers,
        installations,
        done / MEASURED_S * workers / own,
        alone * workers / own,
        sum(worker.busy() for worker in crew) / own,
        database.busy(),
    )


def series(cost: Cost, crews: tuple[int, ...]) -> Iterator[Cells]:
    """Each number of workers with one installation, and with as many as keep them busy."""
    for workers in crews:
        needed = capacity(cost, workers).installations
        yield from (simulated(cost, workers, installations) for installations in sorted({1, needed}))
