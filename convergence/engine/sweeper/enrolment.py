"""Which objects are observed: decided by engines, when a stack has come to rest. Observers decide nothing."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.db.ports import ObservationsPort


class Enrolment:
    """Has the objects of stacks observed that have come to rest since.

    :param intervals: longest pause in seconds between two looks, by type; others are not observed.
    """

    def __init__(self, rows: ObservationsPort, intervals: Mapping[str, float], limit: int) -> None:
        self._rows = rows
        self._intervals = intervals
        self._limit = limit

    def __call__(self) -> int:
        """Enrol what there is; how many stacks and objects. Costs a question where nobody observes."""
        if not self._intervals:
            return 0
        stacks = self._rows.unenrolled(self._limit)
        return len(stacks) + sum(self._rows.enrol(each, self._intervals, self._limit) for each in stacks)
