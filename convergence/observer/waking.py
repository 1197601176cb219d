"""Has actions polled at once whose objects something has happened to: they may wait for just that."""

from __future__ import annotations

from convergence.core.signals import stir
from convergence.db.records import WatchTarget
from convergence.db.scopes import SignalledResource
from convergence.db.transaction import Transactions
from convergence.dispatch import Dispatcher


class Waking:
    """Counts an event of a row, as a signal does, and has its node cast. Whoever holds the row is not disturbed."""

    def __init__(self, store: Transactions, dispatcher: Dispatcher) -> None:
        self._store = store
        self._dispatcher = dispatcher

    def __call__(self, told: WatchTarget) -> bool:
        """Wake what waits for an object; whether an action of it was in progress.

        :raises ConvergenceError: the database cannot be reached, or rows kept changing.
        """
        committed = self._store.transact(SignalledResource(told.stack_id, told.resource_id), stir)
        if committed is None:
            return False
        self._dispatcher.attend(committed)
        return committed.verdict
