"""The same scenarios on the SQL store, on an SQLite file that believes the simulated clock."""

from pathlib import Path

import pytest
from convergence_simulator.runs.batch import execute, load
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.stores.database import set_clock
from convergence_simulator.stores.sqlstore import in_sqlite
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

from convergence.db.connections.database import connect
from simulator.tests.programs import CHAIN, REPLACE, scenario

SCENARIOS = Path(__file__).parents[2] / 'tests' / 'scenarios'


@pytest.mark.parametrize(
    'name',
    [
        'basic_create',
        'update_replace',
        'update_replace_rollback',
        'update_interrupt_create',
        'drift_removes_again_and_again',
    ],
)
def test_a_scenario_holds_on_the_sql_store(name):
    wanted = load(SCENARIOS / f'{name}.py')
    plans = [
        RunPlan(mode=Mode.ORDER),
        RunPlan(),
        RunPlan(faults=Faults(0.05, 0.1, 0.005)),
        RunPlan(faults=Faults(0.1, 0.1, 0.01)),
    ]
    for seed, each in enumerate(plans):
        plan = RunPlan(mode=each.mode, faults=each.faults, storage=in_sqlite)
        verdict, _ = execute(wanted, plan, Choices(seed), seed=seed)
        assert not verdict.error, f'seed {seed}: {verdict.error}'


def test_time_in_the_database_is_simulated(tmp_path):
    rows = {}

    def prepare(run):
        run.world.watch.commits.append(lambda world, decision: rows.update(world.store.tables.resource))

    slow = "engine.takes('A', 100)\n" + CHAIN
    verdict, run = execute(scenario(tmp_path, slow), RunPlan(storage=in_sqlite), Choices(3), prepare=prepare)
    assert not verdict.error
    begun, ended = run.world.kernel.begun_at, run.world.kernel.now
    assert ended - begun >= 100
    assert all(begun <= row.created_at <= row.updated_at <= ended for row in rows.values())
    assert max(row.updated_at for row in rows.values()) - begun >= 100


def test_the_same_seed_does_the_same_on_sqlite(tmp_path):
    plan = RunPlan(storage=in_sqlite, faults=Faults(0.1, 0.1, 0.01))
    wanted = scenario(tmp_path, REPLACE)
    first, second = (execute(wanted, plan, Choices(5))[0].choices for _ in range(2))
    assert first == second


def test_in_order_both_stores_send_and_make_the_same(tmp_path):
    wanted = scenario(tmp_path, REPLACE)
    made = []
    for plan in (RunPlan(mode=Mode.ORDER), RunPlan(mode=Mode.ORDER, storage=in_sqlite)):
        changes = []

        def prepare(run, changes=changes):
            run.world.reality.changed = lambda action, thing: changes.append((action, thing.id))

        assert not execute(wanted, plan, Choices(), prepare=prepare)[0].error
        made.append(changes)
    assert made[0] == made[1] != []


def test_a_clock_can_only_be_set_where_it_is_ours(tmp_path):
    database = connect(f'sqlite:///{tmp_path / "clock.sqlite"}')
    set_clock(database, lambda: 12.5)
    from sqlalchemy import select

    from convergence.db.schema.columns import database_now

    with database.connect() as connection:
        assert connection.execute(select(database_now())).scalar_one() == 12.5
    database.dispose()
    other = connect(f'sqlite:///{tmp_path / "other.sqlite"}')
    with other.connect() as connection:
        assert connection.execute(select(database_now())).scalar_one() > 1e9
    other.dispose()
