"""Notifications as the field's services send them: oslo.messaging has the options for drivers and topics."""

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
    """Remembers what could not be sent: the drivers of notifications only log it."""

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
    """Publishes what happens to stacks.

    :param publisher_id: who publishes it.
    """

    def __init__(self, transport: NotificationTransport, publisher_id: str) -> None:
        self._transport = _Strict(transport._driver)
        self._notifier = oslo_messaging.Notifier(self._transport, publisher_id=publisher_id, retry=1)

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, url: str, host: str) -> Self | None:
        """What ``[oslo_messaging_notifications]`` says; None where no driver is set.

        :param url: of the broker, where that section names no other.
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
                f'[{GROUP}] transport_url: it cannot be used; it looks like rabbit://user:password@host:5672/'
            ) from None
        return cls(transport, f'{SERVICE}.{host}')

    def tell(self, notice: StackNotice) -> None:
        """Publish a notification.

        :raises MessagingUnavailable: the broker has not taken it.
        """
        self._transport.error = None
        publish = self._notifier.error if notice.kind is NoticeKind.ERROR else self._notifier.info
        publish({}, notice.event_type, notice.payload())
        if self._transport.error is not None:
            raise MessagingUnavailable(
                f'The broker of notifications does not answer ({type(self._transport.error).__name__}).'
            )

    def close(self) -> None:
        """Give back the connection."""
        self._transport.cleanup()


def is_configured(conf: cfg.ConfigOpts) -> bool:
    """Whether notifications are sent at all."""
    for group, options in oslo_messaging.opts.list_opts():
        if group == GROUP:
            conf.register_opts(options, group)
    return any(driver not in _SILENT for driver in conf[GROUP].driver)
