"""Nodes that threads of a worker have made ready, and of which nobody has been told yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby

from convergence.concurrency import Lock
from convergence.dispatch import Dispatcher
from convergence.rpc.shares import beneficiary, on_behalf_of

MOMENT_S = 0.03
"""Seconds for which nobody is told. While all threads are busy here a worker makes a few nodes ready in that time."""

Soon = Callable[[float, Callable[[], object]], object]
"""Has a call made after some seconds."""


@dataclass(slots=True)
class Unannounced:
    """Keeps nodes back for a moment while no thread of this worker is free; then other workers are told of them.

    Where all threads are busy here, more nodes become ready than are begun. Those that a thread of this worker comes to
    within a moment cost no message, and the others go together, some in each. Nothing is kept back while a thread is
    free: then others may have nothing to do as well.

    What is kept is lost with the process, as a message may be. Whoever keeps something back sees to it that `announce`
    is called at the latest when its thread comes free.

    :param has_room: whether a thread is free for a node of that traversal, or everything is to be passed on.
    :param clock: seconds on the clock of this process, from any moment on.
    """

    dispatcher: Dispatcher
    has_room: Callable[[str], bool]
    soon: Soon
    clock: Callable[[], float]
    _kept: deque[tuple[str, str, int]] = field(default_factory=deque)
    _lock: Lock = field(default_factory=lambda: Lock())
    _ends_at: float = float('-inf')

    def add(self, traversal_id: str, number: int) -> None:
        """A node was made ready; nobody of this thread goes on with it."""
        if self.dispatcher.together == 1 or self.has_room(traversal_id):
            self.dispatcher.cast([(traversal_id, number)])
            return
        now = self.clock()
        with self._lock:
            self._kept.append((beneficiary(), traversal_id, number))
            is_enough = len(self._kept) >= self.dispatcher.together
            begins = now >= self._ends_at  # also where the end of the one before was never noticed
            if begins:
                self._ends_at = now + MOMENT_S
        if begins:
            self.soon(MOMENT_S, self.announce)
        if is_enough:
            self.announce()

    def take(self, traversal_id: str) -> int | None:
        """The node of a traversal that was kept back first; whoever asks sees to it. None: there is none."""
        with self._lock:
            found = next((each for each in self._kept if each[1] == traversal_id), None)
            if found is None:
                return None
            self._kept.remove(found)
            return found[2]

    def announce(self) -> None:
        """Tell the workers of all that is kept back."""
        with self._lock:
            kept = sorted(self._kept)
            self._kept.clear()
        for (project, traversal_id), group in groupby(kept, key=lambda each: each[:2]):
            with on_behalf_of(project):
                self.dispatcher.cast_together(traversal_id, [number for _, _, number in group])
