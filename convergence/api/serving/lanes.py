"""Which requests wait for which threads.

A lane has threads of its own, so that those of one lane never wait for those of another: a probe is answered while all
requests hang, and those who follow events take nothing away from those who ask. In a lane the clients take turns.
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
"""Calls a function in the thread of the event loop. From any thread."""

EXTRA_STREAM_THREADS = 2
"""More than there may be followers: those that are one too many are told so at once."""


class Work(Protocol):
    """What a thread is to do."""

    def run(self) -> None:
        """Do it. In a thread of the lane."""

    def give_up(self) -> None:
        """It will not be done: there is no thread. In the thread of the event loop."""


class Lane(StrEnum):
    """The kinds of requests."""

    ALIVE = 'alive'
    PROBES = 'probes'
    STREAMS = 'streams'
    REQUESTS = 'requests'


def lane_of(path: str, query: str) -> Lane:
    """The lane of a request.

    :param path: decoded.
    :param query: as it was sent.
    """
    path = plain(path)  # as the application reads it: or a stream could be asked for on the threads of requests
    if path in ('/health/live', '/healthcheck'):
        return Lane.ALIVE
    if path.startswith('/health/'):
        return Lane.PROBES
    if path.endswith('/events') and 'follow' in unquote(query):
        return Lane.STREAMS
    return Lane.REQUESTS


class Lanes:
    """All lanes. For the thread of the event loop only.

    :param requests: threads for ordinary requests.
    :param streams: streams that are served at the same time.
    :param most: works of one client that a lane takes at a time.
    """

    def __init__(self, requests: int, streams: int, most: int, call_soon: CallSoon) -> None:
        self._lanes = {
            Lane.ALIVE: _Lane('api-alive', 1, most, call_soon),
            Lane.PROBES: _Lane('api-probes', 2, most, call_soon),
            Lane.STREAMS: _Lane('api-streams', streams + EXTRA_STREAM_THREADS, most, call_soon),
            Lane.REQUESTS: _Lane('api', requests, most, call_soon),
        }

    def offer(self, lane: Lane, client: str, work: Work) -> bool:
        """Have `work` done by a thread of a lane; False: the client has too many works there already."""
        return self._lanes[lane].offer(client, work)

    @property
    def busy(self) -> int:
        """How many ordinary requests are being served."""
        return self._lanes[Lane.REQUESTS].busy

    @property
    def idle(self) -> bool:
        """Whether nothing is being served, and nothing waits."""
        return not any(lane.busy for lane in self._lanes.values())

    def close(self) -> None:
        """Let the threads end."""
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
            LOG.error('The API does not serve a request: %s', error)
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
                self._waiting[following] = works  # at the end: the others have their turn before
            self._start(following, work)
