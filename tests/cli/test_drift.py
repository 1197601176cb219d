"""``convergence stack drift``: against a real server, with an observer beside it."""

import json
from pathlib import Path

import pytest

from convergence.cli.exits import ExitCode
from convergence.cmd.wiring.observer import ObserverProcess

TEMPLATE = """heat_template_version: 2018-08-31
resources:
  kept: {type: OS::Heat::SoftwareConfig, properties: {config: 'echo 1'}}
  other: {type: OS::Heat::SoftwareConfig, properties: {config: 'echo 2'}}
"""
FILE = """heat_template_version: 2018-08-31
resources:
  a.file: {type: Convergence::Local::File, properties: {path: told, content: hello}}
outputs:
  where: {value: {get_attr: [a.file, path]}}
"""
NOTHING_DRIFTED = '0 of 1 observed objects have drifted.'


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
    assert (code, out.strip(), err) == (0, '', '0 of 2 observed objects have drifted.\n')
    every = json.loads(command_line('stack', 'drift', 'drifting', '--all', '-f', 'json')[1])
    assert [(each['path'], each['state']) for each in every] == [('kept', 'HEALTHY'), ('other', 'HEALTHY')]
    config = command_line('stack', 'resources', 'drifting', 'kept', '-f', 'value', '-c', 'physical_resource_id')[1]
    assert command_line('software', 'config', 'delete', config.strip())[0] == 0
    code, out, err = command_line('stack', 'drift', 'drifting', '--refresh')
    assert (code, err) == (1, '1 of 2 observed objects have drifted.\n')
    assert 'GONE' in out and 'kept' in out and 'other' not in out
    assert 'Changed outside of the stack since' in command_line('stack', 'explain', 'drifting')[1]
    assert 'changed outside: ' in command_line('stack', 'update', 'drifting', '-t', 'configs.yaml', '--dry-run')[1]
    code, out, _ = command_line('stack', 'drift', 'drifting', '--repair', 'kept', '--wait', '-f', 'json')
    assert (code, json.loads(out)['stack_status']) == (0, 'UPDATE_COMPLETE')
    code, _, err = command_line('stack', 'drift', 'drifting', '--repair', 'nothing')
    assert (code, 'The Resource (nothing) could not be found in Stack drifting.' in err) == (3, True)
    assert command_line('stack', 'drift', 'drifting', '--refresh')[0] == 0
    config = command_line('stack', 'resources', 'drifting', 'kept', '-f', 'value', '-c', 'physical_resource_id')[1]
    assert command_line('software', 'config', 'delete', config.strip())[0] == 0
    assert command_line('stack', 'drift', 'drifting', '--refresh')[0] == 1
    code, _, err = command_line('stack', 'drift', 'drifting', '--set-policy', 'repair')
    assert (code, err.splitlines()[0]) == (1, 'Drift of stack drifting is repaired from now on.')
    shown = json.loads(command_line('stack', 'show', 'drifting', '-f', 'json')[1])
    assert shown['drift_policy'] == 'repair'
    assert command_line('stack', 'update', 'drifting', '--drift-policy', 'report', '--wait')[0] == 0
    assert json.loads(command_line('stack', 'show', 'drifting', '-f', 'json')[1])['drift_policy'] == 'report'
    assert command_line('stack', 'drift', 'nowhere')[0] == 3
    code, _, err = command_line('stack', 'drift', 'drifting', '--accept', 'kept.config')
    assert (code, 'Resource kept of stack drifting ' in err) == (ExitCode.REFUSED, True), err


def test_what_is_there_is_taken_for_wanted(command_line, observer, tmp_path):
    (tmp_path / 'file.yaml').write_text(FILE)
    made = json.loads(command_line('stack', 'create', 'filed', '-t', 'file.yaml', '--wait', '-f', 'json')[1])
    path = Path(made['outputs']['where'])
    path.write_text('of somebody else')
    observer.start()
    code, out, _ = command_line('stack', 'drift', 'filed', '--refresh', '-f', 'json')
    assert (code, [each['property'] for each in json.loads(out)]) == (1, ['content'])
    code, _, err = command_line('stack', 'drift', 'filed', '--accept', 'a.file.content', '--refresh')
    told = ['Resource a.file of stack filed: current values accepted: content.', NOTHING_DRIFTED]
    assert (code, err.splitlines()) == (0, told)
    every = json.loads(command_line('stack', 'drift', 'filed', '--all', '-f', 'json')[1])
    assert [(each['state'], each['accepted']) for each in every] == [('HEALTHY', 'content')]
    assert command_line('stack', 'update', 'filed', '-t', 'file.yaml', '--converge', '--wait')[0] == 0
    assert path.read_text() == 'of somebody else'
    code, _, err = command_line('stack', 'drift', 'filed', '--withdraw', 'a.file')
    assert 'values no longer accepted: content' in err
    assert command_line('stack', 'drift', 'filed', '--withdraw', 'a.file')[0] == 4
