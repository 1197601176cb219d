"""A sweeper that hides nothing: what a task raises ends the run, where a real one logs it and goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from typing_extensions import override

from convergence.engine.sweeper.tasks import FoundT, SweepTasks
from convergence.errors import Conflict


class CandidTasks(SweepTasks):
    """As the base class; only that rows kept changing is nobody's fault."""

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
