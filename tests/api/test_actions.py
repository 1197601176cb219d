"""Actions, marks and snapshots, as clients of the API see them."""

from __future__ import annotations

import re

import pytest

TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ')
SUSPENDED = 'Updating a stack when it is suspended is not supported; resume {name} first.'


def act(api, path, action):
    done = api.ask('POST', f'{path}/actions', json={action: None})
    assert (done.status_code, done.json) == (200, None), done.text


@pytest.mark.parametrize('action', ['suspend', 'resume', 'check'])
def test_an_action_is_visible_at_once_and_ends(api, action):
    path = api.create(f'acting-{action}')
    act(api, path, action)
    stack = api.settle(path)
    assert stack['stack_action'] == action.upper()
    shown = api.ask('GET', path).json['stack']
    assert shown['stack_status'] == f'{action.upper()}_COMPLETE'
    assert shown['stack_status_reason'] == f'Stack {action.upper()} completed successfully'


def test_a_suspended_stack_refuses_an_update(api):
    path = api.create('asleep')
    act(api, path, 'suspend')
    api.settle(path)
    refused = api.ask('PATCH', path, json={})
    assert refused.status_code == 400
    assert refused.json['error']['type'] == 'NotSupported'
    assert refused.json['error']['message'] == SUSPENDED.format(name='asleep')
    act(api, path, 'resume')
    api.settle(path)
    assert api.ask('PATCH', path, json={}).status_code == 202


def test_a_resource_is_marked_by_name_or_physical_id(api):
    path = api.create('found-broken')
    mark = {'mark_unhealthy': True, 'resource_status_reason': 'it smells'}
    marked = api.ask('PATCH', f'{path}/resources/first', json=mark)
    assert (marked.status_code, marked.json) == (200, None)
    resource = api.ask('GET', f'{path}/resources/first').json['resource']
    assert (resource['resource_status'], resource['resource_status_reason']) == ('CHECK_FAILED', 'it smells')
    again = api.ask('PATCH', f'{path}/resources/{resource["physical_resource_id"]}', json={'mark_unhealthy': 'false'})
    assert again.status_code == 200
    assert api.ask('GET', f'{path}/resources/first').json['resource']['resource_status'] == 'CHECK_COMPLETE'
    missing = api.ask('PATCH', f'{path}/resources/zzz', json={'mark_unhealthy': True})
    assert missing.status_code == 404
    assert missing.json['error']['message'] == 'The Resource (zzz) could not be found in Stack found-broken.'


def test_snapshots_are_taken_listed_shown_restored_and_deleted(api):
    path = api.create('kept')
    made = api.ask('POST', f'{path}/snapshots', json={'name': 'first'})
    assert made.status_code == 200
    snapshot = made.json
    assert (snapshot['name'], snapshot['action']) == ('first', 'SNAPSHOT')
    assert snapshot['status'] in {'IN_PROGRESS', 'COMPLETE'}  # it may be quicker than the answer
    assert TIME.fullmatch(snapshot['creation_time'])
    api.settle(path)
    (listed,) = api.ask('GET', f'{path}/snapshots').json['snapshots']
    assert (listed['id'], listed['status']) == (snapshot['id'], 'COMPLETE')
    one = api.ask('GET', f'{path}/snapshots/{snapshot["id"]}').json['snapshot']
    assert one == listed
    assert set(one['data']['resources']) == {'first', 'second'}
    assert one['data']['environment']['parameters'].get('secret', '******') == '******'
    assert api.ask('POST', f'{path}/snapshots/{snapshot["id"]}/restore').status_code == 202
    api.settle(path)
    assert api.ask('GET', path).json['stack']['stack_status'] == 'RESTORE_COMPLETE'
    assert api.ask('DELETE', f'{path}/snapshots/{snapshot["id"]}').status_code == 204
    missing = api.ask('GET', f'{path}/snapshots/{"0" * 32}')
    assert missing.status_code == 404


def test_stacks_are_exported_but_not_abandoned_or_adopted_unless_that_is_enabled(api):
    path = api.create('exported')
    exported = api.ask('GET', f'{path}/export')
    assert exported.status_code == 200
    assert set(exported.json) >= {
        'name',
        'id',
        'action',
        'status',
        'template',
        'resources',
        'environment',
        'files',
        'project_id',
        'stack_user_project_id',
    }
    abandoned = api.ask('DELETE', f'{path}/abandon')
    assert abandoned.status_code == 400
    assert abandoned.json['error']['message'].startswith('Stack Abandon is not supported.')
    adopted = api.ask('POST', 'stacks', json={'stack_name': 'adopted', 'adopt_stack_data': exported.text})
    assert adopted.status_code == 400
    assert adopted.json['error']['message'].startswith('Stack Adopt is not supported.')
