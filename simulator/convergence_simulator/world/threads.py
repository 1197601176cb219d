"""The threads of a simulated worker: task groups with the rules of production, on fibers and the simulated clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from convergence.concurrency import Group, GroupStopped, StopReason, Task
from convergence.worker.scheduler.thread_groups import Check, ThreadGroups
from convergence_simulator.world.kernel import SimulatedProcess

if TYPE_CHECKING:
    from convergence_simulator.world.world import World


@dataclass(eq=False, slots=True)
class Seat:
    """A place in the thread pool, occupied by a task. `lost` is true after the task was given up."""

    check: Check
    lost: bool = False


class FiberGroup(Group):
    """Tasks that are stopped together; the grace period passes on the simulated clock.

    :param later: schedules a call: ``later(delay_s, still, act)`` calls ``act()`` after `delay_s` if ``still()`` is
        true then.
    """

    def __init__(
        self,
        name: str,
        left: Callable[[Task], object],
        later: Callable[[float, Callable[[], bool], Callable[[], object]], object],
    ) -> None:
        super().__init__(name, left=left)
        self._leave = left
        self._later = later

    @override
    def _ask(self, tasks: tuple[Task, ...], reason: StopReason, grace_s: float) -> None:
        for task in tasks:
            task.reason = task.reason or reason
            task.cancelled.set()

        def rest() -> list[Task]:
            return [task for task in self.tasks if task in tasks]

        if tasks:
            self._later(grace_s, lambda: bool(rest()), lambda: self._give_up(tuple(rest())))

    @override
    def _see_to(self, task: Task) -> None:
        """Handle a finished task: its exception ends the run, because no operator reads a log here."""
        self._leave(task)


class FiberGroups(ThreadGroups):
    """Runs a task in the fiber that brings it, or after an earlier task in that task's fiber.

    A task that is given up keeps its fiber.

    :param process: the worker.
    :param threads: number of tasks that run at a time.
    :param left: as for `ThreadGroups`.
    """

    def __init__(self, world: World, process: SimulatedProcess, threads: int, left: Callable[[Task], object]) -> None:
        super().__init__(threads, left, world.kernel.clock)
        self._world = world
        self._process = process
        self._seats: dict[Task, Seat] = {}
        world.groups[process] = self

    def checks(self) -> list[tuple[str, int]]:
        """Return the nodes that wait for a thread, as traversal id and number."""
        return [(check.traversal_id, check.node) for queue in self._waiting.values() for check, _ in queue]

    def unasked(self) -> list[str]:
        """Return the traversals that have a running task which was not requested to stop."""
        running = self._seats.items()
        return [seat.check.traversal_id for task, seat in running if not seat.lost and not task.cancelled.is_set()]

    @override
    def _new_group(self, traversal_id: str) -> Group:
        return FiberGroup(traversal_id, self._give_up, self._set_alarm)

    def _set_alarm(self, delay_s: float, still: Callable[[], bool], act: Callable[[], object]) -> None:
        self._world.set_alarm(self._process, delay_s, still, act)

    @override
    def _spawn(self, group: Group, check: Check, work: Callable[[Task], object]) -> None:
        """Run the task immediately. Its exceptions are raised: no operator reads a log here."""
        seat = Seat(check)
        now = self.occupancy()
        if now.busy >= now.threads:
            self._world.lost = (
                True  # A new node is now forwarded to another worker, and after some rounds left to the sweeper.
            )
        try:
            with group.enter('task') as task:
                self._seats[task] = seat
                try:
                    work(task)
                finally:
                    del self._seats[task]
        except GroupStopped:
            pass
        finally:
            if not seat.lost and self._process.alive:
                self._ended(check)

    @override
    def _give_up(self, task: Task) -> None:
        """Give up a task that does not stop: its thread is not counted any more, and a new one takes its place."""
        seat = self._seats.get(task)
        if seat is None or seat.lost:
            return
        seat.lost = True
        super()._give_up(task)
        self._ended(seat.check)
