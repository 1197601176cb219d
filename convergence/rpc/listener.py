"""Hears the notifications that services of the field send by oslo.messaging."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oslo_messaging
import oslo_messaging.opts
from oslo_config import cfg
from oslo_messaging.transport import NotificationTransport

from convergence.concurrency import ThreadEvent, start_thread
from convergence.errors import ConfigurationError
from convergence.rpc.memory import MemoryDriver

LOG = logging.getLogger(__name__)

AGAIN_S = 10.0
"""Pause after which a broker is asked again that has not answered."""

Hear = Callable[[str, object], None]
"""Called with the type of an event, and its payload; in threads of the listener."""


class NotificationListener:
    """Hears what is sent to some topics. Listeners of the same name share it; it is taken away from nobody else.

    :param url: of the broker.
    :param exchanges: to which services send, usually one for each, of its name; `topics` are those of each of them.
    :param name: of all who share what is sent.
    :raises ConfigurationError: the address of the broker is wrong.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, url: str, exchanges: Sequence[str], topics: Sequence[str], name: str, hear: Hear
    ) -> None:
        for group, options in oslo_messaging.opts.list_opts():
            conf.register_opts(options, group)
        try:
            parsed = oslo_messaging.TransportURL.parse(conf, url)
            in_process = parsed.transport == 'memory'
            transport = (
                NotificationTransport(MemoryDriver(conf, parsed, 'notifications', []))
                if in_process
                else oslo_messaging.get_notification_transport(conf, parsed)
            )
        except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure, ValueError):
            raise ConfigurationError(
                '[observer] notification_url: it cannot be used; it looks like rabbit://user:password@host:5672/'
            ) from None
        targets = [oslo_messaging.Target(topic=topic, exchange=exchange) for exchange in exchanges for topic in topics]
        self._transport = transport
        self._server = oslo_messaging.get_notification_listener(
            transport, targets, [_Endpoint(hear)], pool=None if in_process else name
        )
        self._stopping = ThreadEvent()
        self._started = ThreadEvent()

    def start(self) -> None:
        """Begin to listen, as soon as the broker answers; returns at once."""
        start_thread('notifications', self._begin)

    def stop(self) -> None:
        """Listen no more, and give back the connection."""
        self._stopping.set()
        if self._started.is_set():
            self._server.stop()
            self._server.wait()
        self._transport.cleanup()

    def _begin(self) -> None:
        while not self._stopping.is_set():
            try:
                self._server.start()
            except Exception as error:  # noqa: BLE001 - each driver has its own errors
                LOG.warning('The broker of notifications does not answer, and is asked again: %s', type(error).__name__)
                self._stopping.wait(AGAIN_S)
            else:
                self._started.set()
                return


class _Endpoint:
    """A method for each priority that is listened to."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear

    def info(self, context: Any, publisher: str, event_type: str, payload: object, about: Mapping[str, Any]) -> None:
        """Hand it on."""
        self._hear(event_type, payload)

    error = info
