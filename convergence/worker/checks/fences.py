"""The fences that one process has given out: never the same twice for one row, even where the database has gone back.

A claim is guarded by its owner and its fence. Owners never come back, and in the rows fences only grow. But a database
that has lost commits has rows with smaller fences than it had: without a memory of its own a process could claim a row
under an owner and a fence that an older thread of it still writes with.
"""

from __future__ import annotations

from collections import OrderedDict

from convergence.concurrency import Lock
from convergence.core.rows import Resource

MOST_FENCES = 10_000
"""Of so many rows the last fence is remembered: far more than threads of one process can ever hold."""


class Fences:
    """Gives out fences."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: OrderedDict[str, int] = OrderedDict()

    def next(self, row: Resource) -> int:
        """The fence under which a row is to be claimed now."""
        with self._lock:
            fence = max(row.fence, self._last.pop(row.id, 0)) + 1
            self._last[row.id] = fence
            if len(self._last) > MOST_FENCES:
                self._last.popitem(last=False)
        return fence
