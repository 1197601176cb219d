"""Counts connections and memory by client, and decides which connection ends when there are too many.

Only a connection that waits for its client can be ended: before the whole request has arrived, between two requests, or
while the client does not receive its answer. A connection that waits for the server is never ended. So a client with
too many connections loses its idle ones, and is served on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from convergence.api.serving.limits import ServingLimits


class TrackedConnection(Protocol):
    """The part of a connection that the ledger uses.

    :ivar peer: address of the other end.
    :ivar account: the client that is charged for its memory: the peer, or the client behind a proxy.
    :ivar waits_since: start of the wait for its client, in seconds of the loop's clock; None: the server is working.
    :ivar buffered: charged bytes. Only the ledger sets it.
    """

    peer: str
    account: str
    waits_since: float | None
    buffered: int

    def evict(self, why: str) -> None:
        """End the connection at once. Calls `ConnectionLedger.leave` before it returns."""


class ConnectionLedger:
    """The connections of a server. Only for the thread of the event loop.

    :param is_exempt: returns True for an address without a limit of connections, such as a proxy for many clients.
    """

    def __init__(self, limits: ServingLimits, is_exempt: Callable[[str], bool] = lambda address: False) -> None:
        self._limits = limits
        self._is_exempt = is_exempt
        self._by_peer: dict[str, dict[TrackedConnection, None]] = {}
        self._by_account: dict[str, int] = {}
        self._count = self._buffered = 0

    @property
    def count(self) -> int:
        """Return the number of connections."""
        return self._count

    @property
    def buffered(self) -> int:
        """Return the number of charged bytes."""
        return self._buffered

    def enter(self, connection: TrackedConnection) -> bool:
        """Add a new connection; return False if there is no room and no other connection can be ended."""
        peer = connection.peer
        own = self._by_peer.get(peer, {})
        is_full = len(own) >= self._limits.max_client_connections and not self._is_exempt(peer)
        if is_full and not _evict_oldest(own, f'{peer} has too many connections ([api] max_client_connections)'):
            return False
        if self._count >= self._limits.max_connections:
            fullest = sorted(self._by_peer.values(), key=len, reverse=True)
            why = 'there are too many connections ([api] max_connections)'
            if not any(_evict_oldest(connections, why) for connections in fullest):
                return False
        self._by_peer.setdefault(peer, {})[connection] = None
        self._count += 1
        return True

    def leave(self, connection: TrackedConnection) -> None:
        """Remove a connection. A second call is harmless."""
        own = self._by_peer.get(connection.peer, {})
        if connection in own:
            self.charge(connection, 0)
            del own[connection]
            self._count -= 1
            if not own:
                del self._by_peer[connection.peer]

    def charge(self, connection: TrackedConnection, size: int) -> bool:
        """Record the bytes that a connection holds now.

        Above the limit, the largest connections that wait for their clients are ended first.

        :returns: False if the limit is still exceeded; the connection should end.
        """
        self._set(connection, size)
        if not size:
            return True
        account = connection.account
        while self._by_account.get(account, 0) > self._limits.max_client_buffered_bytes:
            own = [each for each in self._connections() if each.account == account]
            if not _evict_largest(
                own, connection, f'{account} fills too much memory ([api] max_client_buffered_bytes)'
            ):
                return False
        while self._buffered > self._limits.max_buffered_bytes:
            why = 'clients fill too much memory ([api] max_buffered_bytes)'
            if not _evict_largest(self._connections(), connection, why):
                return False
        return True

    def _connections(self) -> list[TrackedConnection]:
        return [each for connections in self._by_peer.values() for each in connections]

    def _set(self, connection: TrackedConnection, size: int) -> None:
        account = connection.account
        change = size - connection.buffered
        connection.buffered = size
        self._buffered += change
        total = self._by_account.get(account, 0) + change
        if total:
            self._by_account[account] = total
        else:
            self._by_account.pop(account, None)


def _evict_oldest(connections: Iterable[TrackedConnection], why: str) -> bool:
    """End the connection that has waited longest for its client; return False if none waits."""
    waiting = [(each.waits_since, each) for each in connections if each.waits_since is not None]
    if not waiting:
        return False
    min(waiting, key=lambda pair: pair[0])[1].evict(why)
    return True


def _evict_largest(connections: Iterable[TrackedConnection], asking: TrackedConnection, why: str) -> bool:
    """End the largest waiting connection; return False if it is the present one, or if none waits."""
    able = [each for each in connections if each is asking or (each.waits_since is not None and each.buffered)]
    largest = max(able, key=lambda each: each.buffered)
    if largest is asking:
        return False
    largest.evict(why)
    return True
