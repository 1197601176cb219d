"""Find a short schedule that fails as a long one did: fewer accidents, then fewer steps."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from convergence.errors import Invalid
from convergence.simulator.batch import execute
from convergence.simulator.choices import Choices
from convergence.simulator.language import Scenario
from convergence.simulator.run import Plan

Schedule = tuple[int, ...]


def written(schedule: Sequence[int]) -> str:
    """A schedule as text for the command line: numbers, with repetitions counted, for example ``0*12,3,1*2``."""
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
    """The schedule that `written` made a text of.

    :raises Invalid: it is none.
    """
    schedule: list[int] = []
    for part in text.split(','):
        match = re.fullmatch(r'(\d{1,9})(?:\*(\d{1,6}))?', part.strip())
        if match is None:
            raise Invalid(f'schedule: {part!r} is not a number, nor a number * how often')
        schedule += [int(match[1])] * int(match[2] or 1)
    return tuple(schedule)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The shortest schedule that was found.

    :param steps: how many steps the run takes until it fails.
    :param accidents: how many choices differ from the simplest one.
    :param attempts: how many runs the search took.
    """

    schedule: Schedule
    steps: int
    accidents: int
    attempts: int


def _trimmed(schedule: Sequence[int]) -> Schedule:
    """Without the zeros at the end: a run goes on with the first possibility by itself."""
    end = len(schedule)
    while end and schedule[end - 1] == 0:
        end -= 1
    return tuple(schedule[:end])


class _Search:
    """Keeps the best schedule found so far.

    :param run: runs a schedule; the steps it took and the choices it really made if it failed in the same way.
    """

    def __init__(self, run: Callable[[Schedule], tuple[int, Schedule] | None], attempts: int, limit_s: float) -> None:
        self._run = run
        self._most = attempts
        self._ends = time.monotonic() + limit_s
        self._seen: set[Schedule] = set()
        self.attempts = 0
        self.best: Schedule = ()
        self.steps = 0

    @property
    def exhausted(self) -> bool:
        """Whether the search has to end here."""
        return self.attempts >= self._most or time.monotonic() > self._ends

    def offer(self, schedule: Schedule) -> bool:
        """Try a schedule; whether it is better than the best so far."""
        schedule = _trimmed(schedule)
        if self.exhausted or schedule in self._seen:
            return False
        self._seen.add(schedule)
        self.attempts += 1
        failed = self._run(schedule)
        if failed is None:
            return False
        steps, made = failed
        made = _trimmed(made)
        if self.attempts > 1 and _cost(made, steps) >= _cost(self.best, self.steps):
            return False
        self.best, self.steps = made, steps
        return True


def _cost(schedule: Schedule, steps: int) -> tuple[int, int, int]:
    return sum(1 for choice in schedule if choice), steps, sum(schedule)


def shrink(scenario: Scenario, plan: Plan, failed: Schedule, rule: str, *, attempts: int = 3000, limit_s: float = 30.0) -> (
    Shrunk
):
    """Look for a shorter schedule under which the same rule breaks.

    A schedule is a list of choices; after its end the first possibility is taken each time, which means: no fault,
    whoever waits longest goes on. Parts of decreasing size are taken out or made simplest, as long as it still fails.

    :param failed: the choices of the run that failed.
    :param attempts: most runs, and `limit_s` most seconds, that the search may take.
    """

    def run(schedule: Schedule) -> tuple[int, Schedule] | None:
        verdict, _ = execute(scenario, plan, Choices(script=schedule, then_first=True))
        return (verdict.steps, verdict.choices) if verdict.rule == rule else None

    search = _Search(run, attempts, limit_s)
    if not search.offer(failed):
        return Shrunk(failed, 0, sum(1 for choice in failed if choice), search.attempts)
    search.offer(())
    size = max(1, len(search.best) // 2)
    while not search.exhausted:
        improved = _pass(search, size)
        if size == 1 and not improved:
            break
        size = max(1, min(size if improved else size // 2, len(search.best)))
    return Shrunk(search.best, search.steps, _cost(search.best, 0)[0], search.attempts)


def _pass(search: _Search, size: int) -> bool:
    """Make each part of one size simplest, or take it out; whether anything got better.

    Later parts come first: less depends on them.
    """
    improved, end = False, len(search.best)
    while end > 0 and not search.exhausted:
        best = search.best
        end = min(end, len(best))
        start = max(0, end - size)
        part, rest = best[start:end], best[end:]
        simplest = any(part) and search.offer((*best[:start], *([0] * len(part)), *rest))
        improved |= simplest or search.offer((*best[:start], *rest))
        end = start
    return improved
