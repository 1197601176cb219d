"""Decides when checks by a scenario's own functions are valid if events happen in another order.

The author of such a check puts it at a moment of the ordered run, in which one event follows another. In any other
order the check is made only if that moment was a moment of rest, and then once everything is at rest again. Otherwise
the check is left out and counted. It is also left out after an operation interrupted another one, because the result
depends on the progress of the interrupted one. An author who calls ``settle`` before a check declares that it is valid
in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convergence_simulator.scenarios.language import QueuedCall


class OwnChecks:
    """Decides about the checks of one run.

    :param calls: calls that the scenario has queued.
    :param resting: returns the places of the calls at which the ordered run is at rest; called at the first check only.
    :ivar settled: True if the scenario has called ``settle``, and no operation since.
    :ivar interrupted: True if an operation began while another one was in progress.
    :ivar left_out: number of checks that were left out.
    """

    def __init__(self, calls: Sequence[QueuedCall], resting: Callable[[], frozenset[int]]) -> None:
        self._kept = tuple(calls)
        self._places = {id(call): place for place, call in enumerate(self._kept)}
        self._resting = resting
        self.settled = False
        self.interrupted = False
        self.left_out = 0

    def place(self, call: QueuedCall) -> int:
        """Return the position of a call in the scenario."""
        return self._places[id(call)]

    def comes_at_rest(self, call: QueuedCall) -> bool:
        """Return True if everything is at rest when a check is due in the ordered run."""
        return self.place(call) in self._resting()

    def operation(self, *, at_rest: bool) -> None:
        """Record that the user requests an operation."""
        self.settled = False
        self.interrupted |= not at_rest

    def may_make(self, *, rested: bool) -> bool:
        """Return True if a check may be made now; otherwise count it as left out.

        :param rested: True if everything is at rest now and in the ordered run.
        """
        may = rested and (self.settled or not self.interrupted)
        self.left_out += not may
        return may
