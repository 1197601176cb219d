"""Passage of time in a world: timers, sleeping fibers, alarms, heartbeats and sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from convergence.core.model import Status
from convergence_simulator.world.faults import LEASE_S, SWEEP_S, Trouble
from convergence_simulator.world.kernel import Kernel, SimulatedProcess
from convergence_simulator.world.network import MessageInFlight
from convergence_simulator.world.observing import OBSERVE
from convergence_simulator.world.rewinding import is_known

if TYPE_CHECKING:
    from convergence_simulator.world.observing import SimulatedObserver
    from convergence_simulator.world.world import SimulatedEngine, SimulatedWorker


SWEEP = 'sweep'
"""The name of a fiber that sweeps."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A call that a process has scheduled for some time.

    :param still: returns True if the call is still needed then.
    """

    at: float
    process: SimulatedProcess
    still: Callable[[], bool]
    act: Callable[[], object]


class Passing:
    """The part of a world that lets time pass."""

    kernel: Kernel
    trouble: Trouble
    store: Any
    roster: Any
    bag: list[MessageInFlight]
    timers: list[tuple[float, MessageInFlight]]
    alarms: list[Alarm]
    next_sweep: float
    engines: list[SimulatedEngine]
    workers: list[SimulatedWorker]
    observers: list[SimulatedObserver]
    losses: int
    left_stacks: set[str]
    handle: Callable[[SimulatedProcess, str, Callable[[], object]], None]

    def set_alarm(
        self, process: SimulatedProcess, delay_s: float, still: Callable[[], bool], act: Callable[[], object]
    ) -> None:
        """Schedule a call of a process after `delay_s` seconds, if `still` returns true then.

        A delay of 0 calls it now.
        """
        if delay_s > 0.0:
            self.alarms.append(Alarm(self.kernel.now + delay_s, process, still, act))
        else:
            self.handle(process, 'alarm', act)

    def tick(self) -> None:
        """Advance the clock to the next timer, sleeper, alarm, heartbeat or sweep, and run it."""
        kernel = self.kernel
        self.alarms = [alarm for alarm in self.alarms if alarm.still()]
        kernel.now = max(kernel.now, min([self.next_sweep, *self._moments()]))
        due = [message for when, message in self.timers if when <= kernel.now]
        self.timers = [(when, message) for when, message in self.timers if when > kernel.now]
        self.bag += due
        ringing = [alarm for alarm in self.alarms if alarm.at <= kernel.now]
        self.alarms = [alarm for alarm in self.alarms if alarm.at > kernel.now]
        for alarm in ringing:
            if alarm.process.alive:
                self.handle(alarm.process, 'alarm', alarm.act)
        if self.next_sweep <= kernel.now:
            self.next_sweep = kernel.now + SWEEP_S
            self.trouble.at_sweep()
            self._beats_and_sweeps()

    def _beats_and_sweeps(self) -> None:
        for worker in self.workers:
            if worker.process.frozen_until <= self.kernel.now:
                _beat(self, worker)
        if self.trouble.database_is_away:
            return
        for engine in self.engines:
            self.handle(engine.process, SWEEP, engine.parts.sweeper.sweep)
        for observer in self.observers:
            if observer.process.frozen_until <= self.kernel.now:
                observer.beat(self)
                if not observer.looks_now(self):
                    self.handle(observer.process, OBSERVE, observer.observer.turn)

    def _moments(self) -> list[float]:
        """Return the times of the next events, without the next sweep."""
        return [
            *(when for when, _ in self.timers),
            *(alarm.at for alarm in self.alarms),
            *self.kernel.sleepers(),
            *self.trouble.ends_at(),
        ]

    def waits_briefly(self) -> bool:
        """Return True if a timer fires or a sleeper wakes up before the next sweep."""
        return any(when <= self.next_sweep for when in self._moments())

    def is_idle(self) -> bool:
        """Return True if there is no message, fiber or timer, and every stack is final.

        A stack with a live traversal does not count as final.
        """
        if self.bag or self.timers or (self.losses and not is_known(self)):
            return False
        for fiber in self.kernel.fibers:
            if fiber.until != math.inf:  # it is not stuck; called at each step
                return False
        for stack in self.store.tables.stack.values():
            if stack.status is Status.IN_PROGRESS:
                return False
            if stack.id in self.left_stacks and stack.deleted_at is None and stack.parent_id is not None:
                return False
        return True


def _beat(world: Passing, worker: SimulatedWorker) -> None:
    """Send the heartbeat of a worker. A worker whose lease has run out stops its work and registers again."""
    service, now, away = worker.service, world.kernel.now, world.trouble.database_is_away
    is_over = worker.holds_until < now
    if is_over:
        service.give_up()
    if is_over or not away:
        worker.holds_until = now + LEASE_S
    if away:
        return
    if is_over or not world.roster.beat(service.id):
        if not is_over:
            service.give_up()
        world.roster.register(service.id, 'worker', worker.process.name, 'simulated', LEASE_S)
    if worker.loss is not None:
        loss, worker.loss = worker.loss, None
        service.journal.add_loss(loss)
    world.handle(worker.process, 'heartbeat', service.reconcile)
