"""Events of a stack as they occur: from the event stream, or by polling a server without one."""

from __future__ import annotations

import queue
from typing import Self

from convergence.cli.connection.client import StackClient
from convergence.cli.exits import CommandFailed, NotFound, Unreachable
from convergence.concurrency import ThreadEvent, start_thread
from convergence.documents import Document

POLL_S = 1.0
PATIENCE_S = 60.0
AGAIN_S = 2.0
"""Seconds until a broken stream is reopened."""


class Feed:
    """Reads the events after a marker in a background thread.

    :param marker: id of the last known event; None: from the first event.
    :param poll_s: interval of polling in seconds.
    """

    def __init__(
        self, stack: StackClient, marker: str | None, *, poll_s: float = POLL_S, again_s: float = AGAIN_S
    ) -> None:
        self._stack, self._marker = stack, marker
        self._poll_s, self._again_s = poll_s, again_s
        self._events: queue.SimpleQueue[Document] = queue.SimpleQueue()
        self._ended = ThreadEvent()
        self._silent_s = 0.0

    @property
    def lost(self) -> str:
        """The error that ended the feed; empty while events may come. A server may come back after a failure."""
        return 'The server does not answer any more.' if self._silent_s > PATIENCE_S else ''

    def __enter__(self) -> Self:
        start_thread('events', self._read)
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()  # The thread ends with the next keep-alive comment, or with the process.

    def take(self, timeout_s: float) -> list[Document]:
        """Return the events since the last call. Waits for the first one, at most `timeout_s`."""
        try:
            found = [self._events.get(timeout=timeout_s)]
        except queue.Empty:
            return []
        while not self._events.empty():
            found.append(self._events.get())
        return found

    def _read(self) -> None:
        streams = True
        while not self._ended.is_set():
            try:
                if streams:
                    self._stream()
                else:
                    self._note(self._stack.events(self._marker))
                self._silent_s = 0.0
            except NotFound:  # The stack or the marker was purged. The follower queries the stack.
                self._ended.wait(self._again_s)
            except Unreachable:
                streams = False  # all streams may be taken, or the server is away: asking works in either case
                self._silent_s += self._poll_s
            except CommandFailed:
                streams = False
            self._ended.wait(self._again_s if streams else self._poll_s)

    def _stream(self) -> None:
        for event in self._stack.follow(self._marker):
            if self._ended.is_set():
                return
            if event is not None:
                self._note([event])

    def _note(self, events: list[Document]) -> None:
        for event in events:
            self._marker = str(event['id'])
            self._events.put(event)
