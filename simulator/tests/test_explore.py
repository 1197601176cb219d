"""Every order of events of a small scenario."""

import logging
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from convergence_simulator.runs.explore import Bound, Grain, explore
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.world.faults import Faults
from convergence_simulator.world.kernel import Kernel

from convergence.core.begin import begin
from convergence.core.effects import UpdateResource
from convergence.core.model import Phase
from simulator.tests.programs import CHAIN, RACE, REPLACE, program, scenario


@pytest.fixture(autouse=True)
def _quiet():
    """Nobody reads what the processes log that end with their run."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def plan(grain=Grain.TRANSACTION, **faults):
    return RunPlan(engines=1, workers=2, passed=grain.passed, faults=Faults(**faults))


def test_a_small_scenario_is_explored_to_its_end_at_either_grain(tmp_path):
    chain = scenario(tmp_path, CHAIN)
    explored = {grain: explore(chain, plan(grain)) for grain in Grain}
    for each in explored.values():
        assert each.failure is None
        assert each.bound == ''
        assert each.runs > 1
        # No state was visited twice: further runs ended where they met a known one.
        assert each.states < each.runs * each.longest
    assert explored[Grain.STEP].states > 2 * explored[Grain.TRANSACTION].states


def test_the_one_order_that_is_wrong_is_found(tmp_path):
    explored = explore(scenario(tmp_path, RACE), plan())
    assert explored.failure is not None
    assert 'B was first' in explored.failure.error


def test_one_lost_message_in_any_place_is_survived(tmp_path):
    """Departures come in order of their number, so all single faults are among the first."""
    explored = explore(scenario(tmp_path, CHAIN), plan(drop=0.5), Bound(states=600))
    assert explored.failure is None
    assert explored.departures >= 2
    assert explored.tally.lost > 2


def test_a_worker_that_takes_what_it_may_not_is_found(tmp_path, monkeypatch):
    """Two deliveries of one message, a moment apart: without a look at the owner both workers go to work."""

    def blind(view, *others):
        row = view.resource
        if row is None or view.node.phase is not Phase.UPDATE:
            return begin(view, *others)
        decision = begin(replace(view, resource=replace(row, owner=None)), *others)
        # The store is told of the owner, or its guard would refuse the claim and have it decided again and again.
        told = [
            replace(each, owner=row.owner) if isinstance(each, UpdateResource) else each for each in decision.effects
        ]
        return replace(decision, effects=tuple(told))

    users = [module for name, module in sys.modules.items() if name.startswith('convergence.worker.')]
    users = [module for module in users if getattr(module, 'begin', None) is begin]
    assert users
    for module in users:
        monkeypatch.setattr(module, 'begin', blind)
    explored = explore(scenario(tmp_path, CHAIN), plan(double=0.5), Bound(states=5000))
    assert explored.failure is not None


def test_a_bound_is_kept_and_named(tmp_path):
    explored = explore(scenario(tmp_path, REPLACE), plan(), Bound(states=200))
    assert explored.bound == '200 states'
    assert 200 <= explored.states < 300
    explored = explore(scenario(tmp_path, CHAIN), plan(Grain.STEP), Bound(choices=3))
    assert explored.bound == '3 choices'


def test_it_comes_to_the_same_in_every_process(tmp_path):
    """What it came to, that is: how often it says meanwhile how far it is depends on how fast the machine is."""
    path = program(tmp_path, 'replace', REPLACE)
    command = [sys.executable, '-m', 'convergence_simulator', '--explore', '--states', '150', str(path)]
    outputs = [
        subprocess.run(
            command, env=os.environ | {'PYTHONHASHSEED': seed}, capture_output=True, text=True, check=True, timeout=240
        ).stdout.splitlines()
        for seed in ('1', '2')
    ]
    results = [[line for line in lines if line.startswith('replace: ')] for lines in outputs]
    assert len(results[0]) == 1
    assert results[0] == results[1]
    assert '150 states' in results[0][0]


def test_an_exploration_knows_every_pause(tmp_path, monkeypatch):
    """A point that neither grain knows of would silently be left out of the coarse one."""
    points = set()
    original = Kernel.pause

    def noted(self, point):
        points.add(point)
        original(self, point)

    monkeypatch.setattr(Kernel, 'pause', noted)
    explore(scenario(tmp_path, REPLACE), plan(Grain.STEP), Bound(states=300))
    assert Grain.TRANSACTION.passed <= points
    assert points - Grain.TRANSACTION.passed >= {'begin', 'call', 'created', 'deleted'}
