"""Signals, hooks and software configurations, as clients of the API see them."""

from __future__ import annotations

import json
import time

import pytest

from convergence.cmd.wiring.api import ApiProcess
from convergence.config import ApiSettings
from tests.api.installation import LONG_S, empty_conf
from tests.preloaded import openstack

WAITING = {
    'heat_template_version': '2018-08-31',
    'resources': {
        'handle': {'type': 'OS::Heat::WaitConditionHandle'},
        'ready': {
            'type': 'OS::Heat::WaitCondition',
            'properties': {'handle': {'get_resource': 'handle'}, 'timeout': 600, 'count': 3},
        },
    },
}
HOOKED = {
    'heat_template_version': '2018-08-31',
    'resources': {'one': {'type': 'OS::Heat::Value', 'properties': {'value': 'x'}}},
}
PAUSE = {'resource_registry': {'resources': {'one': {'hooks': 'pre-create'}}}}


def begin(api, name, template, environment=None):
    """A stack that is in progress; its path."""
    body = {'stack_name': name, 'template': template, 'environment': environment or {}}
    made = api.ask('POST', '/v1/p/stacks', json=body)
    assert made.status_code == 201, made.text
    return f'stacks/{name}/{made.json["stack"]["id"]}'


def shown(api, path):
    return api.ask('GET', path).json['stack']


def until(api, path, holds):
    """Follow the events of a stack until one of them is what is waited for."""
    for _ in range(int(LONG_S * 20)):
        if any(holds(event) for event in api.ask('GET', f'{path}/events').json['events']):
            return
        time.sleep(0.05)
    raise AssertionError(api.ask('GET', f'{path}/events').text)


def of(name, status):
    return lambda event: (event['resource_name'], event['resource_status']) == (name, status)


def test_a_signal_answers_null_whatever_empty_body_it_has(api):
    path = begin(api, 'signalled', WAITING)
    until(api, path, of('ready', 'CREATE_IN_PROGRESS'))
    where = f'{path}/resources/handle/signal'
    for body in ({'body': ''}, {'body': 'null'}, {'body': '{}'}):
        answer = api.ask('POST', where, **body)
        assert (answer.status_code, answer.text) == (200, 'null'), body
    until(api, path, of('signalled', 'CREATE_COMPLETE'))
    told = api.ask('GET', f'{path}/resources/handle/metadata').json['metadata']
    assert told == {
        str(number): {'status': 'SUCCESS', 'reason': f'Signal {number} received', 'data': None} for number in (1, 2, 3)
    }
    events = api.ask('GET', f'{path}/resources/handle/events').json['events']
    assert [each['resource_status'] for each in events][-3:] == ['SIGNAL_COMPLETE'] * 3


def test_what_cannot_be_signalled_answers_400_or_404(api):
    path = begin(api, 'refusing', HOOKED)
    until(api, path, of('refusing', 'CREATE_COMPLETE'))
    answer = api.ask('POST', f'{path}/resources/one/signal', json={'x': 1})
    assert answer.status_code == 400
    assert answer.json['error']['type'] == 'ResourceActionNotSupported'
    assert answer.json['error']['message'].startswith('signal is not supported for resource.')
    answer = api.ask('POST', f'{path}/resources/two/signal', json={})
    assert answer.status_code == 404
    assert answer.json['error']['message'] == 'The Resource (two) could not be found in Stack refusing.'
    answer = api.ask('POST', f'{path}/resources/one/signal', json={'unset_hook': 'pre-create'})
    assert answer.status_code == 400
    assert answer.json['error']['type'] == 'InvalidBreakPointHook'
    assert answer.json['error']['message'] == 'The "pre-create" hook is not defined on one'
    assert api.ask('POST', f'{path}/resources/one/signal', json=[1]).status_code == 400


def test_a_hook_is_told_in_an_event_and_cleared_by_a_signal(api):
    path = begin(api, 'paused', HOOKED, PAUSE)
    paused = 'CREATE paused until Hook pre-create is cleared'
    until(api, path, lambda event: event['resource_status_reason'] == paused)
    assert shown(api, path)['stack_status'] == 'CREATE_IN_PROGRESS'
    assert api.ask('GET', f'{path}/explain').json['explanation']['frontier'][0]['hook'] == 'pre-create'
    answer = api.ask('POST', f'{path}/resources/one/signal', json={'unset_hook': 'pre-create'})
    assert (answer.status_code, answer.text) == (200, 'null')
    until(api, path, of('paused', 'CREATE_COMPLETE'))
    reasons = [each['resource_status_reason'] for each in api.ask('GET', f'{path}/resources/one/events').json['events']]
    assert reasons == [paused, 'Hook pre-create is cleared', 'state changed', 'state changed']


def test_software_configurations_and_deployments(api):
    body = {'name': 'web', 'group': 'script', 'config': 'echo', 'inputs': [{'name': 'port'}]}
    made = api.ask('POST', '/v1/p/software_configs', json=body)
    assert made.status_code == 200, made.text
    config = made.json['software_config']
    assert {name: config[name] for name in ('name', 'group', 'config', 'outputs', 'options')} == {
        'name': 'web',
        'group': 'script',
        'config': 'echo',
        'outputs': [],
        'options': {},
    }
    listed = api.ask('GET', '/v1/p/software_configs').json['software_configs']
    assert {name: config[name] for name in ('id', 'name', 'group', 'creation_time')} in listed
    body = {'server_id': 'server', 'config_id': config['id'], 'input_values': {'port': 1}}
    deployment = api.ask('POST', '/v1/p/software_deployments', json=body).json['software_deployment']
    where = f'/v1/p/software_deployments/{deployment["id"]}'
    changed = api.ask('PUT', where, json={'status': 'FAILED', 'status_reason': 'no disk'}).json['software_deployment']
    assert (changed['status'], changed['status_reason'], changed['input_values']) == ('FAILED', 'no disk', {'port': 1})
    assert api.ask('GET', where).json == {'software_deployment': changed}
    agent = api.ask('GET', '/v1/p/software_deployments/metadata/server').json['metadata']
    assert [(each['id'], each['inputs'][0]['value']) for each in agent] == [(config['id'], 1)]
    refused = api.ask('DELETE', f'/v1/p/software_configs/{config["id"]}')
    assert refused.status_code == 400
    assert refused.json['error']['message'].endswith('can not be deleted as it is referenced.')
    assert api.ask('DELETE', where).status_code == 204
    assert api.ask('DELETE', f'/v1/p/software_configs/{config["id"]}').status_code == 204
    for gone in (where, f'/v1/p/software_configs/{config["id"]}'):
        assert api.ask('GET', gone).status_code == 404


@pytest.fixture
def run(api, tmp_path):
    """Runs ``openstack …`` against a server."""
    process = ApiProcess(ApiSettings(port=0), api.embedded.parts.transport, stop_s=LONG_S, conf=empty_conf())
    process.start()
    environment = {
        'OS_AUTH_TYPE': 'none',
        'OS_ENDPOINT': f'{process.address}/v1/p',
        'HOME': str(tmp_path),
        'PATH': '/usr/bin:/bin',
    }

    def openstack_client(*words):
        done = openstack().run(*words, directory=tmp_path, environment=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout) if 'json' in words else done.stdout + done.stderr

    yield openstack_client
    process.stop()


def test_the_usual_client_sees_and_clears_hooks_and_sends_signals(api, run):
    paused = begin(api, 'by-client', HOOKED, PAUSE)
    until(api, paused, lambda event: 'paused until Hook' in event['resource_status_reason'])
    assert 'one' in run('stack', 'hook', 'poll', 'by-client')
    run('stack', 'hook', 'clear', '--pre-create', 'by-client', 'one')
    until(api, paused, of('by-client', 'CREATE_COMPLETE'))
    waiting = begin(api, 'by-signal', WAITING)
    until(api, waiting, of('handle', 'CREATE_COMPLETE'))
    for number in range(3):
        run('stack', 'resource', 'signal', '--data', json.dumps({'id': number}), 'by-signal', 'handle')
    until(api, waiting, of('by-signal', 'CREATE_COMPLETE'))
    told = run('stack', 'resource', 'metadata', 'by-signal', 'handle', '-f', 'json')
    assert sorted(told) == ['0', '1', '2']
