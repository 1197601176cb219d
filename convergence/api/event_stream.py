"""Events as they happen, as a stream that a client can leave and take up again (server-sent events)."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus

from convergence import errors
from convergence.api.faults import HttpProblem
from convergence.concurrency import Lock, ThreadEvent
from convergence.documents import Document

CONTENT_TYPE = 'text/event-stream'
POLL_S = 1.0
SIGN_S = 10.0
"""Seconds of silence after which a comment is sent: so a client that has gone is noticed."""
PAGE = 200
RETRY_MS = 2000


class Followers:
    """Counts those who follow, and sends them away when the process ends.

    :param most: how many there may be at a time; each holds a thread of the server.
    :param most_each: how many of them may be of one client, and how many of one project.
    :param poll_s: seconds between two looks for new events.
    """

    def __init__(self, most: int = 16, *, most_each: int = 8, poll_s: float = POLL_S) -> None:
        self.poll_s = poll_s
        self.stopped = ThreadEvent()
        self._most = most
        self._most_each = most_each
        self._count = 0
        self._of_each: Counter[str] = Counter()
        self._lock = Lock()

    def enter(self, whose: Sequence[str] = ()) -> None:
        """One more.

        :param whose: the client and the project, as people read them.
        :raises HttpProblem: 503, there are enough.
        """
        with self._lock:
            if self._count >= self._most:
                raise _enough(f'{self._most} clients follow events already', 'max_followers')
            for each in whose:
                if self._of_each[each] >= self._most_each:
                    raise _enough(f'{self._most_each} streams of {each} follow events already', 'max_client_followers')
            self._count += 1
            self._of_each.update(whose)

    def leave(self, whose: Sequence[str] = ()) -> None:
        """One less."""
        with self._lock:
            self._count -= 1
            self._of_each -= Counter(whose)  # those that have none left are forgotten

    def stop(self) -> None:
        """Let all streams end."""
        self.stopped.set()


def _enough(who: str, option: str) -> HttpProblem:
    return HttpProblem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f'{who}, more are not served at a time ([api] {option}). Ask for the list of events instead, or try again.',
        {'Retry-After': '10'},
    )


class EventStream:
    """The events of a stack after a marker, each as it happens; ends with the deletion of the stack.

    :param fetch: the events after a marker, oldest first, at most `PAGE`.
    :param is_last: whether nothing can come after an event.
    :param marker: id of the last event that the client has; None: from the oldest that is kept.
    :param whose: as for `Followers.enter`.
    """

    def __init__(
        self,
        followers: Followers,
        fetch: Callable[[str | None], list[Document]],
        is_last: Callable[[Document], bool],
        marker: str | None,
        whose: Sequence[str] = (),
    ) -> None:
        followers.enter(whose)
        self._whose = tuple(whose)
        self._followers, self._fetch, self._is_last = followers, fetch, is_last
        self._marker = marker
        self._waiting: deque[bytes] = deque([f'retry: {RETRY_MS}\n\n'.encode()])
        self._silent_s = 0.0
        self._ended = self._closed = False
        try:
            self._look()  # what is wrong with the request is said before the answer begins
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while not self._waiting:
            if self._ended or self._followers.stopped.wait(self._followers.poll_s):
                raise StopIteration
            self._silent_s += self._followers.poll_s
            try:
                self._look()
            except errors.EntityNotFound:  # the stack has gone, or the marker: the client may ask again
                raise StopIteration from None
            except errors.RetryLater:
                pass
            if not self._waiting:
                if self._silent_s < SIGN_S:
                    return b''  # nothing to send; but the server may find that the client has gone
                self._waiting.append(b': still here\n\n')
        self._silent_s = 0.0
        return self._waiting.popleft()

    def close(self) -> None:
        """The client has gone, or has been told everything. WSGI servers call this in any case."""
        if not self._closed:
            self._closed = True
            self._followers.leave(self._whose)

    def _look(self) -> None:
        for event in self._fetch(self._marker):
            self._marker = event['id']
            self._waiting.append(message(event))
            self._ended = self._ended or self._is_last(event)


def message(event: Document) -> bytes:
    """An event on the wire."""
    return f'id: {event["id"]}\nevent: stack_event\ndata: {json.dumps(event)}\n\n'.encode()
