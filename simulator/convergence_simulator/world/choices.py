"""Every accident of a run is a choice, and the choices of a run are a list of numbers: so a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Sequence


class Choices:
    """Makes choices at random from a seed, or repeats a list; remembers what was chosen.

    :param seed: where the random choices come from.
    :param script: choices to repeat first; after its end the first possibility is chosen each time when `then_first`.
    :ivar faults: positions of the choices by which something went wrong.
    """

    def __init__(self, seed: int = 0, script: Sequence[int] = (), *, then_first: bool = False) -> None:
        self._random = random.Random(seed)
        self._script = script
        self._then_first = then_first
        self.made: list[int] = []
        self.faults: list[int] = []

    def pick(self, count: int) -> int:
        """One of `count` possibilities, counted from 0."""
        if self._script and len(self.made) < len(self._script):
            chosen = self._script[len(self.made)] % count
        elif self._then_first or count == 1:
            chosen = 0
        else:
            chosen = int(self._random.random() * count)
        self.made.append(chosen)
        return chosen

    def happens(self, rate: float) -> bool:
        """Whether something happens that happens at a rate between 0 and 1. A rate of 0 is no choice."""
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
