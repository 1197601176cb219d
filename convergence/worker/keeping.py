"""What a worker keeps for its own threads, so that it costs no message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from convergence.rpc.shares import beneficiary
from convergence.worker.scheduler.thread_groups import Check, Occupancy

SOON_S = 1.0
"""What a thread of this worker comes to within so many seconds need not be done by another one."""

FEW = 16
"""Nodes of a traversal that one thread does in the time that it has for one."""

BRANCH = 10
"""Nodes that are ready in a nested stack, where nobody knows yet how many there are."""

BRANCHES = 5
"""So many nested stacks may be begun at once where nothing waits that goes ahead, however slow threads are."""

_STEPS = 64
"""The last steps, by which it is known how quickly this worker gets on."""


class Threads(Protocol):
    """The threads of this worker; see `convergence.worker.scheduler.thread_groups.ThreadGroups`."""

    def occupancy(self) -> Occupancy:
        """How busy they are."""

    def waiting_ahead(self) -> int:
        """How many checks wait for one that go ahead of others."""


@dataclass(slots=True)
class Keeping:
    """Takes nodes for the threads of this worker: as far as one is free, or comes free soon.

    While types answer quickly, a thread comes free all the time: what it does next need not go through the broker.
    Where they take their time, others are told, who may have nothing to do.

    :param submit: has nodes looked at when a thread is free. False: nothing begins here any more.
    :param is_stopping: whether the process was told to end.
    :param clock: seconds on the clock of this process, from any moment on.
    """

    threads: Threads
    submit: Callable[[Sequence[Check]], bool]
    is_stopping: Callable[[], bool]
    clock: Callable[[], float]
    _steps: deque[float] = field(default_factory=lambda: deque(maxlen=_STEPS))

    def note_step(self) -> None:
        """A thread is done with a node."""
        self._steps.append(self.clock())

    def take(self, traversal_id: str, number: int, hops: int = 0) -> bool:
        """Take one node, if not much waits for a thread; whether it was taken."""
        now = self.threads.occupancy()
        has_room = now.waiting < 2 * now.threads and not self.is_stopping()
        return has_room and self.submit([Check(traversal_id, number, hops, beneficiary())])

    def room_ahead(self, many: int) -> int:
        """How many of so many nodes of a traversal threads here come to soon, if they go ahead of what waits.

        A few are not divided where threads get on: whoever does one of them goes on with the others.
        """
        if self.is_stopping():
            return 0
        idle, soon = self.threads.occupancy().idle, self._soon() - self.threads.waiting_ahead()
        if soon > 0 and many <= FEW:
            return many if 2 * soon >= many else min(many, idle)
        return min(many, max(0, idle, soon))

    def stacks_ahead(self) -> int:
        """How many nested stacks may be begun here at once before threads come to what is in them.

        What its threads do not come to soon goes to others, so it does no harm where nothing is known of their pace.
        """
        most = max(self._soon(), BRANCHES * BRANCH)
        return max(0, most - self.threads.waiting_ahead()) // BRANCH

    def take_ahead(self, traversal_id: str, numbers: Sequence[int]) -> None:
        """Take nodes ahead of what waits."""
        self.submit([Check(traversal_id, number, 0, beneficiary(), ahead=True) for number in numbers])

    def _soon(self) -> int:
        """How many nodes the threads come to soon, if it goes on as it did."""
        steps = tuple(self._steps)
        took_s = self.clock() - steps[0] if steps else 0.0
        return int((len(steps) - 1) * SOON_S / took_s) if took_s > 0 else 0
