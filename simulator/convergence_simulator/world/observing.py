"""Observers in a simulated world: the product's own code, whose looks are steps between which others may go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from convergence.concurrency import Group, Task
from convergence.credentials.model import Credentials
from convergence.observer.budget import CallBudget
from convergence.observer.observation_task import ObservationTask
from convergence.observer.observer import Observer, Pacing
from convergence.observer.service import KIND
from convergence.resources.invocation import CallAccess
from convergence_simulator.world.faults import LEASE_S, SWEEP_S
from convergence_simulator.world.kernel import SimulatedProcess

if TYPE_CHECKING:
    from convergence_simulator.world.passing import Passing
    from convergence_simulator.world.world import World

OBSERVERS = 2
EVERY_S = 8 * SWEEP_S
"""The longest pause between two looks at an object."""
BATCH = 3
"""Few, so that what is due is shared by observers."""
OBSERVE = 'observe'
"""The name of a fiber that observes."""


class ObservationsInTurn(Group):
    """The looks of a batch, one after the other, in the fiber of whoever has leased it."""

    @override
    def spawn(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> Task:
        """Here and now."""
        with self.enter(OBSERVE) as task:
            function(task, *args, **kwargs)
        return task


@dataclass(eq=False)
class SimulatedObserver:
    """An observer process: the real observer on the simulated store."""

    process: SimulatedProcess
    id: str
    observer: Observer

    @classmethod
    def of(cls, world: World, name: str) -> SimulatedObserver:
        """A new one."""
        access = CallAccess(world.reader.signals, None, _no_credentials)
        pacing = Pacing(world.registry.observed_every_s(EVERY_S, {}), BATCH, threads=1, vary=lambda: 0.0)
        task = ObservationTask(world.registry, access)
        budget = CallBudget(None, world.kernel.clock)
        observer = Observer(
            world.observations,
            task,
            pacing,
            budget,
            world.new_id,
            new_group=lambda: ObservationsInTurn(OBSERVE),
        )
        found = cls(SimulatedProcess(name), world.new_id(), observer)
        found.beat(world)
        return found

    def beat(self, world: Passing) -> None:
        """It is still there."""
        if not world.roster.beat(self.id):
            world.roster.register(self.id, KIND, self.process.name, 'simulated', LEASE_S)

    def looks_now(self, world: Passing) -> bool:
        """Whether it is at its turn: its next one begins after that."""
        return any(fiber.process is self.process for fiber in world.kernel.fibers)


def observe(world: World) -> None:
    """From now on somebody looks at what was made."""
    if not world.observers:
        world.observers = [SimulatedObserver.of(world, f'observer-{each}') for each in range(1, OBSERVERS + 1)]


def _no_credentials(stack_id: str) -> Credentials:
    raise AssertionError('nothing that is simulated needs credentials')
