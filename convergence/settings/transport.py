"""Settings of the message broker."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """The section ``transport``. `url` may hold a password: never show it."""

    url: str = option(
        'memory://',
        'URL of the message broker, for example rabbit://user:password@host:5672/. memory:// connects the services of '
        'one process (convergence-all-in-one) and needs no broker. The options of oslo.messaging, such as '
        '[oslo_messaging_rabbit] ssl, set the details.',
        secret=True,
    )
    response_timeout_s: int = option(60, 'Seconds that a caller waits for the answer of an engine.', min=1)
