"""I11 where no commit is looked at: log lines and messages, while resources with secrets fail in every way."""

import logging
from pathlib import Path

from convergence_simulator.rules.invariants import CANARY
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.run import Run
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults
from convergence_simulator.world.world import Watch

SCENARIO = Path(__file__).parents[2] / 'tests' / 'scenarios' / 'secrets_stay_secret.py'


def test_no_log_line_and_no_message_tells_a_secret(caplog):
    scenario, said = Scenario.load(SCENARIO), []

    def watch():
        return Watch(story=lambda who, what, whom: said.append(f'{who} {what!r} {whom}'))

    with caplog.at_level(logging.DEBUG):
        for seed in range(15):
            Run(scenario, RunPlan(faults=Faults(drop=0.05, crash=0.01)), Choices(seed), watch).execute()
    assert len(said) > 100
    assert CANARY == 'canary'
    assert 'fails' in caplog.text
    assert CANARY not in caplog.text
    assert not [line for line in said if CANARY in line]
