"""Queues of requests for threads.

Each lane has its own threads, so requests of one lane never wait for those of another: probes are answered while all
requests hang, and streams of events take no thread from requests. Within a lane the clients take turns.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol
from urllib.parse import unquote

from convergence.api.paths import plain
from convergence.concurrency import Pool

LOG = logging.getLogger(__name__)

CallSoon = Callable[[Callable[[], None]], object]
"""Calls a function in the thread of the event loop, from any thread."""

EXTRA_STREAM_THREADS = 2
"""Threads beyond the maximum number of followers, which refuse further followers at once."""


class Work(Protocol):
    """One unit of work for a thread."""

    def run(self) -> None:
        """Run the work, in a thread of the lane."""

    def give_up(self) -> None:
        """Report that no thread is available, in the thread of the event loop."""


class Lane(StrEnum):
    """The kinds of requests."""

    ALIVE = 'alive'
    PROBES = 'probes'
    STREAMS = 'streams'
    REQUESTS = 'requests'


def lane_of(path: str, query: str) -> Lane:
    """Return the lane of a request.

    :param path: decoded.
    :param query: raw.
    """
    path = plain(path)  # in the form of the application; otherwise a stream could use threads of requests
    if path in ('/health/live', '/healthcheck'):
        return Lane.ALIVE
    if path.startswith('/health/'):
        return Lane.PROBES
    if path.endswith('/events') and 'follow' in unquote(query):
        return Lane.STREAMS
    return Lane.REQUESTS


class Lanes:
    """All lanes. Only for the thread of the event loop.

    :param requests: threads for ordinary requests.
    :param streams: maximum number of streams at a time.
    :param most: maximum number of works of one client in a lane.
    """

    def __init__(self, requests: int, streams: int, most: int, call_soon: CallSoon) -> None:
        self._lanes = {
            Lane.ALIVE: _Lane('api-alive', 1, most, call_soon),
            Lane.PROBES: _Lane('api-probes', 2, most, call_soon),
            Lane.STREAMS: _Lane('api-streams', streams + EXTRA_STREAM_THREADS, most, call_soon),
            Lane.REQUESTS: _Lane('api', requests, most, call_soon),
        }

    def offer(self, lane: Lane, client: str, work: Work) -> bool:
        """Queue `work` for a thread of a lane; return False if the client has too many works there."""
        return self._lanes[lane].offer(client, work)

    @property
    def busy(self) -> int:
        """Return the number of ordinary requests being served."""
        return self._lanes[Lane.REQUESTS].busy

    @property
    def idle(self) -> bool:
        """Return True if no work runs or waits."""
        return not any(lane.busy for lane in self._lanes.values())

    def close(self) -> None:
        """End the threads."""
        for lane in self._lanes.values():
            lane.pool.drain(0)


class _Lane:
    """One lane."""

    def __init__(self, name: str, threads: int, most: int, call_soon: CallSoon) -> None:
        self.pool = Pool(threads, name)
        self.busy = 0
        self._most = most
        self._call_soon = call_soon
        self._waiting: dict[str, deque[Work]] = {}
        self._held: dict[str, int] = {}

    def offer(self, client: str, work: Work) -> bool:
        """See `Lanes`."""
        held = self._held.get(client, 0)
        if held >= self._most:
            return False
        self._held[client] = held + 1
        if self.busy < self.pool.threads:
            self._start(client, work)
        else:
            self._waiting.setdefault(client, deque()).append(work)
        return True

    def _start(self, client: str, work: Work) -> None:
        self.busy += 1
        try:
            self.pool.submit(self._run, client, work)
        except RuntimeError as error:
            LOG.error(
                'Request refused, the API cannot start a thread; raise the limit of threads (ulimit -u): %s', error
            )
            work.give_up()
            self._call_soon(lambda: self._end(client))

    def _run(self, client: str, work: Work) -> None:
        try:
            work.run()
        finally:
            self._call_soon(lambda: self._end(client))

    def _end(self, client: str) -> None:
        self.busy -= 1
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        if self._waiting:
            following = next(iter(self._waiting))
            works = self._waiting.pop(following)
            work = works.popleft()
            if works:
                self._waiting[following] = works  # at the end, so that the others take their turn before
            self._start(following, work)
