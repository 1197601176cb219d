"""The same scenarios on real processes, a real broker and a real database."""

import subprocess
import sys

import pytest
from convergence_simulator.cli.main import FAILED

CRASHED = """
wanted = Template({'A': RsrcDef({'a': 'x'}), 'B': RsrcDef({'a': GetAtt('A', 'a')}), 'C': RsrcDef({'b': GetRes('B')})})
engine.takes('B', 40)
engine.create_stack('crashed', wanted)
engine.noop(3)
engine.crash_worker()
engine.call(verify, wanted)
engine.works('B')
engine.fails('C', action='UPDATE')
engine.rollback_on_failure('crashed')
engine.update_stack('crashed', Template({'A': RsrcDef({'a': 'y'}), 'C': RsrcDef({'b': 'z'})}))
engine.settle()
engine.call(verify, wanted)
engine.drop()
engine.delete_stack('crashed')
"""
REPLACED = """
engine.create_stack('replaced', Template({'A': RsrcDef({'!a': 'x'}), 'B': RsrcDef({'a': GetRes('A')})}))
engine.update_stack('replaced', Template({'A': RsrcDef({'!a': 'y'}), 'B': RsrcDef({'a': GetRes('A')})}))
engine.call(verify, Template({'A': RsrcDef({'!a': 'y'}), 'B': RsrcDef({'a': GetRes('A')})}))
"""
MISTAKEN = """
engine.create_stack('mistaken', Template({'A': RsrcDef({'a': 'x'})}))
engine.call(verify, Template({'A': RsrcDef({'a': 'y'})}))
"""


def simulate(*arguments: str) -> tuple[int, str]:
    """The exit code and the output of the program, in a process of its own as it changes the configuration."""
    command = [sys.executable, '-m', 'convergence_simulator', *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize('database_url', ['postgresql'], indirect=True)
def test_scenarios_on_a_broker_and_a_database(tmp_path, database_url, rabbit_url):
    for name, text in {'crashed': CRASHED, 'replaced': REPLACED, 'mistaken': MISTAKEN}.items():
        (tmp_path / f'{name}.py').write_text(text)
    urls = ['--database-url', database_url, '--transport-url', rabbit_url]
    code, told = simulate('--real', '--engines', '1', '--workers', '2', *urls, str(tmp_path))
    assert 'ok      crashed, on real processes' in told, told
    assert 'left out: drop' in told
    assert 'ok      replaced, on real processes' in told
    assert 'FAILED  mistaken, end state, on real processes' in told
    assert "A has {'a': 'x'}, but should have {'a': 'y'}" in told
    assert f'convergence-simulate --real {tmp_path / "mistaken.py"}' in told
    assert code == FAILED
