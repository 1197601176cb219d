"""Simulated processes that take turns, on a simulated clock.

A fiber is one thread of a simulated process. It runs until a point at which a real thread could be preempted, and waits
there for its next turn. When a process crashes, its fibers never get another turn: `Crashed` is raised in each of them,
and again at every point that they reach while they unwind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import greenlet

from convergence.concurrency import Task


class Crashed(BaseException):
    """The process of this fiber has crashed."""


@dataclass(eq=False)
class SimulatedProcess:
    """A simulated process: an engine, a worker or a user.

    :ivar frozen_until: time until which the process stands still.
    """

    name: str
    alive: bool = True
    frozen_until: float = 0.0


@dataclass(eq=False)
class Fiber:
    """One thread of a process.

    :ivar point: name of the point at which the fiber waits: the next or the latest step.
    :ivar blocked: True while the fiber waits for a lock that another fiber holds.
    :ivar until: time at which a sleeping fiber wakes up; cancelling `task` wakes it earlier.
    """

    name: str
    process: SimulatedProcess
    let: greenlet.greenlet
    number: int
    point: str = 'start'
    blocked: bool = False
    until: float | None = None
    task: Task | None = None
    failure: BaseException | None = field(default=None)

    @property
    def is_stuck(self) -> bool:
        """True if the fiber sleeps for ever."""
        return self.until == math.inf

    def may_run(self, now: float) -> bool:
        """Return True if the fiber can run at `now`."""
        if self.blocked or not self.process.alive or self.process.frozen_until > now:
            return False
        if self.until is None:
            return True
        return self.until <= now or (self.task is not None and self.task.cancelled.is_set())


class Kernel:
    """Holds the fibers and the clock.

    :ivar fine: True: fibers pause at every point; False: they run until they sleep, block or end.
    :ivar passed: names of points at which fibers do not pause even if `fine` is true.
    :ivar at_point: None, or a function that is called with the fiber and the point before the fiber pauses there; it
        may raise `Crashed`.
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self.begun_at = self.now = start
        self.fine = True
        self.passed: frozenset[str] = frozenset()
        self.fibers: list[Fiber] = []
        self.current: Fiber | None = None
        self.at_point: Callable[[Fiber, str], None] | None = None
        self._main = greenlet.getcurrent()
        self._count = 0
        self._deaths = False

    def clock(self) -> float:
        """The time, in seconds since the epoch."""
        return self.now

    def spawn(self, process: SimulatedProcess, name: str, function: Callable[[], object]) -> Fiber:
        """Create a fiber; it gets its first turn later."""
        self._count += 1
        let = greenlet.greenlet(lambda: self._body(fiber, function))
        fiber: Fiber = Fiber(name, process, let, self._count)
        self.fibers.append(fiber)
        return fiber

    def _body(self, fiber: Fiber, function: Callable[[], object]) -> None:
        try:
            function()
        except (Crashed, greenlet.GreenletExit):
            pass
        except BaseException as error:  # noqa: BLE001 - kept, and raised in the main thread of the simulation
            fiber.failure = error

    def run(self, fiber: Fiber) -> None:
        """Give a fiber a turn.

        :raises BaseException: the exception that ended the fiber, if there was one.
        """
        fiber.until, fiber.task = None, None
        self.current = fiber
        fiber.let.switch()
        self.current = None
        if fiber.let.dead:
            self.fibers.remove(fiber)
        if self._deaths:
            self.bury()
        if fiber.failure is not None:
            raise fiber.failure

    def pause(self, point: str) -> None:
        """Pause the current fiber at a named point, so that other fibers can run. Called from a fiber."""
        fiber = self.current
        assert fiber is not None, 'only a fiber can wait'
        if not fiber.process.alive:
            raise Crashed
        fiber.point = point
        if self.at_point is not None:
            self.at_point(fiber, point)
        if (self.fine and point not in self.passed) or fiber.process.frozen_until > self.now:
            self._give_way(fiber)

    def block(self) -> None:
        """Block the current fiber, because another fiber holds the lock that it needs. Called from a fiber."""
        fiber = self._running()
        fiber.blocked = True
        self._give_way(fiber)

    def sleep(self, task: Task | None, duration_s: float) -> bool:
        """Let the current fiber sleep for a duration or until `task` is cancelled; return True if it was cancelled.

        Called from a fiber.

        :param task: None if the fiber is stuck in a call that nothing can end.
        """
        fiber = self._running()
        fiber.until, fiber.task, fiber.point = self.now + duration_s, task, 'sleep' if task is not None else 'stuck'
        self._give_way(fiber)
        return task is not None and task.cancelled.is_set()

    def unblock(self) -> None:
        """Wake all blocked fibers after locks were released; each tries to lock again."""
        for fiber in self.fibers:
            fiber.blocked = False

    def kill(self, process: SimulatedProcess) -> None:
        """Mark a process as crashed: none of its fibers gets another turn. May be called from one of them."""
        process.alive = False
        self._deaths = True

    def bury(self) -> None:
        """Tear down the fibers of crashed processes. Called from outside all fibers."""
        self._deaths = False
        dead = [fiber for fiber in self.fibers if not fiber.process.alive]
        if not dead:
            return
        self.fibers = [fiber for fiber in self.fibers if fiber.process.alive]
        for fiber in dead:
            if fiber.let:
                fiber.let.throw(Crashed)
        self.unblock()

    def runnable(self) -> list[Fiber]:
        """Return the fibers that can run now, oldest first."""
        now = self.now
        # Called at each step of each run: the condition that is most often false is first, and no method is called for
        # it.
        return [
            fiber
            for fiber in self.fibers
            if not fiber.blocked
            and (process := fiber.process).alive
            and process.frozen_until <= now
            and (fiber.until is None or fiber.may_run(now))
        ]

    def sleepers(self) -> list[float]:
        """Return the times at which sleeping fibers wake up and frozen processes continue."""
        frozen = [fiber.process.frozen_until for fiber in self.fibers if fiber.process.frozen_until > self.now]
        return frozen + [
            max(fiber.until, self.now)
            for fiber in self.fibers
            if fiber.until is not None
            and not fiber.is_stuck
            and fiber.process.alive
            and fiber.process.frozen_until <= self.now
        ]

    def _running(self) -> Fiber:
        assert self.current is not None, 'only a fiber can wait'
        if not self.current.process.alive:
            raise Crashed
        return self.current

    def _give_way(self, fiber: Fiber) -> None:
        self._main.switch()
        if not fiber.process.alive:
            raise Crashed
