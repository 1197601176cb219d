"""Cast parked nodes again when their time has come: a convenience, for the sweeper reads the same times in the rows."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable

from convergence.concurrency import Lock, ThreadEvent, start_thread


class Timers:
    """Calls `fire(traversal_id, number)` after a while, from one thread of its own.

    :param limit: how many times are kept at once; further ones are left to the sweeper.
    """

    def __init__(self, fire: Callable[[str, int], object], *, limit: int = 100_000) -> None:
        self._fire = fire
        self._limit = limit
        self._lock = Lock()
        self._changed = ThreadEvent()
        self._order = itertools.count()
        self._due: list[tuple[float, int, str, int]] = []
        self._stopped = False

    def start(self) -> None:
        """Begin to look at the clock."""
        start_thread('timers', self._run)

    def after(self, delay_s: float, traversal_id: str, number: int) -> None:
        """Have a node cast in `delay_s` seconds.

        Where the timers have been stopped it is cast now if it is due, and else left to the sweeper.
        """
        with self._lock:
            stopped = self._stopped
            if not stopped and len(self._due) < self._limit:
                heapq.heappush(self._due, (time.monotonic() + delay_s, next(self._order), traversal_id, number))
        self._changed.set()
        if stopped and delay_s <= 0:
            self._fire(traversal_id, number)

    def stop(self) -> None:
        """Fire what is due. The rest is left to the sweeper: whoever was told of it before its time would drop it."""
        with self._lock:
            self._stopped = True
            rest, self._due = self._due, []
            now = time.monotonic()
        self._changed.set()
        for at, _, traversal_id, number in rest:
            if at <= now:
                self._fire(traversal_id, number)

    def _run(self) -> None:
        while not self._stopped:
            self._changed.clear()
            wait_s = self._fire_due()
            self._changed.wait(wait_s)

    def _fire_due(self) -> float | None:
        """Fire what is due. Seconds to the next; None where nothing waits."""
        while True:
            with self._lock:
                now = time.monotonic()
                if not self._due:
                    return None
                if self._due[0][0] > now:
                    return self._due[0][0] - now
                _, _, traversal_id, number = heapq.heappop(self._due)
            self._fire(traversal_id, number)
