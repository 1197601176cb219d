"""Processes that take turns, on a clock that only moves when it is told to.

A fiber is one thread of a simulated process. It runs until it comes to a point at which a real thread could be
preempted, and there waits for its next turn. A process that crashes takes its fibers with it: they never get another
turn, and whatever they try while they are torn down is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import greenlet

from convergence.concurrency import Task


class Crashed(BaseException):
    """The process of this fiber does not exist any more."""


@dataclass(eq=False)
class SimulatedProcess:
    """A simulated process: an engine, a worker or a user.

    :ivar frozen_until: until then it stands still.
    """

    name: str
    alive: bool = True
    frozen_until: float = 0.0


@dataclass(eq=False)
class Fiber:
    """One thread of a process.

    :ivar point: where it waits: what it is about to do, or has just done.
    :ivar blocked: whether it waits for a lock that somebody held when it last looked.
    :ivar until: when it wakes up by itself, if it sleeps; `task` wakes it earlier by being cancelled.
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
        """Whether it will never go on."""
        return self.until == math.inf

    def may_run(self, now: float) -> bool:
        """Whether it has something to do at `now`."""
        if self.blocked or not self.process.alive or self.process.frozen_until > now:
            return False
        if self.until is None:
            return True
        return self.until <= now or (self.task is not None and self.task.cancelled.is_set())


class Kernel:
    """Holds the fibers and the clock.

    :ivar fine: whether fibers give way at every point, or run on until they sleep, block or end.
    :ivar passed: points at which fibers do not give way although `fine`.
    :ivar at_point: called, if there is one, whenever a running fiber comes to a point, before it gives way; may raise
        `Crashed`.
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
        """A new fiber; it gets its first turn later."""
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

        :raises BaseException: what ended the fiber, if it did not end well.
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
        """Called from a fiber: others may go on here."""
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
        """Called from a fiber: a lock is held by somebody else."""
        fiber = self._running()
        fiber.blocked = True
        self._give_way(fiber)

    def sleep(self, task: Task | None, duration_s: float) -> bool:
        """Called from a fiber: wait for a while or until the task is cancelled; whether it was.

        :param task: None: it is stuck in a call that nothing can end.
        """
        fiber = self._running()
        fiber.until, fiber.task, fiber.point = self.now + duration_s, task, 'sleep' if task is not None else 'stuck'
        self._give_way(fiber)
        return task is not None and task.cancelled.is_set()

    def unblock(self) -> None:
        """Locks were released: whoever waits may look again."""
        for fiber in self.fibers:
            fiber.blocked = False

    def kill(self, process: SimulatedProcess) -> None:
        """A process crashes: none of its fibers gets another turn. May be called from one of them."""
        process.alive = False
        self._deaths = True

    def bury(self) -> None:
        """Called from outside of all fibers: tear down those whose process has crashed."""
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
        """The fibers that have something to do now, oldest first."""
        now = self.now
        # Asked at each step of each run: what decides most often comes first, and no method is called for it.
        return [
            fiber
            for fiber in self.fibers
            if not fiber.blocked
            and (process := fiber.process).alive
            and process.frozen_until <= now
            and (fiber.until is None or fiber.may_run(now))
        ]

    def sleepers(self) -> list[float]:
        """When sleeping fibers wake up by themselves, and frozen ones go on."""
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
