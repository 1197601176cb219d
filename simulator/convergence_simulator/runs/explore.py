"""Explores every order of events of a small scenario, up to a bound.

A run cannot be copied in the middle. So each run starts at the beginning, repeats the choices up to its point of
departure, and chooses differently there. A run ends when it reaches a known state: another run has tried, or will try,
everything that can follow. Runs with the fewest departures from the simplest order come first.
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
    """The steps between which other fibers may run.

    * `TRANSACTION`: between transactions and calls to the cloud. This is enough if transactions are atomic.
    * `STEP`: also inside transactions, at each lock, and before and after each message.
    """

    TRANSACTION = 'transaction'
    STEP = 'step'

    @property
    def passed(self) -> frozenset[str]:
        """Points at which no fiber pauses; see `RunPlan.passed`."""
        inside = ('read', 'lock stack', 'lock resource', 'commit', 'committed', 'send', 'sent')
        return frozenset(inside if self is Grain.TRANSACTION else ())


@dataclass(frozen=True, slots=True)
class Bound:
    """Limits of an exploration.

    :param states: maximum number of states.
    :param choices: number of first choices of each run at which departures are tried.
    :param limit_s: maximum duration in seconds; None for no limit. With a limit the result depends on the machine.
    """

    states: int = 20_000
    choices: int = 10_000
    limit_s: float | None = None


@dataclass
class Explored:
    """The result of an exploration.

    :ivar departures: every schedule with fewer departures from the simplest order has been tried.
    :ivar bound: the limit that ended it; empty if nothing was left to try.
    """

    states: int = 0
    runs: int = 0
    departures: int = 0
    longest: int = 0
    bound: str = ''
    tally: Tally = field(default_factory=Tally)

    @property
    def failure(self) -> Verdict | None:
        """The first failed run, or None."""
        return self.tally.failures[0] if self.tally.failures else None


class _SeenBefore(BaseException):
    """The run has reached a known state."""


@dataclass(frozen=True, slots=True)
class _Departure:
    """A run to try: repeat the first `position` choices of a run, then choose `choice`."""

    made: Sequence[int]
    position: int
    choice: int
    depth: int

    def script(self) -> tuple[int, ...]:
        return (*self.made[: self.position], self.choice)


class _Exploring(Choices):
    """Repeats a script, then takes the first possibility each time and records the others."""

    def __init__(self, script: Sequence[int], is_new: Callable[[], bool], most: int) -> None:
        super().__init__(script=script, then_first=True)
        self._new = len(script)
        self._is_new = is_new
        self._most = most
        self.at_step = False
        self.others: list[tuple[int, int]] = []

    @override
    def pick(self, count: int) -> int:
        """Choose a possibility; at the beginning of a step, record the state.

        :raises _SeenBefore: the state is known.
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
        """Choose between both possibilities, at any rate above 0."""
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
    """Try every order of events, and every fault with a rate above 0, until a run fails or a limit is reached.

    :param each: called after each run with the result so far.
    """
    return _Explorer(scenario, plan, bound).explore(each)
