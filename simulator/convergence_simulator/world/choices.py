"""The choices of a run.

Every random event of a run is a choice, and all choices of a run are one list of numbers. A run repeats exactly when
the list is replayed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


class Choices:
    """Makes choices at random from a seed, or replays a list; records the choices.

    :param seed: of the random choices.
    :param script: choices to replay first.
    :param then_first: True to choose the first possibility each time after the end of the script.
    :ivar made: all choices so far.
    :ivar faults: positions in `made` of the choices that caused a fault.
    """

    def __init__(self, seed: int = 0, script: Sequence[int] = (), *, then_first: bool = False) -> None:
        self._random = random.Random(seed)
        self._script = script
        self._then_first = then_first
        self.made: list[int] = []
        self.faults: list[int] = []

    def pick(self, count: int) -> int:
        """Choose one of `count` possibilities; the numbers start at 0."""
        if self._script and len(self.made) < len(self._script):
            chosen = self._script[len(self.made)] % count
        elif self._then_first or count == 1:
            chosen = 0
        else:
            chosen = int(self._random.random() * count)
        self.made.append(chosen)
        return chosen

    def happens(self, rate: float) -> bool:
        """Decide by chance, at a rate between 0 and 1, if something happens; True if it does.

        A rate of 0 uses no choice.
        """
        if rate <= 0.0:
            return False
        position = len(self.made)
        if position < len(self._script):
            chosen = self._script[position] % 2
        elif self._then_first:
            chosen = 0
        else:
            chosen = int(self._random.random() < rate)
        if chosen:
            self.faults.append(position)
        self.made.append(chosen)
        return bool(chosen)
