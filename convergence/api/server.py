"""Listens for HTTP: a WSGI server with threads, started and stopped like the other services."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from cheroot import wsgi

from convergence.concurrency import Event, Group, start_thread
from convergence.errors import ConfigurationError

LOG = logging.getLogger(__name__)

QUEUE = 128
"""Connections that may wait for a thread."""
LONGEST_HEADERS = 64 * 1024
SILENCE_S = 10
"""Seconds for which a connection may say nothing."""


class HttpServer:
    """Serves a WSGI application.

    :param port: 0: any that is free; see `address`.
    :param threads: requests that are served at the same time.
    :param shared: whether other processes of this program listen on the same port.
    """

    def __init__(
        self, application: Callable[..., Any], host: str, port: int, *, threads: int, shared: bool = False
    ) -> None:
        self._host, self._port = host, port
        self._ended = Event()
        self._server = wsgi.Server(
            (host, port),
            application,
            numthreads=threads,
            max=threads,
            request_queue_size=QUEUE,
            timeout=SILENCE_S,
            shutdown_timeout=1,
            reuse_port=shared,
        )
        self._server.max_request_header_size = LONGEST_HEADERS
        self._server.error_log = _log
        self._refused: OSError | None = None

    @property
    def address(self) -> str:
        """The URL under which the server listens, without a slash at the end."""
        host, port = self._server.bind_addr[:2]
        return f'http://[{host}]:{port}' if ':' in host else f'http://{host}:{port}'

    def start(self) -> None:
        """Begin to listen.

        :raises ConfigurationError: the address cannot be had.
        """
        # Its threads inherit whether they keep the process alive: none may, whatever it is that one waits for.
        prepared = Group('api')
        prepared.spawn(lambda task: self._prepare())
        prepared.wait()
        error = self._refused
        if error is not None:
            problem = error.strerror or str(error)
            raise ConfigurationError(
                f'[api] host and port: the API cannot listen on {self._host} port {self._port}: {problem}. '
                'Choose another port, or end what listens there.'
            ) from None
        LOG.info('The API listens on %s', self.address)
        start_thread('api', self._serve)

    def _prepare(self) -> None:
        try:
            self._server.prepare()
        except OSError as error:
            self._refused = error

    def load(self) -> dict[str, int]:
        """How busy it is."""
        threads = self._server.requests.min
        return {'threads': threads, 'busy': max(0, threads - self._server.requests.idle)}

    def stop(self, timeout_s: float) -> bool:
        """Take no more requests; whether those in hand ended within `timeout_s` seconds."""
        start_thread('api:stop', self._server.stop)
        return self._ended.wait(timeout_s)

    def _serve(self) -> None:
        try:
            self._server.serve()
        except Exception:
            LOG.exception('The API does not listen any more')
        finally:
            self._ended.set()


def _log(message: str = '', level: int = logging.INFO, traceback: bool = False) -> None:
    LOG.log(level, '%s', message, exc_info=traceback)
