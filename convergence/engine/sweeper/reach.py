"""Whether the database has been within reach for long enough to judge who is dead by what stands in it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from convergence.concurrency import Lock

LOG = logging.getLogger(__name__)


class Reach:
    """Notes when the database answered, and for how long it did not.

    A worker that is alive renews its lease as soon as the database answers again. Until it has had the time for that,
    a lease that ran out during the outage says nothing about the worker.

    :param lease_s: for how long a lease lasts, and so within how many seconds every living worker has renewed its own.
    :param clock: seconds that only grow, on this machine.
    """

    def __init__(self, lease_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._lock = Lock()
        self._answered_at = clock()
        self._failed = False
        self._judges_from = self._answered_at

    def answered(self) -> None:
        """The database has just answered."""
        with self._lock:
            now = self._clock()
            silent_s, failed = now - self._answered_at, self._failed
            self._answered_at, self._failed = now, False
            # A heartbeat may have been due just before the outage: half a lease of it is enough to end a lease. Where
            # nothing has failed it was this process that stood still, or one answer that came late.
            if silent_s <= (self._lease_s / 2 if failed else self._lease_s):
                return
            self._judges_from = now + self._lease_s
        LOG.warning(
            'The database was out of reach for %.0f s: nothing is taken from workers for %.0f s, in which those that '
            'are alive renew their leases',
            silent_s,
            self._lease_s,
        )

    def failed(self) -> None:
        """The database could not be reached."""
        with self._lock:
            self._failed = True

    def may_judge(self) -> bool:
        """Whether a lease that has run out means that its worker is dead: the database has answered long enough.

        Call `answered` before: it is what notices that an outage is over.
        """
        with self._lock:
            return self._clock() >= self._judges_from
