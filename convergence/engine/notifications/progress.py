"""Tells how far operations are: an event of the stack, at growing intervals; a day of waiting has some sixty."""

from __future__ import annotations

from collections.abc import Callable

from convergence.core.stall import progressed
from convergence.db.repositories.progress import Underway, UntoldProgress
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.scopes import StackAlone
from convergence.db.transaction import Transactions
from convergence.engine.notifications.stall_reports import waiting_for
from convergence.engine.reads.formats import moment
from convergence.engine.reads.progress import progress_of

LIMIT = 100
"""Most operations that are told of in one turn."""


class ProgressReports:
    """Tells how many steps are done, what is waited for and since when, and whether nothing gets on.

    :ivar interval_s: seconds from the beginning of an operation to the first time; None: it is never told.
    """

    def __init__(
        self,
        rows: UntoldProgress,
        store: Transactions,
        reader: StackReader,
        new_id: Callable[[], str],
        interval_s: float | None,
    ) -> None:
        self._rows = rows
        self._store = store
        self._reader = reader
        self._new_id = new_id
        self.interval_s = interval_s

    def report(self) -> int:
        """Tell of those whose turn it is; how many."""
        if self.interval_s is None:
            return 0
        return sum(self._tell(each) for each in self._rows.take_due(self.interval_s, LIMIT))

    def _tell(self, underway: Underway) -> bool:
        progress = progress_of(self._reader, underway.stack_id, underway.stalled_at)
        if progress is None:
            return False
        waits = waiting_for(self._reader, underway.traversal_id)
        stalled = f'; no progress since {moment(underway.stalled_at)}' if underway.stalled_at is not None else ''
        text = f'Progress: {progress.done} of {progress.total} steps done, {waits}{stalled}'
        committed = self._store.transact(
            StackAlone(underway.stack_id),
            lambda view: progressed(view, underway.traversal_id, text, progress.details, self._new_id),
        )
        return committed is not None and committed.verdict
