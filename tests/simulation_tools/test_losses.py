"""A database that goes back: seeds that have found something, each with what was wrong."""

import logging
from pathlib import Path

import pytest

from convergence.simulator.batch import execute, load
from convergence.simulator.choices import Choices
from convergence.simulator.faults import Faults
from convergence.simulator.run import RunPlan
from convergence.simulator.sqlstore import in_sqlite

ROOT = Path(__file__).parents[2]


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
    ],
)
def test_all_is_right_in_the_end(program, seed, rate):
    verdict, run = execute(load(Path(program)), RunPlan(faults=Faults(back=rate)), Choices(seed), seed=seed)
    assert not verdict.error
    assert run.world.losses


@pytest.mark.parametrize('program', ['random:61', 'tests/scenarios/standby_lacks_the_last_commits.py'])
def test_the_sql_of_production_goes_back_too(program):
    plan = RunPlan(faults=Faults(back=0.02), storage=in_sqlite)
    verdict, run = execute(load(ROOT / program if '/' in program else Path(program)), plan, Choices(1), seed=1)
    assert not verdict.error
    assert run.world.losses
