"""Every scenario, in the prototype's order and under seeds: quiet, with doubled messages, with losses and deaths."""

import logging
from pathlib import Path

import pytest
from convergence_simulator.runs.batch import collecting_later
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.runs.run import Run
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

DIRECTORY = Path(__file__).parents[2] / 'tests' / 'scenarios'
SCENARIOS = [Scenario.load(path) for path in sorted(DIRECTORY.glob('*.py'))]

FAULTS = {
    'quiet': (RunPlan(), 8),
    'narrow': (RunPlan(window=1), 2),
    'doubled': (RunPlan(faults=Faults(double=0.3)), 3),
    'lossy': (RunPlan(faults=Faults(drop=0.1, double=0.1)), 3),
    'deadly': (RunPlan(faults=Faults(drop=0.05, double=0.05, crash=0.01)), 5),
    'frozen': (RunPlan(faults=Faults(freeze=0.004)), 2),
    'away': (RunPlan(faults=Faults(database=0.02, outage=0.2)), 2),
    'lagging': (RunPlan(faults=Faults(lag=0.1)), 1),
    'meddled': (RunPlan(faults=Faults(crash=0.001, drift=0.005)), 1),
    'everything': (RunPlan(faults=Faults(0.03, 0.05, 0.003, 3, 0.003, 0.01, 0.1, lag=0.005)), 3),
}
"""Faults of each kind of run (narrow: one node is dispatched at a time), and the number of seeds.

The first seed of the kinds in `EACH_COMMIT` runs with each commit, all others with the long tests. All of them together
notice nearly all sabotages of `simulator.tests.mutants`. The long search is ``make simulate``. Seeds that have found
something are named, each with its scenario, where its rule is tested.
"""

EACH_COMMIT = ('quiet', 'narrow', 'deadly', 'lagging', 'meddled', 'everything')
"""Kinds that run with each commit. The others inject a part of the faults of ``everything``, more often."""


@pytest.fixture(autouse=True)
def _quiet():
    """Nobody reads what thousands of simulated processes log, and their garbage can wait."""
    logging.disable(logging.CRITICAL)
    with collecting_later():
        yield
    logging.disable(logging.NOTSET)


def run(scenario: Scenario, plan: RunPlan, seed: int) -> Run:
    """Run a scenario once; a failure names the command that repeats it."""
    once = Run(scenario, plan, Choices(seed))
    try:
        once.execute()
    except Exception as error:
        faults = plan.faults
        error.add_note(
            f'repeat: convergence-simulate --seed {seed} --drop {faults.drop} --double {faults.double} '
            f'--crash {faults.crash} --freeze {faults.freeze} --no-answer {faults.database} --outage {faults.outage} '
            f'--lag {faults.lag} --drift {faults.drift} --lose-commits {faults.back} '
            f'tests/scenarios/{scenario.name}.py'
        )
        raise
    finally:
        once.world.close()
    return once


def test_what_is_ready_when_all_is_up_is_kept_from_nobody_while_a_thread_goes_on():
    """A thread that kept one node back took another one of the same stack before it, and nobody knew of the first."""
    generations = Scenario.load(DIRECTORY / 'three_generations_of_one_name.py')
    for seed in range(6, 12):
        assert run(generations, RunPlan(max_inline_nodes=4), seed).steps


@pytest.mark.parametrize(
    ('name', 'faults', 'seed'),
    [
        ('drift_of_what_has_no_id', Faults(drop=0.02, double=0.02, crash=0.002, lag=0.005), 15),
        ('drift_is_only_reported', Faults(drop=0.02, double=0.02, lag=0.1), 1),
        ('drift_is_only_reported', Faults(lag=0.3), 26),
        ('drift_removes_again_and_again', Faults(drop=0.02, double=0.02, lag=0.1), 7),
        ('drift_removes_again_and_again', Faults(drop=0.02, double=0.02, lag=0.1), 19),
    ],
)
def test_drift_is_put_right_although_the_database_did_not_show_what_was_to_be_observed(name, faults, seed):
    """A server that lagged had a stack taken for enrolled whose objects it did not show: nobody ever looked at them."""
    assert run(Scenario.load(DIRECTORY / f'{name}.py'), RunPlan(faults=faults), seed).steps


@pytest.mark.parametrize('seed', [6, 51])
def test_the_count_of_repairs_outlives_a_replacement_that_is_replaced_itself(seed):
    """A worker died in the creation of one, whose row was gone before anybody came to look: all was counted anew."""
    faults = Faults(drop=0.02, double=0.02, crash=0.002, lag=0.005)
    assert run(Scenario.load(DIRECTORY / 'drift_removes_again_and_again.py'), RunPlan(faults=faults), seed).steps


@pytest.mark.parametrize(('name', 'seed'), [('drift_comes_again_and_again', 10), ('drift_after_repairs_that_fail', 33)])
def test_an_engine_that_is_shown_what_was_before_the_last_repair_begins_none_too_many(name, seed):
    """One took what was put right by then for what differs; one did not see what had failed, and counted nothing."""
    assert run(Scenario.load(DIRECTORY / f'{name}.py'), RunPlan(faults=Faults(lag=0.3)), seed).steps


def test_two_rows_are_replaced_at_one_moment_on_two_servers():
    """Each server counted the nodes for itself, and the one late cleanup was written over the other."""
    assert run(Scenario.load(DIRECTORY / 'drift_is_repaired.py'), RunPlan(faults=Faults(lag=0.3)), 24).steps


def test_there_are_enough_scenarios():
    assert len(SCENARIOS) >= 60


@pytest.mark.parametrize('scenario', SCENARIOS, ids=lambda scenario: scenario.name)
def test_in_order(scenario):
    assert run(scenario, RunPlan(mode=Mode.ORDER), 0).user.stacks


@pytest.mark.parametrize(
    'kind', [kind if kind in EACH_COMMIT else pytest.param(kind, marks=pytest.mark.long) for kind in FAULTS]
)
@pytest.mark.parametrize('scenario', SCENARIOS, ids=lambda scenario: scenario.name)
def test_under_seeds(scenario, kind):
    plan, _ = FAULTS[kind]
    assert run(scenario, plan, 0).steps


@pytest.mark.long
@pytest.mark.parametrize('kind', [kind for kind, (_, seeds) in FAULTS.items() if seeds > 1])
@pytest.mark.parametrize('scenario', SCENARIOS, ids=lambda scenario: scenario.name)
def test_under_more_seeds(scenario, kind):
    plan, seeds = FAULTS[kind]
    for seed in range(1, seeds):
        assert run(scenario, plan, seed).steps
