"""Checks by functions of a scenario: none at rest is skipped without a word, none is made at another moment."""

import pytest
from convergence_simulator.runs.batch import execute, tally_of
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.runs.report import totals
from convergence_simulator.world.choices import Choices

from simulator.tests.programs import scenario

AT_REST = """
engine.create_stack('one', Template({'A': RsrcDef({}), 'B': RsrcDef({})}))
engine.noop(2)
engine.call(lambda: test.assertEqual(3, len(reality.all_resources())))
"""
IN_BETWEEN = """
engine.create_stack('one', Template({'A': RsrcDef({}), 'B': RsrcDef({'a': GetRes('A')})}))
engine.call(lambda: test.assertEqual(1, len(reality.all_resources())))
engine.noop(2)
"""
INTERRUPTED = """
kept = []
whole, part = Template({'A': RsrcDef({}), 'B': RsrcDef({})}), Template({'A': RsrcDef({})})
engine.create_stack('one', whole)
engine.noop(2)
engine.call(verify, whole)
engine.call(lambda: kept.append(next(iter(reality.resources_by_logical_name('B'))).uuid))
engine.update_stack('one', part)
engine.rollback_stack('one')
engine.noop(9)
engine.call(verify, whole)
engine.call(lambda: test.assertEqual(kept[0], next(iter(reality.resources_by_logical_name('B'))).uuid))
"""
ADOPTED = """
engine.create_stack('one', Template({'A': RsrcDef({})}))
engine.settle()
engine.abandon_stack('one')
engine.settle()
engine.adopt_stack('one')
engine.settle()
engine.call(lambda: test.assertEqual(0, len(reality.all_resources())))
"""
SEEDS = range(12)


def runs(directory, text):
    """The scenario under some seeds."""
    wanted = scenario(directory, text)
    return [execute(wanted, RunPlan(), Choices(seed), seed=seed) for seed in SEEDS]


@pytest.mark.parametrize('text', [AT_REST, ADOPTED], ids=['at rest in order', 'after an adoption'])
def test_a_check_at_rest_is_made_under_every_seed(tmp_path, text):
    found = [verdict for verdict, _ in runs(tmp_path, text)]
    assert all(verdict.error and verdict.rule == 'AssertionError' for verdict in found)


def test_a_check_in_between_is_left_out_and_counted(tmp_path):
    found = runs(tmp_path, IN_BETWEEN)
    assert [(verdict.error, verdict.left_out) for verdict, _ in found] == [('', 1)] * len(SEEDS)
    assert '1 check left out' in totals(tally_of(*found[0]), 1, 1.0)
    verdict, _ = execute(scenario(tmp_path, IN_BETWEEN), RunPlan(mode=Mode.ORDER), Choices())
    assert (verdict.error, verdict.left_out) == ('', 0)


def test_what_an_interrupted_operation_leaves_is_not_of_every_order(tmp_path):
    assert not any(verdict.error for verdict, _ in runs(tmp_path, INTERRUPTED))
    assert any(verdict.left_out for verdict, _ in runs(tmp_path, INTERRUPTED))
