"""Reports of runs: totals, and for a failure everything that a reader needs to understand and repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from convergence.values import replace
from convergence_simulator.runs.batch import Tally, execute, load
from convergence_simulator.runs.explore import Explored
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.runs.run import Verdict
from convergence_simulator.runs.shrink import Shrunk, shrink, written
from convergence_simulator.runs.story import Story
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.scenarios.programs import ScenarioProgram, number_of, program, shortened
from convergence_simulator.world.choices import Choices

PROGRAM = 'convergence-simulate'


class Form(StrEnum):
    """Form of a story."""

    TEXT = 'text'
    MERMAID = 'mermaid'


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed run, and the shortest run found that fails in the same way.

    :param replay: the command that repeats the run; `replay_shortest`: the command for the shortest schedule, if one
        was found.
    :param program: for a random program, the shortest one found that breaks the same rule.
    """

    path: Path
    verdict: Verdict
    replay: str
    story: Story
    shrunk: Shrunk | None = None
    replay_shortest: str = ''
    program: str = ''


def command(path: Path, mode: Sequence[str], settings: Sequence[str]) -> str:
    """Return the command line for one scenario."""
    return shlex.join([PROGRAM, *mode, *settings, str(path)])


def tell(path: Path, plan: RunPlan, choices: Choices) -> tuple[Verdict, Story]:
    """Run a scenario once and record its story."""
    stories: list[Story] = []
    verdict, _ = execute(load(path), plan, choices, prepare=lambda run: stories.append(Story.of(run.world)))
    return verdict, stories[0] if stories else Story()


def examine(path: Path, plan: RunPlan, verdict: Verdict, settings: Sequence[str], *, by_seed: bool) -> Failure:
    """Find a short schedule for a failure, and record its story.

    :param settings: the options of the command line that belong to `plan`.
    :param by_seed: True if the seed repeats the run; otherwise its schedule does.
    """
    if plan.mode is Mode.ORDER:
        _, story = tell(path, plan, Choices(verdict.seed))
        return Failure(path, verdict, command(path, ['--order'], settings), story)
    exactly = ['--seed', str(verdict.seed)] if by_seed else ['--schedule', written(verdict.choices)]
    failure = Failure(path, verdict, command(path, exactly, settings), Story())
    shrunk = shrink(load(path), plan, verdict.choices, verdict.rule)
    _, story = tell(path, plan, Choices(script=shrunk.schedule, then_first=True))
    shortest = command(path, ['--schedule', written(shrunk.schedule)], settings)
    short = _short_program(path, plan, verdict)
    return replace(failure, story=story, shrunk=shrunk, replay_shortest=shortest, program=short)


def _short_program(path: Path, plan: RunPlan, verdict: Verdict) -> str:
    """Return a random program without all calls that the failure does not need; empty for a scenario file."""
    number = number_of(path)
    if number is None:
        return ''

    def still_fails(shorter: ScenarioProgram) -> bool:
        scenario = Scenario.of(str(path), shorter.text)
        seeds = dict.fromkeys((verdict.seed, *range(3)))  # without some calls the choices shift: one seed is too few
        return any(execute(scenario, plan, Choices(seed))[0].rule == verdict.rule for seed in seeds)

    return shortened(program(number), still_fails, attempts=60).text


def failure_text(failure: Failure, forms: Sequence[Form] = tuple(Form)) -> str:
    """Return the report of a failure, in lines."""
    verdict, shrunk = failure.verdict, failure.shrunk
    lines = [f'FAILED  {verdict.scenario}, {verdict.rule}', f'  {_indented(verdict.error)}']
    lines.append(f'  replay: {failure.replay}')
    if not failure.replay.startswith(f'{PROGRAM} --order'):
        lines.insert(1, f'  seed {verdict.seed}, {verdict.steps} steps')
    if shrunk is not None:
        size = f'{shrunk.steps} steps, {shrunk.accidents} accidents, found in {shrunk.attempts} runs'
        lines += [f'  shortest schedule found: {size}', f'  replay: {failure.replay_shortest}']
    if failure.program:
        lines += ['  program (a file with this text is a scenario):', '']
        lines += [f'    {line}' for line in failure.program.splitlines()]
    for form in forms:
        lines += ['', *(f'  {line}' for line in story_text(failure.story, form).splitlines())]
    return '\n'.join(lines)


def story_text(story: Story, form: Form) -> str:
    """Return a story in one of its forms."""
    return story.text() if form is Form.TEXT else story.mermaid()


def _indented(text: str) -> str:
    return text.replace('\n', '\n  ')


def totals(tally: Tally, scenarios: int, seconds: float) -> str:
    """Return the totals of many runs, in a few lines."""
    rate = tally.runs / seconds if seconds else 0.0
    schedules, simulated = _count(len(tally.schedules), 'different schedule'), _duration(tally.simulated_s)
    crashed = _count(tally.crashed, 'process', 'processes')
    further = {
        f'{_count(tally.froze, "standstill")}': tally.froze,
        f'{_count(tally.unanswered, "transaction")} without an answer': tally.unanswered,
        f'{_count(tally.outages, "outage")} of broker or database': tally.outages,
        f'{_count(tally.lagged, "read")} of an older state': tally.lagged,
        f'{_count(tally.went_back, "loss", "losses")} of commits': tally.went_back,
        f'{_count(tally.harmed, "object")} changed or removed by an outsider': tally.harmed,
    }
    more = ''.join(f', {text}' for text, count in further.items() if count)
    lines = (
        f'{_count(tally.runs, "run")} of {_count(scenarios, "scenario")} in {seconds:.1f} s: {rate:.0f} runs/s',
        f'{schedules}, {_count(tally.steps, "step")}, {simulated} of simulated time',
        *(
            [f'{_count(tally.left_out, "check")} left out: only valid in another order of events']
            * bool(tally.left_out)
        ),
        f'faults: {_count(tally.lost, "message")} lost, {tally.doubled} doubled, {crashed} crashed{more}',
    )
    return '\n'.join(lines)


def explored_text(path: Path, explored: Explored) -> str:
    """Return the result of an exploration, in one line."""
    extent = f'stopped at {explored.bound}' if explored.bound else 'nothing left to try'
    if explored.failure is not None:
        extent = 'stopped at a failure'
    departures = f'all with fewer than {explored.departures} departures from the simplest order'
    runs = f'{_count(explored.states, "state")}, {_count(explored.runs, "run")}, at most {explored.longest} choices'
    return f'{path.stem}: {runs}; {extent}{"" if not explored.bound else f" ({departures} were tried)"}'


def _count(number: int, what: str, many: str = '') -> str:
    return f'{number} {what if number == 1 else many or what + "s"}'


def _duration(seconds: float) -> str:
    for size, unit in ((86400.0, 'days'), (3600.0, 'hours'), (60.0, 'minutes')):
        if seconds >= 2 * size:
            return f'{seconds / size:.1f} {unit}'
    return f'{seconds:.0f} seconds'
