"""Every order of events of a small scenario, up to a bound.

A run cannot be copied in the middle, so each one begins anew and repeats the choices that lead to where it is to
depart. It ends where it comes to a state that was seen before: all that can follow has been, or will be, tried from
there. Runs that depart least from the simplest order come first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from typing_extensions import override

from convergence_simulator.runs.batch import Tally, execute, tally_of
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.run import Run, Verdict
from convergence_simulator.runs.state import Fingerprints
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.world.choices import Choices


class Grain(StrEnum):
    """Between which steps others may go on.

    * `TRANSACTION`: between transactions and calls to the cloud: all that matters if transactions are what they say.
    * `STEP`: also inside transactions, at each lock, and around each message.
    """

    TRANSACTION = 'transaction'
    STEP = 'step'

    @property
    def passed(self) -> frozenset[str]:
        """Points at which nobody gives way; see `RunPlan.passed`."""
        inside = ('read', 'lock stack', 'lock resource', 'commit', 'committed', 'send', 'sent')
        return frozenset(inside if self is Grain.TRANSACTION else ())


@dataclass(frozen=True, slots=True)
class Bound:
    """Where to stop.

    :param states: most states; `choices`: departures are tried among so many first choices of each run.
    :param limit_s: most seconds, None for no such limit; with it the result depends on the machine.
    """

    states: int = 20_000
    choices: int = 10_000
    limit_s: float | None = None


@dataclass
class Explored:
    """What an exploration came to.

    :ivar departures: every schedule with fewer departures from the simplest order has been tried.
    :ivar bound: which bound ended it; empty where there was nothing left to try.
    """

    states: int = 0
    runs: int = 0
    departures: int = 0
    longest: int = 0
    bound: str = ''
    tally: Tally = field(default_factory=Tally)

    @property
    def failure(self) -> Verdict | None:
        """The first run that failed, if any."""
        return self.tally.failures[0] if self.tally.failures else None


class _SeenBefore(BaseException):
    """The run has come to a known state."""


@dataclass(frozen=True, slots=True)
class _Departure:
    """Repeat the first `position` choices of a run, then choose `choice`."""

    made: Sequence[int]
    position: int
    choice: int
    depth: int

    def script(self) -> tuple[int, ...]:
        return (*self.made[: self.position], self.choice)


class _Exploring(Choices):
    """Repeats a script, then takes the first possibility each time and notes the others."""

    def __init__(self, script: Sequence[int], is_new: Callable[[], bool], most: int) -> None:
        super().__init__(script=script, then_first=True)
        self._new = len(script)
        self._is_new = is_new
        self._most = most
        self.at_step = False
        self.others: list[tuple[int, int]] = []

    @override
    def pick(self, count: int) -> int:
        """As the base class; at the beginning of a step the state is looked at.

        :raises _SeenBefore: it is known.
        """
        at_step, self.at_step = self.at_step, False
        position = len(self.made)
        if position >= self._new:
            if at_step and not self._is_new():
                raise _SeenBefore
            if position < self._most:
                self.others += [(position, choice) for choice in range(1, count)]
        return super().pick(count)

    @override
    def happens(self, rate: float) -> bool:
        """Whatever may happen is a choice, however rare it is."""
        return rate > 0.0 and bool(self.pick(2))


class _Explorer:
    """Explores one scenario."""

    def __init__(self, scenario: Scenario, plan: RunPlan, bound: Bound) -> None:
        self._scenario = scenario
        self._plan = plan
        self._bound = bound
        self._seen: set[bytes] = set()
        self._waiting: deque[_Departure] = deque([_Departure((), 0, 0, 0)])
        self.result = Explored()

    def explore(self, each: Callable[[Explored], object]) -> Explored:
        ends = None if self._bound.limit_s is None else time.monotonic() + self._bound.limit_s
        result = self.result
        while self._waiting and result.failure is None:
            if len(self._seen) >= self._bound.states:
                result.bound = f'{self._bound.states} states'
                break
            if ends is not None and time.monotonic() > ends:
                result.bound = f'{self._bound.limit_s:g} s'
                break
            departure = self._waiting.popleft()
            result.departures = departure.depth
            self._run(departure)
            each(result)
        if not self._waiting and result.failure is None and result.longest > self._bound.choices:
            result.bound = f'{self._bound.choices} choices'
        return result

    def _run(self, departure: _Departure) -> None:
        script = departure.script() if departure.depth else ()
        fingerprints, current = Fingerprints(), list[Run]()

        def is_new() -> bool:
            state = fingerprints.of(current[0])
            known = state in self._seen
            self._seen.add(state)
            return not known

        choices = _Exploring(script, is_new, self._bound.choices)

        def prepare(run: Run) -> None:
            current.append(run)
            run.before_step = lambda: setattr(choices, 'at_step', True)

        try:
            verdict, run = execute(self._scenario, self._plan, choices, prepare=prepare)
        except _SeenBefore:
            run = current[0]
            verdict = Verdict(self._scenario.name, 0, choices=tuple(choices.made), steps=run.steps)
        self.result.tally.add(tally_of(verdict, run))
        made = verdict.choices
        depth = departure.depth + 1
        self._waiting += [_Departure(made, position, choice, depth) for position, choice in choices.others]
        self.result.runs += 1
        self.result.states = len(self._seen)
        self.result.longest = max(self.result.longest, len(made))


def explore(
    scenario: Scenario,
    plan: RunPlan,
    bound: Bound = Bound(),
    each: Callable[[Explored], object] = lambda result: None,
) -> Explored:
    """Try every order of events, and every fault whose rate is above zero, until something fails or a bound is met.

    :param each: called after each run, with what has been found so far.
    """
    return _Explorer(scenario, plan, bound).explore(each)
