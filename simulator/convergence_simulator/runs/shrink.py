"""Finds a short schedule that fails as a long one did: fewer accidents, then fewer steps."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import override

from convergence.errors import Invalid
from convergence_simulator.runs.batch import execute
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.world.choices import Choices

Schedule = tuple[int, ...]

CALM_SEEDS = 100
"""Number of schedules without faults that are tried in place of a schedule with faults."""


def written(schedule: Sequence[int]) -> str:
    """Return a schedule as text for the command line: numbers with their repetitions, for example ``0*12,3,1*2``."""
    parts: list[str] = []
    position = 0
    while position < len(schedule):
        end = position
        while end < len(schedule) and schedule[end] == schedule[position]:
            end += 1
        count = end - position
        parts.append(f'{schedule[position]}*{count}' if count > 1 else str(schedule[position]))
        position = end
    return ','.join(parts) or '0'


def read(text: str) -> Schedule:
    """Return the schedule for a text from `written`.

    :raises Invalid: the text is no schedule.
    """
    schedule: list[int] = []
    for part in text.split(','):
        match = re.fullmatch(r'(\d{1,9})(?:\*(\d{1,6}))?', part.strip())
        if match is None:
            raise Invalid(f'schedule: {part!r} is neither NUMBER nor NUMBER*REPETITIONS')
        schedule += [int(match[1])] * int(match[2] or 1)
    return tuple(schedule)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The shortest schedule that was found.

    :param steps: number of steps until the run fails.
    :param accidents: number of choices that differ from the simplest one.
    :param attempts: number of runs of the search.
    """

    schedule: Schedule
    steps: int
    accidents: int
    attempts: int


def _trimmed(schedule: Sequence[int]) -> Schedule:
    """Remove the zeros at the end: after its schedule a run takes the first possibility anyway."""
    end = len(schedule)
    while end and schedule[end - 1] == 0:
        end -= 1
    return tuple(schedule[:end])


@dataclass(frozen=True, slots=True)
class _Failed:
    """A run that failed in the same way: its choices, and the positions of its faults."""

    schedule: Schedule
    steps: int
    faults: tuple[int, ...]

    @property
    def cost(self) -> tuple[int, int, int, int]:
        """Length of the explanation: smaller is better. A fault costs more than an unusual order of events."""
        return (len(self.faults), sum(1 for choice in self.schedule if choice), self.steps, sum(self.schedule))

    def without(self, positions: Sequence[int]) -> Schedule:
        """Return the schedule with the choices at these positions set to the simplest one."""
        return tuple(0 if position in positions else choice for position, choice in enumerate(self.schedule))


class _Calm(Choices):
    """Chooses no fault, and records the numbers of possibilities."""

    def __init__(self, seed: int = 0, *, then_first: bool = False) -> None:
        super().__init__(seed, then_first=then_first)
        self.departures: list[Schedule] = []

    @override
    def pick(self, count: int) -> int:
        """As the base class."""
        self.departures += [(*self.made, choice) for choice in range(1, count)]
        return super().pick(count)

    @override
    def happens(self, rate: float) -> bool:
        """Return False: no fault happens."""
        if rate > 0.0:
            self.made.append(0)
        return False


class _Search:
    """Holds the best run found so far.

    :param run: runs a schedule; returns None if it does not fail in the same way.
    """

    def __init__(self, run: Callable[[Schedule], _Failed | None], attempts: int, limit_s: float) -> None:
        self._run = run
        self._most = attempts
        self._ends = time.monotonic() + limit_s
        self._seen: set[Schedule] = set()
        self.attempts = 0
        self.best: _Failed | None = None

    @property
    def exhausted(self) -> bool:
        """True if the search has reached its limit."""
        return self.attempts >= self._most or time.monotonic() > self._ends

    def offer(self, schedule: Sequence[int]) -> bool:
        """Try a schedule; return True if it is better than the best so far."""
        schedule = _trimmed(schedule)
        if self.exhausted or schedule in self._seen:
            return False
        self._seen.add(schedule)
        self.attempts += 1
        failed = self._run(schedule)
        if failed is None or (self.best is not None and failed.cost >= self.best.cost):
            return False
        self.best = failed
        return True


def shrink(
    scenario: Scenario, plan: RunPlan, failed: Schedule, rule: str, *, attempts: int = 3000, limit_s: float = 30.0
) -> Shrunk:
    """Search for a shorter schedule that breaks the same rule.

    A schedule is a list of choices. After its end the first possibility is taken each time: no fault, and the fiber
    that has waited longest runs. The search first leaves faults out, then removes or simplifies parts of decreasing
    size, as long as the run still fails.

    :param failed: the choices of the failed run.
    :param attempts: maximum number of runs of the search; `limit_s`: its maximum duration in seconds.
    """

    def run(schedule: Schedule) -> _Failed | None:
        choices = Choices(script=schedule, then_first=True)
        verdict, _ = execute(scenario, plan, choices)
        if verdict.rule != rule:
            return None
        return _Failed(_trimmed(verdict.choices), verdict.steps, tuple(choices.faults))

    search = _Search(run, attempts, limit_s)
    search.offer(failed)
    if search.best is None:
        return Shrunk(failed, 0, sum(1 for choice in failed if choice), search.attempts)
    search.offer(())
    simplest = _Calm(then_first=True)
    execute(scenario, plan, simplest)
    # The simplest order of events has few single departures.
    for departure in simplest.departures[: attempts // 3]:
        search.offer(departure)
    search.offer(search.best.without(search.best.faults))
    for seed in range(CALM_SEEDS if search.best.faults else 0):
        calm = _Calm(seed)
        if execute(scenario, plan, calm)[0].rule == rule and search.offer(calm.made):
            break
    for position in reversed(search.best.faults):
        search.offer(search.best.without([position]))
    size = max(1, len(search.best.schedule) // 2)
    while not search.exhausted:
        improved = _pass(search, search.best, size)
        if size == 1 and not improved:
            break
        size = max(1, min(size if improved else size // 2, len(search.best.schedule)))
    return Shrunk(search.best.schedule, search.best.steps, search.best.cost[1], search.attempts)


def _pass(search: _Search, best: _Failed, size: int) -> bool:
    """Simplify or remove each part of one size; return True if the best run improved.

    Later parts come first, because less depends on them.
    """
    improved, end = False, len(best.schedule)
    while end > 0 and not search.exhausted:
        best = search.best or best
        end = min(end, len(best.schedule))
        start = max(0, end - size)
        rest = best.schedule[end:]
        simplest = any(best.schedule[start:end]) and search.offer(best.without(range(start, end)))
        improved |= simplest or search.offer((*best.schedule[:start], *rest))
        end = start
    return improved
