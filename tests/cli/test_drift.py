"""``convergence stack drift``: against a real server, with an observer beside it."""

import json

import pytest

from convergence.cmd.observing import ObserverProcess

TEMPLATE = """heat_template_version: 2018-08-31
resources:
  kept: {type: OS::Heat::SoftwareConfig, properties: {config: 'echo 1'}}
  other: {type: OS::Heat::SoftwareConfig, properties: {config: 'echo 2'}}
"""


@pytest.fixture
def observer(installation):
    """An observer, from when on it is started."""
    process = ObserverProcess(installation.embedded.parts, owns_parts=False)
    yield process
    process.stop()


def test_a_script_learns_whether_a_stack_drifted_and_people_what(command_line, observer, tmp_path):
    (tmp_path / 'configs.yaml').write_text(TEMPLATE)
    assert command_line('stack', 'create', 'drifting', '-t', 'configs.yaml', '--wait')[0] == 0
    code, _, err = command_line('stack', 'drift', 'drifting', '--refresh')
    assert (code, 'No observer is running' in err) == (1, True)
    observer.start()
    code, out, err = command_line('stack', 'drift', 'drifting', '--refresh')
    assert (code, out.strip(), err) == (0, '', '0 of 2 observed objects changed outside of the stack.\n')
    every = json.loads(command_line('stack', 'drift', 'drifting', '--all', '-f', 'json')[1])
    assert [(each['path'], each['state']) for each in every] == [('kept', 'HEALTHY'), ('other', 'HEALTHY')]
    config = command_line('stack', 'resources', 'drifting', 'kept', '-f', 'value', '-c', 'physical_resource_id')[1]
    assert command_line('software', 'config', 'delete', config.strip())[0] == 0
    code, out, err = command_line('stack', 'drift', 'drifting', '--refresh')
    assert (code, err) == (1, '1 of 2 observed objects changed outside of the stack.\n')
    assert 'GONE' in out and 'kept' in out and 'other' not in out
    assert 'Changed outside of the stack since' in command_line('stack', 'explain', 'drifting')[1]
    assert 'changed outside: ' in command_line('stack', 'update', 'drifting', '-t', 'configs.yaml', '--dry-run')[1]
    code, _, err = command_line('stack', 'drift', 'drifting', '--set-policy', 'repair')
    assert (code, err.splitlines()[0]) == (1, 'What changes outside of stack drifting is put right from now on.')
    shown = json.loads(command_line('stack', 'show', 'drifting', '-f', 'json')[1])
    assert shown['drift_policy'] == 'repair'
    assert command_line('stack', 'update', 'drifting', '--drift-policy', 'report', '--wait')[0] == 0
    assert json.loads(command_line('stack', 'show', 'drifting', '-f', 'json')[1])['drift_policy'] == 'report'
    assert command_line('stack', 'drift', 'nowhere')[0] == 3
