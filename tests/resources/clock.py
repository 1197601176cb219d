"""A clock that moves when it is told to."""

from __future__ import annotations


class Clock:
    """Call it for the time; `advance` makes it later."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds
