"""Sends notifications with oslo.messaging, as OpenStack services do. oslo.messaging defines the options."""

from __future__ import annotations

from typing import Any, Self

import oslo_messaging
import oslo_messaging.opts
from oslo_config import cfg
from oslo_messaging.transport import NotificationTransport

from convergence.errors import ConfigurationError, MessagingUnavailable
from convergence.notices import SERVICE, NoticeKind, StackNotice
from convergence.rpc.memory import MemoryDriver

GROUP = 'oslo_messaging_notifications'
_SILENT = ('', 'noop')


class _Strict(NotificationTransport):  # type: ignore[misc]
    """Keeps the error of a failed notification: the notification drivers of oslo.messaging only log it."""

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self.error: Exception | None = None

    def _send_notification(self, *arguments: Any, **options: Any) -> None:
        try:
            super()._send_notification(*arguments, **options)
        except Exception as error:
            self.error = error
            raise


class NotificationBus:
    """Publishes notices of stacks as notifications.

    :param publisher_id: name of the sender in each notification.
    """

    def __init__(self, transport: NotificationTransport, publisher_id: str) -> None:
        self._transport = _Strict(transport._driver)
        self._notifier = oslo_messaging.Notifier(self._transport, publisher_id=publisher_id, retry=1)

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, url: str, host: str) -> Self | None:
        """Return the bus that ``[oslo_messaging_notifications]`` configures; None if no driver is set.

        :param url: address of the broker, used if that section sets none.
        :param host: name of this machine, a part of the publisher id.
        :raises ConfigurationError: the address of the broker is wrong.
        """
        if not is_configured(conf):
            return None
        try:
            chosen = conf[GROUP].transport_url or url
            parsed = oslo_messaging.TransportURL.parse(conf, chosen)
            if parsed.transport == 'memory':
                transport = NotificationTransport(MemoryDriver(conf, parsed, 'notifications', []))
            else:
                transport = oslo_messaging.get_notification_transport(conf, parsed)
        except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure, ValueError):
            raise ConfigurationError(
                f'[{GROUP}] transport_url: the URL is not valid; write it as rabbit://user:password@host:5672/'
            ) from None
        return cls(transport, f'{SERVICE}.{host}')

    def tell(self, notice: StackNotice) -> None:
        """Publish a notification.

        :raises MessagingUnavailable: the broker did not accept it.
        """
        self._transport.error = None
        publish = self._notifier.error if notice.kind is NoticeKind.ERROR else self._notifier.info
        publish({}, notice.event_type, notice.payload())
        if self._transport.error is not None:
            raise MessagingUnavailable(
                f'The broker of notifications does not answer ({type(self._transport.error).__name__}).'
            )

    def close(self) -> None:
        """Close the connection."""
        self._transport.cleanup()


def is_configured(conf: cfg.ConfigOpts) -> bool:
    """Return True if the configuration sets a driver that sends notifications."""
    for group, options in oslo_messaging.opts.list_opts():
        if group == GROUP:
            conf.register_opts(options, group)
    return any(driver not in _SILENT for driver in conf[GROUP].driver)
