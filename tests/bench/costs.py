"""What a resource costs of each part of an installation, and which part is full first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DATABASE_CORES = 32
"""Of the largest database server that is reckoned with."""
BROKER_CORES = 8


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of processor time that one resource takes of each part, however many there are."""

    engine: float
    worker: float
    database: float
    broker: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """What so many workers would do, each on a core of its own.

    :param possible: resources in a second that the workers alone would do.
    :param reached: the same with one database and one broker of the size that is reckoned with.
    :param engines: cores of engines that are busy then.
    :param full: the part that is full first.
    :param installations: how many of them, each with a database and a broker, keep all the workers busy.
    """

    workers: int
    possible: float
    database_cores: float
    broker_cores: float
    reached: float
    engines: float
    full: str
    installations: int


def capacity(cost: Cost, workers: int) -> Capacity:
    """Every part does a share of each resource, so the part that is full first bounds all."""
    bounds = {
        'the workers': workers / cost.worker,
        'the database': DATABASE_CORES / cost.database if cost.database else float('inf'),
        'the broker': BROKER_CORES / cost.broker if cost.broker else float('inf'),
    }
    full = min(bounds, key=lambda part: bounds[part])
    possible, reached = bounds['the workers'], bounds[full]
    needed = -(-possible // min(bounds['the database'], bounds['the broker']))
    return Capacity(
        workers,
        possible,
        possible * cost.database,
        possible * cost.broker,
        reached,
        reached * cost.engine,
        full,
        int(needed),
    )


def cost_of(measured: Mapping[str, Any]) -> Cost:
    """What one resource costs, by one measured operation."""
    size, used = measured['size'], measured['took']['cpu_s']
    database = used.get(measured['installation'], 0.0)
    return Cost(
        used.get('engine', 0.0) / size,
        used.get('worker', used.get('embedded', 0.0)) / size,
        database / size,
        used.get('rabbitmq', 0.0) / size,
    )
