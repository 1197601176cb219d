"""``convergence-simulate``: run scenarios under every order of events, and report failures.

Exit codes:

* 0: all runs passed.
* 1: a run broke a rule. Standard output names the run, the command to repeat it, and its story.
* 2: the command line is wrong, or a file is not a scenario.
* 130: interrupted. Standard output sums up the runs until then.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from convergence import concurrency
from convergence.errors import ConvergenceError, UserError
from convergence_simulator.cli.arguments import SERVERS, SimulateOptions, parse
from convergence_simulator.cli.progress import RunProgress
from convergence_simulator.runs.batch import Chunk, Tally, chunks, endless, execute, find, load, plan_for, tally_of
from convergence_simulator.runs.explore import Bound, explore
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.runs.report import Form, examine, explored_text, failure_text, story_text, tell, totals
from convergence_simulator.runs.run import Verdict
from convergence_simulator.scenarios.programs import number_of
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
MOST_REPORTS = 5
"""Maximum number of failures that are examined. Further ones are only listed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program, and return the exit code."""
    options = parse(argv)
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # the simulated processes log like real ones
    console = Console(highlight=False, markup=False, soft_wrap=True)
    try:
        return Simulation(options, find(options.paths), console).run()
    except UserError as error:
        print(f'convergence-simulate: {error}', file=sys.stderr)
        return USAGE
    except ConvergenceError as error:
        print(f'convergence-simulate: {error}', file=sys.stderr)
        return FAILED
    finally:
        logging.disable(before)


class Simulation:
    """One call of the program."""

    def __init__(self, options: SimulateOptions, paths: Sequence[Path], console: Console) -> None:
        self._options = options
        self._paths = paths
        self._console = console
        self._began = time.monotonic()
        self._tally = Tally()
        self._broken: dict[str, tuple[Path, RunPlan, Verdict, bool]] = {}

    def run(self) -> int:
        """Do the work that the options describe, and return the exit code."""
        options, code = self._options, OK
        for path in self._paths:
            load(path)  # reports an invalid scenario before the first run
        try:
            if options.real:
                return self._real()
            if options.store in SERVERS:
                return self._servers()
            if options.schedule is not None:
                return self._once(options.plan, Choices(script=options.schedule, then_first=True), by_seed=False)
            if options.seed is not None:
                return self._once(options.plan, Choices(options.seed), by_seed=True)
            if options.explore:
                self._explore()
            if options.order:
                self._order()
            if options.seeds is not None:
                self._seeds(options.seeds)
        except KeyboardInterrupt:
            code = INTERRUPTED
        self._say('', *self._report(), totals(self._tally, len(self._paths), time.monotonic() - self._began))
        return code or (FAILED if self._broken else OK)

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._console.print(line)

    # --- ways to run ------------------------------------------------------------------------------------------

    def _once(self, plan: RunPlan, choices: Choices, *, by_seed: bool) -> int:
        """Run each scenario once. Print the story if the options request it or the run fails."""
        seed = self._options.seed or 0
        for path in self._paths:
            again = Choices(seed) if by_seed else Choices(script=self._options.schedule or (), then_first=True)
            verdict, story = tell(path, plan, again)
            verdict = replace(verdict, seed=seed)
            if verdict.error:
                self._note(path, plan, verdict, by_seed=by_seed)
            elif self._options.story is not None:
                self._say(story_text(story, self._options.story))
            else:
                checks = f'; {verdict.left_out} of its checks left out' if verdict.left_out else ''
                self._say(f'ok      {verdict.scenario}: {verdict.steps} steps{checks}')
        self._say(*self._report())
        return FAILED if self._broken else OK

    def _order(self) -> None:
        # A run in order has no accidents, because its scenario expects a certain number of messages.
        plan = replace(self._options.plan, mode=Mode.ORDER, faults=Faults())
        for path in self._paths:
            if number_of(path) is not None:
                continue  # generated programs do not depend on an order
            verdict, run = execute(load(path), plan, Choices())
            self._tally.add(tally_of(verdict, run))
            if verdict.error:
                self._note(path, plan, verdict, by_seed=True)
            elif self._options.story is not None:
                self._say(story_text(tell(path, plan, Choices())[1], self._options.story))
            elif self._options.seeds is None:
                self._say(f'ok      {verdict.scenario}, in order')

    def _seeds(self, seeds: range) -> None:
        options = self._options
        with RunProgress(self._console, options.time_s, len(seeds) * len(self._paths)) as progress:
            for chunk, tally in self._tallies(self._chunks(seeds)):
                self._tally.add(tally)
                for verdict in tally.failures:
                    plan = plan_for(chunk.plan, verdict.seed, alternate=chunk.alternate)
                    self._note(chunk.path, plan, verdict, by_seed=True)
                progress.show(self._tally)

    def _chunks(self, seeds: range) -> Iterator[Chunk]:
        options = self._options
        if options.time_s is None:
            work = chunks(self._paths, options.plan, seeds, alternate=options.alternate)
        else:
            ends_at = time.time() + options.time_s
            work = endless(self._paths, options.plan, seeds.start, ends_at, alternate=options.alternate)
        return (chunk for chunk in work if chunk.path.stem not in self._broken)

    def _tallies(self, work: Iterator[Chunk]) -> Iterator[tuple[Chunk, Tally]]:
        if self._options.jobs == 1:
            yield from ((chunk, chunk.run()) for chunk in work)
            return
        from convergence_simulator.cli.jobs import in_processes

        yield from in_processes(work, self._options.jobs)

    def _explore(self) -> None:
        options = self._options
        bound = Bound(options.states, options.choices, options.time_s)
        for path in self._paths:
            with RunProgress(self._console, None, options.states, path.stem) as progress:
                explored = explore(load(path), options.plan, bound, progress.explored)
            self._tally.add(explored.tally)
            self._say(explored_text(path, explored))
            if explored.failure is not None:
                self._note(path, options.plan, explored.failure, by_seed=False)

    def _real(self) -> int:
        concurrency.install(concurrency.Executor.THREADING)
        from convergence_simulator.cli.real import run_all

        return FAILED if run_all(self._options, self._paths, self._say) else OK

    def _servers(self) -> int:
        concurrency.install(concurrency.Executor.THREADING)
        from convergence_simulator.cli.servers import run_all

        return FAILED if run_all(self._options, self._paths, self._say) else OK

    # --- failures ---------------------------------------------------------------------------------------------

    def _note(self, path: Path, plan: RunPlan, verdict: Verdict, *, by_seed: bool) -> None:
        self._broken.setdefault(path.stem, (path, plan, verdict, by_seed))

    def _report(self) -> Iterator[str]:
        """The failed scenarios, the first of them with all details."""
        forms = [self._options.story] if self._options.story is not None else list(Form)
        for number, (path, plan, verdict, by_seed) in enumerate(self._broken.values()):
            if number >= MOST_REPORTS:
                yield f'FAILED  {verdict.scenario}, {verdict.rule}, seed {verdict.seed}'
                continue
            failure = examine(path, plan, verdict, self._options.settings(plan), by_seed=by_seed)
            yield failure_text(failure, forms)
            yield ''
