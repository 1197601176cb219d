"""The claims of the tasks of a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakSet

from convergence.concurrency import Task
from convergence.core.claim import Claim


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """A row that a task works on.

    :param since: when it was claimed, on the clock of this process.
    """

    claim: Claim
    since: float

    def is_overdue(self, now: float) -> bool:
        """Return True if the time limit of the action is over."""
        deadline = self.claim.resource.deadline
        return deadline is not None and self.claim.at + (now - self.since) > deadline


class ClaimTable:
    """The claims of each task, in the order of its work: it works on the first one.

    :param clock: seconds on the monotonic clock of this process.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[Task, list[TaskClaim]] = {}
        self._given_up: WeakSet[Task] = WeakSet()

    def take(self, task: Task, claims: Sequence[Claim]) -> bool:
        """Add the claims of a task. Return False if the task was given up meanwhile and must not use them."""
        now = self._clock()
        self._held[task] = [TaskClaim(claim, now) for claim in claims]
        return task not in self._given_up or self._held.pop(task, None) is None

    def done(self, task: Task, claim: Claim) -> None:
        """Remove a claim with which its task is done."""
        held = self._held.get(task)
        if held is not None:
            held[:] = [each for each in held if each.claim is not claim]

    def drop(self, task: Task) -> list[Claim]:
        """Remove a task, and return the claims that it held. None are left if it was given up before."""
        return [each.claim for each in self._held.pop(task, ())]

    def give_up(self, task: Task) -> list[Claim]:
        """Remove a task that does not stop, refuse its later claims, and return the claims that it held."""
        self._given_up.add(task)  # first, because the task may be about to claim a row
        return self.drop(task)

    def claims(self) -> list[Claim]:
        """All claims of all tasks."""
        return [each.claim for held in list(self._held.values()) for each in list(held)]

    def overdue(self) -> list[tuple[Task, Claim]]:
        """The tasks whose present action has exceeded its time limit, with its claim."""
        now = self._clock()
        at_work = [(task, each) for task, held in list(self._held.items()) for each in held[:1]]
        return [(task, each.claim) for task, each in at_work if each.is_overdue(now)]
