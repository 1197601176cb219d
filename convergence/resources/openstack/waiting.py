"""Aborts the connection on which a cancelled call waits.

Calls share connections. A call gets one only when it sends a request, so the connections report their use.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol

import requests
from typing_extensions import override
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class _Connection(Protocol):
    sock: Any
    used_by: Waiting | None


class Waiting:
    """The connection on which a call waits."""

    def __init__(self) -> None:
        self._connection: _Connection | None = None
        self.is_over = False

    @contextmanager
    def here(self) -> Iterator[None]:
        """Attribute the requests that this thread sends inside the block to this call."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)
            self._connection = None

    def use(self, connection: _Connection) -> None:
        """Wait on a connection.

        :raises ConnectionAbortedError: the call was cancelled.
        """
        connection.used_by, self._connection = self, connection
        if self.is_over:
            raise ConnectionAbortedError('The call was cancelled.')

    def close(self) -> None:
        """Stop waiting, at once and from now on. Called in another thread."""
        self.is_over = True
        connection = self._connection
        if connection is not None and connection.used_by is self and connection.sock is not None:
            with suppress(OSError):  # it has just ended by itself
                connection.sock.shutdown(socket.SHUT_RDWR)


_CURRENT: ContextVar[Waiting | None] = ContextVar('waiting', default=None)


def tell(session: requests.Session) -> None:
    """Make the connections of a session report the calls that wait on them."""
    for adapter in session.adapters.values():
        pools = getattr(adapter, 'poolmanager', None)
        if pools is not None and pools.pool_classes_by_scheme is not _POOLS:
            pools.pool_classes_by_scheme = _POOLS
            pools.clear()


def _told(connection: _Connection) -> None:
    waiting = _CURRENT.get()
    if waiting is not None:
        waiting.use(connection)


class _Plain(HTTPConnection):
    used_by: Waiting | None = None

    @override
    def connect(self) -> None:
        super().connect()
        _told(self)

    @override
    def request(self, *arguments: Any, **options: Any) -> None:
        _told(self)
        super().request(*arguments, **options)


class _Sealed(_Plain, HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _SealedPool(HTTPSConnectionPool):
    ConnectionCls = _Sealed


_POOLS = {'http': _PlainPool, 'https': _SealedPool}
