"""A server of the database that lags behind: rows as they were some commits ago, in memory and in SQLite."""

import logging
from pathlib import Path

import pytest
from convergence_simulator.memory.look import Lag
from convergence_simulator.memory.reader import MemoryReader
from convergence_simulator.memory.store import MemoryStore
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.run import Run
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.stores.sqlstore import in_sqlite
from convergence_simulator.stores.storage import in_memory
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

from convergence.core.effects import Decision, InsertResources, InsertStack, InsertTraversal
from convergence.core.model import Action, Status, TraversalStatus
from convergence.core.observation import DriftPolicies
from convergence.core.rows import Stack
from convergence.db.scopes import NewStack, StackAlone
from convergence.values import replace
from tests.contract.rows import FREE, STACK, TRAVERSAL

SCENARIOS = Path(__file__).parents[2] / 'tests' / 'scenarios'


@pytest.fixture(autouse=True)
def _quiet():
    """Nobody reads what thousands of simulated processes log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def executed(name: str, seed: int, **settings: object) -> Run:
    plan = RunPlan(faults=Faults(lag=0.15), **settings)  # type: ignore[arg-type]
    run = Run(Scenario.load(SCENARIOS / f'{name}.py'), plan, Choices(seed))
    try:
        run.execute()
    finally:
        run.world.close()
    return run


@pytest.mark.parametrize('name', ['update_replace', 'basic_update_delete'])
def test_the_sql_of_production_holds_on_servers_that_lag(name):
    runs = [executed(name, seed, storage=in_sqlite) for seed in range(2)]
    assert all(run.world.trouble.lags for run in runs)


def test_an_object_gets_no_second_row_where_its_own_is_not_seen():
    """Whoever had made it did not see the row it was made for, and stored another one; its removal took the object."""
    runs = [executed('failed_create_is_rolled_back', seed) for seed in range(12)]
    assert sum(run.world.trouble.lags > 0 for run in runs) > 6, 'most seeds meet a server that lags'


def test_a_seed_tells_the_same_story():
    made = [executed('update_replace', 3)._choices.made for _ in range(2)]
    assert made[0] == made[1]


def test_a_question_is_answered_with_what_was_there_before():
    store = MemoryStore(lambda: 1.0)
    store.spread(4)
    stored(store, 'S1')
    stored(store, 'S2')
    reader = MemoryReader(store)
    store.lag = lambda: Lag(1)
    assert reader.stack('S1') is not None
    assert reader.stack('S2') is None
    store.lag = Lag
    assert reader.stack('S2') is not None


@pytest.mark.parametrize('catches_up', [False, True])
def test_a_stack_that_is_not_seen_is_not_there(catches_up):
    store = MemoryStore(lambda: 1.0)
    store.spread(4)
    stored(store, 'S1')
    store.lag = lambda: Lag(1, catches_up=catches_up)
    assert store.transact(StackAlone('S1'), lambda view: Decision(None)) is None


def test_what_a_stack_has_left_is_observed_although_a_server_that_lags_does_not_show_it():
    """Not seen is not gone: it was taken for enrolled, or forgotten, and nobody ever looked at it."""
    storage = in_memory(lambda: 1.0)
    store, observations = storage.ports.store, storage.ports.observations
    store.spread(4)
    storage.ports.roster.register('O', 'observer', 'host', '1', 60.0)
    over = replace(TRAVERSAL, status=TraversalStatus.COMPLETE)
    effects = (InsertStack(replace(STACK, status=Status.COMPLETE)), InsertTraversal(over, ()), InsertResources((FREE,)))
    store.transact(NewStack('p'), lambda view: Decision(None, effects))
    (found,) = observations.unscheduled(10)
    store.lag = lambda: Lag(1)
    assert observations.schedule(found, {'Type': 0.0}, DriftPolicies(), 10) == 0
    store.lag = Lag
    assert observations.unscheduled(10) == [found]
    assert observations.schedule(found, {'Type': 0.0}, DriftPolicies(), 10) == 1
    store.lag = lambda: Lag(2)
    assert observations.lease('O', 10, 60.0) == []
    store.lag = Lag
    assert [each.row.id for each in observations.lease('O', 10, 60.0)] == ['R']


def stored(store: MemoryStore, key: str) -> None:
    """Store a stack in a commit of its own."""
    row = Stack(
        id=key,
        name=key,
        project_id='P',
        action=Action.CREATE,
        status=Status.COMPLETE,
        status_reason='',
        template_id=None,
        last_good_template_id=None,
        traversal_id=None,
        timeout_mins=60,
        disable_rollback=True,
        created_at=1.0,
    )
    store.transact(NewStack('P'), lambda view: Decision(None, (InsertStack(row),)))
