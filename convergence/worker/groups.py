"""One thread group for each traversal that this worker is working on, so that a cancel stops just that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from convergence.concurrency import Group, Lock, Task


class ThreadGroups:
    """The groups by traversal. A group exists while something runs in it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._groups: dict[str, tuple[Group, int]] = {}

    @contextmanager
    def enter(self, traversal_id: str, name: str) -> Iterator[Task]:
        """Make what the current thread does inside a task of the traversal's group.

        :raises GroupStopped: the traversal has been cancelled here.
        """
        with self._lock:
            group, members = self._groups.get(traversal_id, (Group(traversal_id), 0))
            self._groups[traversal_id] = (group, members + 1)
        try:
            with group.enter(name) as task:
                yield task
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
        """How many tasks run."""
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
