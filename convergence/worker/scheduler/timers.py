"""Calls after a delay, for example to dispatch a parked node when its poll is due.

A lost timer does no harm: the sweeper reads the same times in the rows.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections.abc import Callable

from convergence.concurrency import Lock, ThreadEvent, start_thread

LOG = logging.getLogger(__name__)


class Timers:
    """Makes calls after a delay, from one thread of its own. Pending calls end with the process; errors are logged.

    :param limit: maximum number of pending calls. Further ones are dropped and left to the sweeper.
    """

    def __init__(self, *, limit: int = 100_000) -> None:
        self._limit = limit
        self._lock = Lock()
        self._changed = ThreadEvent()
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._stopped = False

    def start(self) -> None:
        """Start the thread that makes the calls."""
        start_thread('timers', self._run)

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Make a call in `delay_s` seconds. After `stop`, make it at once if it is due, else drop it."""
        with self._lock:
            stopped = self._stopped
            order = next(self._order)
            if not stopped and len(self._due) < self._limit:
                heapq.heappush(self._due, (time.monotonic() + delay_s, order, call))
            is_next = bool(self._due) and self._due[0][1] == order
        if is_next:  # otherwise the thread wakes up in time for an earlier call
            self._changed.set()
        if stopped and delay_s <= 0:
            call()

    def stop(self) -> None:
        """Make the calls that are due, and drop the others: a node that is dispatched before its time is dropped
        anyway.
        """
        with self._lock:
            self._stopped = True
            rest, self._due = self._due, []
            now = time.monotonic()
        self._changed.set()
        for at, _, call in rest:
            if at <= now:
                call()

    def _run(self) -> None:
        while not self._stopped:
            self._changed.clear()
            wait_s = self._call_due()
            self._changed.wait(wait_s)

    def _call_due(self) -> float | None:
        """Make the calls that are due. Return the seconds to the next one; None if none is pending."""
        while True:
            with self._lock:
                now = time.monotonic()
                if not self._due:
                    return None
                if self._due[0][0] > now:
                    return self._due[0][0] - now
                _, _, call = heapq.heappop(self._due)
            try:
                call()
            except Exception:
                LOG.exception('Timer call failed, the sweeper dispatches its node; report this error')
