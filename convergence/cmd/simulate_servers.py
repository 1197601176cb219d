"""``convergence-simulate --store postgresql`` or ``mariadb``: scenarios on real threads and a real database server."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from convergence import errors
from convergence.cmd.simulate_arguments import SimulateOptions
from convergence.db.schema import migration
from convergence.db.simulation import all_rows, clear, is_empty
from convergence.db.statements.connection import Database, connect
from convergence.db.statements.store import Store
from convergence.simulator.batch import load, plan_for
from convergence.simulator.crew import Crew, CrewEngine, Order
from convergence.simulator.language import Scenario
from convergence.simulator.real import RealInstallation, RealRun
from convergence.simulator.report import command
from convergence.simulator.run import RunPlan, Verdict
from convergence.simulator.world import Context

V = TypeVar('V')

PATIENCE_S = 30.0
"""How long an operation is asked for again that the engine is too busy for."""
CONNECTIONS = 40
MARIADB = 'mysql'


class Asked:
    """Asks one of the engines of a crew, as a client would over RPC."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    def create_stack(
        self, context: Any, stack_name: str, template: Any, *, args: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Create a stack; how it is named from now on."""
        return self._ask(lambda engine: engine.parts.stacks.create_stack(context, stack_name, template, args=args))

    def update_stack(
        self, context: Any, stack_identity: Any, template: Any, *, args: Mapping[str, Any] | None = None
    ) -> object:
        """Give a stack a new goal."""
        return self._ask(lambda engine: engine.parts.stacks.update_stack(context, stack_identity, template, args=args))

    def delete_stack(self, context: Any, stack_identity: Any) -> object:
        """Delete a stack."""
        return self._ask(lambda engine: engine.parts.stacks.delete_stack(context, stack_identity))

    def stack_cancel_update(
        self, context: Any, stack_identity: Any, cancel_with_rollback: bool = True, now: bool = False
    ) -> object:
        """Stop the operation in progress."""
        return self._ask(
            lambda engine: engine.parts.stacks.stack_cancel_update(context, stack_identity, cancel_with_rollback, now)
        )

    def stack_suspend(self, context: Any, stack_identity: Any) -> object:
        """Suspend a stack."""
        return self._ask(lambda engine: engine.parts.actions.stack_suspend(context, stack_identity))

    def stack_resume(self, context: Any, stack_identity: Any) -> object:
        """Resume a stack."""
        return self._ask(lambda engine: engine.parts.actions.stack_resume(context, stack_identity))

    def stack_check(self, context: Any, stack_identity: Any) -> object:
        """Have a stack's objects looked at."""
        return self._ask(lambda engine: engine.parts.actions.stack_check(context, stack_identity))

    def resource_mark_unhealthy(
        self, context: Any, stack_identity: Any, resource_name: str, mark_unhealthy: bool
    ) -> object:
        """Say that a resource is broken, or is not."""
        return self._ask(
            lambda engine: engine.parts.actions.resource_mark_unhealthy(
                context, stack_identity, resource_name, mark_unhealthy
            )
        )

    def _ask(self, act: Callable[[CrewEngine], V]) -> V:
        ends = time.monotonic() + PATIENCE_S
        while True:
            try:
                return act(self._crew.engine())
            except errors.RetryLater:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class SimulationDatabase:
    """A database for simulations alone, empty but for the schema."""

    database: Database

    def run(self, scenario: Scenario, plan: RunPlan, seed: int, *, limit_s: float = 60.0) -> tuple[Verdict, list[str]]:
        """One run; what came of it, and the verbs that were left out.

        :param limit_s: after so long without coming to rest the run has failed.
        """
        clear(Store(self.database))
        order = Order(seed, plan.faults, plan.engines, plan.workers, plan.threads, plan.in_a_row, plan.window)
        crew = Crew(self.database, order)
        store = Store(self.database)
        context = Context(project_id=str(uuid.uuid4()))
        place = RealInstallation(Asked(crew), context, store, crew.reality, crew, partial(look, crew, store))
        run = RealRun(scenario, place, limit_s=limit_s)
        try:
            verdict = run.execute()
        finally:
            crew.stop()
        return replace(verdict, seed=seed), run.left_out


def look(crew: Crew, store: Store) -> None:
    """Check what can be checked now.

    :raises Violation: something is wrong.
    """
    before = crew.at_rest()
    tables = all_rows(store)
    crew.ledger.look(tables)
    if before is not None and before == crew.at_rest() and not crew.lost:
        crew.ledger.rest(tables)
    crew.ledger.raise_any()


@contextmanager
def server(kind: str, url: str) -> Iterator[SimulationDatabase]:
    """The database at a URL, emptied afterwards.

    :raises ConfigurationError: it is of another kind, or there are stacks in it.
    :raises DatabaseUnavailable: it does not answer.
    """
    database = connect(url, pool_size=CONNECTIONS)
    try:
        if database.dialect.name not in (kind, {'mariadb': MARIADB}.get(kind)):
            raise errors.ConfigurationError(f'--database-url is not that of a {kind} server, as --store says')
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
    """Run scenarios under their seeds; whether anything failed.

    :raises ConfigurationError: the database cannot be used; `DatabaseUnavailable`: it does not answer.
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
                    say(f'  {verdict.error}', f'  again, with luck: {_again(options, path, plan, seed)}')
                elif len(seeds) == 1:
                    told = f'; left out: {", ".join(sorted(set(left_out)))}' if left_out else ''
                    say(f'ok      {verdict.scenario}, on {options.store}, {verdict.seconds:.1f} s{told}')
            if ends is not None and time.monotonic() > ends:
                break
    say(f'{len(paths)} scenarios, {runs} runs on {options.store}, {len(broken)} scenarios failed')
    return bool(broken)


def _again(options: SimulateOptions, path: Path, plan: RunPlan, seed: int) -> str:
    return command(path, ['--seed', str(seed), '--database-url', 'URL'], options.settings(plan))
