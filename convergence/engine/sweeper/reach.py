"""Judges from the reachability of the database if an expired lease means a dead process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from convergence.concurrency import Lock

LOG = logging.getLogger(__name__)


class Reach:
    """Records when the database answered, and how long it did not.

    A living worker renews its lease as soon as the database answers again. Before that, a lease that expired during the
    outage does not prove that its worker is dead.

    :param lease_s: length of a lease, and so the time in which every living worker renews its own.
    :param clock: monotonic seconds of this machine.
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
            'The database was out of reach for %.0f s: no claim is taken from a worker for %.0f s, in which living '
            'workers renew their leases',
            silent_s,
            self._lease_s,
        )

    def failed(self) -> None:
        """The database could not be reached."""
        with self._lock:
            self._failed = True

    def may_judge(self) -> bool:
        """Return True if an expired lease means that its worker is dead: the database has answered long enough.

        Call `answered` before: it detects the end of an outage.
        """
        with self._lock:
            return self._clock() >= self._judges_from
