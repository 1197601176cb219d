"""An observer, put together from settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg

from convergence import __version__
from convergence.cmd.wiring.parts import Parts, observed_types
from convergence.db.repositories.wiring import ports_of
from convergence.db.repositories.witness import Witness
from convergence.dispatch import Dispatcher
from convergence.heartbeat import Presence
from convergence.observer.budget import CallBudget
from convergence.observer.observation_task import ObservationTask
from convergence.observer.observer import Observer, Pacing
from convergence.observer.service import KIND, ObserverService
from convergence.observer.watching import NotificationReader, Waker, WatchService
from convergence.randomness import new_id
from convergence.resources.contract import ResourceType
from convergence.resources.invocation import CallAccess
from convergence.rpc.client import EngineClient, WorkerClient
from convergence.rpc.listener import NotificationListener
from convergence.worker.attempts.credentials import CredentialsOfStacks


class ObserverProcess:
    """An observer with its parts.

    :param owns_parts: whether to close them with it.
    :ivar observer: observes the objects.
    """

    def __init__(self, parts: Parts, *, owns_parts: bool = True) -> None:
        self._parts = parts
        self._owns_parts = owns_parts
        settings, ports, service_id = parts.settings, ports_of(parts.store), new_id()
        configured = settings.observer
        credentials = CredentialsOfStacks(
            ports.credentials, parts.keystone, settings.credentials.region, settings.credentials.interface
        )
        pacing = Pacing(
            observed_types(parts),
            threads=configured.threads,
            timeout_s=configured.timeout_s,
        )
        budget = CallBudget(configured.calls_per_minute or None, time.monotonic)
        task = ObservationTask(
            parts.types, CallAccess(ports.reader.signals, ports.software, credentials), settings.limits.max_stored_bytes
        )
        self.observer = Observer(
            ports.observations, task, pacing, budget, new_id, drifted=EngineClient(parts.transport).drifted
        )
        waker = Waker(ports.store, Dispatcher(ports.store, WorkerClient(parts.transport), new_id))
        watching = WatchService(ports.watched, ports.observations, _watched_types(parts), self.observer.hurry, waker)
        self.service = ObserverService(
            self.observer,
            budget,
            ports.roster,
            Presence(service_id, KIND, settings.host, __version__, settings.engine.lease_s),
            settings.engine.heartbeat_interval_s,
            watching if configured.watch else None,
            witness=Witness(parts.store, service_id, settings.engine.lease_s),
        )
        self._listener = _listener(parts, watching.report)

    def start(self) -> None:
        """Begin to observe."""
        self.service.start()
        if self._listener is not None:
            self._listener.start()

    def stop(self) -> bool:
        """Stop observing; return False if an observation did not end in time."""
        if self._listener is not None:
            self._listener.stop()
        return self.service.stop()

    def close(self) -> None:
        """Give back the connections."""
        if self._owns_parts:
            self._parts.close()


def _watched_types(parts: Parts) -> Mapping[str, ResourceType[Any]]:
    """Return the observed types that send notifications about their objects."""
    kinds = {name: parts.types.get(name) for name in observed_types(parts)}
    return {name: kind for name, kind in kinds.items() if kind.implements('watcher')}


def _listener(parts: Parts, tell: Callable[[str, str], None]) -> NotificationListener | None:
    """Listens to services, if the configuration names topics and a type handles their notifications.

    :raises ConfigurationError: the address of the broker is wrong.
    """
    configured, kinds = parts.settings.observer, {name: parts.types.get(name) for name in parts.types.names()}
    heard = {name: kind for name, kind in kinds.items() if kind.implements('notified')}
    if not (configured.watch and configured.notification_topics and heard):
        return None
    return NotificationListener(
        cfg.CONF,
        configured.notification_url or parts.settings.transport.url,
        configured.notification_exchanges,
        configured.notification_topics,
        f'{cfg.CONF.control_exchange}_observers',
        NotificationReader(heard, tell),
    )
