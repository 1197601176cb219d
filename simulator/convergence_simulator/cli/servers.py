"""``convergence-simulate --store postgresql`` or ``mariadb``: scenarios on real threads and a real database server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from convergence import errors
from convergence.db.connections.database import Database, connect
from convergence.db.schema import migration
from convergence.db.statements.store import Store
from convergence_simulator.cli.arguments import SimulateOptions
from convergence_simulator.crew.crew import Crew, Order
from convergence_simulator.crew.run import CrewRun
from convergence_simulator.runs.batch import load, plan_for
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.report import command
from convergence_simulator.runs.run import Verdict
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.stores.database import clear, is_empty

CONNECTIONS = 40
MARIADB = 'mysql'


@dataclass(frozen=True, slots=True)
class SimulationDatabase:
    """A database that only simulations use. It contains nothing but the schema."""

    database: Database

    def run(self, scenario: Scenario, plan: RunPlan, seed: int, *, limit_s: float = 60.0) -> tuple[Verdict, list[str]]:
        """Run a scenario once, and return the result and the skipped verbs.

        :param limit_s: maximum duration of the run in seconds. A longer run has failed.
        """
        clear(Store(self.database))
        order = Order(seed, plan.faults, plan.engines, plan.workers, plan.threads, plan.max_inline_nodes, plan.window)
        crew = Crew(self.database, order)
        run = CrewRun(scenario, crew, Store(self.database), limit_s=limit_s)
        try:
            verdict = run.execute()
        finally:
            crew.stop()
        return replace(verdict, seed=seed), run.left_out


@contextmanager
def server(kind: str, url: str) -> Iterator[SimulationDatabase]:
    """The database at a URL. It is emptied afterwards.

    :raises ConfigurationError: the database is of another kind, or contains stacks.
    :raises DatabaseUnavailable: the database does not answer.
    """
    database = connect(url, pool_size=CONNECTIONS)
    try:
        if database.dialect.name not in (kind, {'mariadb': MARIADB}.get(kind)):
            raise errors.ConfigurationError(f'--database-url does not name a {kind} server, as --store requires')
        if migration.version(database) != migration.newest():
            migration.sync(database)
        if not is_empty(database):
            raise errors.ConfigurationError(
                'There are stacks in the database of --database-url, and a simulation removes everything in it. '
                'Name an empty database.'
            )
        try:
            yield SimulationDatabase(database)
        finally:
            clear(Store(database))
    finally:
        database.dispose()


def run_all(options: SimulateOptions, paths: Sequence[Path], say: Callable[..., None]) -> bool:
    """Run scenarios under their seeds, and return True if any of them failed.

    :raises ConfigurationError: the database cannot be used.
    :raises DatabaseUnavailable: the database does not answer.
    """
    seeds = range(options.seed, options.seed + 1) if options.seed is not None else options.seeds or range(1)
    ends = None if options.time_s is None else time.monotonic() + options.time_s
    broken: set[Path] = set()
    runs = 0
    with server(options.store, options.database_url) as database:
        for seed in seeds:
            for path in paths:
                if path in broken or (ends is not None and time.monotonic() > ends):
                    continue
                plan = plan_for(options.plan, seed, alternate=options.alternate)
                verdict, left_out = database.run(load(path), plan, seed)
                runs += 1
                if verdict.error:
                    broken.add(path)
                    say(f'FAILED  {verdict.scenario}, {verdict.rule}, seed {seed}, on {options.store}')
                    say(
                        f'  {verdict.error}',
                        f'  try again with (the run may differ): {_again(options, path, plan, seed)}',
                    )
                elif len(seeds) == 1:
                    told = f'; left out: {", ".join(sorted(set(left_out)))}' if left_out else ''
                    say(f'ok      {verdict.scenario}, on {options.store}, {verdict.seconds:.1f} s{told}')
            if ends is not None and time.monotonic() > ends:
                break
    say(f'{len(paths)} scenarios, {runs} runs on {options.store}, {len(broken)} scenarios failed')
    return bool(broken)


def _again(options: SimulateOptions, path: Path, plan: RunPlan, seed: int) -> str:
    return command(path, ['--seed', str(seed), '--database-url', 'URL'], options.settings(plan))
