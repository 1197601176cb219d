"""A long schedule that fails is made short, and stays one that fails."""

import pytest
from convergence_simulator.runs.batch import execute
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.runs.shrink import read, shrink, written
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults
from hypothesis import given
from hypothesis import strategies as st

from convergence.errors import Invalid
from simulator.tests.programs import RACE, scenario

PLAN = RunPlan(faults=Faults(drop=0.05, double=0.1, crash=0.01))


@given(st.lists(st.integers(0, 40), max_size=60))
def test_a_schedule_survives_being_written(schedule):
    assert read(written(schedule)) == (tuple(schedule) or (0,))


@pytest.mark.parametrize('text', ['', 'x', '1,,2', '-1', '1*', '2*x', '1;2'])
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(Invalid):
        read(text)


def failing(race):
    for seed in range(100):
        verdict, _ = execute(race, PLAN, Choices(seed), seed=seed)
        if verdict.error:
            return verdict
    raise AssertionError('no seed fails')


def test_a_failure_is_repeated_with_fewer_accidents(tmp_path):
    race = scenario(tmp_path, RACE)
    verdict = failing(race)
    shrunk = shrink(race, PLAN, verdict.choices, verdict.rule, limit_s=1000.0)
    # One thing has to be out of order: that somebody else goes on before A is made. No fault is needed for that.
    assert shrunk.accidents == 1
    again, run = execute(race, PLAN, Choices(script=shrunk.schedule, then_first=True))
    assert (again.rule, again.steps) == (verdict.rule, shrunk.steps)
    assert (run.world.dropped, run.world.doubled, run.world.crashes) == (0, 0, 0)


def test_the_search_is_bounded_and_repeatable(tmp_path):
    race = scenario(tmp_path, RACE)
    verdict = failing(race)
    first = shrink(race, PLAN, verdict.choices, verdict.rule, attempts=10, limit_s=1000.0)
    assert first.attempts <= 10
    assert first == shrink(race, PLAN, verdict.choices, verdict.rule, attempts=10, limit_s=1000.0)


def test_another_failure_does_not_count(tmp_path):
    race = scenario(tmp_path, RACE)
    verdict = failing(race)
    shrunk = shrink(race, PLAN, verdict.choices, 'I1')
    assert shrunk.schedule == verdict.choices
