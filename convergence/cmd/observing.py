"""An observer, put together from settings."""

from __future__ import annotations

import time

from convergence import __version__
from convergence.cmd.assembly import Parts, new_id, observed_types
from convergence.db.ports import Ports
from convergence.db.queries.witness import Witness
from convergence.heartbeat import Presence
from convergence.observer.budget import CallBudget
from convergence.observer.looking import Looking
from convergence.observer.observer import Observer, Pacing
from convergence.observer.service import KIND, ObserverService
from convergence.resources.invocation import CallAccess
from convergence.worker.credentials import CredentialsOfStacks


class ObserverProcess:
    """An observer with its parts.

    :param owns_parts: whether to close them with it.
    """

    def __init__(self, parts: Parts, *, owns_parts: bool = True) -> None:
        self._parts = parts
        self._owns_parts = owns_parts
        settings, ports, service_id = parts.settings, Ports.of(parts.store), new_id()
        observer = settings.observer
        credentials = CredentialsOfStacks(
            ports.credentials, parts.keystone, settings.credentials.region, settings.credentials.interface
        )
        pacing = Pacing(
            observed_types(parts),
            threads=observer.threads,
            timeout_s=observer.timeout_s,
        )
        budget = CallBudget(observer.calls_per_minute or None, time.monotonic)
        looking = Looking(
            parts.types, CallAccess(ports.reader.signals, ports.software, credentials), settings.limits.max_stored_bytes
        )
        self.service = ObserverService(
            Observer(ports.observations, looking, pacing, budget, new_id),
            budget,
            ports.roster,
            Presence(service_id, KIND, settings.host, __version__, settings.engine.lease_s),
            settings.engine.heartbeat_interval_s,
            pacing,
        )
        self.service.heartbeat.witness = Witness(parts.store, service_id, settings.engine.lease_s)

    def start(self) -> None:
        """Begin to look."""
        self.service.start()

    def stop(self) -> bool:
        """Look at nothing more; whether what was in hand has ended in time."""
        return self.service.stop()

    def close(self) -> None:
        """Give back the connections."""
        if self._owns_parts:
            self._parts.close()
