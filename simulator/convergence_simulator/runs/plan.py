"""How to run scenarios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import DISPATCH_WINDOW
from convergence_simulator.stores.storage import Storage, in_memory
from convergence_simulator.world.faults import Faults


class Mode(StrEnum):
    """How the next thing to happen is chosen.

    * `ORDER`: one queued call, one message, in turn; each is finished before the next, as in the prototype.
    * `SEEDED`: anything that can happen, at random, with processes giving way at every point.
    """

    ORDER = 'ORDER'
    SEEDED = 'SEEDED'


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How to run scenarios.

    :param threads: how many checks a worker works on at a time.
    :param max_inline_nodes: maximum number of nodes that a thread runs one after the other.
    :param window: how many nodes are cast at once; see `convergence.core.rows.Node.next_in_backlog`.
    :param steps: after so many steps a run counts as endless.
    :param sweeps: how many sweeps may pass at the end before everything has to be at rest.
    :param storage: makes the database of a run, on the run's clock.
    :param passed: points at which processes do not give way; see `convergence_simulator.world.kernel`.
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
