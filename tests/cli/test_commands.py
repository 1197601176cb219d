"""The commands of ``convergence stack``, against a real server in this process."""

import json
import stat
import time

import pytest
import requests

from convergence.cli.connection.client import _accepted
from convergence.cli.exits import CommandFailed
from convergence.engine.reads import damage
from tests.api.installation import waiting
from tests.cli.conftest import PUBLIC

SIMPLE = """heat_template_version: 2018-08-31
parameters:
  text: {type: string, default: one}
  secret: {type: string, hidden: true, default: canary-1}
resources:
  a: {type: OS::Heat::TestResource, properties: {value: {get_param: text}}}
  b: {type: OS::Heat::TestResource, properties: {value: {get_param: secret}}, depends_on: a}
outputs:
  said: {value: {get_attr: [a, output]}}
"""
WAITS = """heat_template_version: 2018-08-31
resources:
  handle: {type: OS::Heat::WaitConditionHandle}
  ready: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: handle}, timeout: 600}}
"""
FAILING = """heat_template_version: 2018-08-31
resources:
  bad: {type: OS::Heat::TestResource, properties: {fail: true}}
  after: {type: OS::Heat::TestResource, depends_on: bad}
"""


@pytest.fixture
def run(command_line, tmp_path):
    """Run a command in a directory with some templates: exit code, standard output, standard error."""
    (tmp_path / 'simple.yaml').write_text(SIMPLE)
    (tmp_path / 'failing.yaml').write_text(FAILING)
    (tmp_path / 'waits.yaml').write_text(WAITS)
    (tmp_path / 'slow.json').write_text(json.dumps(waiting(600)))
    return command_line


def test_a_stack_from_its_creation_to_its_end(run):
    code, out, err = run('stack', 'create', 'life', '-t', 'simple.yaml', '--wait', '-f', 'json')
    assert code == 0, err
    shown = json.loads(out)
    assert (shown['stack_status'], shown['outputs']) == ('CREATE_COMPLETE', {'said': 'one'})
    assert 'CREATE_COMPLETE' in err
    assert run('stack', 'outputs', 'life', 'said', '-f', 'value')[:2] == (0, 'one\n')
    code, out, _ = run('stack', 'update', 'life', '-P', 'text=two', '--wait', '-f', 'yaml')
    assert code == 0 and 'said: two' in out
    assert run('stack', 'resources', 'life', '-f', 'value', '-c', 'resource_name')[1].split() == ['a', 'b']
    page = run('stack', 'resources', 'life', '--limit', '5', '--marker', 'a', '-f', 'value', '-c', 'resource_name')
    assert page[1].split() == ['b']
    actions = json.loads(run('stack', 'history', 'life', '-f', 'json')[1])
    assert [each['action'] for each in actions] == ['UPDATE', 'CREATE']
    assert run('stack', 'wait', 'life')[0] == 0
    assert run('stack', 'wait', 'life', '--for', 'CREATE_COMPLETE')[0] == 1
    drawn = run('stack', 'graph', 'life')[1].splitlines()
    assert drawn[0].startswith('b ') and drawn[1].startswith('└─ a ')
    for form in ('mermaid', 'dot', 'svg'):
        assert run('stack', 'graph', 'life', '-f', form)[0] == 0
    assert 'is over (COMPLETE)' in run('stack', 'explain', 'life')[1]
    everything = ''.join(run('stack', word, 'life', '-f', 'json')[1] for word in ('show', 'events', 'resources'))
    assert 'canary-1' not in everything
    assert 'two -> one' in run('stack', 'rollback', 'life', '--dry-run')[1]
    code, out, err = run('stack', 'rollback', 'life', '--wait', '-f', 'yaml')
    assert code == 0 and 'said: one' in out, err
    assert run('stack', 'delete', 'life', '--yes', '--wait')[0] == 0
    assert run('stack', 'show', 'life')[0] == 3


def test_lists_go_down_into_nested_stacks_when_they_are_asked_to(run, here):
    (here / 'inner.yaml').write_text(SIMPLE)
    (here / 'outer.yaml').write_text('heat_template_version: wallaby\nresources:\n  inner: {type: inner.yaml}\n')
    assert 'inner/a ' in run('stack', 'create', 'outer', '-t', 'outer.yaml', '--wait')[2]
    assert run('stack', 'resources', 'outer', '-f', 'value', '-c', 'resource_name')[1].split() == ['inner']
    found = json.loads(run('stack', 'resources', 'outer', '--nested-depth', '1', '-f', 'json')[1])
    assert sorted(each['resource_name'] for each in found) == ['a', 'b', 'inner']
    (nested,) = {each['stack_name'] for each in found} - {'outer'}
    told = json.loads(run('stack', 'events', 'outer', '--nested-depth', '1', '-f', 'json')[1])
    assert {(each['stack_name'], each['resource_name']) for each in told} >= {(nested, 'a'), ('outer', 'inner')}
    names = ['-f', 'value', '-c', 'stack_name']
    assert nested not in run('stack', 'list', *names)[1].split()
    assert nested in run('stack', 'list', '--nested', *names)[1].split()
    assert run('stack', 'delete', 'outer', '--yes', '--wait')[0] == 0


def test_a_failure_tells_the_root_cause_first(run):
    code, out, err = run('stack', 'create', 'broken', '-t', 'failing.yaml', '--wait', '-f', 'value')
    assert code == 1
    assert 'CREATE_FAILED' in out
    after = err[err.index('Root cause: bad (CREATE)') :]
    assert 'as a consequence: after' in after
    assert 'Root cause: bad' in run('stack', 'explain', 'broken')[2]


def test_an_update_that_fails_says_what_it_has_not_begun(run, tmp_path):
    resource = '  {0}: {{type: OS::Heat::TestResource, properties: {{value: {1}}}, depends_on: {2}}}\n'
    text = 'heat_template_version: 2018-08-31\nresources:\n' + ''.join(
        resource.format(name, 1, needed) for name, needed in (('a', '[]'), ('b', 'a'), ('c', '[]'))
    )
    (tmp_path / 'three.yaml').write_text(text)
    assert run('stack', 'create', 'halfway', '-t', 'three.yaml', '--wait')[0] == 0
    worse = text.replace('{value: 1}', '{value: 2, fail: true}', 1).replace('{value: 1}', '{value: 2}', 1)
    (tmp_path / 'three.yaml').write_text(worse)
    code, _, err = run('stack', 'update', 'halfway', '-t', 'three.yaml', '--disable-rollback', '--wait')
    assert code == 1
    assert [line.split()[2] for line in err.splitlines() if line.endswith('not started')] == ['b']


def test_a_dry_run_shows_what_changes_and_does_nothing(run):
    run('stack', 'create', 'planned', '-t', 'simple.yaml', '--wait')
    code, out, _ = run('stack', 'update', 'planned', '-P', 'text=two', '-P', 'secret=canary-2', '--dry-run')
    assert code == 0
    assert 'a  OS::Heat::TestResource  is updated in place: value changes' in out
    assert 'value: one -> two' in out
    assert out.splitlines()[-1] == 'Plan: 0 to add, 2 to update, 0 to replace, 0 to remove; 0 unchanged.'
    assert 'canary' not in out
    assert run('stack', 'outputs', 'planned', 'said', '-f', 'value')[1] == 'one\n'
    code, out, _ = run('stack', 'delete', 'planned', '--dry-run', '-f', 'json')
    assert json.loads(out)['counts']['deleted'] == 2
    code, out, _ = run('stack', 'create', 'other', '-t', 'simple.yaml', '--dry-run')
    assert out.splitlines()[-1].startswith('Plan: 2 to add')
    assert run('stack', 'show', 'other')[0] == 3


def test_a_delete_leaves_behind_what_it_is_told_to_and_ends_with_saying_so(run):
    run('stack', 'create', 'left', '-t', 'simple.yaml', '--wait')
    left = json.loads(run('stack', 'resources', 'left', '-f', 'json')[1])[0]
    code, out, _ = run('stack', 'delete', 'left', '--leave', 'a', '--dry-run')
    assert code == 0
    assert (
        f'! a  OS::Heat::TestResource  is deleted, and its object is kept: physical id {left["physical_resource_id"]}'
        in out
    )
    assert (
        out.splitlines()[-1]
        == 'Plan: 0 to add, 0 to update, 0 to replace, 1 to remove, 1 to keep unmanaged; 0 unchanged.'
    )
    code, _, err = run('stack', 'delete', 'left', '--leave', 'a', '--yes', '--wait')
    assert code == 0, err
    last = err.splitlines()[-1]
    assert last.startswith('Stack DELETE completed successfully; left behind: a (OS::Heat::TestResource, physical id ')
    assert left['physical_resource_id'] in last


@pytest.mark.parametrize('more', [['--yes'], ['--yes', '--wait'], ['--dry-run'], ['--plan', 'p.json']])
def test_a_delete_that_is_to_leave_what_is_not_there_does_nothing(run, more, tmp_path):
    run('stack', 'create', 'not-left', '-t', 'simple.yaml', '--wait')
    code, out, err = run('stack', 'delete', 'not-left', '--leave', 'a', '--leave', 'c', *more)
    assert code == 4 and out == ''
    assert 'leave: stack not-left has no resource c. It has: a, b.' in err
    assert not (tmp_path / 'p.json').exists()
    assert run('stack', 'show', 'not-left', '-f', 'value', '-c', 'stack_status')[1] == 'CREATE_COMPLETE\n'


def test_a_saved_deletion_remembers_what_it_leaves(run):
    run('stack', 'create', 'left-later', '-t', 'simple.yaml', '--wait')
    assert run('stack', 'delete', 'left-later', '--leave', 'b', '--plan', 'p.json')[0] == 0
    code, _, err = run('apply', 'p.json', '--wait')
    assert code == 0
    assert 'left behind: b (' in err.splitlines()[-1]


def test_what_of_a_stack_cannot_be_read_is_named_with_the_ways_out(run, installation, monkeypatch):
    monkeypatch.setattr(damage, 'TOLD_FOR_S', 0.0)
    run('stack', 'create', 'damaged', '-t', 'simple.yaml', '--wait')
    stack_id = run('stack', 'show', 'damaged', '-f', 'value', '-c', 'id')[1].strip()
    with installation.embedded.parts.store.writing() as connection:
        connection.exec_driver_sql("UPDATE resource SET data = 'half' WHERE name = 'a' AND stack_id = ?", (stack_id,))
        connection.commit()
    code, out, err = run('stack', 'show', 'damaged', '-f', 'json')
    assert code == 0
    (told,) = json.loads(out)['unreadable']
    assert (told['resource_name'], told['parts']) == ('a', ['data'])
    assert 'convergence: resource a (data) cannot be read. Put back the key that sealed it;' in err
    assert '--leave a' in err
    assert run('stack', 'delete', 'damaged', '--yes', '--wait', '--leave', 'a')[0] == 0


def signalled(url, address):
    """The status of the answer to a signal at an address, sent to the server that is really there."""
    assert address.startswith(f'{PUBLIC}/v1/') and '/signals/' in address
    data = json.dumps({'status': 'SUCCESS', 'id': 'a'})
    sent = requests.put(address.replace(PUBLIC, url), data=data, timeout=60)
    return sent.status_code


def until_it_listens(run, stack, *arguments):
    """The address that is made as soon as the resource can be signalled."""
    for _ in range(600):
        code, out, err = run('stack', 'signal-url', stack, 'handle', '-f', 'json', *arguments)
        if code == 0:
            return json.loads(out)
        assert code in {3, 4}, err  # it is not there yet, or cannot be signalled yet
        time.sleep(0.1)
    raise AssertionError(err)


def test_an_address_is_made_at_which_a_resource_can_be_signalled(run, url):
    assert run('stack', 'create', 'waits', '-t', 'waits.yaml')[0] == 0
    first = until_it_listens(run, 'waits', '--expires-in', '600')
    assert first['expires_at'] > time.time()
    second = json.loads(run('stack', 'signal-url', 'waits', 'handle', '--revoke', '-f', 'json')[1])
    assert (second['expires_at'], second['revoked']) == (None, True)
    assert signalled(url, first['signal_url']) == 403
    assert signalled(url, second['signal_url']) == 200
    assert run('stack', 'wait', 'waits')[0] == 0
    _, out, _ = run('stack', 'signal-url', 'waits', 'handle', '-f', 'value', '-c', 'signal_url')
    assert signalled(url, out.strip()) == 200
    assert run('stack', 'delete', 'waits', '--yes', '--wait')[0] == 0
    assert signalled(url, second['signal_url']) == 403


def test_an_address_that_cannot_be_made_is_refused(run):
    assert run('stack', 'create', 'deaf', '-t', 'simple.yaml', '--wait')[0] == 0
    code, out, err = run('stack', 'signal-url', 'deaf', 'a')
    assert (code, out) == (4, '') and 'a' in err
    assert run('stack', 'signal-url', 'deaf', 'nothing')[0] == 3
    assert run('stack', 'signal-url', 'deaf', 'a', '--expires-in', '0')[0] == 2
    assert run('stack', 'signal-url', 'deaf', 'a', '--expires-in', 'soon')[0] == 2


def test_a_plan_is_carried_out_once(run, tmp_path):
    run('stack', 'create', 'saved', '-t', 'simple.yaml', '--wait')
    assert run('stack', 'update', 'saved', '-P', 'text=two', '--plan', 'p.json')[0] == 0
    assert stat.S_IMODE((tmp_path / 'p.json').stat().st_mode) == 0o600
    assert run('apply', 'p.json', '--wait')[0] == 0
    assert run('stack', 'outputs', 'saved', 'said', '-f', 'value')[1] == 'two\n'
    code, _, err = run('apply', 'p.json')
    assert code == 4 and 'The plan was not applied' in err
    (tmp_path / 'p.json').write_text('{}')
    assert run('apply', 'p.json')[0] == 2


def test_a_cancelled_creation_is_over(run):
    assert run('stack', 'create', 'stopped', '-t', 'slow.json')[0] == 0
    code, out, err = run('stack', 'wait', 'stopped', '--wait-timeout', '0')
    assert code == 6 and 'the operation continues' in err
    code, out, err = run('stack', 'cancel', 'stopped', '--now', '--wait')
    assert code == 0, err
    assert 'CREATE_FAILED' in out
    assert run('stack', 'rollback', 'stopped')[0] == 4


def test_mistakes_of_the_template_are_shown_with_their_place(run, tmp_path):
    (tmp_path / 'wrong.yaml').write_text(SIMPLE.replace('get_param: text', 'get_param: txt'))
    code, _, err = run('stack', 'create', 'wrong', '-t', 'wrong.yaml')
    assert code == 4
    assert 'wrong.yaml:6:' in err and '^' in err


def test_files_are_collected_and_missing_ones_named(run, tmp_path):
    (tmp_path / 'word.txt').write_text('from a file')
    text = SIMPLE.replace('{get_param: text}', '{get_file: word.txt}')
    (tmp_path / 'file.yaml').write_text(text)
    (tmp_path / 'secret').write_text('canary-3')
    (tmp_path / 'env.yaml').write_text('parameters: {text: unused}\n')
    code, _, err = run(
        'stack', 'create', 'files', '-t', 'file.yaml', '-e', 'env.yaml', '--parameter-file', 'secret=secret', '--wait'
    )
    assert code == 0, err
    assert run('stack', 'outputs', 'files', 'said', '-f', 'value')[1] == 'from a file\n'
    (tmp_path / 'word.txt').unlink()
    code, _, err = run('stack', 'create', 'files2', '-t', 'file.yaml')
    assert code == 2 and 'word.txt cannot be read' in err and 'file.yaml:6:' in err


@pytest.mark.parametrize(
    'arguments',
    [
        ('stack', 'create', 'x', '-t', 'nowhere.yaml'),
        ('stack', 'list', '-c', 'x'),
        ('stack', 'create', 'x', '-t', 'simple.yaml', '-P', 'x'),
        ('stack', 'bogus'),
    ],
)
def test_a_wrong_command_line_is_told_apart(run, arguments):
    assert run(*arguments)[0] == 2


def test_nobody_answers(run, monkeypatch):
    monkeypatch.setenv('CONVERGENCE_ENDPOINT', 'http://127.0.0.1:1')
    code, _, err = run('stack', 'list')
    assert code == 5
    assert 'The server at http://127.0.0.1:1 (from CONVERGENCE_ENDPOINT) does not answer: Connection refused' in err
    monkeypatch.delenv('CONVERGENCE_ENDPOINT')
    code, _, err = run('stack', 'list')
    assert code == 5 and 'convergence serve' in err


def test_a_configuration_file_names_servers(run, url, tmp_path, monkeypatch):
    monkeypatch.delenv('CONVERGENCE_ENDPOINT')
    (tmp_path / 'config' / 'convergence').mkdir(parents=True)
    path = tmp_path / 'config' / 'convergence' / 'cli.yaml'
    path.write_text(f'default: here\nservers:\n  here: {{endpoint: "{url}", project: other}}\n')
    assert run('stack', 'list', '-f', 'json')[:2] == (0, '[]\n')
    assert run('stack', 'list', '--server', 'there')[0] == 2
    path.write_text('servers: [')
    code, _, err = run('stack', 'list')
    assert code == 2 and str(path) in err


def test_processes_are_listed(run):
    code, out, _ = run('service', 'list', '-f', 'value', '-c', 'status')
    assert code == 0 and set(out.split()) == {'up'}


@pytest.mark.parametrize(
    ('message', 'told'),
    [
        ('x failed; search its log for req-1', 'x failed; search its log for req-1'),
        ('It broke.', 'It broke. See the log of the server for req-1.'),
    ],
)
def test_a_failure_of_the_server_says_once_where_to_look(message, told):
    answer = requests.Response()
    answer.status_code = 500
    answer.headers['x-openstack-request-id'] = 'req-1'
    answer._content = json.dumps({'error': {'message': message}}).encode()
    with pytest.raises(CommandFailed) as caught:
        _accepted(answer)
    assert caught.value.message == told
