"""``convergence-simulate``: what it prints and how it ends."""

import logging
import shlex

import pytest
from convergence_simulator.cli.main import FAILED, OK, USAGE, main

from simulator.tests.programs import CHAIN, RACE, REPLACE, program


def run(capsys, *arguments):
    """Exit code and standard output."""
    code = main([str(argument) for argument in arguments])
    return code, capsys.readouterr().out


@pytest.fixture
def race(tmp_path):
    return program(tmp_path, 'race', RACE)


def test_everything_holds(tmp_path, capsys):
    program(tmp_path, 'chain', CHAIN)
    program(tmp_path, 'replace', REPLACE)
    code, told = run(capsys, '--seeds', '0:6', '--drop', '0.1', '--double', '0.1', '--crash', '0.01', tmp_path)
    assert code == OK
    assert '12 runs of 2 scenarios' in told
    assert '12 different schedules' in told
    assert 'simulated time' in told


def test_in_order_each_scenario_is_named(tmp_path, capsys):
    code, told = run(capsys, '--order', program(tmp_path, 'chain', CHAIN))
    assert (code, told.splitlines()[0]) == (OK, 'ok      chain, in order')


def test_a_failure_says_what_broke_how_to_repeat_it_and_what_happened(race, capsys):
    code, told = run(capsys, '--seeds', '0:40', '--double', '0.05', race)
    assert code == FAILED
    assert 'FAILED  race, AssertionError' in told
    assert 'B was first' in told
    assert 'shortest schedule found' in told
    assert 'user      create_stack race' in told
    assert 'sequenceDiagram' in told


def test_what_is_printed_repeats_the_failure(race, capsys):
    _, told = run(capsys, '--seeds', '0:40', '--double', '0.05', '--workers', '2', race)
    commands = [shlex.split(line.partition('replay: ')[2]) for line in told.splitlines() if 'replay: ' in line]
    assert [words[0] for words in commands] == ['convergence-simulate'] * 2
    assert [words[1] for words in commands] == ['--seed', '--schedule']
    for command in commands:
        assert {'--double', '--workers'} <= set(command)
        code, again = run(capsys, *command[1:])
        assert code == FAILED
        assert 'B was first' in again
        assert shlex.join(command) in again


def test_an_exploration_says_how_far_it_got(tmp_path, capsys):
    code, told = run(capsys, '--explore', program(tmp_path, 'chain', CHAIN))
    assert code == OK
    summary = next(line for line in told.splitlines() if line.startswith('chain: '))  # after how far it was meanwhile
    assert 'states' in summary
    assert 'nothing left to try' in summary
    code, told = run(capsys, '--explore', '--states', '100', program(tmp_path, 'replace', REPLACE))
    assert code == OK
    assert 'stopped at 100 states' in told


def test_a_failure_of_an_exploration_can_be_repeated(race, capsys):
    code, told = run(capsys, '--explore', race)
    assert code == FAILED
    command = next(shlex.split(line.partition('replay: ')[2]) for line in told.splitlines() if 'replay: ' in line)
    code, again = run(capsys, *command[1:])
    assert code == FAILED
    assert 'B was first' in again


def test_a_story_can_be_told_where_nothing_failed(tmp_path, capsys):
    path = program(tmp_path, 'chain', CHAIN)
    code, told = run(capsys, '--seed', '3', '--story', 'text', path)
    assert code == OK
    assert 'stack chain is CREATE_COMPLETE' in told
    assert 'sequenceDiagram' not in told
    assert run(capsys, '--seed', '3', '--story', 'mermaid', path)[1].startswith('sequenceDiagram')


def test_two_processes_come_to_what_one_comes_to(tmp_path, capsys):
    path = program(tmp_path, 'chain', CHAIN)
    one, two = (run(capsys, '--seeds', '0:60', '--drop', '0.1', '--jobs', jobs, path)[1] for jobs in (1, 2))
    # A slow machine is told how far it is, again and again.
    said = [[line for line in told.splitlines() if line and 'runs/s' not in line] for told in (one, two)]
    assert said[0] == said[1] != []


def test_time_is_kept_and_seeds_go_on(tmp_path, capsys):
    code, told = run(capsys, '--time', '0.5', '--alternate', '--drop', '0.2', program(tmp_path, 'chain', CHAIN))
    assert code == OK
    assert 'runs of 1 scenario' in told


def test_the_sql_store_can_be_chosen_and_is_part_of_the_command(race, capsys):
    code, told = run(capsys, '--seeds', '0:40', '--store', 'sqlite', race)
    assert code == FAILED
    assert '--store sqlite' in next(line for line in told.splitlines() if 'replay: ' in line)


@pytest.mark.parametrize(
    'arguments',
    [
        [],
        ['--seeds', '4', '.'],
        ['--seed', '-1', '.'],
        ['--drop', '1.5', '.'],
        ['--order', '--seed', '1', '.'],
        ['--schedule', 'x', '.'],
        ['--store', 'paper', '.'],
        ['--workers', '0', '.'],
        ['--time', 'long', '.'],
    ],
)
def test_a_wrong_command_line_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == USAGE
    assert 'usage: convergence-simulate' in capsys.readouterr().err


def test_what_is_no_scenario_is_refused(tmp_path, capsys):
    assert main([str(tmp_path)]) == USAGE
    assert 'there is no scenario' in capsys.readouterr().err
    assert main([str(program(tmp_path, 'broken', 'engine.create_stack('))]) == USAGE
    assert 'cannot be read as a scenario' in capsys.readouterr().err


def test_logging_is_left_as_it_was(tmp_path, capsys):
    before = logging.root.manager.disable
    run(capsys, '--order', program(tmp_path, 'chain', CHAIN))
    assert logging.root.manager.disable == before
