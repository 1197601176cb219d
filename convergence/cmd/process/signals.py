"""Signals as values: the interpreter notes them in a pipe, the program reads them when it is ready to.

A handler that did something could run in the middle of anything. A pipe wakes native and green threads alike, and
programs that are started meanwhile inherit neither a blocked nor an ignored signal.
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


class ProcessSignals:
    """Catches signals while it is entered.

    :param caught: what to catch. Only the main thread may enter.
    :param overheard: what shall have no effect meanwhile.
    """

    def __init__(self, *caught: signal.Signals, overheard: tuple[signal.Signals, ...] = ()) -> None:
        self._caught = caught
        self._overheard = overheard
        self._reader = self._writer = -1

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        # Written by the interpreter itself: code of ours would run wherever the main thread is, the hub of the green
        # threads included. A full pipe loses what thousands before it have said already.
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        overhear(*self._caught, *self._overheard)
        return self

    def __exit__(self, *raised: object) -> None:
        forget(*self._caught, *self._overheard)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, timeout_s: float | None = None) -> signal.Signals | None:
        """The next signal, in the order of arrival.

        None when there was none within `timeout_s` seconds, and sooner for one that is only overheard.
        """
        readable, _, _ = select.select([self._reader], [], [], timeout_s)
        received = signal.Signals(os.read(self._reader, 1)[0]) if readable else None
        return received if received in self._caught else None


def restore(*numbers: signal.Signals) -> None:
    """Give signals the effect that they have in a program without handlers: the ones used here end it at once."""
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)


def overhear(*numbers: signal.Signals) -> None:
    """Let signals do nothing here. A handler, because programs that are started would inherit an ignored signal."""
    for number in numbers:
        signal.signal(number, _nothing)


def forget(*numbers: signal.Signals) -> None:
    """Catch nothing any more. A forked process calls it, or its signals would be noted in its parent's pipe."""
    signal.set_wakeup_fd(-1)
    restore(*numbers)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter has written the signal to the pipe already."""


@contextlib.contextmanager
def held_back(*numbers: signal.Signals) -> Iterator[None]:
    """Let signals arrive only at the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
