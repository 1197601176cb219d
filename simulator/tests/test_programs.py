"""Random programs: always the same from the same number, held to the same rules, shortened and saved when they fail."""

from pathlib import Path

import pytest
from convergence_simulator.cli.main import main
from convergence_simulator.runs.batch import execute, load
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.scenarios.language import Scenario
from convergence_simulator.scenarios.programs import program, shortened
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

from simulator.tests.mutants import MUTANTS, sabotaged


def test_a_number_always_means_the_same_program():
    assert [program(number).text for number in range(30)] == [program(number).text for number in range(30)]
    assert len({program(number).text for number in range(30)}) == 30


@pytest.mark.parametrize('number', range(40))
def test_the_rules_hold_in_programs_that_nobody_has_written(number):
    for seed, faults in enumerate((Faults(), Faults(drop=0.02, double=0.02))):
        verdict, _ = execute(load(Path(f'random:{number}')), RunPlan(faults=faults), Choices(seed), seed=seed)
        assert not verdict.error, f'seed {seed}: {verdict.error}'


NOBODY_CAN_KNOW = """
engine.create_stack('s', Template({name: RsrcDef({}, kind='Unfindable') for name in 'ABC'}))
engine.noop(2)
engine.crash_worker()
engine.delete_stack('s')
engine.settle()
"""
"""A delete removes a row with "whether it has made anything cannot be known", and no other event came before."""
FAILS_LATER = """
engine.create_stack('s', Template({'A': RsrcDef({}), 'B': RsrcDef({})}))
engine.settle()
engine.fails('A', action='DELETE')
engine.fails('B', action='DELETE', afterwards=True, takes=7)
engine.delete_stack('s')
engine.settle()
"""
"""When nothing is to fail any more a deletion is still under way that was going to."""
TURNED_AWAY = """
wanted = Template({'A': RsrcDef({})}, hooks={'A': 'pre-delete'})
engine.create_stack('s', wanted)
engine.settle()
engine.delete_stack('s')
engine.update_stack('s', wanted)
engine.settle()
"""
"""While an update waits to be asked for again the user clears a hook; then the stack is gone, as was asked for."""


@pytest.mark.parametrize(
    'text', [NOBODY_CAN_KNOW, FAILS_LATER, TURNED_AWAY], ids=['nobody can know', 'fails later', 'turned away']
)
def test_nothing_else_is_expected_than_what_was_said_and_accepted(text):
    for seed in range(10):
        verdict, _ = execute(Scenario.of('text', text), RunPlan(), Choices(seed), seed=seed)
        assert not verdict.error, f'seed {seed}: {verdict.error}'


def test_who_only_learns_by_another_creation_what_a_late_worker_has_made_makes_it_once_more():
    """A worker came back when the row was removed, with its object; the rule took what was made then for a second one.

    It told of an object without an id, and so there was the row of a leftover: whoever removes that has to know the id.
    """
    faults = Faults(drop=0.02, lag=0.02, drift=0.005)
    verdict, _ = execute(load(Path('random:112')), RunPlan(faults=faults), Choices(0), seed=0)
    assert not verdict.error


def test_what_a_late_worker_has_made_and_could_not_be_removed_is_not_in_the_way_of_what_is_wanted():
    """Its row was a leftover whose removal had failed: it kept the address, and each update was refused."""
    faults = Faults(crash=0.002, lag=0.1, drift=0.01)
    verdict, _ = execute(load(Path('random:217')), RunPlan(faults=faults), Choices(19), seed=19)
    assert not verdict.error


def test_calls_that_are_not_needed_are_left_out():
    whole = program(3)
    needed = next(line for line in whole.lines if 'create_stack' in line)
    short = shortened(whole, lambda shorter: needed in shorter.lines)
    assert short.lines == (needed,)
    assert short.head == whole.head


def test_a_program_that_fails_is_printed_as_a_scenario(tmp_path, capsys):
    broken = next(mutant for mutant in MUTANTS if mutant.name == 'count a predecessor twice')
    with sabotaged(broken):
        assert main(['--random', '0:3', '--seeds', '0:1', '--story', 'text']) == 1
    printed = capsys.readouterr().out
    start = printed.index('    """Random program')
    text = printed[start:].split('\n\n  ')[0]
    lines = [line[4:] for line in text.splitlines() if line.startswith('    ')]
    saved = tmp_path / 'saved.py'
    saved.write_text('\n'.join(lines), encoding='utf-8')
    verdict, _ = execute(load(saved), RunPlan(), Choices(0))
    assert not verdict.error, 'the engine is whole again'
    with sabotaged(broken):
        assert any(execute(load(saved), RunPlan(), Choices(seed))[0].error for seed in range(5))
