"""Observers in a simulated world: the code of production. Each observation is a step between whose parts others run."""

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
"""The longest pause between two observations of an object, in seconds."""
BATCH = 3
"""Maximum number of objects in one batch. Few, so that several observers share the objects that are due."""
OBSERVE = 'observe'
"""The name of a fiber that observes."""


class ObservationsInTurn(Group):
    """Runs the observations of a batch one after the other in the fiber that leased the batch."""

    @override
    def spawn(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> Task:
        """Run the function immediately, in the current fiber."""
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
        """Create an observer process and register it."""
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
        """Send a heartbeat, or register again if the row of the observer is gone."""
        if not world.roster.beat(self.id):
            world.roster.register(self.id, KIND, self.process.name, 'simulated', LEASE_S)

    def looks_now(self, world: Passing) -> bool:
        """Return True while the observer has a running fiber; it begins the next batch only after that."""
        return any(fiber.process is self.process for fiber in world.kernel.fibers)


def observe(world: World) -> None:
    """Start the observers of a world, unless they run already."""
    if not world.observers:
        world.observers = [SimulatedObserver.of(world, f'observer-{each}') for each in range(1, OBSERVERS + 1)]


def _no_credentials(stack_id: str) -> Credentials:
    raise AssertionError('simulated objects need no credentials')
