"""Events of a stack as they happen: from the stream, taken up again where it broke; by asking where there is none."""

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
"""Seconds until a stream that broke is asked for again."""


class Feed:
    """The events after a marker, read in the background.

    :param marker: id of the last event that is known; None: from the first that is kept.
    :param poll_s: seconds between two questions where the server does not stream.
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
        """Why nothing will come any more; empty while something may: a server that is away may come back."""
        return 'The server does not answer any more.' if self._silent_s > PATIENCE_S else ''

    def __enter__(self) -> Self:
        start_thread('events', self._read)
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()  # the thread ends with the next sign of life, or with the process

    def take(self, timeout_s: float) -> list[Document]:
        """What has happened since the last call; waits for something to happen, but no longer than `timeout_s`."""
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
            except NotFound:  # the stack has been removed for good, or the marker: whoever follows asks for the stack
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
