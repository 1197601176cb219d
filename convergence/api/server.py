"""Listens for HTTP: an event loop before a WSGI application with threads, started and stopped like other services."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

from convergence.api.serving.connection import Connection, ConnectionContext
from convergence.api.serving.lanes import Lanes
from convergence.api.serving.ledger import ConnectionLedger
from convergence.api.serving.limits import ServingLimits
from convergence.api.serving.proxies import Proxies, plain_address
from convergence.concurrency import ThreadEvent, start_thread
from convergence.errors import ConfigurationError

LOG = logging.getLogger(__name__)

QUEUE = 1024
"""Maximum number of connections that wait to be accepted."""
CHECK_S = 0.02
"""Seconds between two checks for running requests while the server ends."""
SAID_S = 60.0
"""Seconds between two log lines about refused connections."""
PAUSE_S = 0.5
"""Seconds before the next accept after a failed one, for example without free file descriptors."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate and key of a server.

    :param certificate: file with the certificate and its chain, PEM.
    :param key: file with the private key, PEM; None: it is in the certificate file.
    """

    certificate: Path
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Serving:
    """Settings of a server.

    :param streams: maximum number of streams at a time, each with its own thread.
    :param tls: None: plain HTTP.
    """

    limits: ServingLimits = field(default_factory=ServingLimits)
    streams: int = 0
    proxies: Proxies = field(default_factory=Proxies)
    tls: Tls | None = None


class HttpServer:
    """Serves a WSGI application.

    :param port: 0 selects a free port; see `address`.
    :param threads: maximum number of requests at a time, besides probes and streams.
    :param shared: True if other processes of this program listen on the same port.
    :raises ConfigurationError: certificate or key cannot be used.
    """

    def __init__(
        self,
        application: Callable[..., Any],
        host: str,
        port: int,
        *,
        threads: int,
        shared: bool = False,
        serving: Serving | None = None,
    ) -> None:
        self._application = application
        self._host, self._port, self._shared = host, port, shared
        self._threads, self._serving = threads, serving or Serving()
        self._tls = _context(self._serving.tls) if self._serving.tls is not None else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._lanes: Lanes | None = None
        self._ended = ThreadEvent()
        self._is_ending = False
        self._refusals = _Refusals()
        self._connections: set[Connection] = set()
        self._listener: socket.socket | None = None
        self._bound: tuple[str, int] = (host, port)

    @property
    def address(self) -> str:
        """Return the URL of the server, without a slash at the end."""
        host, port = self._bound
        scheme = 'http' if self._tls is None else 'https'
        return f'{scheme}://[{host}]:{port}' if ':' in host else f'{scheme}://{host}:{port}'

    def start(self) -> None:
        """Start to listen.

        :raises ConfigurationError: the address is not available.
        """
        try:
            self._listener = _listening(self._host, self._port, shared=self._shared)
        except OSError as error:
            problem = error.strerror or str(error)
            raise ConfigurationError(
                f'[api] host and port: the API cannot listen on {self._host} port {self._port}: {problem}. '
                'Choose another port, or end the program that listens there.'
            ) from None
        self._bound = self._listener.getsockname()[:2]
        # From now on requests wait in the queue of the socket until the loop runs.
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        LOG.info('The API listens on %s', self.address)
        start_thread('api-loop', self._run)

    def load(self) -> dict[str, int]:
        """Return the number of threads, and of busy ones."""
        return {'threads': self._threads, 'busy': self._lanes.busy if self._lanes is not None else 0}

    def stop(self, timeout_s: float) -> bool:
        """Accept no more requests; return True if the running ones ended within `timeout_s` seconds."""
        if self._loop is None or self._stopping is None:
            return True
        with suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._stopping.set)
        return self._ended.wait(timeout_s)

    # --- in the thread of the loop ----------------------------------------------------------------------------

    def _run(self) -> None:
        assert self._loop is not None
        try:
            self._loop.run_until_complete(self._serve(self._loop))
        except Exception:
            LOG.exception('API stopped listening after an unexpected error; restart the process')
        finally:
            self._ended.set()
            with suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
                self._loop.close()

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._stopping is not None and self._listener is not None
        service = self._service(loop)
        accepting = asyncio.ensure_future(self._accept(service, self._listener))
        await asyncio.wait([accepting, asyncio.ensure_future(self._stopping.wait())], return_when='FIRST_COMPLETED')
        self._is_ending = True
        accepting.cancel()
        self._listener.close()
        for connection in list(self._connections):
            connection.end_soon()
        while not service.lanes.idle or service.ledger.count:
            await asyncio.sleep(CHECK_S)
            for connection in list(self._connections):
                connection.end_soon()
        service.lanes.close()
        if accepting.done() and not accepting.cancelled() and accepting.exception() is not None:
            raise accepting.exception() or RuntimeError

    def _service(self, loop: asyncio.AbstractEventLoop) -> ConnectionContext:
        """Return the context that all connections share."""
        serving = self._serving
        limits = serving.limits
        self._lanes = Lanes(self._threads, serving.streams, limits.max_client_requests, _soon(loop))
        return ConnectionContext(
            application=self._application,
            limits=limits,
            ledger=ConnectionLedger(limits, serving.proxies.trusts),
            lanes=self._lanes,
            proxies=serving.proxies,
            loop=loop,
            server=self._bound,
            scheme='http' if self._tls is None else 'https',
            is_ending=lambda: self._is_ending,
        )

    async def _accept(self, service: ConnectionContext, listener: socket.socket) -> None:
        openings: set[asyncio.Future[None]] = set()
        while True:
            # Accept one at a time, and read from others in between. Otherwise many new connections would displace those
            # whose requests have arrived but were not read yet.
            await asyncio.sleep(0)
            try:
                accepted, address = await service.loop.sock_accept(listener)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:
                    self._refusals.log(error, service.limits.max_connections)
                    await asyncio.sleep(PAUSE_S)
                continue
            connection = Accepted(service, plain_address(address[0]), accepted)
            if not service.ledger.enter(connection):
                LOG.debug(
                    'Refusing a connection from %s: the limit is reached and all others are being served', address[0]
                )
                accepted.close()
                continue
            self._connections.add(connection)
            opening = asyncio.ensure_future(self._open(service, connection, accepted))
            openings.add(opening)
            opening.add_done_callback(openings.discard)

    async def _open(self, service: ConnectionContext, connection: Accepted, accepted: socket.socket) -> None:
        connection.when_over = lambda: self._connections.discard(connection)
        timeout_s = service.limits.header_timeout_s if self._tls is not None else None
        try:
            await service.loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=timeout_s
            )
        except (OSError, ssl.SSLError) as error:
            LOG.debug('Connection from %s failed to open: %s', connection.peer, error)
            accepted.close()
            connection.connection_lost(None)


class _Refusals:
    """Logs the reason for failed accepts: at once, and then at most once per `SAID_S` seconds."""

    def __init__(self) -> None:
        self._said_at = -math.inf

    def log(self, error: OSError, connections: int) -> None:
        """Log a failed accept.

        :param connections: maximum number of connections.
        """
        now = time.monotonic()
        if now - self._said_at < SAID_S:
            return
        self._said_at = now
        cure = ''
        if error.errno in (errno.EMFILE, errno.ENFILE):
            cure = (
                f'. Allow the process more open files than [api] max_connections ({connections}), with LimitNOFILE= of '
                'systemd, or lower that option'
            )
        LOG.error('API cannot accept connections: %s%s', error.strerror, cure)


class Accepted(Connection):
    """A connection that may still be in its TLS handshake."""

    def __init__(self, service: ConnectionContext, peer: str, accepted: socket.socket) -> None:
        super().__init__(service, peer)
        self.when_over: Callable[[], object] = lambda: None
        self._accepted = accepted

    @override
    def _abort(self) -> None:
        if self._transport is None:
            with suppress(OSError):
                self._accepted.shutdown(socket.SHUT_RDWR)  # ends the handshake
        super()._abort()

    @override
    def _forget(self) -> None:
        super()._forget()
        self.when_over()


def _soon(loop: asyncio.AbstractEventLoop) -> Callable[[Callable[[], None]], object]:
    def call(function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended; counting is over
            loop.call_soon_threadsafe(function)

    return call


def _listening(host: str, port: int, *, shared: bool) -> socket.socket:
    """Return a listening socket.

    :raises OSError: the address is not available.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(QUEUE)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _context(tls: Tls) -> ssl.SSLContext:
    """Return the TLS context.

    :raises ConfigurationError: certificate or key cannot be used.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An empty password makes a locked key an error instead of a prompt.
        context.load_cert_chain(tls.certificate, tls.key, password='')
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f'[api] cert_file and key_file: {tls.certificate} and {tls.key or "the key in it"} cannot be used: {error}.'
        ) from None
    return context
