"""A database that goes back: seeds that have found something, each with what was wrong."""

import logging
from pathlib import Path

import pytest
from convergence_simulator.runs.batch import execute, load
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.stores.sqlstore import in_sqlite
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

ROOT = Path(__file__).parents[2]
SCENARIOS = 'tests/scenarios/'
ADDRESS = f'{SCENARIOS}address'


@pytest.fixture(autouse=True)
def _quiet():
    """Nobody reads what simulated processes log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ('program', 'seed', 'rate'),
    [
        pytest.param('random:77', 0, 0.003, id='the rule forgot that a late cleanup waits for what is in service'),
        pytest.param('random:62', 1, 0.003, id='what could not be removed was in the way of another one of its name'),
        pytest.param('random:62', 2, 0.004, id='and so it was where something in use had been built on it'),
        pytest.param('random:256', 3, 0.003, id='a leftover that was never in service waited for nobody'),
        pytest.param('tree:97', 1, 0.003, id='a stack got a leftover while its resource was under way, and kept it'),
        pytest.param('tree:88', 3, 0.003, id='and so it was where its result was stored without a look at the row'),
        pytest.param('tree:90', 1, 0.003, id='who had made it was dead; who had suspended it did not tell of it'),
        pytest.param('random:170', 7, 0.004, id='what an operation had suspended that was lost itself was not resumed'),
        pytest.param('random:6', 10, 0.004, id='the rule took one of two workers with the same fence for the other'),
        pytest.param(f'{ADDRESS}_goes_back_and_forth', 0, 0.003, id='a leftover kept the address of what was wanted'),
        pytest.param(
            f'{ADDRESS}_is_wanted_while_another_one_gets_it', 41, 0.01, id='it was taken back, and given again'
        ),
        pytest.param(
            f'{ADDRESS}_is_wanted_while_another_one_gets_it', 49, 0.01, id='who had taken it did not tell whence'
        ),
        pytest.param(f'{ADDRESS}_of_what_only_another_creation_tells_of', 28, 0.01, id='what was gone was waited for'),
        pytest.param(f'{ADDRESS}_of_what_only_another_creation_tells_of', 112, 0.01, id='and could not be deleted'),
        pytest.param(f'{SCENARIOS}deleted_and_made_again', 10, 0.003, id='the user made what was there again'),
        pytest.param(f'{SCENARIOS}delete_leaves_what_is_named', 24, 0.003, id='and left what was not there any more'),
        pytest.param(f'{SCENARIOS}cancelled_patiently', 0, 0.003, id='and looked at what was not there any more'),
    ],
)
def test_all_is_right_in_the_end(program, seed, rate):
    program = ROOT / f'{program}.py' if '/' in program else Path(program)
    verdict, run = execute(load(program), RunPlan(faults=Faults(back=rate)), Choices(seed), seed=seed)
    assert not verdict.error
    assert run.world.losses


@pytest.mark.parametrize('program', ['random:62', 'tests/scenarios/standby_lacks_the_last_commits.py'])
def test_the_sql_of_production_goes_back_too(program):
    plan = RunPlan(faults=Faults(back=0.02), storage=in_sqlite)
    verdict, run = execute(load(ROOT / program if '/' in program else Path(program)), plan, Choices(1), seed=1)
    assert not verdict.error
    assert run.world.losses
