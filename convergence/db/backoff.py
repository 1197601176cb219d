"""Backoff: items that failed before are tried again at growing intervals and do not delay other items."""

from __future__ import annotations

from collections.abc import Hashable

LONGEST = 64
"""Rounds for which an item is passed over at most."""


class Backoff:
    """Remembers the items of a repeatedly read list that failed.

    Such a list is read up to a limit and often begins with the same items. Readers ask for `len()` more items, so that
    failing items do not displace others.

    :param most: number of items remembered; the item that failed longest ago is forgotten first.
    """

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._round = 0
        self._failed: dict[Hashable, tuple[int, int]] = {}  # failures in a row, next round

    def __len__(self) -> int:
        return len(self._failed)

    def begin(self) -> None:
        """Begin a new round. Items that have not come back since they were due are forgotten: another process settled
        them.
        """
        self._round += 1
        gone = [item for item, (_, due) in self._failed.items() if due + LONGEST < self._round]
        for item in gone:
            del self._failed[item]

    def is_passed_over(self, item: Hashable) -> bool:
        """Return True if an item is left alone in this round. After its first failure it is not; then 1, 2, 4 …
        times."""
        return item in self._failed and self._failed[item][1] > self._round

    def failed(self, item: Hashable) -> None:
        """It could not be attended to."""
        failures = self._failed.pop(item, (0, 0))[0] + 1
        pause = min(LONGEST, (1 << (failures - 1)) // 2)
        self._failed[item] = (failures, self._round + 1 + pause)
        while len(self._failed) > self._most:
            del self._failed[next(iter(self._failed))]

    def succeeded(self, item: Hashable) -> None:
        """It was attended to."""
        self._failed.pop(item, None)
