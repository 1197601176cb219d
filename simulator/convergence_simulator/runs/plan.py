"""Options of runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import DISPATCH_WINDOW
from convergence_simulator.stores.storage import Storage, in_memory
from convergence_simulator.world.faults import Faults


class Mode(StrEnum):
    """The way in which a run chooses its next event.

    * `ORDER`: one queued call or one message at a time; each is finished before the next, as in the prototype.
    * `SEEDED`: any possible event, at random; processes pause at every point.
    """

    ORDER = 'ORDER'
    SEEDED = 'SEEDED'


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Options of runs.

    :param threads: number of checks that a worker runs at a time.
    :param max_inline_nodes: maximum number of nodes that a thread runs one after the other.
    :param window: dispatch window; see `convergence.core.rows.Node.next_in_backlog`.
    :param steps: maximum number of steps; a longer run counts as endless.
    :param sweeps: maximum number of sweeps at the end until everything has to be at rest.
    :param storage: makes the database of a run, on the run's clock.
    :param passed: points at which processes do not pause; see `convergence_simulator.world.kernel`.
    """

    mode: Mode = Mode.SEEDED
    faults: Faults = field(default_factory=Faults)
    engines: int = 2
    workers: int = 3
    threads: int = 8
    max_inline_nodes: int = 1
    window: int = DISPATCH_WINDOW
    steps: int = 20_000
    sweeps: int = 1_500
    storage: Callable[[Callable[[], float]], Storage] = in_memory
    passed: frozenset[str] = frozenset()
