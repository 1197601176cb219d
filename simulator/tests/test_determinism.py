"""The same seed is the same story: twice in one process, and in another one that hashes differently."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.run import Run
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

ROOT = Path(__file__).parents[2]
NAMES = (
    'update_replace',
    'one_resource_answers_later',
    'frozen_worker_comes_back',
    'create_is_cancelled',
    'everything_dies',
    'rollback_fails_too',
)
FAULTS = Faults(drop=0.05, double=0.1, crash=0.01)


def story(name: str, seed: int) -> dict[str, object]:
    """All that was chosen, and all that was announced."""
    logging.disable(logging.CRITICAL)
    run = Run(
        Scenario.load(ROOT / 'tests' / 'scenarios' / f'{name}.py'), RunPlan(faults=FAULTS), choices := Choices(seed)
    )
    run.execute()
    logging.disable(logging.NOTSET)
    events = [[event.at, event.resource_name, event.action, event.status] for event in run.world.store.tables.event]
    return {'choices': list(choices.made), 'events': events, 'objects': sorted(run.world.reality.objects)}


@pytest.mark.parametrize('name', NAMES)
def test_the_same_seed_is_the_same_story(name):
    told = [story(name, seed) for seed in range(5)]
    assert told == [story(name, seed) for seed in range(5)]
    assert told[0]['choices'] != told[1]['choices']


def test_the_choices_alone_repeat_a_run():
    scenario = Scenario.load(ROOT / 'tests' / 'scenarios' / 'update_replace.py')
    first = Choices(3)
    Run(scenario, RunPlan(faults=FAULTS), first).execute()
    again = Choices(99, first.made)
    Run(scenario, RunPlan(faults=FAULTS), again).execute()
    assert again.made == first.made


@pytest.mark.parametrize('hash_seed', ['1', '2'])
def test_another_process_tells_the_same_story(hash_seed):
    program = (
        'import json; from simulator.tests.test_determinism import NAMES, story; '
        'print(json.dumps([story(name, 7) for name in NAMES]))'
    )
    environment = os.environ | {'PYTHONHASHSEED': hash_seed, 'PYTHONPATH': str(ROOT)}
    done = subprocess.run(
        [sys.executable, '-c', program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == json.loads(json.dumps([story(name, 7) for name in NAMES]))
