"""A sweeper that hides no error.

An exception of a task ends the run; in production it is logged and the sweeper continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from typing_extensions import override

from convergence.engine.sweeper.tasks import FoundT, SweepTasks
from convergence.errors import Conflict


class CandidTasks(SweepTasks):
    """Sweeper tasks that raise every error, except the conflict of rows that kept changing, which is no fault."""

    @override
    def _survive(self, name: str, task: Callable[[], int]) -> int:
        return task()

    @override
    def _each(self, name: str, find: Callable[[int], Sequence[FoundT]], attend: Callable[[FoundT], object]) -> int:
        found = find(self._options.limit)
        for each in found:
            with suppress(Conflict):
                attend(each)
        return len(found)
