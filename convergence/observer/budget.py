"""The rate limit of the calls that observers make to one service for one project."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class CallBudget:
    """Limit the calls per minute for each key. All observers of an installation share the limit equally.

    A minute's calls may come at once or spread.

    :param calls_per_minute: limit for each key; None: no limit.
    :param clock: seconds on a monotonic clock.
    :ivar sharers: number of observers that share the limit.
    """

    def __init__(self, calls_per_minute: int | None, clock: Callable[[], float]) -> None:
        self.sharers = 1
        self._calls_per_minute = calls_per_minute
        self._clock = clock
        self._count: Callable[[], int] | None = None
        self._left: dict[Hashable, tuple[float, float]] = {}

    def share(self, count: Callable[[], int]) -> None:
        """Have `count` count the observers before the next call: their number may have changed."""
        self._count = count

    def take(self, key: Hashable) -> bool:
        """Take one call; return False if none is left for now."""
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
        """Return the seconds until one observer can make this many calls, at most a minute."""
        most = max((self._calls_per_minute or 1) / max(1, self.sharers), 1.0)
        return min(calls / most, 1.0) * 60.0
