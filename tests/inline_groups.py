"""Thread groups without threads: a task runs in whatever fiber or thread brings it."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from convergence.concurrency import Group, GroupStopped, StopReason, Task
from convergence.worker.scheduler.thread_groups import Check, CheckWork, Occupancy, ThreadGroups


class InlineGroups(ThreadGroups):
    """Runs each task at once, where it is; a stop reaches it through its `cancelled` event."""

    threads = 1_000_000
    stuck = 0
    idle = threads
    waiting = 0

    def __init__(self) -> None:
        self._active: dict[str, list[Group]] = {}
        self._closed = False

    @override
    def submit_all(self, checks: Sequence[tuple[Check, CheckWork]]) -> bool:
        """Run tasks, one after the other; what they raise goes through."""
        taken = [self._run(check, work) for check, work in checks]
        return all(taken)

    def _run(self, check: Check, work: CheckWork) -> bool:
        if self._closed:
            return False
        groups = self._active.setdefault(check.traversal_id, [])
        group = groups[0] if groups else Group(check.traversal_id)
        groups.append(group)
        try:
            with group.enter('task') as task:
                work(task)
        except GroupStopped:
            pass
        finally:
            groups.pop()
            if not groups:
                del self._active[check.traversal_id]
        return True

    @override
    def close(self) -> list[Check]:
        """Begin nothing from now on."""
        self._closed = True
        return []

    @override
    def begin(self) -> None:
        """Nothing ever waits."""

    @override
    def has_room_for(self, traversal_id: str) -> bool:
        """There is always room."""
        return True

    @override
    def waiting_ahead(self) -> int:
        """Nothing ever waits."""
        return 0

    @override
    def take_waiting(self, traversal_id: str) -> int | None:
        """Nothing ever waits."""
        return None

    @override
    def is_crowded(self, traversal_id: str) -> bool:
        """Nothing ever waits."""
        return False

    @override
    def interrupt(self, grace_s: float) -> None:
        """Stop everything that runs now."""
        for traversal_id in self.traversals():
            self.stop(traversal_id, grace_s)

    @override
    def occupancy(self) -> Occupancy:
        """There is always a thread for another task."""
        return Occupancy(self.threads, 0, 0, 0)

    @override
    def withdraw(self) -> list[Check]:
        """Nothing ever waits."""
        return []

    @override
    def jammed_s(self) -> float:
        """There is always room."""
        return 0.0

    @override
    def traversals(self) -> tuple[str, ...]:
        """The traversals that are worked on here."""
        return tuple(self._active)

    def busy(self) -> int:
        """How many tasks run."""
        return sum(len(groups) for groups in self._active.values())

    @override
    def stop(self, traversal_id: str, grace_s: float) -> int:
        """Stop the tasks of one traversal; how many there were."""
        groups = self._active.get(traversal_id, [])
        for task in groups[0].tasks if groups else ():
            task.cancelled.set()
        return len(groups)

    @override
    def stop_one(self, traversal_id: str, task: Task, reason: StopReason, grace_s: float) -> None:
        """Stop one task of a traversal."""
        task.reason = task.reason or reason
        task.cancelled.set()
