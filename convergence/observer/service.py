"""The observer service of one process: sends heartbeats, observes objects and stops in order."""

from __future__ import annotations

import logging

from convergence.db.ports import RosterPort
from convergence.db.repositories.witness import Witness
from convergence.errors import ConvergenceError
from convergence.heartbeat import Heartbeat, Load, Presence
from convergence.observer.budget import CallBudget
from convergence.observer.observer import Observer
from convergence.observer.watching import WatchService

LOG = logging.getLogger(__name__)

KIND = 'observer'
"""The kind of this process in the roster."""


class ObserverService:
    """Observes objects from `start` to `stop`.

    :param observer: made with `budget`.
    :param watching: makes objects due when they are reported; None: objects are observed at intervals only.
    :param witness: sends the heartbeats and detects a lost database state; None: nothing detects that.
    """

    def __init__(
        self,
        observer: Observer,
        budget: CallBudget,
        roster: RosterPort,
        presence: Presence,
        heartbeat_interval_s: float,
        watching: WatchService | None = None,
        *,
        witness: Witness | None = None,
    ) -> None:
        self._observer = observer
        self._watching = watching
        self._budget = budget
        self._roster = roster
        self._timeout_s = observer.pacing.timeout_s
        self.heartbeat = Heartbeat(
            roster,
            presence,
            heartbeat_interval_s,
            on_beat=lambda: budget.share(self._observers),
            load=self._load,
            witness=witness,
        )

    def start(self) -> None:
        """Register the process and begin to observe."""
        self.heartbeat.start()
        self._observer.start()
        if self._watching is not None:
            self._watching.start()

    def stop(self) -> bool:
        """Stop observing; return False if an observation did not end in time."""
        if self._watching is not None:
            self._watching.stop(self._timeout_s)
        ended = self._observer.stop(self._timeout_s)
        self.heartbeat.stop()
        return ended

    def _load(self) -> Load:
        threads = self._observer.pacing.threads
        return {'threads': threads, 'busy': min(self._observer.busy, threads)}

    def _observers(self) -> int:
        """Return the number of live observers, which share the budget."""
        try:
            return sum(each.kind == KIND and each.is_up for each in self._roster.services())
        except ConvergenceError as error:
            LOG.debug('Number of observers unknown, using the last one: %s', error)
            return self._budget.sharers
