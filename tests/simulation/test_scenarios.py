"""Every scenario, in the prototype's order and under seeds: quiet, with doubled messages, with losses and deaths."""

import logging
from pathlib import Path

import pytest

from convergence.simulator.choices import Choices
from convergence.simulator.faults import Faults
from convergence.simulator.language import Scenario
from convergence.simulator.run import Mode, Run, RunPlan

DIRECTORY = Path(__file__).parents[1] / 'scenarios'
SCENARIOS = [Scenario.load(path) for path in sorted(DIRECTORY.glob('*.py'))]

FAULTS = {
    'quiet': (RunPlan(), 25),
    'narrow': (RunPlan(window=1), 5),
    'doubled': (RunPlan(faults=Faults(double=0.3)), 10),
    'lossy': (RunPlan(faults=Faults(drop=0.1, double=0.1)), 10),
    'deadly': (RunPlan(faults=Faults(drop=0.05, double=0.05, crash=0.01)), 15),
    'frozen': (RunPlan(faults=Faults(freeze=0.004)), 5),
    'away': (RunPlan(faults=Faults(database=0.02, outage=0.2)), 5),
    'lagging': (RunPlan(faults=Faults(lag=0.1)), 3),
    'everything': (RunPlan(faults=Faults(0.03, 0.05, 0.003, 3, 0.003, 0.01, 0.1, lag=0.005)), 5),
}
"""What goes wrong (or narrow: that nodes are told one by one), and under how many seeds."""


@pytest.fixture(autouse=True)
def _quiet():
    """Nobody reads what thousands of simulated processes log."""
    logging.disable(logging.CRITICAL)
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
            f'--lag {faults.lag} '
            f'tests/scenarios/{scenario.name}.py'
        )
        raise
    finally:
        once.world.close()
    return once


def test_there_are_enough_scenarios():
    assert len(SCENARIOS) >= 60


@pytest.mark.parametrize('scenario', SCENARIOS, ids=lambda scenario: scenario.name)
def test_in_order(scenario):
    assert run(scenario, RunPlan(mode=Mode.ORDER), 0).user.stacks


@pytest.mark.parametrize('kind', FAULTS)
@pytest.mark.parametrize('scenario', SCENARIOS, ids=lambda scenario: scenario.name)
def test_under_seeds(scenario, kind):
    plan, seeds = FAULTS[kind]
    for seed in range(seeds):
        assert run(scenario, plan, seed).steps
