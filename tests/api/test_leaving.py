"""Objects that a delete keeps because the request names their resources."""

from __future__ import annotations

from tests.api.installation import TEMPLATE

STUBBORN = {
    'heat_template_version': '2018-08-31',
    'resources': {
        'first': {'type': 'OS::Heat::TestResource', 'properties': {'action_wait_secs': {'delete': 600}}},
        'second': {'type': 'OS::Heat::TestResource', 'depends_on': ['first']},
        'third': {'type': 'OS::Heat::TestResource', 'properties': {'action_wait_secs': {'delete': 600}}},
    },
}


def left(api, path):
    """What the events say that was left behind, by name."""
    events = api.ask('GET', f'{path}/events').json['events']
    return {
        each['resource_name']: each['physical_resource_id']
        for each in events
        if each['resource_status_reason'].startswith('left behind, as requested')
    }


def physical_id(api, path, name):
    return api.ask('GET', f'{path}/resources/{name}').json['resource']['physical_resource_id']


def test_what_hangs_is_left_behind_by_a_delete_that_names_it(api):
    """As often as there is something to name; the reason of the stack says what stays, to its end."""
    path = api.create('left', STUBBORN)
    expected = {name: physical_id(api, path, name) for name in ('first', 'third')}
    assert api.ask('DELETE', path).status_code == 204
    assert api.ask('GET', path).json['stack']['stack_status'] == 'DELETE_IN_PROGRESS'
    assert api.ask('DELETE', path, query_string='leave=first&leave=third').status_code == 204
    api.settle(path)
    assert left(api, path) == expected
    shown = api.ask('GET', path).json['stack']
    assert shown['stack_status'] == 'DELETE_COMPLETE'
    assert 'left behind: first (' in shown['stack_status_reason'], 'by name'
    assert all(each in shown['stack_status_reason'] for each in expected.values())


def test_a_name_that_the_stack_does_not_have_is_refused_and_nothing_begins(api):
    path = api.create('left-wrong')
    for query, named in (('leave=first&leave=frist', 'frist'), ('leave=', ''), ('leave=first,second', 'first,second')):
        refused = api.ask('DELETE', path, query_string=query)
        assert refused.status_code == 400
        message = refused.json['error']['message']
        assert f'leave: stack left-wrong has no resource {named}. It has: first, second.' in message
    assert api.ask('GET', path).json['stack']['stack_status'] == 'CREATE_COMPLETE'


def test_a_delete_by_name_keeps_what_is_to_be_left(api):
    """The redirection to the whole path carries the names along."""
    path = api.create('left-by-name', TEMPLATE)
    led = api.ask('DELETE', 'stacks/left-by-name', query_string='leave=first')
    assert led.status_code == 302
    assert led.headers['location'].endswith(f'{path}?leave=first')


def test_what_is_left_depends_on_nothing_having_been_done_since(api):
    path = api.create('left-since')
    refused = api.ask('DELETE', path, query_string='leave=first', headers={'If-Match': '"another"'})
    assert refused.status_code == 412
    assert api.ask('GET', path).json['stack']['stack_status'] == 'CREATE_COMPLETE'
