"""The commands of ``convergence stack`` for what only other clients could ask for: against a real server."""

import json
import stat
import time

import pytest

from convergence.cmd import convergence as command

SIMPLE = """heat_template_version: 2018-08-31
parameters:
  text: {type: string, default: one}
  secret: {type: string, hidden: true, default: canary-1}
resources:
  a: {type: OS::Heat::TestResource, metadata: {role: web}, properties: {value: {get_param: text}}}
  b: {type: OS::Heat::TestResource, properties: {value: {get_param: secret}}, depends_on: a}
  c: {type: OS::Heat::Value, properties: {value: {get_file: note.txt}}}
"""
WAITS = """heat_template_version: 2018-08-31
resources:
  handle: {type: OS::Heat::WaitConditionHandle}
  ready: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: handle}, timeout: 600}}
outputs:
  told: {value: {get_attr: [ready, data]}}
"""
PAUSED = 'resource_registry: {resources: {a: {hooks: pre-create}, c: {hooks: [pre-update]}}}\n'


@pytest.fixture
def run(command_line, tmp_path):
    """Run a command in a directory with some files: exit code, standard output, standard error."""
    (tmp_path / 'simple.yaml').write_text(SIMPLE)
    (tmp_path / 'note.txt').write_text('said in a file\n')
    (tmp_path / 'waits.yaml').write_text(WAITS)
    (tmp_path / 'paused.yaml').write_text(PAUSED)
    return command_line


def until(run, code, *arguments):
    """Standard output of a command, as soon as it ends as it should."""
    for _ in range(600):
        found, out, err = run(*arguments)
        if found == code:
            return out
        time.sleep(0.1)
    raise AssertionError(err)


def state(run, name):
    return run('stack', 'show', name, '-f', 'value', '-c', 'stack_status')[1].strip()


def test_a_stack_is_suspended_resumed_and_checked(run):
    run('stack', 'create', 'still', '-t', 'simple.yaml', '--wait')
    for word, reached in (('check', 'CHECK'), ('suspend', 'SUSPEND'), ('resume', 'RESUME')):
        code, out, err = run('stack', word, 'still', '--wait', '-f', 'json')
        assert (code, json.loads(out)['stack_status']) == (0, f'{reached}_COMPLETE'), err
    code, out, _ = run('stack', 'suspend', 'still', '-f', 'value', '-c', 'stack_status')
    assert code == 0 and out.startswith('SUSPEND_')
    assert run('stack', 'suspend', 'nowhere')[0] == 3


def test_a_resource_that_is_called_broken_is_replaced_by_the_next_update(run):
    run('stack', 'create', 'sick', '-t', 'simple.yaml', '--wait')
    before = run('stack', 'resources', 'sick', 'a', '-f', 'value', '-c', 'physical_resource_id')[1]
    code, _, err = run('stack', 'mark-unhealthy', 'sick', 'a', '--reason', 'it smokes')
    assert (code, err) == (0, 'a of stack sick is marked as unhealthy; the next update of the stack replaces it.\n')
    shown = json.loads(run('stack', 'resources', 'sick', 'a', '-f', 'json')[1])
    assert (shown['resource_status'], shown['resource_status_reason']) == ('CHECK_FAILED', 'it smokes')
    assert run('stack', 'mark-unhealthy', 'sick', 'a', '--reset')[0] == 0
    assert not json.loads(run('stack', 'resources', 'sick', 'a', '-f', 'json')[1])['resource_status'].endswith('FAILED')
    run('stack', 'mark-unhealthy', 'sick', 'a')
    assert run('stack', 'update', 'sick', '--wait')[0] == 0
    assert run('stack', 'resources', 'sick', 'a', '-f', 'value', '-c', 'physical_resource_id')[1] != before
    assert run('stack', 'mark-unhealthy', 'sick', 'z')[0] == 3


def test_hidden_stacks_are_listed_on_request(run):
    run('stack', 'create', 'not-shown', '-t', 'simple.yaml', '--tags', 'x,of-a-service', '--wait')
    listed = [
        run('stack', 'list', '--tags', 'x', '-f', 'value', '-c', 'stack_name', *more)[1] for more in ((), ('--hidden',))
    ]
    assert listed == ['', 'not-shown\n']


def test_the_parts_of_a_stack_are_shown(run):
    run('stack', 'create', 'parts', '-t', 'simple.yaml', '-P', 'secret=canary-2', '--wait')
    assert json.loads(run('stack', 'metadata', 'parts', 'a', '-f', 'json')[1]) == {'role': 'web'}
    assert run('stack', 'template', 'parts')[1].startswith("heat_template_version: '2018-08-31'\n")
    environment = run('stack', 'environment', 'parts')[1]
    assert "secret: '******'" in environment
    assert run('stack', 'files', 'parts', '-f', 'value') == (0, 'note.txt\t15\n', '')
    assert run('stack', 'files', 'parts', 'note.txt')[1] == 'said in a file\n'
    code, _, err = run('stack', 'files', 'parts', 'other.txt')
    assert code == 3 and 'Its files: note.txt' in err


def test_a_stack_goes_back_to_a_snapshot(run):
    run('stack', 'create', 'kept', '-t', 'simple.yaml', '--wait')
    code, out, err = run('stack', 'snapshot', 'create', 'kept', '--name', 'before', '--wait', '-f', 'json')
    assert code == 0, err
    taken = json.loads(out)
    assert (taken['name'], taken['status']) == ('before', 'COMPLETE')
    run('stack', 'update', 'kept', '-P', 'text=two', '--wait')
    (listed,) = json.loads(run('stack', 'snapshot', 'list', 'kept', '-f', 'json')[1])
    assert listed['id'] == taken['id']
    assert run('stack', 'snapshot', 'show', 'kept', taken['id'])[0] == 0
    code, out, err = run('stack', 'snapshot', 'restore', 'kept', taken['id'], '--wait')
    assert code == 0 and 'RESTORE_COMPLETE' in out, err
    assert 'text: two' not in run('stack', 'environment', 'kept')[1]
    assert run('stack', 'snapshot', 'delete', 'kept', taken['id'])[0] == 0
    assert run('stack', 'snapshot', 'restore', 'kept', 'nothing')[0] == 3


def test_a_signal_carries_what_it_is_given(run, tmp_path):
    assert run('stack', 'create', 'told', '-t', 'waits.yaml')[0] == 0
    until(run, 0, 'stack', 'signal', 'told', 'handle', '--data', '{"status": "SUCCESS", "id": "1", "data": "well"}')
    assert run('stack', 'wait', 'told')[0] == 0
    assert 'well' in run('stack', 'outputs', 'told', 'told', '-f', 'value')[1]
    (tmp_path / 'said.json').write_text('{"status": "SUCCESS", "id": "2"}')
    assert run('stack', 'signal', 'told', 'handle', '--data-file', 'said.json')[0] == 0
    assert run('stack', 'signal', 'told', 'handle')[0] == 0
    assert run('stack', 'signal', 'told', 'nothing')[0] == 3
    for wrong in (['--data', '[1]'], ['--data', '{'], ['--data', '{}', '--data-file', 'said.json']):
        assert run('stack', 'signal', 'told', 'handle', *wrong)[0] == 2


def test_an_operation_goes_on_from_a_hook_when_somebody_clears_it(run):
    assert run('stack', 'create', 'halted', '-t', 'simple.yaml', '-e', 'paused.yaml')[0] == 0
    for _ in range(600):
        paused = json.loads(run('stack', 'hook', 'list', 'halted', '-f', 'json')[1])
        if paused:
            break
        time.sleep(0.1)
    assert [(each['resource_name'], each['hook']) for each in paused] == [('a', 'pre-create')]
    code, _, err = run('stack', 'hook', 'clear', 'halted', 'a', 'b')
    assert code == 3 and 'b of stack halted waits at no hook. Waiting resources: a (pre-create).' in err
    assert run('stack', 'hook', 'clear', 'halted', 'a')[::2] == (0, 'Hook pre-create of a is cleared.\n')
    assert run('stack', 'wait', 'halted', '--for', 'CREATE_COMPLETE')[0] == 0


def test_a_stack_is_exported_abandoned_and_adopted_with_its_objects(run, tmp_path):
    run('stack', 'create', 'old', '-t', 'simple.yaml', '-P', 'secret=canary-2', '--wait')
    objects = run('stack', 'resources', 'old', '-f', 'value', '-c', 'physical_resource_id')[1]
    code, out, _ = run('stack', 'export', 'old')
    assert code == 0 and set(json.loads(out)['resources']) == {'a', 'b', 'c'} and 'canary-2' not in out
    (tmp_path / 'there.json').write_text('precious')
    code, _, err = run('stack', 'abandon', 'old', '--yes', '-o', 'there.json')
    assert code == 2 and 'Nothing was changed' in err and state(run, 'old') == 'CREATE_COMPLETE'
    assert run('stack', 'abandon', 'old', '--yes', '-o', 'old.json')[0] == 0
    assert stat.S_IMODE((tmp_path / 'old.json').stat().st_mode) == 0o600
    until(run, 3, 'stack', 'show', 'old')
    (tmp_path / 'secret').write_text('canary-3')
    assert 'canary-2' not in (tmp_path / 'old.json').read_text()
    adoption = ('stack', 'adopt', 'new', '--data', 'old.json', '--parameter-file', 'secret=secret', '--wait')
    code, out, err = run(*adoption)
    assert code == 0 and 'ADOPT_COMPLETE' in out, err
    assert run('stack', 'resources', 'new', '-f', 'value', '-c', 'physical_resource_id')[1] == objects


def test_software_configurations_are_kept_and_deployed(run, tmp_path):
    (tmp_path / 'script').write_text('#!/bin/sh\necho $who\n')
    (tmp_path / 'definition.yaml').write_text('inputs: [{name: who}]\noutputs: [{name: said}]\n')
    arguments = ('--config-file', 'script', '--definition-file', 'definition.yaml', '--group', 'script', '-f', 'json')
    code, out, err = run('software', 'config', 'create', 'greet', *arguments)
    assert code == 0, err
    made = json.loads(out)
    assert (made['name'], made['group'], made['inputs'][0]['name']) == ('greet', 'script', 'who')
    assert made['id'] in run('software', 'config', 'list', '-f', 'value', '-c', 'id')[1]
    assert run('software', 'config', 'show', made['id'], '--config-only')[1] == '#!/bin/sh\necho $who\n\n'
    deploy = ('--config', made['id'], '--server-id', 'a-server', '--input', 'who=world', '-f', 'value', '-c', 'id')
    code, out, err = run('software', 'deployment', 'create', *deploy)
    assert code == 0, err
    deployment = out.strip()
    assert run('software', 'deployment', 'list', '--server-id', 'a-server', '-f', 'value', '-c', 'id')[1] == out
    assert 'world' in run('software', 'deployment', 'show', deployment)[1]
    assert 'world' in run('software', 'deployment', 'metadata', 'a-server')[1]
    assert run('software', 'config', 'delete', made['id'])[0] == 4
    assert run('software', 'deployment', 'delete', deployment)[0] == 0
    assert run('software', 'config', 'delete', made['id'])[0] == 0
    (tmp_path / 'wrong.yaml').write_text('input: []\n')
    assert run('software', 'config', 'create', 'x', '--definition-file', 'wrong.yaml')[0] == 2


@pytest.mark.parametrize(
    ('line', 'completed'),
    [
        ('stack show li', {'listed'}),
        ('stack resources listed ', {'a', 'b', 'c'}),
        ('stack delete listed --leave b', {'b'}),
        ('stack hook clear listed a b', {'b'}),
        ('stack resources nowhere ', set()),
        ('stack show --endpoint http://127.0.0.1:1 li', set()),
    ],
)
def test_a_shell_completes_the_names_of_what_is_there(run, monkeypatch, capfd, line, completed):
    if run('stack', 'show', 'listed')[0] == 3:
        run('stack', 'create', 'listed', '-t', 'simple.yaml', '--wait')
    monkeypatch.setenv('_CONVERGENCE_COMPLETE', 'bash_complete')
    monkeypatch.setenv('COMP_WORDS', f'convergence {line}')
    monkeypatch.setenv('COMP_CWORD', str(len(f'convergence {line}'.split(' ')) - 1))
    with pytest.raises(SystemExit):
        command.main([])
    assert {each.partition(',')[2] for each in capfd.readouterr()[0].split()} == completed
