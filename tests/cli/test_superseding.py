"""``--wait`` follows the operation that its command began, not a later one on the same stack."""

import contextlib
import json
import os
import re
import threading

import pytest

from convergence.cli.connection import targets
from convergence.cli.connection.client import Api
from convergence.cli.exits import CommandFailed
from convergence.cli.watch import following
from convergence.followed import Followed, Standing
from tests.api.installation import waiting

QUICK = {'heat_template_version': '2018-08-31', 'resources': {'slow': {'type': 'OS::Heat::TestResource'}}}
LONG_S = 20


@pytest.fixture
def run(command_line, tmp_path, monkeypatch):
    monkeypatch.setattr(following, 'LOOK_S', 0.2)
    (tmp_path / 'quick.json').write_text(json.dumps(QUICK))
    (tmp_path / 'slow.json').write_text(json.dumps(waiting(600)))
    resources = {**waiting(600)['resources'], **QUICK['resources']}
    resources['slow'] = {'type': 'OS::Heat::TestResource', 'properties': {'value': 'x', 'wait_secs': 600}}
    (tmp_path / 'update.json').write_text(json.dumps({**QUICK, 'resources': resources}))
    return command_line


@contextlib.contextmanager
def meanwhile(name, status, act):
    """Let another client act on a stack when it has a status."""
    api = Api(targets.find(targets.ServerArguments(), os.environ, targets.Path.cwd()))

    def other():
        while True:
            with contextlib.suppress(CommandFailed):
                stack = api.stack(name)
                if stack.show()['stack_status'] == status:
                    break
            threading.Event().wait(0.05)
        act(stack)

    thread = threading.Thread(target=other)
    thread.start()
    yield
    thread.join(LONG_S)


def superseding(stack):
    stack.api.send('PUT', stack.at(), {'template': QUICK})


def deletion(stack):
    stack.api.send('DELETE', stack.at())


def superseded(code, err, action):
    assert code == 7, err
    assert re.search(
        rf'{action} [0-9a-f-]+ of \d{{4}}-\d\d-\d\dT[\d:.]+Z? superseded the operation on the stack', err
    ), err


def test_an_update_that_another_update_supersedes_is_no_success(run):
    assert run('stack', 'create', 'site', '-t', 'quick.json', '--wait')[0] == 0
    with meanwhile('site', 'UPDATE_IN_PROGRESS', superseding):
        code, _, err = run('stack', 'update', 'site', '-t', 'update.json', '--wait', '--wait-timeout', str(LONG_S))
    superseded(code, err, 'UPDATE')
    assert run('stack', 'delete', 'site', '--yes', '--wait')[0] == 0


@pytest.mark.parametrize(('act', 'action'), [(superseding, 'UPDATE'), (deletion, 'DELETE')])
def test_so_does_a_creation_and_a_plain_wait(run, act, action):
    name = f'made-{action.lower()}'
    with meanwhile(name, 'CREATE_IN_PROGRESS', act):
        code, _, err = run('stack', 'create', name, '-t', 'slow.json', '--wait', '--wait-timeout', str(LONG_S))
    superseded(code, err, action)
    assert run('stack', 'create', f'{name}-2', '-t', 'slow.json')[0] == 0
    with meanwhile(f'{name}-2', 'CREATE_IN_PROGRESS', act):
        code, _, err = run('stack', 'wait', f'{name}-2', '--wait-timeout', str(LONG_S))
    superseded(code, err, action)


def test_its_own_rollback_belongs_to_an_operation(run, tmp_path):
    run('stack', 'create', 'back', '-t', 'quick.json', '--wait')
    failing = {**QUICK, 'resources': {'bad': {'type': 'OS::Heat::TestResource', 'properties': {'fail': True}}}}
    (tmp_path / 'failing.json').write_text(json.dumps(failing))
    code, out, err = run('stack', 'update', 'back', '-t', 'failing.json', '--enable-rollback', '--wait', '-f', 'json')
    assert (code, json.loads(out)['stack_status']) == (1, 'ROLLBACK_COMPLETE'), err
    for arguments in (('check',), ('snapshot', 'create'), ('suspend',), ('resume',), ('suspend',), ('delete', '--yes')):
        words = [word for word in arguments if not word.startswith('-')]
        options = [word for word in arguments if word.startswith('-')]
        code, _, err = run('stack', *words, 'back', *options, '--wait')
        assert code == 0, (arguments, err)


def test_a_cancel_follows_what_it_cancels(run):
    assert run('stack', 'create', 'stopped', '-t', 'slow.json')[0] == 0
    assert run('stack', 'cancel', 'stopped', '--now', '--wait')[0] == 0
    assert run('stack', 'delete', 'stopped', '--yes', '--wait')[0] == 0


def entry(number, action, status, request):
    return {
        'id': str(number),
        'action': action,
        'status': status,
        'request_id': request,
        'started_at': 'now',
        'reason': '',
    }


def test_the_standing_of_an_operation_comes_from_the_history():
    create, update = entry(1, 'CREATE', 'COMPLETE', 'r1'), entry(2, 'UPDATE', 'FAILED', 'r2')
    back, after = entry(3, 'ROLLBACK', 'COMPLETE', 'r2'), entry(4, 'UPDATE', 'RUNNING', '')
    history = [back, update, create]
    assert Followed.of(history, 'r2') == Followed.of(history) == Followed.of(history, 'unknown')
    assert Standing.of(Followed('r2'), history) == Standing(back, None)
    assert Standing.of(Followed('r2'), history).state == 'ROLLBACK_COMPLETE'
    ended = Standing.of(Followed('r2'), [after, *history])
    assert (ended.state, ended.successor, ended.is_superseded) == ('ROLLBACK_COMPLETE', after, False)
    assert Standing.of(Followed.of([after, *history]), [after]) == Standing(after, None)
    taken = Standing.of(Followed('r2'), [after, entry(2, 'UPDATE', 'SUPERSEDED', 'r2'), create])
    assert taken.is_superseded and taken.successor == after
    assert Standing.of(Followed('r0'), history).is_superseded
    assert not Standing.of(Followed('r0'), []).is_superseded
