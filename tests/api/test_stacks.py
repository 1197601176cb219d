"""What clients of the API send and get, to the letter."""

from __future__ import annotations

import re

import pytest

from tests.api.installation import BASE, TEMPLATE, waiting

TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ')


def test_a_stack_is_created(api):
    made = api.ask('POST', 'stacks', json={'stack_name': 'created', 'template': TEMPLATE})
    stack_id = made.json['stack']['id']
    url = f'{BASE}/p/stacks/created/{stack_id}'
    assert made.status_code == 201
    assert made.headers['location'] == url
    assert made.json == {'stack': {'id': stack_id, 'links': [{'href': url, 'rel': 'self'}]}}
    assert re.fullmatch(r'req-[0-9a-f-]{36}', made.headers['x-openstack-request-id'])


def test_a_stack_is_shown_whole(api):
    path = api.create('shown', tags='one,two', timeout_mins=7)
    shown = api.ask('GET', path)
    stack = shown.json['stack']
    assert shown.status_code == 200
    assert TIME.fullmatch(stack.pop('creation_time'))
    assert [(each['type'], each['status']) for each in stack.pop('conditions')] == [
        ('Ready', 'True'),
        ('Progressing', 'False'),
    ]
    stack_id = stack['id']
    assert stack == {
        'id': path.split('/')[2],
        'links': [{'href': f'{BASE}/p/{path}', 'rel': 'self'}],
        'stack_name': 'shown',
        'stack_status': 'CREATE_COMPLETE',
        'stack_status_reason': 'Stack CREATE completed successfully',
        'updated_time': None,
        'deletion_time': None,
        'description': 'two resources, one after the other',
        'template_description': 'two resources, one after the other',
        'stack_owner': None,
        'parent': None,
        'stack_user_project_id': None,
        'tags': ['one', 'two'],
        'parameters': {
            'OS::project_id': 'p',
            'OS::stack_id': stack_id,
            'OS::stack_name': 'shown',
            'secret': '******',
            'text': 'hello',
        },
        'outputs': [{'output_key': 'shown', 'description': 'what was said', 'output_value': 'hello'}],
        'disable_rollback': True,
        'timeout_mins': 7,
        'drift_policy': 'report',
        'capabilities': [],
        'notification_topics': [],
    }
    assert 'outputs' not in api.ask('GET', path, query_string='resolve_outputs=false').json['stack']


@pytest.mark.parametrize('method', ['GET', 'PUT', 'PATCH', 'POST', 'DELETE'])
def test_a_name_or_an_id_leads_to_the_stack_with_the_query(api, method):
    path = api.create(f'led-{method.lower()}')
    _, name, stack_id = path.split('/')
    for word in (name, stack_id, f'arn:openstack:heat::p:stacks/{name}/{stack_id}'):
        led = api.ask(method, f'stacks/{word}', query_string='a=1&b=%20x')
        assert led.status_code == 302
        assert led.headers['location'] == f'{BASE}/p/{path}?a=1&b=%20x'
        assert led.json['code'] == '302 Found'


@pytest.mark.parametrize('part', ['resources', 'events', 'template', 'actions', 'environment', 'files'])
def test_what_belongs_to_a_stack_is_found_by_its_name(api, part):
    path = api.create(f'part-{part}')
    led = api.ask('GET', f'stacks/part-{part}/{part}')
    assert (led.status_code, led.headers['location']) == (302, f'{BASE}/p/{path}/{part}')


def test_a_stack_may_be_called_like_a_word_of_the_api(api):
    path = api.create('preview')
    assert api.ask('GET', 'stacks/preview').headers['location'] == f'{BASE}/p/{path}'


def test_the_right_id_with_a_wrong_name_is_no_stack(api):
    path = api.create('right')
    wrong = path.replace('/right/', '/wrong/')
    for method, body in (('GET', None), ('PUT', {'template': TEMPLATE}), ('DELETE', None)):
        missing = api.ask(method, wrong, json=body)
        assert missing.status_code == 404
        assert missing.json['error']['message'] == 'The Stack (wrong) could not be found.'
    assert api.ask('GET', path).json['stack']['stack_status'] == 'CREATE_COMPLETE'


def test_a_list_is_filtered_sorted_counted_and_paged(api):
    for number in range(3):
        api.create(f'listed-{number}', tags='even' if number % 2 == 0 else 'odd', project='lists')

    def ask(query):
        return api.ask('GET', '/v1/lists/stacks', query_string=query).json

    def names(query):
        return [each['stack_name'] for each in ask(query)['stacks']]

    assert names('') == ['listed-2', 'listed-1', 'listed-0']
    assert names('sort_keys=stack_name&sort_dir=asc') == ['listed-0', 'listed-1', 'listed-2']
    assert names('name=listed-1&name=listed-2&sort_keys=stack_name') == ['listed-1', 'listed-2']
    assert names('tags=odd') == ['listed-1']
    assert names('not_tags=odd&name=listed-0') == ['listed-0']
    assert names('status=COMPLETE&sort_keys=stack_name') == names('status=CREATE_COMPLETE&sort_keys=stack_name')
    assert names('status=CREATE_FAILED') == []
    assert names('colour=blue') == names('')
    page = ask('limit=2&with_count=true&sort_keys=stack_name')
    assert page['count'] == 3
    (link,) = page['links']
    assert link['rel'] == 'next'
    assert link['href'].startswith(f'{BASE}/lists/stacks?limit=2')
    rest = ask(link['href'].partition('?')[2])
    assert [each['stack_name'] for each in rest['stacks']] == ['listed-2']
    assert 'links' not in rest
    assert set(ask('limit=1')['stacks'][0]) >= {'project', 'description', 'tags', 'stack_status_reason'}
    assert [each['stack_name'] for each in api.ask('GET', '/v1/lists/stacks/detail').json['stacks']] == names('')


@pytest.mark.parametrize(
    ('query', 'said'),
    [
        ('limit=x', 'Only integer is allowed for limit'),
        ('limit=-1', 'must be between 0'),
        ('limit=99999999999999999999', 'must be between 0'),
        ('show_deleted=maybe', 'Unrecognized value "maybe" for "show_deleted", acceptable values are'),
        ('sort_dir=sideways', 'neither asc nor desc'),
        ('sort_keys=colour', 'sort_keys'),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(api, query, said):
    refused = api.ask('GET', 'stacks', query_string=query)
    assert refused.status_code == 400
    assert said in refused.json['error']['message']


def test_all_projects_are_listed_for_nobody(api):
    refused = api.ask('GET', 'stacks', query_string='global_tenant=True')
    assert refused.status_code == 403


def test_a_stack_is_updated_whole_or_in_part(api):
    path = api.create('changed', parameters={'text': 'one'}, tags='kept')
    done = api.ask('PATCH', path, json={'parameters': {'text': 'two'}})
    assert (done.status_code, done.json['code'], done.json['title']) == (202, '202 Accepted', 'Accepted')
    assert api.settle(path)['outputs'][0]['output_value'] == 'two'
    assert api.ask('GET', path).json['stack']['tags'] == ['kept']
    assert api.ask('PUT', path, json={'template': TEMPLATE, 'stack_name': 'whatever'}).status_code == 202
    assert api.settle(path)['outputs'][0]['output_value'] == 'hello'
    stack = api.ask('GET', path).json['stack']
    # A whole update without tags removes them.
    assert (stack['stack_status'], stack['tags']) == ('UPDATE_COMPLETE', None)
    assert TIME.fullmatch(stack['updated_time'])


def test_an_update_without_a_template_is_refused_unless_it_is_a_patch(api):
    path = api.create('untouched')
    refused = api.ask('PUT', path, json={'parameters': {'text': 'x'}})
    assert (refused.status_code, refused.json['error']['message']) == (400, 'No template specified')
    assert api.ask('PATCH', path).status_code == 202


def test_an_environment_may_be_a_map_or_a_text_and_parameters_win(api):
    for form in ({'parameters': {'text': 'far'}}, 'parameters:\n  text: far\n'):
        name = f'environment-{type(form).__name__}'
        path = api.create(name, environment=form)
        assert api.ask('GET', path).json['stack']['parameters']['text'] == 'far'
        api.create(f'{name}-2', environment=form, parameters={'text': 'near'})
        shown = api.ask('GET', path.replace(name, f'{name}-2').rsplit('/', 1)[0])
        assert (
            api.ask('GET', shown.headers['location'][len('http://localhost:8004') :]).json['stack']['parameters'][
                'text'
            ]
            == 'near'
        )
    broken = api.ask('POST', 'stacks', json={'stack_name': 'e', 'template': TEMPLATE, 'environment': '[1'})
    assert broken.status_code == 400
    assert 'environment, line' in broken.json['error']['message']


def test_a_name_is_taken_once(api):
    path = api.create('taken')
    refused = api.ask('POST', 'stacks', json={'stack_name': 'taken', 'template': TEMPLATE})
    assert refused.status_code == 409
    assert refused.json['error']['type'] == 'StackExists'
    assert refused.json['error']['message'] == 'The Stack (taken) already exists.'
    assert api.ask('DELETE', path).status_code == 204


def test_a_stack_is_deleted_and_is_still_found_by_its_id(api):
    path = api.create('deleted')
    gone = api.ask('DELETE', path)
    assert (gone.status_code, gone.text) == (204, '')
    api.settle(path)
    stack_id = path.split('/')[2]
    assert api.ask('GET', 'stacks/deleted').status_code == 404
    assert api.ask('GET', f'stacks/{stack_id}').status_code == 302
    stack = api.ask('GET', path).json['stack']
    assert stack['stack_status'] == 'DELETE_COMPLETE'
    assert TIME.fullmatch(stack['deletion_time'])
    assert 'outputs' not in stack
    assert api.ask('GET', f'{path}/template').json['description'] == 'two resources, one after the other'
    deleted = api.ask('GET', 'stacks', query_string='show_deleted=1&name=deleted').json['stacks']
    assert [each['id'] for each in deleted] == [stack_id]


def test_an_operation_in_progress_is_cancelled(api):
    path = api.create('cancelled', waiting(60), wait=False)
    done = api.ask('POST', f'{path}/actions', json={'cancel_without_rollback': {'now': True}})
    assert (done.status_code, done.text) == (200, 'null')
    assert api.settle(path)['stack_status'] == 'FAILED'
    api.ask('DELETE', path)


@pytest.mark.parametrize(
    ('body', 'said'),
    [
        ({}, 'No action specified'),
        (None, 'No action specified'),
        ({'check': None, 'resume': None}, 'Multiple actions specified'),
        ({'fly': None}, 'Invalid action fly specified'),
    ],
)
def test_an_action_is_named_by_the_only_key(api, body, said):
    path = f'stacks/x/{"0" * 36}'
    refused = api.ask('POST', f'{path}/actions', json=body) if body is not None else api.ask('POST', f'{path}/actions')
    assert (refused.status_code, refused.json['error']['message']) == (400, said)


def test_a_stack_is_suspended_and_resumed_and_checked(api):
    path = api.create('still')
    for action, status in (('suspend', 'SUSPEND'), ('resume', 'RESUME'), ('check', 'CHECK')):
        done = api.ask('POST', f'{path}/actions', json={action: None})
        assert (done.status_code, done.text) == (200, 'null'), done.text
        api.settle(path)
        assert api.ask('GET', path).json['stack']['stack_status'] == f'{status}_COMPLETE'


def test_a_resource_is_said_to_be_broken_and_is_replaced(api):
    path = api.create('broken')
    body = {'mark_unhealthy': True, 'resource_status_reason': 'it smells'}
    done = api.ask('PATCH', f'{path}/resources/second', json=body)
    assert (done.status_code, done.text) == (200, 'null'), done.text
    shown = api.ask('GET', f'{path}/resources/second').json['resource']
    assert (shown['resource_status'], shown['resource_status_reason']) == ('CHECK_FAILED', 'it smells')
    assert api.ask('PATCH', path).status_code == 202
    api.settle(path)
    renewed = api.ask('GET', f'{path}/resources/second').json['resource']
    assert renewed['physical_resource_id'] != shown['physical_resource_id']


def test_a_preview_shows_the_stack_and_makes_none(api):
    body = {'stack_name': 'previewed', 'template': TEMPLATE, 'parameters': {'text': 'new'}}
    shown = api.ask('POST', 'stacks/preview', json=body)
    assert shown.status_code == 200
    stack = shown.json['stack']
    assert stack['id'] == 'None'
    assert stack['parameters']['text'] == 'new'
    assert stack['parameters']['secret'] == '******'
    assert 'stack_status' not in stack
    assert {each['resource_name']: each['resource_type'] for each in stack['resources']} == {
        'first': 'OS::Heat::TestResource',
        'second': 'OS::Heat::Value',
    }
    second = stack['resources'][1]
    assert second['attributes'] == {'value': None} and second['description'] == ''
    assert second['properties'] == {'value': '(known after apply)', 'type': None}
    assert stack['description'] == 'two resources, one after the other'
    assert api.ask('GET', 'stacks/previewed').status_code == 404


@pytest.mark.parametrize('method', ['PUT', 'PATCH'])
def test_a_preview_of_an_update_sorts_the_resources_by_their_fate(api, method):
    path = api.create(f'foreseen-{method.lower()}')
    body = {'template': TEMPLATE, 'parameters': {'text': 'other'}}
    changes = api.ask(method, f'{path}/preview', json=body).json['resource_changes']
    assert set(changes) == {'unchanged', 'updated', 'replaced', 'added', 'deleted'}
    assert [each['resource_name'] for each in changes['updated']] == ['first', 'second']


def test_template_environment_files_and_outputs(api):
    path = api.create('parts', files={'a.txt': 'text'}, parameters={'secret': 'canary-5533'})
    assert api.ask('GET', f'{path}/template').json['heat_template_version'] == '2018-08-31'
    assert api.ask('GET', f'{path}/files').json == {'a.txt': 'text'}
    environment = api.ask('GET', f'{path}/environment').json
    assert environment['parameters'] == {'secret': '******'}
    assert set(environment) >= {'parameter_defaults', 'resource_registry', 'event_sinks', 'encrypted_param_names'}
    outputs = api.ask('GET', f'{path}/outputs').json
    assert outputs == {'outputs': [{'output_key': 'shown', 'description': 'what was said'}]}
    assert api.ask('GET', f'{path}/outputs/shown').json == {
        'output': {'output_key': 'shown', 'description': 'what was said', 'output_value': 'hello'}
    }
    missing = api.ask('GET', f'{path}/outputs/nothing')
    assert (missing.status_code, missing.json['error']['type']) == (404, 'EntityNotFound')
    for part in ('', '/environment', '/events', '/resources', '/explain', '/graph'):
        assert 'canary-5533' not in api.ask('GET', f'{path}{part}').text
