"""Gives out fences: never the same one twice for a row within a process, even if the database loses commits.

Owner and fence identify a claim. The id of an owner is never used again, and the fence of a row only grows. But after a
database has lost commits, a row may have a smaller fence than before. Without its own memory of fences, a process could
claim the row under an owner and a fence that one of its older threads still uses.
"""

from __future__ import annotations

from collections import OrderedDict

from convergence.concurrency import Lock
from convergence.core.rows import Resource

MOST_FENCES = 10_000
"""Maximum number of rows whose last fence is remembered: far more than the threads of one process can hold."""


class Fences:
    """Gives out fences."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: OrderedDict[str, int] = OrderedDict()

    def next(self, row: Resource) -> int:
        """Return the fence for a new claim of a row."""
        with self._lock:
            fence = max(row.fence, self._last.pop(row.id, 0)) + 1
            self._last[row.id] = fence
            if len(self._last) > MOST_FENCES:
                self._last.popitem(last=False)
        return fence
