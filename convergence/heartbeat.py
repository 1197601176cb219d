"""Show that a process is alive, and notice when the others must take it for dead."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from convergence.concurrency import Event, start_thread
from convergence.db.roster import Roster

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Presence:
    """How a process is known to the others.

    :param kind: ``engine`` or ``worker``.
    :param lease_s: seconds after its last heartbeat at which it is taken for dead.
    """

    id: str
    kind: str
    host: str
    version: str
    lease_s: float


def nothing() -> None:
    """The default of what happens with a heartbeat."""


class Heartbeat:
    """Renews the lease of a process from a thread of its own.

    :param on_beat: called after each renewal.
    :param on_lost: called when the lease could not be renewed in time, or somebody has ended it.
    """

    def __init__(
        self,
        roster: Roster,
        presence: Presence,
        interval_s: float,
        *,
        on_beat: Callable[[], None] = nothing,
        on_lost: Callable[[], None] = nothing,
    ) -> None:
        self._roster = roster
        self._presence = presence
        self._interval_s = interval_s
        self._on_beat = on_beat
        self._on_lost = on_lost
        self._stopping = Event()

    def start(self) -> None:
        """Register the process and begin to renew its lease."""
        known = self._presence
        self._roster.register(known.id, known.kind, known.host, known.version, known.lease_s)
        start_thread('heartbeat', self._run)

    def stop(self) -> None:
        """Sign off: the others need not wait for the lease to run out."""
        self._stopping.set()
        try:
            self._roster.leave(self._presence.id)
        except Exception as error:  # noqa: BLE001 - we are leaving anyhow; the lease will run out
            LOG.warning('Could not sign off: %s', error)

    def _run(self) -> None:
        renewed = time.monotonic()
        while not self._stopping.wait(self._interval_s):
            begun = time.monotonic()
            known = True
            try:
                known = self._roster.beat(self._presence.id)
                renewed = begun if known else renewed
                self._on_beat()
            except Exception as error:  # noqa: BLE001 - whatever the database says, the next beat tries again
                LOG.warning('No heartbeat: %s', error)
            if self._stopping.is_set():
                return
            if not known or time.monotonic() - renewed > self._presence.lease_s:
                LOG.error('The lease of this %s (%s) is lost', self._presence.kind, self._presence.id)
                self._on_lost()
                self._again()
                renewed = time.monotonic()

    def _again(self) -> None:
        """Come back under the same id: everything held under it has been given up or is fenced."""
        try:
            known = self._presence
            self._roster.register(known.id, known.kind, known.host, known.version, known.lease_s)
        except Exception as error:  # noqa: BLE001 - the next beat tries again
            LOG.warning('Could not register again: %s', error)
