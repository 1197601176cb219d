"""What one engine does at a time: which one, without asking the database more often than that can change."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from convergence.db.ports import SweepsPort

TERM = 3
"""For so many turns the duty is taken: a holder that was slow, or was not answered once, still has it."""
RENEWED_AFTER = 1.5
"""After so many turns it is taken anew, which is with every second one."""


def nothing() -> None:
    """The default of who is told that the database has answered."""


class Duty:
    """A duty of engines, as one of them sees it. Whoever has it renews it; the others wait until its time is over.

    Nothing depends on it that two engines must not do at the same time: a process that stands still may believe that
    it has a duty that another one has taken meanwhile.

    :param interval_s: seconds between two turns of an engine.
    :param rest_s: the longest time for which another engine's having it is taken for granted.
    :param answered: is called whenever the database has answered.
    :param clock: seconds that only grow, on this machine.
    """

    def __init__(
        self,
        sweeps: SweepsPort,
        name: str,
        holder: str,
        interval_s: float,
        rest_s: float = math.inf,
        answered: Callable[[], None] = nothing,
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
        """Whether this engine has the duty for this turn: take it, where nobody has it.

        :raises DatabaseUnavailable: the database cannot be reached, and whose it is is not known.
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
        self._answered()
        return took

    def _held_s(self) -> float:
        held_s = self._sweeps.duty_held_s(self._name, self._holder)
        self._answered()
        return held_s

    def is_elsewhere(self) -> bool:
        """Whether another engine has the duty, as far as is known: it had it at the last turn. Asks nobody."""
        return self._was_elsewhere and self._clock() < self._look_at + self._interval_s
