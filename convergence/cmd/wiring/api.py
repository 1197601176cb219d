"""The API of one process: the application, its policy, the verification of tokens, and the HTTP server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_policy.policy import Enforcer

from convergence.api.application import Application, ApplicationOptions
from convergence.api.event_stream import Followers
from convergence.api.identity import Authentication, strip_identity
from convergence.api.policy import Policy
from convergence.api.server import HttpServer, Serving, Tls
from convergence.api.serving.gateway import WsgiApplication
from convergence.api.serving.limits import ServingLimits
from convergence.api.serving.proxies import Proxies
from convergence.cli.connection import local_token
from convergence.cmd.wiring.api_presence import ApiPresence
from convergence.concurrency import Executor, installed
from convergence.config import ApiSettings
from convergence.credentials.issuing import Issuer
from convergence.errors import ConfigurationError
from convergence.rpc.client import EngineClient
from convergence.rpc.transport import Transport
from convergence.signing import is_signal_path, server_proof

LOG = logging.getLogger(__name__)


HEALTH_STOP_S = 1.0
"""Seconds after a request to stop in which running probes may finish."""


def _followers(settings: ApiSettings) -> Followers:
    return Followers(settings.max_followers, most_each=settings.max_client_followers)


def make_application(
    settings: ApiSettings,
    transport: Transport,
    conf: cfg.ConfigOpts = cfg.CONF,
    followers: Followers | None = None,
    issuer: Issuer | None = None,
    prove: Callable[[str], str] | None = None,
) -> WsgiApplication:
    """The WSGI application, for any server.

    :param issuer: has credentials made for stacks; None: they get none.
    :param followers: to stop them when the process ends.
    :param conf: filled; oslo.policy and keystonemiddleware read their own options from it.
    :param prove: returns the proof of identity for a nonce; None: the server proves nothing.
    :raises ConfigurationError: keystonemiddleware is not installed, or the file with the token is unusable.
    """
    options = replace(_options(settings), prove=prove)
    followers = followers or _followers(settings)
    application = Application(EngineClient(transport), Policy(Enforcer(conf)), options, followers, issuer)
    if options.authentication is Authentication.NOAUTH:
        return application
    try:
        from keystonemiddleware.auth_token import AuthProtocol
    except ImportError:
        raise ConfigurationError(
            '[api] authentication = keystone needs keystonemiddleware: pip install convergence-orchestration[keystone].'
        ) from None
    # The application itself answers 401: some routes need no token.
    verified: WsgiApplication = AuthProtocol(application, {'oslo_config_config': conf, 'delay_auth_decision': True})
    return _signed_first(application, verified)


def _signed_first(application: WsgiApplication, verified: WsgiApplication) -> WsgiApplication:
    """Keep Keystone out of requests that a signature opens: they carry no token.

    Headers that claim an identity are removed, so that such a request opens no other route.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if is_signal_path(environ.get('PATH_INFO', '')):
            strip_identity(environ)
            return application(environ, start_response)
        return verified(environ, start_response)

    return answer


def _token(settings: ApiSettings) -> str:
    """Return the token that requests must carry where no Keystone verifies them; empty: none."""
    if settings.token_file is not None:
        return local_token.made(settings.token_file)
    LOG.warning(
        'The API accepts requests without a token: every account of this machine can use it, with all that the account '
        'of the service may do'
    )
    return ''


def _options(settings: ApiSettings) -> ApplicationOptions:
    """How the application is to behave."""
    authentication = Authentication(settings.authentication)
    return ApplicationOptions(
        authentication,
        settings.public_url,
        settings.max_body_bytes,
        hosts=(settings.host, *settings.allowed_hosts),
        token=_token(settings) if authentication is Authentication.NOAUTH else '',
    )


def _serving(settings: ApiSettings) -> Serving:
    """How the server is to serve."""
    limits = ServingLimits(
        header_timeout_s=settings.header_timeout_s,
        body_timeout_s=settings.body_timeout_s,
        send_timeout_s=settings.send_timeout_s,
        keep_alive_s=settings.keep_alive_s,
        max_body_bytes=settings.max_body_bytes,
        max_connections=settings.max_connections,
        max_client_connections=settings.max_client_connections,
        max_client_requests=settings.max_client_requests,
        max_buffered_bytes=settings.max_buffered_bytes,
        max_client_buffered_bytes=settings.max_client_buffered_bytes,
    )
    tls = None
    if settings.cert_file:
        tls = Tls(Path(settings.cert_file), Path(settings.key_file) if settings.key_file else None)
    return Serving(limits, settings.max_followers, Proxies(settings.trusted_proxies), tls)


def only_health(application: WsgiApplication) -> WsgiApplication:
    """The part of an application that probes ask for."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get('PATH_INFO', '')
        if path == '/healthcheck' or path.startswith('/health/'):
            return application(environ, start_response)
        text = b'404 Not Found: this port serves /healthcheck and /health/... only\n'
        start_response('404 Not Found', [('Content-Type', 'text/plain'), ('Content-Length', str(len(text)))])
        return [text]

    return answer


class ApiProcess:
    """An API with its server.

    Not under green threads: its event loop needs a thread of its own.

    :param stop_s: seconds that running requests may take after a stop.
    :param close: gives back what it was made from.
    :param issuer: has credentials made for stacks; None: they get none.
    :param shown: makes what shows that this process is alive, from how busy it is; None: that is not shown.
    :raises ConfigurationError: the process runs on green threads, or the certificate cannot be used.
    """

    def __init__(
        self,
        settings: ApiSettings,
        transport: Transport,
        *,
        stop_s: float,
        close: Callable[[], None] = lambda: None,
        shown: Callable[[Callable[[], dict[str, int]]], ApiPresence] | None = None,
        conf: cfg.ConfigOpts = cfg.CONF,
        issuer: Issuer | None = None,
    ) -> None:
        if installed() is Executor.EVENTLET:
            raise ConfigurationError(
                '[DEFAULT] executor = eventlet: the API needs native threads. Run convergence-api, which has them '
                'with every executor of workers; [api] embedded = false leaves it out of convergence-all-in-one.'
            )
        self._stop_s = stop_s
        self._close = close
        self._followers = _followers(settings)
        secret = settings.secret
        prove = (lambda nonce: server_proof(secret, nonce, self.address)) if secret else None
        application = make_application(settings, transport, conf, self._followers, issuer, prove)
        serving, shared = _serving(settings), settings.workers > 1
        self._server = HttpServer(
            application, settings.host, settings.port, threads=settings.threads, shared=shared, serving=serving
        )
        self._health: HttpServer | None = None
        if settings.health_port is not None:
            self._health = HttpServer(
                only_health(application), settings.health_host, settings.health_port, threads=1, shared=shared
            )
        self._presence = shown(self._server.load) if shown is not None else None

    @property
    def address(self) -> str:
        """The URL under which it listens, once it is started."""
        return self._server.address

    @property
    def health_address(self) -> str | None:
        """The URL of the port for probes, once it is started; None: there is none."""
        return self._health.address if self._health is not None else None

    def start(self) -> None:
        """Take requests.

        :raises ConfigurationError: the address cannot be had.
        """
        self._server.start()
        if self._health is not None:
            self._health.start()
        if self._presence is not None:
            self._presence.start()

    def stop(self) -> bool:
        """Accept no more requests and finish the running ones. Return True if all ended in time."""
        self._followers.stop()
        ended = self._server.stop(self._stop_s)
        if self._health is not None:
            self._health.stop(HEALTH_STOP_S)
        if self._presence is not None:
            self._presence.stop()
        return ended

    def close(self) -> None:
        """Give back the connections."""
        self._close()
