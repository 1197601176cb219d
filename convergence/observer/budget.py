"""How many calls observers may make to one service for one project."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class CallBudget:
    """So many calls a minute for each key, shared by all observers. They may come at once, or spread.

    :param calls_per_minute: for each key; None: no limit.
    :param clock: seconds on any clock that goes forward.
    :ivar sharers: how many observers share it.
    """

    def __init__(self, calls_per_minute: int | None, clock: Callable[[], float]) -> None:
        self.sharers = 1
        self._calls_per_minute = calls_per_minute
        self._clock = clock
        self._count: Callable[[], int] | None = None
        self._left: dict[Hashable, tuple[float, float]] = {}

    def share(self, count: Callable[[], int]) -> None:
        """How many share it may be another number by now: `count` is asked before the next call."""
        self._count = count

    def take(self, key: Hashable) -> bool:
        """Make a call, if there is one left."""
        if self._calls_per_minute is None:
            return True
        count, self._count = self._count, None
        if count is not None:
            self.sharers = count()
        now, most = self._clock(), max(self._calls_per_minute / max(1, self.sharers), 1.0)
        left, since = self._left.get(key, (most, now))
        left = min(most, left + (now - since) * most / 60.0)
        self._left[key] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0

    def pause_s(self, calls: int) -> float:
        """Seconds after which so many calls, or as many as there are for a minute, can be made by one observer."""
        most = max((self._calls_per_minute or 1) / max(1, self.sharers), 1.0)
        return min(calls / most, 1.0) * 60.0
