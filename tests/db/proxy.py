"""A way to a server that can be closed and opened again, like a server that is restarted."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.services import service

PORTS = {'postgresql': 5432, 'mariadb': 3306}


class Proxy:
    """Hands on what comes to a port of this machine, while it is open.

    :ivar port: the port; it stays the same.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._connections: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.open()

    def open(self) -> None:
        """Let connections through."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(('127.0.0.1', self.port))
        listener.listen(50)
        self.port, self._listener = listener.getsockname()[1], listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        """End all connections; whoever tries to connect is refused."""
        if self._listener is not None:
            for end in (self._listener, *self._connections):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
            self._listener, self._connections = None, []

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:  # the server itself is away: so is what is behind us
                near.close()
                continue
            self._connections += [near, far]
            if self._listener is not listener:
                near.close()
                far.close()
                return
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxied(kind: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server of a kind, and the URL of an empty database through it."""
    server = service(kind)
    url = server.create()
    parts = urlsplit(url)
    name = parts.path.lstrip('/')
    try:
        if 'unix_socket' in parts.query:
            pytest.skip(f'{kind} is reached through a file, not a port')
        proxy = Proxy((parts.hostname or '127.0.0.1', parts.port or PORTS[kind]))
        account = parts.netloc.rpartition('@')[0]
        netloc = f'{account}@127.0.0.1:{proxy.port}'
        try:
            yield proxy, parts._replace(netloc=netloc).geturl()
        finally:
            proxy.close()
    finally:
        server.drop(name)
