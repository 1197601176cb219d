"""The API for any WSGI server: ``application``, for example ``gunicorn --threads 8 convergence.cmd.wsgi:application``.

It reads the configuration as ``convergence-api`` does, and connects with the first request: so each process that the
server forks has connections of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from convergence import config, logs
from convergence.api.serving.gateway import WsgiApplication
from convergence.cmd import api
from convergence.cmd.process.program import require_broker
from convergence.concurrency import Lock

_lock = Lock()
_made: list[WsgiApplication] = []


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer a request."""
    with _lock:
        if not _made:
            _made.append(_make())
    return _made[0](environ, start_response)


def _make() -> WsgiApplication:
    from convergence.cmd.wiring.api import make_application
    from convergence.cmd.wiring.keys import configured_seal
    from convergence.cmd.wiring.keystone import issuer_of
    from convergence.cmd.wiring.parts import open_transport

    settings = config.load([], process=api.NAME)
    logs.set_up(cfg.CONF, api.NAME)
    require_broker(settings, api.NAME)
    issuer = issuer_of(settings, configured_seal(settings.secrets))
    return make_application(settings.api, open_transport(settings), issuer=issuer)
