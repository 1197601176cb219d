"""The heartbeat of a process: renews its lease in the roster, and reports when the lease is lost."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from convergence import lifetime
from convergence.concurrency import Lock, RunningThread, ThreadEvent, start_thread
from convergence.core.model import Json
from convergence.db.ports import RosterPort
from convergence.db.repositories.witness import Witness
from convergence.errors import ConvergenceError

LOG = logging.getLogger(__name__)

LAST_S = 2.0
"""Seconds that the threads of a stopping process have to end. A process must not hang on a slow database."""


@dataclass(frozen=True, slots=True)
class Presence:
    """The entry of a process in the roster.

    :param kind: ``api``, ``engine``, ``worker`` or ``observer``.
    :param lease_s: seconds after the last heartbeat at which other processes count this one as dead.
    """

    id: str
    kind: str
    host: str
    version: str
    lease_s: float


Load: TypeAlias = Mapping[str, int]
"""The load of a process: ``threads``, ``busy``, ``waiting``, ``stuck``, as far as it knows them."""


class Heartbeat:
    """Renews the lease of a process.

    The database may delay a renewal, or the work that follows one, for longer than the lease lasts. Three threads
    therefore share the work: one renews, one watches the clock, one runs `on_beat`.

    :param on_beat: called after each renewal, but not again before it has returned.
    :param on_lost: called when the lease was not renewed in time or another process ended it; and again after each
        further lease time without a renewal.
    :param load: returns the load that each heartbeat stores.
    :param witness: sends the heartbeats and checks the database with each; None: the roster sends them, unchecked.
    """

    def __init__(
        self,
        roster: RosterPort,
        presence: Presence,
        interval_s: float,
        *,
        on_beat: Callable[[], None] | None = None,
        on_lost: Callable[[], None] | None = None,
        load: Callable[[], Load] | None = None,
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
        if self._on_beat is not None:
            self._threads.append(start_thread('heartbeat-follow', partial(self._follow, self._on_beat)))

    def stop(self) -> None:
        """Sign off, so that other processes need not wait for the lease to expire.

        A renewal in progress has `LAST_S` to end.
        """
        self._stopping.set()
        self._beaten.set()
        try:
            self._roster.leave(self._presence.id)
        except Exception as error:  # noqa: BLE001 - the process stops in any case; its lease expires
            LOG.warning('Could not sign off; the lease of this process expires by itself: %s', error)
        ends = time.monotonic() + LAST_S
        for thread in self._threads:
            thread.wait(max(0.0, ends - time.monotonic()))

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            begun = time.monotonic()
            try:
                known = self._beat()
            except Exception as error:  # noqa: BLE001 - any database error; the next beat retries
                LOG.warning('Heartbeat failed, retrying: %s', error)
                continue
            if self._stopping.is_set():
                return
            if known:
                self._committed(begun)
                self._beaten.set()
            else:
                self._lost()
                self._register_again()

    def _beat(self) -> bool:
        """Store process id and load; return False if the roster does not contain the process."""
        load: dict[str, Json] = {**self._own, **(self._load() if self._load is not None else {})}
        return self._roster.beat(self._presence.id, load) if self.witness is None else self.witness.beat(load)

    def _watch(self) -> None:
        # Often enough to notice the loss well before a second lease time has passed.
        while not self._stopping.wait(min(self._interval_s, self._presence.lease_s / 4)):
            with self._lock:
                is_over = time.monotonic() > self._holds_until
            if is_over:
                self._lost()

    def _follow(self, on_beat: Callable[[], None]) -> None:
        while True:
            self._beaten.wait()
            self._beaten.clear()
            if self._stopping.is_set():
                return
            try:
                on_beat()
            except Exception as error:  # noqa: BLE001 - the next beat retries
                LOG.warning('Work that follows a heartbeat failed, retrying after the next one: %s', error)

    def holds(self) -> bool:
        """Return True if a heartbeat was committed within the lease: the process is known, its database answers."""
        with self._lock:
            return time.monotonic() < self._beaten_at + self._presence.lease_s

    def _committed(self, since: float) -> None:
        with self._lock:
            self._beaten_at = since
        self._prolong(since)

    def _prolong(self, since: float) -> None:
        """Extend the lease from `since`, a moment before the renewal: the database's clock may start only then."""
        with self._lock:
            self._holds_until = max(self._holds_until, since + self._presence.lease_s)

    def _lost(self) -> None:
        LOG.error(
            'Lease lost: the %s %s could not renew it in time; giving up its work and registering again',
            *(self._presence.kind, self._presence.id),
        )
        self._prolong(time.monotonic())
        if self._on_lost is None:
            return
        try:
            self._on_lost()
        except Exception:
            LOG.exception('Could not end the work of this process after its lease was lost; restart the process')

    def _register(self) -> None:
        known = self._presence
        self._roster.register(known.id, known.kind, known.host, known.version, known.lease_s, self._own)

    def _sign_off_the_ended(self) -> None:
        """Sign off processes of this machine that ended without signing off, so that their leases need not expire.

        A new process usually replaces one that its supervisor saw end.
        """
        try:
            for other in self._roster.services():
                left = other.load.get('mark')
                if isinstance(left, str) and lifetime.has_ended(left):
                    LOG.warning(
                        'Signing off the %s %s of this machine: it ended without doing so', other.kind, other.id
                    )
                    self._roster.leave(other.id)
        except ConvergenceError as error:
            LOG.warning('Could not search for ended processes of this machine; their leases expire: %s', error)

    def _register_again(self) -> None:
        """Register under the same id: every claim under it has been given up or is fenced."""
        begun = time.monotonic()
        try:
            self._register()
            self._committed(begun)
        except Exception as error:  # noqa: BLE001 - the next beat retries
            LOG.warning('Registration failed, retrying with the next heartbeat: %s', error)
