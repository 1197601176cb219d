"""Work that one engine at a time performs. Finds out which engine it is, with few database queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from convergence.db.ports import SweepsPort

TERM = 3
"""For so many turns the duty is taken: a holder that was slow, or was not answered once, still has it."""
RENEWED_AFTER = 1.5
"""Number of turns after which the engine on duty renews its election: every second turn."""


class Duty:
    """A duty of engines, from the view of one engine. The engine on duty renews it; others wait until it expires.

    Do not use it as a lock: a paused process may believe that it has a duty that another engine has taken meanwhile.

    :param interval_s: seconds between two turns of an engine.
    :param rest_s: maximum time for which another engine is assumed to be on duty without a query.
    :param answered: called after each answer of the database.
    :param clock: monotonic seconds of this machine.
    """

    def __init__(
        self,
        sweeps: SweepsPort,
        name: str,
        holder: str,
        interval_s: float,
        rest_s: float = math.inf,
        answered: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sweeps = sweeps
        self._name = name
        self._holder = holder
        self._interval_s = interval_s
        self._rest_s = min(rest_s, TERM * interval_s)
        self._answered = answered
        self._clock = clock
        self._renew_at = self._look_at = -math.inf
        self._was_elsewhere = False

    def is_ours(self) -> bool:
        """Return True if this engine has the duty in this turn; takes it if no engine has it.

        :raises DatabaseUnavailable: the database is out of reach, so the duty is unknown.
        """
        now = self._clock()
        if now < self._renew_at:
            return True
        if now < self._look_at:
            return False
        held_s = self._held_s() if self._was_elsewhere else 0.0
        if held_s <= 0.0:
            if self._take():
                self._renew_at, self._was_elsewhere = now + RENEWED_AFTER * self._interval_s, False
                return True
            held_s = self._held_s()
        self._look_at, self._was_elsewhere = now + min(held_s, self._rest_s), True
        return False

    def _take(self) -> bool:
        took = self._sweeps.take_duty(self._name, self._holder, TERM * self._interval_s)
        if self._answered is not None:
            self._answered()
        return took

    def _held_s(self) -> float:
        held_s = self._sweeps.duty_held_s(self._name, self._holder)
        if self._answered is not None:
            self._answered()
        return held_s

    def is_elsewhere(self) -> bool:
        """Return True if another engine had the duty at the last turn. Queries nothing."""
        return self._was_elsewhere and self._clock() < self._look_at + self._interval_s
