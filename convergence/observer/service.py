"""The observer of one process: shows that it is alive, looks at objects, and ends in good order."""

from __future__ import annotations

import logging

from convergence.db.ports import RosterPort
from convergence.errors import ConvergenceError
from convergence.heartbeat import Heartbeat, Presence
from convergence.observer.budget import CallBudget
from convergence.observer.observer import Observer, Pacing
from convergence.observer.watching import Watching

LOG = logging.getLogger(__name__)

KIND = 'observer'
"""What an observer is called among the processes."""


class ObserverService:
    """Looks for as long as it lives.

    :param observer: made with `pacing` and `budget`.
    :param watching: hurries `observer`; None: objects are looked at when it is time, and not before.
    """

    def __init__(
        self,
        observer: Observer,
        budget: CallBudget,
        roster: RosterPort,
        presence: Presence,
        heartbeat_interval_s: float,
        pacing: Pacing,
        watching: Watching | None = None,
    ) -> None:
        self._observer = observer
        self._watching = watching
        self._budget = budget
        self._roster = roster
        self._timeout_s = pacing.timeout_s
        self.heartbeat = Heartbeat(
            roster,
            presence,
            heartbeat_interval_s,
            on_beat=lambda: budget.share(self._observers),
            load=lambda: {'threads': pacing.threads, 'busy': min(observer.busy, pacing.threads)},
        )

    def start(self) -> None:
        """Become known, and begin to look."""
        self.heartbeat.start()
        self._observer.start()
        if self._watching is not None:
            self._watching.start()

    def stop(self) -> bool:
        """Look at nothing more; whether what was in hand has ended in time."""
        if self._watching is not None:
            self._watching.stop(self._timeout_s)
        ended = self._observer.stop(self._timeout_s)
        self.heartbeat.stop()
        return ended

    def _observers(self) -> int:
        """How many observers there are, of all of which together the budget is."""
        try:
            return sum(each.kind == KIND and each.is_up for each in self._roster.services())
        except ConvergenceError as error:
            LOG.debug('How many observers there are is not known: %s', error)
            return self._budget.sharers
