"""Receives the notifications that OpenStack services send with oslo.messaging."""

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
"""Seconds between two attempts to reach a broker that does not answer."""

Hear = Callable[[str, object], None]
"""Handler of notifications: called with the event type and the payload, in threads of the listener."""


class NotificationListener:
    """Receives notifications of some topics. Listeners of one name share them; other receivers still get all.

    :param url: address of the broker.
    :param exchanges: exchanges of the services, usually one per service and named after it.
    :param topics: topics to listen to in each exchange.
    :param name: name of the pool of listeners that share the notifications.
    :param hear: handler of the notifications.
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
                '[observer] notification_url: the URL is not valid; write it as rabbit://user:password@host:5672/'
            ) from None
        targets = [oslo_messaging.Target(topic=topic, exchange=exchange) for exchange in exchanges for topic in topics]
        self._transport = transport
        self._server = oslo_messaging.get_notification_listener(
            transport, targets, [_Endpoint(hear)], pool=None if in_process else name
        )
        self._stopping = ThreadEvent()
        self._started = ThreadEvent()

    def start(self) -> None:
        """Start a thread that begins to listen as soon as the broker answers; return at once."""
        start_thread('notifications', self._begin)

    def stop(self) -> None:
        """Stop listening and close the connection."""
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
                LOG.warning('The broker of notifications does not answer, retrying: %s', type(error).__name__)
                self._stopping.wait(AGAIN_S)
            else:
                self._started.set()
                return


class _Endpoint:
    """Receives notifications of the priorities ``info`` and ``error``, one method for each."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear

    def info(self, context: Any, publisher: str, event_type: str, payload: object, about: Mapping[str, Any]) -> None:
        """Pass the notification to the handler."""
        self._hear(event_type, payload)

    error = info
