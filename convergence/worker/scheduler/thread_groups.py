"""One thread group for each traversal of this worker, so that a cancel stops only that traversal."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from convergence.concurrency import Group, Lock, Pool, StopReason, Task, TaskOutcome
from convergence.core.claim import NO_NODE
from convergence.worker.scheduler.constants import JAMMED_S


@dataclass(frozen=True, slots=True)
class Check:
    """A node that waits for a thread.

    :param redeliveries: how often workers without a free thread have forwarded it; the argument ``hops`` of the RPC.
    :param project: id of the project that it is for; empty if it is not known.
    :param ahead: True for a node of a nested stack: its operation goes before others that have as few threads, unless
        other nodes of it wait already.
    """

    traversal_id: str
    node: int
    redeliveries: int = 0
    project: str = ''
    ahead: bool = False

    @property
    def share(self) -> str:
        """Id of the project that shares threads; the traversal if the project is not known."""
        return self.project or self.traversal_id


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How busy the threads of a worker are.

    :param threads: how many tasks may run at a time.
    :param busy: how many run that have not been given up; more than `threads` where traversals got an extra one.
    :param waiting: how many checks have not begun.
    :param stuck: how many threads were given up and are still in a call of a resource type.
    """

    threads: int
    busy: int
    waiting: int
    stuck: int

    @property
    def idle(self) -> int:
        """Number of further tasks that could start at once."""
        return max(0, self.threads - self.busy - self.waiting)


CheckWork: TypeAlias = Callable[[Task], object]
"""Runs a check in a thread."""


class ThreadGroups:
    """The thread groups by traversal. A group exists while one of its tasks runs.

    A check without a free thread waits here, not in the pool: so it can be forwarded to another worker until it starts.
    A free thread goes to the project with the fewest threads, and there to the traversal with the fewest threads. So no
    project and no traversal crowds out the others.
    After all threads have been busy for `JAMMED_S`, each traversal without a thread may get one beyond the configured
    number, up to twice that number in total: so calls of one stack that never return do not stop the other stacks.

    :param threads: number of tasks that run at a time. A stuck thread is given up, and another one replaces it.
    :param left: called with each task that did not end within the grace period after it was stopped.
    :param clock: seconds on a monotonic clock.
    """

    def __init__(
        self, threads: int, left: Callable[[Task], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threads = threads
        self._most = 2 * threads
        self._pool = Pool(self._most, 'worker')
        self._left = left
        self._clock = clock
        self._lock = Lock()
        self._groups: dict[str, tuple[Group, int]] = {}
        self._waiting: OrderedDict[str, deque[tuple[Check, CheckWork]]] = OrderedDict()
        self._waits: Counter[str] = Counter()
        self._ahead = 0
        self._left_behind: set[Task] = set()
        self._running = 0
        self._shares: Counter[str] = Counter()
        self._headway_at = clock()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """True once no further task starts."""
        return self._closed

    @property
    def left_behind(self) -> tuple[Task, ...]:
        """The tasks that were given up and have not ended."""
        with self._lock:
            self._left_behind = {task for task in self._left_behind if task.outcome is TaskOutcome.RUNNING}
            return tuple(self._left_behind)

    @property
    def stuck(self) -> int:
        """Number of those tasks in a call of a resource type. The others wait for the database."""
        return sum(task.in_call for task in self.left_behind)

    def occupancy(self) -> Occupancy:
        """The numbers of running, waiting and stuck tasks."""
        stuck = self.stuck
        with self._lock:
            return Occupancy(self._threads, self._running, self._waits.total(), stuck)

    def waiting_ahead(self) -> int:
        """Number of waiting checks that go before others."""
        with self._lock:
            return self._ahead

    def jammed_s(self) -> float:
        """Seconds for which all threads have been busy without starting a check. 0 while one is free."""
        with self._lock:
            return self._jammed_s()

    def has_room_for(self, traversal_id: str) -> bool:
        """Return True if a check of the traversal would start at once."""
        with self._lock:
            return self._running < self._threads or (
                traversal_id not in self._waiting and self._may_exceed(traversal_id)
            )

    def is_crowded(self, traversal_id: str) -> bool:
        """Return True if other traversals wait for a thread of this one."""
        with self._lock:
            return self._running > self._threads or any(other != traversal_id for other in self._waiting)

    def take_waiting(self, traversal_id: str) -> int | None:
        """Take a waiting node of the traversal out of the queue, for the caller to run; None if none waits."""
        with self._lock:
            queue = self._waiting.get(traversal_id)
            if not queue or queue[0][0].node == NO_NODE:
                return None
            check, _ = queue.popleft()
            if not queue:
                del self._waiting[traversal_id]
            self._waits_no_more(check)
            return check.node

    def submit(self, check: Check, work: CheckWork) -> bool:
        """Run a task of the traversal's group when a thread is free. An error that it raises is logged.

        :returns: False after `close`: no check starts any more.
        """
        return self.submit_all([(check, work)])

    def submit_all(self, checks: Sequence[tuple[Check, CheckWork]]) -> bool:
        """Submit several checks; see `submit`."""
        with self._lock:
            if self._closed:
                return False
            for check, work in checks:
                is_new = check.traversal_id not in self._waiting
                self._waiting.setdefault(check.traversal_id, deque()).append((check, work))
                self._waits[check.share] += 1
                self._ahead += check.ahead
                if check.ahead and is_new:
                    self._waiting.move_to_end(check.traversal_id, last=False)
        self.begin()
        return True

    def close(self) -> list[Check]:
        """Start no further check; running tasks continue.

        :returns: the checks that have not started.
        """
        with self._lock:
            self._closed = True
            return self._take_back()

    def withdraw(self) -> list[Check]:
        """Remove and return the checks that have not started."""
        with self._lock:
            return self._take_back()

    def traversals(self) -> tuple[str, ...]:
        """The traversals with a running task."""
        with self._lock:
            return tuple(self._groups)

    def stop(self, traversal_id: str, grace_s: float) -> int:
        """Stop the tasks of one traversal and drop its waiting checks. Return the number of stopped tasks.

        A check that is submitted afterwards starts: the cancel is stored before it is sent, so the check reads it. It
        may be a node that a stopped task made ready, whose type has to cancel in turn.
        """
        with self._lock:
            for check, _ in self._waiting.pop(traversal_id, ()):
                self._waits_no_more(check)
            group, members = self._groups.get(traversal_id, (None, 0))
        if group is not None:
            group.interrupt(grace_s)
        return members

    def stop_one(self, traversal_id: str, task: Task, reason: StopReason, grace_s: float) -> None:
        """Stop one task of a traversal."""
        with self._lock:
            group, _ = self._groups.get(traversal_id, (None, 0))
        if group is not None:
            group.stop_one(task, reason, grace_s)

    def interrupt(self, grace_s: float) -> None:
        """Stop all running tasks. Checks that are submitted later start."""
        with self._lock:
            groups = [group for group, _ in self._groups.values()]
        for group in groups:
            group.interrupt(grace_s)

    def begin(self) -> None:
        """Start waiting checks for which there is a thread. Also called periodically: some may start only after
        `JAMMED_S`.
        """
        while True:
            with self._lock:
                chosen = self._next()
                if chosen is None:
                    return
                check, work = chosen
                group, members = self._groups.get(check.traversal_id) or (self._new_group(check.traversal_id), 0)
                self._groups[check.traversal_id] = (group, members + 1)
                if self._running < self._threads:
                    self._headway_at = self._clock()
                self._running += 1
                self._shares[check.share] += 1
            self._spawn(group, check, work)

    # --- under the lock ---------------------------------------------------------------------------------------

    def _jammed_s(self) -> float:
        return self._clock() - self._headway_at if self._running >= self._threads else 0.0

    def _may_exceed(self, traversal_id: str) -> bool:
        return traversal_id not in self._groups and self._running < self._most and self._jammed_s() > JAMMED_S

    def _take_back(self) -> list[Check]:
        taken = [check for queue in self._waiting.values() for check, _ in queue]
        self._waiting.clear()
        self._waits.clear()
        self._ahead = 0
        return taken

    def _next(self) -> tuple[Check, CheckWork] | None:
        """Take the check to start now: of the project with the fewest threads, and there of the traversal with the
        fewest; among equals in turn.
        """
        traversal_id = self._entitled()
        if traversal_id is None:
            return None
        queue = self._waiting.pop(traversal_id)
        chosen = queue.popleft()
        if queue:
            self._waiting[traversal_id] = queue  # behind the others
        self._waits_no_more(chosen[0])
        return chosen

    def _entitled(self) -> str | None:
        has_room = self._running < self._threads
        if not (self._waiting and (has_room or self._jammed_s() > JAMMED_S)):
            return None
        fewest = (min(self._shares[share] for share in self._waits), 0)
        best, found = None, None
        for traversal_id in self._waiting:
            if not (has_room or self._may_exceed(traversal_id)):
                continue
            threads = self._threads_of(traversal_id)
            if threads == fewest:
                return traversal_id  # thousands may wait, and there is none before it
            if best is None or threads < best:
                best, found = threads, traversal_id
        return found

    def _waits_no_more(self, check: Check) -> None:
        self._ahead -= check.ahead
        self._waits[check.share] -= 1
        if not self._waits[check.share]:
            del self._waits[check.share]

    def _threads_of(self, traversal_id: str) -> tuple[int, int]:
        """Number of threads of the project of a waiting traversal, and of the traversal."""
        check, _ = self._waiting[traversal_id][0]
        return self._shares[check.share], self._groups[traversal_id][1] if traversal_id in self._groups else 0

    # --- tasks ------------------------------------------------------------------------------------------------

    def _new_group(self, traversal_id: str) -> Group:
        return Group(traversal_id, self._pool, self._give_up)

    def _give_up(self, task: Task) -> None:
        """Count a task that does not end as left behind."""
        with self._lock:
            self._left_behind.add(task)
        self._left(task)

    def _spawn(self, group: Group, check: Check, work: CheckWork) -> None:
        try:
            task = group.spawn(work)
        except BaseException:
            # No thread could be started. Its place must become free again; the sweeper requeues the node.
            self._ended(check)
            raise
        job = task.job
        assert job is not None
        job.when_over(lambda: self._ended(check))

    def _ended(self, check: Check) -> None:
        """Free the place of a task that has ended, or whose thread was given up."""
        with self._lock:
            self._running -= 1
            self._shares[check.share] -= 1
            if not self._shares[check.share]:
                del self._shares[check.share]
            group, members = self._groups[check.traversal_id]
            if members > 1:
                self._groups[check.traversal_id] = (group, members - 1)
            else:
                del self._groups[check.traversal_id]
        self.begin()
