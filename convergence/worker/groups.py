"""One thread group for each traversal that this worker is working on, so that a cancel stops just that."""

from __future__ import annotations

from collections.abc import Callable

from convergence.concurrency import Group, Lock, Pool, Task


class ThreadGroups:
    """The groups by traversal. A group exists while something runs in it.

    :param threads: how many tasks run at a time. A thread that is stuck is given up and another takes its place.
    :param left: called with each task that did not end within the grace period after it was stopped.
    """

    def __init__(self, threads: int, left: Callable[[Task], object]) -> None:
        self._pool = Pool(threads, 'worker')
        self._left = left
        self._lock = Lock()
        self._groups: dict[str, tuple[Group, int]] = {}

    @property
    def stuck(self) -> int:
        """How many threads were given up and still run."""
        return self._pool.lost

    def run(self, traversal_id: str, work: Callable[[Task], object]) -> None:
        """Run a task of the traversal's group; return when it has ended or was given up.

        :raises GroupStopped: the traversal has been cancelled here.
        """
        with self._lock:
            group, members = self._groups.get(traversal_id) or (Group(traversal_id, self._pool, self._left), 0)
            self._groups[traversal_id] = (group, members + 1)
        try:
            job = group.spawn(work).job
            if job is not None:
                job.over.wait()
        finally:
            with self._lock:
                group, members = self._groups[traversal_id]
                if members > 1:
                    self._groups[traversal_id] = (group, members - 1)
                else:
                    del self._groups[traversal_id]

    def traversals(self) -> tuple[str, ...]:
        """The traversals that are worked on here."""
        with self._lock:
            return tuple(self._groups)

    def busy(self) -> int:
        """How many tasks run that have not been given up."""
        with self._lock:
            return sum(members for _, members in self._groups.values())

    def stop(self, traversal_id: str, grace_s: float) -> int:
        """Stop the tasks of one traversal; how many there were."""
        with self._lock:
            group, members = self._groups.get(traversal_id, (None, 0))
        if group is not None:
            group.stop(grace_s)
        return members

    def stop_all(self, grace_s: float) -> None:
        """Stop everything."""
        for traversal_id in self.traversals():
            self.stop(traversal_id, grace_s)
