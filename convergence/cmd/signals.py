"""Signals as values: a handler only notes them in a pipe, the program reads them when it is ready to.

A handler that did more could run in the middle of anything. A pipe wakes native and green threads alike, and programs
that are started meanwhile inherit neither a blocked nor an ignored signal.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Self

STOP = frozenset({signal.SIGTERM, signal.SIGINT})
"""Signals that ask a program to end in good order."""


class Signals:
    """Catches signals while it is entered.

    :param caught: what to catch. Only the main thread may enter.
    """

    def __init__(self, *caught: signal.Signals) -> None:
        self._caught = caught
        self._reader = self._writer = -1

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        for number in self._caught:
            signal.signal(number, self._note)
        return self

    def __exit__(self, *raised: object) -> None:
        restore(*self._caught)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, timeout_s: float | None = None) -> signal.Signals | None:
        """The next signal, in the order of arrival; None when there was none within `timeout_s` seconds."""
        readable, _, _ = select.select([self._reader], [], [], timeout_s)
        return signal.Signals(os.read(self._reader, 1)[0]) if readable else None

    def _note(self, number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):  # thousands wait already, this one adds nothing
            os.write(self._writer, bytes([number]))


def restore(*numbers: signal.Signals) -> None:
    """Give signals the effect that they have in a program without handlers: the ones used here end it at once."""
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)


def overhear(number: signal.Signals) -> None:
    """Let a signal do nothing here, without programs that are started from here inheriting that."""
    signal.signal(number, _nothing)


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler, because an ignored signal would be inherited and a handler is not."""


@contextlib.contextmanager
def held_back(*numbers: signal.Signals) -> Iterator[None]:
    """Let signals arrive only at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
