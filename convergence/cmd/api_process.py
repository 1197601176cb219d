"""The API of one process: the application with its policy and whoever verifies tokens, and the server before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from oslo_policy.policy import Enforcer

from convergence.api.application import Application, Options
from convergence.api.event_stream import Followers
from convergence.api.identity import Authentication
from convergence.api.policy import Policy
from convergence.api.server import HttpServer
from convergence.cmd.api_presence import ApiPresence
from convergence.config import ApiSettings
from convergence.errors import ConfigurationError
from convergence.rpc.client import EngineClient
from convergence.rpc.transport import Transport

WsgiApplication = Callable[..., Any]


def make_application(
    settings: ApiSettings, transport: Transport, conf: cfg.ConfigOpts = cfg.CONF, followers: Followers | None = None
) -> WsgiApplication:
    """The WSGI application, for any server.

    :param followers: to stop them when the process ends.
    :param conf: filled; oslo.policy and keystonemiddleware read their own options from it.
    :raises ConfigurationError: keystonemiddleware is wanted and not installed.
    """
    options = Options(Authentication(settings.authentication), settings.public_url, settings.max_body_bytes)
    followers = followers or Followers(settings.max_followers)
    application = Application(EngineClient(transport), Policy(Enforcer(conf)), options, followers)
    if options.authentication is Authentication.NOAUTH:
        return application
    try:
        from keystonemiddleware.auth_token import AuthProtocol
    except ImportError:
        raise ConfigurationError(
            '[api] authentication = keystone needs keystonemiddleware: pip install convergence[keystone].'
        ) from None
    # The application itself says 401: some of it is for anybody.
    verified: WsgiApplication = AuthProtocol(application, {'oslo_config_config': conf, 'delay_auth_decision': True})
    return verified


class ApiProcess:
    """An API with its server.

    :param stop_s: seconds that requests in hand are given when it is stopped.
    :param close: gives back what it was made from.
    :param shown: makes what shows that this process is alive, from how busy it is; None: that is not shown.
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
    ) -> None:
        self._stop_s = stop_s
        self._close = close
        self._followers = Followers(settings.max_followers)
        self._server = HttpServer(
            make_application(settings, transport, conf, self._followers),
            settings.host,
            settings.port,
            threads=settings.threads,
            shared=settings.workers > 1,
        )
        self._presence = shown(self._server.load) if shown is not None else None

    @property
    def address(self) -> str:
        """The URL under which it listens, once it is started."""
        return self._server.address

    def start(self) -> None:
        """Take requests.

        :raises ConfigurationError: the address cannot be had.
        """
        self._server.start()
        if self._presence is not None:
            self._presence.start()

    def stop(self) -> bool:
        """Take no more requests, finish those in hand; whether all of them ended in time."""
        self._followers.stop()
        ended = self._server.stop(self._stop_s)
        if self._presence is not None:
            self._presence.stop()
        return ended

    def close(self) -> None:
        """Give back the connections."""
        self._close()
