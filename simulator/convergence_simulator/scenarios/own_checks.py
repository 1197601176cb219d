"""Which checks of a scenario's own functions mean anything in another order than the one they were written for.

Such a check is of the moment at which its author has put it: in order, one event at a time. In any other order it is
made where that moment was one of rest, once everything has come to rest. It is left out, and counted, where it was not,
and where an operation came in the middle of another one: how far that had come decides what is there afterwards. With
``settle`` before it an author says that it holds in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convergence_simulator.scenarios.language import QueuedCall


class OwnChecks:
    """Decides about the checks of one run.

    :param calls: what the scenario has queued.
    :param resting: the places of the calls that come at rest when the scenario runs in order; called when that is asked
        for the first time.
    :ivar settled: whether the scenario has asked for rest, and for nothing else since.
    :ivar interrupted: whether an operation came in the middle of another one.
    :ivar left_out: how many checks were left out.
    """

    def __init__(self, calls: Sequence[QueuedCall], resting: Callable[[], frozenset[int]]) -> None:
        self._kept = tuple(calls)
        self._places = {id(call): place for place, call in enumerate(self._kept)}
        self._resting = resting
        self.settled = False
        self.interrupted = False
        self.left_out = 0

    def place(self, call: QueuedCall) -> int:
        """Where in the scenario a call is."""
        return self._places[id(call)]

    def comes_at_rest(self, call: QueuedCall) -> bool:
        """Whether the author has put a check where everything is at rest in order."""
        return self.place(call) in self._resting()

    def operation(self, *, at_rest: bool) -> None:
        """The user asks for an operation."""
        self.settled = False
        self.interrupted |= not at_rest

    def may_make(self, *, rested: bool) -> bool:
        """Whether a check is made now; what is not made is counted.

        :param rested: whether everything is at rest, and was when the check was written.
        """
        may = rested and (self.settled or not self.interrupted)
        self.left_out += not may
        return may
