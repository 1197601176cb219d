"""A process is killed at each place of each operation, once; nothing may come of it but a delay."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tests.chaos.failpoints import Do, Rule
from tests.chaos.goals import counted, differences, twelve
from tests.chaos.installation import Broken, Installation
from tests.chaos.operations import OPERATIONS, REQUIRED, Operation

BACKGROUND = ('Roster.', 'Sweeps.take_duty', 'Sweeps._purge')
"""What goes on whatever the operation is; tried with the first one."""

BATCH = 20
"""So many stacks are prepared at a time, each in a moment's work, while nothing is killed."""

SETTLED_S = 20.0


@dataclass(frozen=True)
class Outcome:
    """What came of one run.

    :param problem: empty where everything held.
    :param seconds: from the request to the final state.
    :param fired: whether a process was killed.
    """

    operation: str
    place: str
    problem: str
    seconds: float
    fired: bool


Trial = tuple[Operation, str, int]
"""Operation, place, and the passing at which to kill."""


class CrashSweep:
    """All of it, on one installation.

    :param say: is told what goes on.
    """

    def __init__(self, installation: Installation, say: Callable[[str], object], seed: int = 1) -> None:
        self._installation = installation
        self._say = say
        self._random = random.Random(seed)
        self._number = 0
        self.baseline: dict[str, float] = {}
        self.passings: dict[str, dict[str, int]] = {}

    def record(self, operations: Iterable[Operation] = OPERATIONS) -> list[Trial]:
        """Run each operation without a crash; the trials that its places make.

        :raises Broken: an operation does not end well even so.
        """
        trials: list[Trial] = []
        background: set[str] = set()
        for operation in operations:
            prepared = self._prepare([operation])[0]
            before = len(self._installation.points.passed())
            outcome = self._run(operation, prepared, None)
            if outcome.problem:
                raise Broken(f'{operation.name}, with nobody killed: {outcome.problem}')
            self.baseline[operation.name] = outcome.seconds
            seen = self._installation.points.passed(before)
            counts = self.passings[operation.name] = {place: seen.count(place) for place in sorted(set(seen))}
            for place, count in counts.items():
                if any(each in place for each in BACKGROUND):
                    if place in background:
                        continue
                    background.add(place)
                # Of many passings one that is not the first: some process passes it twice.
                trials.append((operation, place, 2 if count >= 12 and self._random.random() < 0.5 else 1))
            self._say(f'{operation.name}: {outcome.seconds:.1f} s, {len(counts)} places')
        return trials

    def missing(self) -> list[str]:
        """What of `REQUIRED` no operation has passed."""
        passed = {place for counts in self.passings.values() for place in counts}
        wanted = {f'{side} {place}' for side in ('before', 'after') for place in REQUIRED.values()}
        return sorted(wanted - passed)

    def run(self, trials: list[Trial], ends: float | None = None) -> list[Outcome]:
        """Kill at each place.

        :param ends: monotonic time after which none is begun.
        """
        outcomes = []
        for first in range(0, len(trials), BATCH):
            batch = trials[first : first + BATCH]
            prepared = self._prepare([operation for operation, _, _ in batch])
            for (operation, place, at), stack in zip(batch, prepared, strict=True):
                if ends is not None and time.monotonic() > ends:
                    return outcomes
                self._number += 1
                rule = Rule(f'kill-{self._number}', place.replace('[', '[[]'), Do.KILL, at)
                outcome = self._run(operation, stack, rule)
                outcomes.append(replace(outcome, place=place))
                delay = outcome.seconds - self.baseline[operation.name]
                how = outcome.problem or ('as without' if outcome.fired else 'not reached')
                self._say(f'{place}, {operation.name}: {how}, {delay:+.1f} s')
        return outcomes

    # --- one run ----------------------------------------------------------------------------------------------

    def _prepare(self, operations: list[Operation]) -> list[str]:
        """For each operation the id of a stack to begin with, or a name for one."""
        self._installation.points.set()
        self._installation.complete()
        made, names = {}, []
        for operation in operations:
            self._number += 1
            name = f'sweep-{self._number}'
            names.append(name)
            if operation.exists:
                made[name] = self._installation.create(name, counted(twelve()))
        for name, stack_id in made.items():
            if self._installation.ended(stack_id) != 'CREATE_COMPLETE':
                raise Broken(f'{name} could not be prepared: {self._installation.row(stack_id).status_reason}')
        return [made.get(name, name) for name in names]

    def _run(self, operation: Operation, stack: str, rule: Rule | None) -> Outcome:
        points = self._installation.points
        self._installation.complete()
        self._number += 1
        rules = [
            replace(each, name=f'{each.name}-{self._number}') for each in (*operation.rules, *([rule] if rule else []))
        ]
        points.set(*rules)
        began = time.monotonic()
        seconds, problem = 0.0, ''
        try:
            stack = operation.begin(self._installation, stack)
            state = self._installation.ended(stack)
            seconds = time.monotonic() - began
            problem = self._verify(operation, stack, state)
        except Broken as broken:
            seconds = time.monotonic() - began
            problem = str(broken)
        finally:
            points.set()
        fired = rule is not None and points.fired(rules[-1].name)
        return Outcome(operation.name, '', problem, seconds, fired)

    def _verify(self, operation: Operation, stack: str, state: str) -> str:
        """What does not hold at the end; empty where nothing is wrong."""
        if state != operation.state:
            return f'{state} instead of {operation.state}: {self._installation.row(stack).status_reason}'
        problems = self._settled(stack, operation.goal)
        if not problems and operation.mend is not None:
            self._installation.points.set()
            self._installation.update(stack, counted(operation.mend, 'mended'))
            state = self._installation.ended(stack)
            problems = self._settled(stack, operation.mend)
            if state != 'UPDATE_COMPLETE':
                problems.insert(0, f'mending it ends in {state}: {self._installation.row(stack).status_reason}')
        return '; '.join(problems)

    def _settled(self, stack: str, goal: object) -> list[str]:
        """The differences that stay. After a failure what was in flight may take a moment to come to its end."""
        ends = time.monotonic() + SETTLED_S
        while True:
            problems = differences(self._installation, stack, goal)  # type: ignore[arg-type]
            if not problems or time.monotonic() > ends:
                return problems
            time.sleep(0.05)


def table(sweep: CrashSweep, outcomes: Iterable[Outcome]) -> str:
    """Failpoint by operation: outcome and delay in seconds, as text."""
    outcomes = list(outcomes)
    names = [each.name for each in OPERATIONS if any(outcome.operation == each.name for outcome in outcomes)]
    places = sorted({each.place for each in outcomes}, key=lambda place: (place.split(' of ')[1], place[0] != 'b'))
    cells = {(each.place, each.operation): each for each in outcomes}
    width = max(map(len, places), default=10)
    lines = ['  '.join([f'{"failpoint":<{width}}', *(f'{name[:12]:>12}' for name in names)])]
    for place in places:
        row = [f'{_cell(cells.get((place, name)), sweep.baseline[name]):>12}' for name in names]
        lines.append('  '.join([f'{place:<{width}}', *row]))
    return '\n'.join(lines)


def _cell(outcome: Outcome | None, baseline: float) -> str:
    if outcome is None:
        return ''
    if outcome.problem:
        return 'BROKEN'
    return f'same {max(0.0, outcome.seconds - baseline):.1f}' if outcome.fired else 'not reached'
