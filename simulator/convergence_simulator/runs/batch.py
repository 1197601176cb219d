"""Many runs: scenarios and seeds, and the totals of their results."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from convergence.errors import Invalid
from convergence.values import replace
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.run import Run, Verdict
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.scenarios.programs import number_of, program
from convergence_simulator.scenarios.storms import storm, storm_of
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

CHUNK = 25
"""Number of seeds that a process gets at once."""


def find(paths: Iterable[Path]) -> list[Path]:
    """Return the scenario files among files and directories; each directory in order of names.

    :raises Invalid: there is no scenario under a path.
    """
    found: list[Path] = []
    for path in paths:
        if number_of(path) is not None or storm_of(path) is not None:
            found.append(path)
            continue
        if path.is_dir():
            inside = sorted(path.rglob('*.py'))
            files = [each for each in inside if not each.name.startswith(('_', 'test_', 'conftest'))]
        else:
            files = [path] if path.is_file() else []
        if not files:
            raise Invalid(f'{path}: there is no scenario; name files, or directories with *.py files in them')
        found += files
    return list(dict.fromkeys(found))


def load(path: Path) -> Scenario:
    """Read a scenario file, or generate the random program with this name.

    :raises Invalid: the file is no Python program; the text says where.
    """
    number, wild = number_of(path), storm_of(path)
    if number is not None:
        return Scenario.of(str(path), program(number).text)
    if wild is not None:
        return Scenario.of(str(path), storm(wild))
    try:
        return Scenario.load(path)
    except (SyntaxError, ValueError, OSError) as error:
        raise Invalid(f'{path} cannot be read as a scenario: {error}') from None


COUNTS = (
    *(
        'runs',
        'steps',
        'lost',
        'doubled',
        'crashed',
        'froze',
        'unanswered',
        'outages',
        'lagged',
        'went_back',
        'harmed',
        'left_out',
    ),
    'simulated_s',
)
"""The attributes that are summed when tallies are added."""


@dataclass
class Tally:
    """Totals of some runs.

    :ivar froze: number of processes that stood still; `unanswered`: of transactions that ended without an answer;
        `outages`: of outages of broker or database; `lagged`: of reads that showed an older state of the rows.
    :ivar went_back: number of times that commits were lost; `harmed`: of changes of objects by an outsider.
    :ivar left_out: number of checks of scenarios that were not made, because the run was not at rest at their moment.
    :ivar schedules: fingerprints of the different orders of events.
    :ivar simulated_s: seconds that passed on the simulated clocks.
    """

    runs: int = 0
    steps: int = 0
    lost: int = 0
    doubled: int = 0
    crashed: int = 0
    froze: int = 0
    unanswered: int = 0
    outages: int = 0
    lagged: int = 0
    went_back: int = 0
    harmed: int = 0
    left_out: int = 0
    simulated_s: float = 0.0
    schedules: set[int] = field(default_factory=set)
    failures: list[Verdict] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the totals of another tally."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.schedules |= other.schedules
        self.failures += other.failures


def fingerprint(scenario: str, choices: Sequence[int]) -> int:
    """Return a number that depends only on the order of events; it is the same in every process."""
    value = 0xCBF29CE484222325
    for number in (*scenario.encode(), *choices):
        value = ((value ^ (number + 1)) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


Prepare = Callable[[Run], object]
"""A function that is called with a run before it is executed, for example to record its story."""


def execute(
    scenario: Scenario, plan: RunPlan, choices: Choices, *, seed: int = 0, prepare: Prepare | None = None
) -> tuple[Verdict, Run]:
    """Execute a scenario once; an exception becomes the verdict.

    :param seed: seed for the report.
    """
    began = time.perf_counter()
    run = Run(scenario, plan, choices)
    verdict = Verdict(scenario.name, seed)
    try:
        if prepare is not None:
            prepare(run)
        run.execute()
    except Exception as error:  # noqa: BLE001 - a run searches for errors of the engine
        rule = str(getattr(error, 'rule', '') or type(error).__name__)
        verdict = replace(verdict, rule=rule, error=str(error) or rule)
    finally:
        run.world.close()
    made = tuple(choices.made)
    verdict = replace(verdict, choices=made, steps=run.steps, left_out=run.checks.left_out)
    return replace(verdict, seconds=time.perf_counter() - began), run


def tally_of(verdict: Verdict, run: Run) -> Tally:
    """Return the totals of one run."""
    world = run.world
    return Tally(
        runs=1,
        steps=verdict.steps,
        lost=world.dropped,
        doubled=world.doubled,
        crashed=world.crashes,
        froze=world.trouble.freezes,
        unanswered=world.trouble.failures,
        outages=world.trouble.outages,
        lagged=world.trouble.lags,
        went_back=world.losses,
        harmed=world.trouble.drifts,
        left_out=verdict.left_out,
        simulated_s=world.kernel.now - world.kernel.begun_at,
        schedules={fingerprint(verdict.scenario, verdict.choices)},
        failures=[verdict] if verdict.error else [],
    )


SMALL_WINDOW = 2
"""Dispatch window of runs that test the backlog."""


def plan_for(plan: RunPlan, seed: int, *, alternate: bool) -> RunPlan:
    """Return the plan of one seed. If plans alternate, even seeds have no faults, and half have single messages.

    Two of four seeds send one message for each node. The stacks of scenarios are narrower than the default dispatch
    window. So some seeds use a small window, to have a backlog behind it.
    """
    if not alternate:
        return plan
    goes_on = plan.max_inline_nodes > 1 and seed % 4 < 2
    return replace(
        plan,
        faults=plan.faults if seed % 2 else Faults(),
        max_inline_nodes=plan.max_inline_nodes if goes_on else 1,
        window=min(plan.window, SMALL_WINDOW) if goes_on and seed % 8 < 2 else plan.window,
    )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some seeds of one scenario.

    :param alternate: see `plan_for`.
    :param ends_at: time (of `time.time`) after which no further run begins; None: no limit.
    """

    path: Path
    plan: RunPlan
    seeds: range
    alternate: bool = False
    ends_at: float | None = None

    def run(self) -> Tally:
        """Execute the runs until the first failure."""
        scenario, tally = load(self.path), Tally()
        with collecting_later():
            for seed in self.seeds:
                if self.ends_at is not None and time.time() > self.ends_at:
                    break
                plan = plan_for(self.plan, seed, alternate=self.alternate)
                tally.add(tally_of(*execute(scenario, plan, Choices(seed), seed=seed)))
                if tally.failures:
                    break
        return tally


@contextmanager
def collecting_later() -> Iterator[None]:
    """Defer garbage collection until after some runs; continuous collection costs a quarter of each run."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
            gc.collect(0)  # many older objects have been checked already


def chunks(paths: Sequence[Path], plan: RunPlan, seeds: range, *, alternate: bool = False) -> Iterator[Chunk]:
    """Yield every scenario with every seed: some seeds of each scenario in turn, so that all scenarios begin early."""
    for start in range(seeds.start, seeds.stop, CHUNK):
        for path in paths:
            yield Chunk(path, plan, range(start, min(start + CHUNK, seeds.stop)), alternate)


def endless(paths: Sequence[Path], plan: RunPlan, start: int, ends_at: float, *, alternate: bool) -> Iterator[Chunk]:
    """Yield chunks as `chunks` does, with one seed after the other until the time is over.

    The first round has one seed for each scenario.
    """
    size = 1
    while time.time() < ends_at:
        for path in paths:
            if time.time() < ends_at:
                yield Chunk(path, plan, range(start, start + size), alternate, ends_at)
        start, size = start + size, CHUNK
