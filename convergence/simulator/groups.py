"""Thread groups without threads: a task runs in whatever fiber or thread brings it."""

from __future__ import annotations

from collections.abc import Callable

from convergence.concurrency import Group, Task
from convergence.worker.groups import ThreadGroups


class InlineGroups(ThreadGroups):
    """Runs each task at once, where it is; a stop reaches it through its `cancelled` event."""

    def __init__(self) -> None:
        self._running: dict[str, list[Group]] = {}

    @property
    def stuck(self) -> int:
        """Nothing is ever given up."""
        return 0

    def run(self, traversal_id: str, work: Callable[[Task], object]) -> None:
        """Run a task of the traversal's group; what it raises goes through.

        :raises GroupStopped: the traversal has been cancelled here.
        """
        groups = self._running.setdefault(traversal_id, [])
        group = groups[0] if groups else Group(traversal_id)
        groups.append(group)
        try:
            with group.enter('task') as task:
                work(task)
        finally:
            groups.pop()
            if not groups:
                del self._running[traversal_id]

    def traversals(self) -> tuple[str, ...]:
        """The traversals that are worked on here."""
        return tuple(self._running)

    def busy(self) -> int:
        """How many tasks run."""
        return sum(len(groups) for groups in self._running.values())

    def stop(self, traversal_id: str, grace_s: float) -> int:
        """Stop the tasks of one traversal; how many there were."""
        groups = self._running.get(traversal_id, [])
        for task in groups[0].tasks if groups else ():
            task.cancelled.set()
        return len(groups)
