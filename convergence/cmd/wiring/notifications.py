"""Notifications to webhooks and to the notification bus, wired from settings."""

from __future__ import annotations

import os
from collections.abc import Callable

from oslo_config import cfg

from convergence.config import Settings
from convergence.db.ports import Ports
from convergence.db.repositories.outbox import Outbox
from convergence.db.repositories.progress import UntoldProgress
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.repositories.webhooks import WebhookRows
from convergence.db.statements.applying.outbox import Audience
from convergence.db.statements.store import Store
from convergence.engine.notifications.addresses import networks
from convergence.engine.notifications.names import NameResolution
from convergence.engine.notifications.progress import ProgressReports
from convergence.engine.notifications.relay import Relay, RelayOptions, RelayPorts
from convergence.engine.notifications.sending import HttpSender
from convergence.engine.notifications.sinks import EventSinks
from convergence.engine.notifications.webhooks import WebhookLimits, Webhooks
from convergence.engine.operations.stacks import Stacks
from convergence.rpc.notifier import NotificationBus, is_configured


def audience(settings: Settings, conf: cfg.ConfigOpts) -> Audience:
    """Return the receivers of notifications about stacks."""
    if is_configured(conf):
        return Audience.ALL
    return Audience.WEBHOOKS if settings.notifications.webhooks else Audience.NONE


class ToldOutside:
    """The part of an engine that tells those outside.

    :param another_sweeps: whether another engine does what one engine does at a time.
    :raises ConfigurationError: a network, or the address of a broker, is none.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        ports: Ports,
        engine_id: str,
        new_id: Callable[[], str],
        another_sweeps: Callable[[], bool],
    ) -> None:
        configured = settings.notifications
        self._new_id = new_id
        self._rows = WebhookRows(store)
        self._limits = WebhookLimits(configured.webhooks, configured.max_webhooks_per_project)
        self._sender = HttpSender(
            configured.timeout_s, networks(configured.allowed_networks), NameResolution(configured.timeout_s)
        )
        self._bus = NotificationBus.configured(cfg.CONF, settings.transport.url, settings.host)
        progress = ProgressReports(
            UntoldProgress(store), store, StackReader(store), new_id, settings.engine.progress_interval_s
        )
        self._relay = Relay(
            RelayPorts(ports.sweeps, Outbox(store), self._rows, progress, self._sender, self._bus, ports.pending),
            engine_id,
            RelayOptions(configured.interval_s, configured.threads, configured.timeout_s, configured.give_up_after_s),
            # The engine that sweeps asks with every turn.
            another_asks=another_sweeps,
        )

    def webhooks(self, stacks: Stacks) -> Webhooks:
        """Return the operations on webhooks, and let environments name webhooks from now on."""
        if self._limits.enabled:
            stacks.event_sinks = EventSinks(self._rows.telling)
        return Webhooks(self._rows, stacks, self._sender, self._limits, self._new_id, os.urandom)

    def start(self) -> None:
        """Begin to tell."""
        self._relay.start()

    def stop(self) -> None:
        """Begin to tell nothing more. Returns at once."""
        self._relay.stop()

    def close(self, timeout_s: float) -> None:
        """After `stop`: wait at most so long for running deliveries, and leave the notification bus."""
        self._relay.wait(timeout_s)
        if self._bus is not None:
            self._bus.close()
