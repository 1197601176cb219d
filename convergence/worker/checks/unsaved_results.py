"""Results of actions until they are stored. The thread of an action keeps its result while the database is away.

While no result can be stored, no row can be claimed. So there are never more waiting results than threads.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import override

from convergence.concurrency import Lock
from convergence.core.claim import Claim
from convergence.errors import ConvergenceError, OlderState

LOG = logging.getLogger(__name__)

V = TypeVar('V')

PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each retry; the last value holds for all further ones. Each attempt waits for the database itself."""

REFUSALS = 3
"""Number of errors that are no database failures after which the result itself counts as not storable."""

LAGS_AT_MOST_S = 60.0
"""Seconds for which a lagging server may show an older state of a row. After that the database has lost the claim."""

LOST = 'the database has lost the latest changes of this resource, as after a fail-over'
"""The status reason of a row whose claim the database has lost."""

TOLD_EVERY_S = 60.0
"""Seconds between two log lines about a result that is not stored yet."""


@dataclass(frozen=True, slots=True)
class PendingResult:
    """A result that is not stored yet.

    :param physical_id: the object of the result, if it is known.
    """

    claim: Claim
    physical_id: str | None

    @override
    def __str__(self) -> str:
        """The facts that an operator needs to find the object."""
        resource = self.claim.resource
        return (
            f'{self.claim.action} of {resource.name} in stack {self.claim.stack.id}: type {resource.type}, '
            f'token {resource.token or "none"}, physical id {self.physical_id or resource.physical_id or "none"}'
        )


class UnsavedResults:
    """Keeps results until they are stored or refused.

    :param pause: waits for some seconds.
    :param clock: seconds on a monotonic clock.
    """

    def __init__(self, pause: Callable[[float], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause
        self._clock = clock
        self._lock = Lock()
        self._unsaved: list[PendingResult] = []

    def unsaved(self) -> tuple[PendingResult, ...]:
        """The results that are not stored yet, oldest first."""
        with self._lock:
            return tuple(self._unsaved)

    def holds(self, claim: Claim) -> bool:
        """Return True if a result for this claim waits to be stored."""
        key = (claim.resource.id, claim.resource.fence)
        return any((each.claim.resource.id, each.claim.resource.fence) == key for each in self.unsaved())

    def store(self, claim: Claim, physical_id: str | None, step: Callable[[], V]) -> V | None:
        """Repeat `step` until the database accepts or refuses its write, and return its value.

        :param step: a transaction under the claim.
        :returns: None also if the database has lost the claim, as after a fail-over. Then no other worker may ever
            raise the fence, and the wait would not end.
        :raises Exception: an error that `step` raises `REFUSALS` times and that is no database failure.
        """
        entry = PendingResult(claim, physical_id)
        with self._lock:
            self._unsaved.append(entry)
        try:
            return self._insist(entry, step)
        finally:
            with self._lock:
                self._unsaved = [each for each in self._unsaved if each is not entry]

    def _insist(self, entry: PendingResult, step: Callable[[], V]) -> V | None:
        attempt, refusals, told_at = 0, 0, None
        older = _OlderState(self._clock)
        while True:
            try:
                stored = step()
            except ConvergenceError as error:
                if older.is_for_good(error):
                    LOG.error('Claim lost by the database, as after a fail-over; check the object: %s', entry)
                    return None
                if told_at is None or self._clock() - told_at >= TOLD_EVERY_S:
                    LOG.warning('Result not stored, retrying until the database takes it: %s (%s)', entry, error)
                    told_at = self._clock()
            except Exception as error:
                refusals += 1
                if refusals == REFUSALS:
                    raise
                LOG.warning('Storing a result failed, retrying: %s (%s)', entry, error, exc_info=True)
            else:
                if attempt:
                    LOG.info('Result stored after %d retries: %s', attempt, entry)
                return stored
            pause_s = PAUSES_S[min(attempt, len(PAUSES_S) - 1)]
            self._pause(pause_s)
            older.paused_s += pause_s
            attempt += 1


class _OlderState:
    """Measures the time for which the database shows only an older state of a row.

    :ivar paused_s: sum of the pauses since then.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None
        self.paused_s = 0.0

    def is_for_good(self, error: ConvergenceError) -> bool:
        """Add an error. Return True if the older state has lasted longer than a server can lag behind."""
        if not isinstance(error, OlderState):
            self._since = None
            return False
        if self._since is None:
            self._since, self.paused_s = self._clock(), 0.0
        return max(self._clock() - self._since, self.paused_s) >= LAGS_AT_MOST_S
