"""A resumable stream of events (server-sent events)."""

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
"""Seconds without an event after which the stream sends a comment, which detects a lost client."""
PAGE = 200
RETRY_MS = 2000


class Followers:
    """Counts the clients that follow events, and ends their streams when the process ends.

    :param most: maximum number of followers at a time; each uses a thread of the server.
    :param most_each: maximum number of followers of one client, and of one project.
    :param poll_s: seconds between two polls for new events.
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
        """Count one more follower.

        :param whose: the client and the project, as shown in errors.
        :raises HttpProblem: 503 at a limit.
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
        """Count one less."""
        with self._lock:
            self._count -= 1
            self._of_each -= Counter(whose)  # drops owners without followers

    def stop(self) -> None:
        """End all streams."""
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
    :param is_last: True for an event that no other can follow.
    :param marker: id of the last event that the client received; None: start with the oldest stored one.
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
            self._look()  # an invalid request fails before the answer starts
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
            except errors.EntityNotFound:  # the stack or the marker was deleted: the client may retry
                raise StopIteration from None
            except errors.RetryLater:
                pass
            if not self._waiting:
                if self._silent_s < SIGN_S:
                    return b''  # no event; but the server may notice that the client has left
                self._waiting.append(b': still here\n\n')
        self._silent_s = 0.0
        return self._waiting.popleft()

    def close(self) -> None:
        """Release the place of the client. WSGI servers call this at the end of every answer."""
        if not self._closed:
            self._closed = True
            self._followers.leave(self._whose)

    def _look(self) -> None:
        for event in self._fetch(self._marker):
            self._marker = event['id']
            self._waiting.append(message(event))
            self._ended = self._ended or self._is_last(event)


def message(event: Document) -> bytes:
    """Return an event in its wire format."""
    return f'id: {event["id"]}\nevent: stack_event\ndata: {json.dumps(event)}\n\n'.encode()
