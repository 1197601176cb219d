"""Simulations on database servers, with several transactions open at once: a lock that is missing is noticed."""

from __future__ import annotations

import itertools
import logging
import os
from pathlib import Path

import pytest
from convergence_simulator.cli.main import FAILED, OK, main
from convergence_simulator.cli.servers import server
from convergence_simulator.runs import batch
from convergence_simulator.runs.plan import RunPlan
from convergence_simulator.world.faults import Faults

from convergence.db.statements.loading import nodes, plans, resources
from convergence.db.statements.loading.locked_reads import LockedRead
from convergence.db.statements.prepared.statement import PreparedListStatement, PreparedStatement
from simulator.tests.programs import REPLACE

LOCKS = {
    'a claim': ((nodes, 'NODE_AND_ROW'), (nodes, 'NODE_ROW_AND_INPUTS')),
    'a plan': ((plans, 'LOCK_ALL'), (resources, 'LOCK_SOME')),
    'a result': ((resources, 'LOCK_RESOURCE'),),
}
SCENARIOS = Path(__file__).parents[2] / 'tests' / 'scenarios'
PROGRAMS = {
    'random:0': 'an object is retained',
    'random:3': 'an object belongs to others, and a creation is rolled back',
    'random:7': 'a resource waits for a signal, and a hook for its user',
    'random:10': 'an object is left behind',
    'random:21': 'the engine is too busy while a resource waits for a signal',
    'tree:0': 'stacks in stacks',
}
"""Programs, and what of them was once taken for a fault of the engine, or not played at all."""
RUNS = 60
"""Within so many runs a missing lock is noticed; usually within five."""

pytestmark = [
    pytest.mark.parametrize('database_url', ['postgresql', 'mariadb'], indirect=True),
    pytest.mark.skipif(
        'CONVERGENCE_TEST_STORMS' not in os.environ,
        reason='storms on servers take many minutes: set CONVERGENCE_TEST_STORMS=1 to run them',
    ),
]


@pytest.fixture(autouse=True)
def _quiet():
    """Nobody reads what simulated processes log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def kind(url: str) -> str:
    """The name of the store."""
    return 'postgresql' if url.startswith('postgresql') else 'mariadb'


def unlocked(statement):
    """The same statement without its lock."""
    if isinstance(statement, LockedRead):
        return LockedRead.by([unlocked(each.statement) for each in statement.locks], statement.read)
    if isinstance(statement, PreparedListStatement):
        return PreparedListStatement(statement.name, lambda length: unlocked(statement.build(length)))
    if isinstance(statement, PreparedStatement):
        return PreparedStatement(unlocked(statement.statement))
    assert statement._for_update_arg is not None
    copy = statement._generate()
    copy._for_update_arg = None
    return copy


def test_what_holds_in_order_holds_at_once(database_url):
    with server(kind(database_url), database_url) as place:
        for number in range(3):
            verdict, _ = place.run(batch.load(Path(f'storm:{number}')), RunPlan(), number)
            assert not verdict.error, f'storm {number}: {verdict.rule}: {verdict.error}'


def test_processes_die_and_messages_get_lost(database_url):
    plan = RunPlan(faults=Faults(drop=0.05, double=0.1, crash=0.01, freeze=0.01))
    with server(kind(database_url), database_url) as place:
        for number in range(2):
            verdict, _ = place.run(batch.load(Path(f'storm:{number}')), plan, number)
            assert not verdict.error, f'storm {number}: {verdict.rule}: {verdict.error}'


@pytest.mark.parametrize('name', ['cancelled_patiently', 'all_threads_are_stuck'])
def test_what_a_scenario_waits_for_comes_as_much_sooner_as_its_seconds_are_shorter(database_url, name):
    """The end of patience, and what may still come of a creation that was cut off."""
    with server(kind(database_url), database_url) as place:
        verdict, _ = place.run(batch.load(SCENARIOS / f'{name}.py'), RunPlan(max_inline_nodes=4), 1)
        assert not verdict.error, f'{verdict.rule}: {verdict.error}'


@pytest.mark.parametrize('name', PROGRAMS)
def test_programs_of_chance_end_as_in_a_simulated_world(database_url, name):
    """All that their users ask for is asked for, and what they expect is what a simulated user expects."""
    with server(kind(database_url), database_url) as place:
        verdict, _ = place.run(batch.load(Path(name)), RunPlan(), 0)
        assert not verdict.error, f'{PROGRAMS[name]}: {verdict.rule}: {verdict.error}'


@pytest.mark.parametrize('whose', LOCKS)
def test_a_missing_lock_is_noticed(monkeypatch, database_url, whose):
    for module, name in LOCKS[whose]:
        monkeypatch.setattr(module, name, unlocked(getattr(module, name)))
    with server(kind(database_url), database_url) as place:
        for number in itertools.count():
            verdict, _ = place.run(batch.load(Path(f'storm:{number}')), RunPlan(), number, limit_s=20.0)
            if verdict.error:
                break
            assert number < RUNS, f'{whose} without a lock: nobody noticed'


def test_the_program_runs_scenarios_on_a_server(tmp_path, capsys, database_url):
    (tmp_path / 'replaced.py').write_text(REPLACE)
    (tmp_path / 'mistaken.py').write_text(MISTAKEN)
    on_server = ['--store', kind(database_url), '--database-url', database_url, '--seeds', '3:5']
    assert main([*on_server, str(tmp_path / 'replaced.py')]) == OK
    assert '2 runs on' in capsys.readouterr().out
    assert main([*on_server, str(tmp_path / 'mistaken.py')]) == FAILED
    told = capsys.readouterr().out
    assert 'FAILED  mistaken, end state, seed 3' in told
    assert f'--seed 3 --database-url URL --store {kind(database_url)}' in told


MISTAKEN = """
engine.create_stack('mistaken', Template({'A': RsrcDef({'a': 'x'})}))
engine.call(verify, Template({'A': RsrcDef({'a': 'y'})}))
"""
