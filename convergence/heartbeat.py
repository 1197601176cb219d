"""Show that a process is alive, and notice when the others must take it for dead."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from convergence import lifetime
from convergence.concurrency import Lock, RunningThread, ThreadEvent, start_thread
from convergence.core.model import Json
from convergence.db.ports import RosterPort
from convergence.db.repositories.witness import Witness
from convergence.errors import ConvergenceError

LOG = logging.getLogger(__name__)

LAST_S = 2.0
"""Seconds that what a process does again and again is given to come to its end when the process stops."""


@dataclass(frozen=True, slots=True)
class Presence:
    """How a process is known to the others.

    :param kind: ``api``, ``engine`` or ``worker``.
    :param lease_s: seconds after its last heartbeat at which it is taken for dead.
    """

    id: str
    kind: str
    host: str
    version: str
    lease_s: float


Load: TypeAlias = Mapping[str, int]
"""How busy a process is: ``threads``, ``busy``, ``waiting``, ``stuck``, as far as it knows."""


def nothing() -> None:
    """The default of what happens with a heartbeat."""


def no_load() -> Load:
    """The default of what is told about a process."""
    return {}


class Heartbeat:
    """Renews the lease of a process from a thread of its own.

    The database may keep a renewal waiting for longer than the lease lasts, and so may what is done after one. So these
    are three threads: one renews, one looks at the clock, one does what follows a renewal.

    :param on_beat: called after each renewal, but not again before it has returned.
    :param on_lost: called when the lease could not be renewed in time, or somebody has ended it; and again after each
        further time of a lease without a renewal.
    :param load: what to tell with each heartbeat about how busy the process is.
    :param witness: sends the heartbeats, and checks with each if the database has lost commits; None: no such check.
    """

    def __init__(
        self,
        roster: RosterPort,
        presence: Presence,
        interval_s: float,
        *,
        on_beat: Callable[[], None] = nothing,
        on_lost: Callable[[], None] = nothing,
        load: Callable[[], Load] = no_load,
        witness: Witness | None = None,
    ) -> None:
        self.witness = witness
        self._roster = roster
        self._presence = presence
        self._interval_s = interval_s
        self._on_beat = on_beat
        self._on_lost = on_lost
        self._load = load
        self._own: dict[str, Json] = {}
        self._threads: list[RunningThread] = []
        self._stopping = ThreadEvent()
        self._beaten = ThreadEvent()
        self._lock = Lock()
        self._holds_until = 0.0
        self._beaten_at = -math.inf

    def start(self) -> None:
        """Register the process and begin to renew its lease."""
        self._own = {'pid': os.getpid(), 'mark': lifetime.mark()}
        begun = time.monotonic()
        self._register()
        self._committed(begun)
        self._sign_off_the_ended()
        self._threads.append(start_thread('heartbeat', self._run))
        self._threads.append(start_thread('heartbeat-watch', self._watch))
        if self._on_beat is not nothing:
            self._threads.append(start_thread('heartbeat-follow', self._follow))

    def stop(self) -> None:
        """Sign off: the others need not wait for the lease to run out. A renewal in progress is given `LAST_S`."""
        self._stopping.set()
        self._beaten.set()
        try:
            self._roster.leave(self._presence.id)
        except Exception as error:  # noqa: BLE001 - we are leaving anyhow; the lease will run out
            LOG.warning('This process could not sign off; its lease has to run out: %s', error)
        ends = time.monotonic() + LAST_S
        for thread in self._threads:
            thread.wait(max(0.0, ends - time.monotonic()))

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            begun = time.monotonic()
            try:
                known = self._beat()
            except Exception as error:  # noqa: BLE001 - whatever the database says, the next beat tries again
                LOG.warning('This process could not send its heartbeat: %s', error)
                continue
            if self._stopping.is_set():
                return
            if known:
                self._committed(begun)
                self._beaten.set()
            else:
                self._lost()
                self._again()

    def _beat(self) -> bool:
        """Tell of the process its number and how busy it is; whether it is known."""
        told: dict[str, Json] = {**self._own, **self._load()}
        return self._roster.beat(self._presence.id, told) if self.witness is None else self.witness.beat(told)

    def _watch(self) -> None:
        # Often enough to notice well before another lease is over.
        while not self._stopping.wait(min(self._interval_s, self._presence.lease_s / 4)):
            with self._lock:
                is_over = time.monotonic() > self._holds_until
            if is_over:
                self._lost()

    def _follow(self) -> None:
        while True:
            self._beaten.wait()
            self._beaten.clear()
            if self._stopping.is_set():
                return
            try:
                self._on_beat()
            except Exception as error:  # noqa: BLE001 - the next beat tries again
                LOG.warning('This process could not do what follows a heartbeat: %s', error)

    def holds(self) -> bool:
        """Whether a heartbeat was committed within the lease: the process is known, and its database answers."""
        with self._lock:
            return time.monotonic() < self._beaten_at + self._presence.lease_s

    def _committed(self, since: float) -> None:
        with self._lock:
            self._beaten_at = since
        self._prolong(since)

    def _prolong(self, since: float) -> None:
        """The lease lasts from `since`, a moment before the renewal: the database's clock may have begun only then."""
        with self._lock:
            self._holds_until = max(self._holds_until, since + self._presence.lease_s)

    def _lost(self) -> None:
        LOG.error('The lease of this %s (%s) is lost', self._presence.kind, self._presence.id)
        self._prolong(time.monotonic())
        try:
            self._on_lost()
        except Exception:
            LOG.exception('This process has failed to end its work after the loss of its lease')

    def _register(self) -> None:
        known = self._presence
        self._roster.register(known.id, known.kind, known.host, known.version, known.lease_s, self._own)

    def _sign_off_the_ended(self) -> None:
        """Sign off what ran on this machine and has ended without doing so: nobody needs to wait for its lease.

        Whoever is started takes the place of somebody, as a rule: of the process that its supervisor has seen end.
        """
        try:
            for other in self._roster.services():
                left = other.load.get('mark')
                if isinstance(left, str) and lifetime.has_ended(left):
                    LOG.warning('The %s %s of this machine has ended without signing off', other.kind, other.id)
                    self._roster.leave(other.id)
        except ConvergenceError as error:
            LOG.warning('This process could not look for those that have ended; their leases run out: %s', error)

    def _again(self) -> None:
        """Come back under the same id: everything held under it has been given up or is fenced."""
        begun = time.monotonic()
        try:
            self._register()
            self._committed(begun)
        except Exception as error:  # noqa: BLE001 - the next beat tries again
            LOG.warning('This process could not register again: %s', error)
