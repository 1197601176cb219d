"""Progress notifications: an event of the stack, at growing intervals; about sixty in a day."""

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
"""Maximum number of operations reported in one turn."""


class ProgressReports:
    """Reports the number of finished steps, the nodes that an operation waits for and since when, and stalls.

    :ivar interval_s: seconds from the start of an operation to the first report; None: no reports.
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
        """Report the operations that are due; their number."""
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
