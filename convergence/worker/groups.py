"""One thread group for each traversal that this worker is working on, so that a cancel stops just that."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from convergence.concurrency import Group, GroupStopped, Lock, Pool, StopReason, Task

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """A node that somebody should look at, and how often workers without a free thread have handed that on."""

    traversal_id: str
    node: int
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How busy the threads of a worker are.

    :param threads: how many tasks may run at a time.
    :param busy: how many run that have not been given up.
    :param waiting: how many checks have not begun.
    :param stuck: how many threads were given up and still run.
    """

    threads: int
    busy: int
    waiting: int
    stuck: int

    @property
    def idle(self) -> int:
        """How many more tasks could begin at once."""
        return max(0, self.threads - self.busy - self.waiting)


class ThreadGroups:
    """The groups by traversal. A group exists while something runs in it.

    What finds no free thread waits here, in order, and not in the pool: so it can be taken back and given to others
    for as long as it has not begun.

    :param threads: how many tasks run at a time. A thread that is stuck is given up and another takes its place.
    :param left: called with each task that did not end within the grace period after it was stopped.
    """

    def __init__(self, threads: int, left: Callable[[Task], object]) -> None:
        self._pool = Pool(threads, 'worker')
        self._left = left
        self._lock = Lock()
        self._groups: dict[str, tuple[Group, int]] = {}
        self._waiting: deque[tuple[Check, Callable[[Task], object]]] = deque()
        self._running = 0
        self._headway_at = time.monotonic()

    @property
    def stuck(self) -> int:
        """How many threads were given up and still run."""
        return self._pool.lost

    def occupancy(self) -> Occupancy:
        """How busy the threads are."""
        with self._lock:
            return Occupancy(self._pool.threads, self._running, len(self._waiting), self.stuck)

    def jammed_s(self) -> float:
        """For how many seconds all threads have been busy and none has begun anything. 0 while one is free."""
        with self._lock:
            return time.monotonic() - self._headway_at if self._running >= self._pool.threads else 0.0

    def submit(self, check: Check, work: Callable[[Task], object]) -> None:
        """Run a task of the traversal's group when a thread is free. An error that it raises is logged."""
        with self._lock:
            self._waiting.append((check, work))
        self._begin()

    def withdraw(self) -> list[Check]:
        """Take back what has not begun."""
        with self._lock:
            taken = [check for check, _ in self._waiting]
            self._waiting.clear()
        return taken

    def traversals(self) -> tuple[str, ...]:
        """The traversals that are worked on here."""
        with self._lock:
            return tuple(self._groups)

    def stop(self, traversal_id: str, grace_s: float) -> int:
        """Stop the tasks of one traversal, and forget those that wait; how many ran."""
        with self._lock:
            self._waiting = deque(each for each in self._waiting if each[0].traversal_id != traversal_id)
            group, members = self._groups.get(traversal_id, (None, 0))
        if group is not None:
            group.stop(grace_s)
        return members

    def stop_one(self, traversal_id: str, task: Task, reason: StopReason, grace_s: float) -> None:
        """Stop one task of a traversal."""
        with self._lock:
            group, _ = self._groups.get(traversal_id, (None, 0))
        if group is not None:
            group.stop_one(task, reason, grace_s)

    def stop_all(self, grace_s: float) -> None:
        """Stop everything."""
        for traversal_id in self.traversals():
            self.stop(traversal_id, grace_s)

    def _begin(self) -> None:
        """Begin what can begin."""
        while True:
            with self._lock:
                if not self._waiting or self._running >= self._pool.threads:
                    return
                check, work = self._waiting.popleft()
                group, members = self._groups.get(check.traversal_id) or (self._new_group(check.traversal_id), 0)
                self._groups[check.traversal_id] = (group, members + 1)
                self._running += 1
                self._headway_at = time.monotonic()
            self._spawn(group, check, work)

    def _new_group(self, traversal_id: str) -> Group:
        return Group(traversal_id, self._pool, self._left)

    def _spawn(self, group: Group, check: Check, work: Callable[[Task], object]) -> None:
        try:
            task = group.spawn(work)
        except GroupStopped:
            LOG.debug('node %d of the cancelled traversal %s is left alone', check.node, check.traversal_id)
            self._ended(check.traversal_id)
            return
        except BaseException:
            # No thread could be started. The place must not be taken for ever; the sweeper comes back to the node.
            self._ended(check.traversal_id)
            raise
        job = task.job
        assert job is not None
        job.when_over(lambda: self._ended(check.traversal_id))

    def _ended(self, traversal_id: str) -> None:
        """A task has ended, or its thread was given up."""
        with self._lock:
            self._running -= 1
            group, members = self._groups[traversal_id]
            if members > 1:
                self._groups[traversal_id] = (group, members - 1)
            else:
                del self._groups[traversal_id]
        self._begin()
