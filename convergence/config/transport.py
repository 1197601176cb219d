"""How the processes reach each other."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        'url',
        default='memory://',
        secret=True,
        help='URL of the message broker, for example rabbit://user:password@host:5672/. memory:// connects the '
        'services of one process (convergence-all-in-one) and needs no broker. How the broker is used is set by '
        'the options of oslo.messaging, such as [oslo_messaging_rabbit] ssl.',
    ),
    cfg.IntOpt(
        'response_timeout_s', default=60, min=1, help='Seconds that a caller waits for the answer of an engine.'
    ),
]


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """How to reach the broker. `url` may hold a password: never show it."""

    url: str = 'memory://'
    response_timeout_s: int = 60
