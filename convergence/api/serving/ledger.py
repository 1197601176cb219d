"""Counts connections and memory by client, and decides which connection ends when there are too many.

Only a connection that waits for its client can be ended: one that has not said its whole request, that says nothing
between two requests, or that does not take its answer. What waits for the server is never ended. So a client that opens
more connections than it may loses those with which it does nothing, and is served on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from convergence.api.serving.limits import ServingLimits


class TrackedConnection(Protocol):
    """A connection, as the ledger sees it.

    :ivar peer: address of the other end.
    :ivar account: who is charged for its memory: the peer, or for whom a proxy asks.
    :ivar waits_since: since when it waits for its client, in seconds of the loop's clock; None: the server is at work.
    :ivar buffered: bytes that are charged. The ledger alone sets it.
    """

    peer: str
    account: str
    waits_since: float | None
    buffered: int

    def evict(self, why: str) -> None:
        """End it, at once. Calls `ConnectionLedger.leave` before it returns."""


class ConnectionLedger:
    """The connections of a server. For the thread of the event loop only.

    :param is_exempt: whether an address may have any number of connections, because it asks for many clients.
    """

    def __init__(self, limits: ServingLimits, is_exempt: Callable[[str], bool] = lambda address: False) -> None:
        self._limits = limits
        self._is_exempt = is_exempt
        self._by_peer: dict[str, dict[TrackedConnection, None]] = {}
        self._by_account: dict[str, int] = {}
        self._count = self._buffered = 0

    @property
    def count(self) -> int:
        """How many connections there are."""
        return self._count

    @property
    def buffered(self) -> int:
        """How many bytes are charged."""
        return self._buffered

    def enter(self, connection: TrackedConnection) -> bool:
        """Note a new connection; False: there is no room for it, and none can be made."""
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
        """Forget a connection. Doing this twice does no harm."""
        own = self._by_peer.get(connection.peer, {})
        if connection in own:
            self.charge(connection, 0)
            del own[connection]
            self._count -= 1
            if not own:
                del self._by_peer[connection.peer]

    def charge(self, connection: TrackedConnection, size: int) -> bool:
        """Note how many bytes a connection holds now.

        Where that is too much, the connections that hold the most and wait for their clients are ended first.

        :returns: False: it is still too much; the connection should end.
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
    """End the connection that has waited longest for its client; False: none waits for its client."""
    waiting = [(each.waits_since, each) for each in connections if each.waits_since is not None]
    if not waiting:
        return False
    min(waiting, key=lambda pair: pair[0])[1].evict(why)
    return True


def _evict_largest(connections: Iterable[TrackedConnection], asking: TrackedConnection, why: str) -> bool:
    """End the connection that holds most; False: that is the one that asks, or none waits for its client."""
    able = [each for each in connections if each is asking or (each.waits_since is not None and each.buffered)]
    largest = max(able, key=lambda each: each.buffered)
    if largest is asking:
        return False
    largest.evict(why)
    return True
