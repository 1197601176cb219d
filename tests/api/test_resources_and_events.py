"""Resources and events, as clients of the API see them."""

from __future__ import annotations

from tests.api.installation import BASE


def test_resources_are_listed_with_what_they_are_needed_by(api):
    path = api.create('resources')
    first, second = api.ask('GET', f'{path}/resources').json['resources']
    url = f'{BASE}/p/{path}'
    assert first['links'] == [
        {'href': f'{url}/resources/first', 'rel': 'self'},
        {'href': url, 'rel': 'stack'},
    ]
    assert (first['resource_name'], first['logical_resource_id']) == ('first', 'first')
    assert (first['resource_status'], first['required_by']) == ('CREATE_COMPLETE', ['second'])
    assert second['resource_type'] == 'OS::Heat::Value'
    assert not {'description', 'attributes', 'metadata', 'resource_action', 'stack_name'} & set(first)
    detailed = api.ask('GET', f'{path}/resources', query_string='with_detail=true').json['resources'][0]
    assert {'description', 'attributes'} <= set(detailed)


def test_resources_are_filtered_and_what_is_no_filter_is_refused(api):
    path = api.create('filtered')

    def names(query):
        found = api.ask('GET', f'{path}/resources', query_string=query).json['resources']
        return [each['resource_name'] for each in found]

    assert names('type=OS::Heat::Value') == ['second']
    assert names('name=first&status=COMPLETE') == ['first']
    assert names('status=FAILED') == []
    refused = api.ask('GET', f'{path}/resources', query_string='colour=blue')
    assert refused.status_code == 400
    assert refused.json['error']['message'] == "Invalid filter parameters ['colour']"


def test_one_resource_is_shown_with_its_attributes_and_its_metadata(api):
    path = api.create('one-resource')
    resource = api.ask('GET', f'{path}/resources/first', query_string='with_attr=output').json['resource']
    assert resource['attributes'] == {'output': 'hello'}
    assert resource['description'] == ''
    assert api.ask('GET', f'{path}/resources/first/metadata').json == {'metadata': {}}
    missing = api.ask('GET', f'{path}/resources/third')
    assert missing.status_code == 404
    assert missing.json['error'] == {
        'type': 'ResourceNotFound',
        'message': 'The Resource (third) could not be found in Stack one-resource.',
        'traceback': None,
    }


def test_attributes_that_no_expression_reads_are_shown_and_secret_ones_masked(api):
    types = {'text': 'OS::Heat::RandomString', 'value': 'OS::Heat::Value'}
    resources = {name: {'type': each, 'properties': {}} for name, each in types.items()}
    resources['value']['properties']['value'] = [1]
    path = api.create('shown-unasked', {'heat_template_version': '2018-08-31', 'resources': resources})
    shown = {name: api.ask('GET', f'{path}/resources/{name}').json['resource']['attributes'] for name in types}
    assert shown == {'text': {'value': '******'}, 'value': {'value': [1]}}


def test_events_are_listed_in_pages_and_by_filters(api):
    path = api.create('events')
    events = api.ask('GET', f'{path}/events').json['events']
    url = f'{BASE}/p/{path}'
    assert [(each['resource_name'], each['resource_status']) for each in events] == [
        ('events', 'CREATE_IN_PROGRESS'),
        ('first', 'CREATE_IN_PROGRESS'),
        ('first', 'CREATE_COMPLETE'),
        ('second', 'CREATE_IN_PROGRESS'),
        ('second', 'CREATE_COMPLETE'),
        ('events', 'CREATE_COMPLETE'),
    ]
    assert events[1]['links'] == [
        {'href': f'{url}/resources/first/events/{events[1]["id"]}', 'rel': 'self'},
        {'href': f'{url}/resources/first', 'rel': 'resource'},
        {'href': url, 'rel': 'stack'},
    ]
    assert events[0]['physical_resource_id'] == path.split('/')[2]

    def ids(query):
        return [each['id'] for each in api.ask('GET', f'{path}/events', query_string=query).json['events']]

    every = [each['id'] for each in events]
    assert ids('limit=2') == every[:2]
    assert ids(f'marker={every[1]}&limit=2') == every[2:4]
    assert ids('sort_dir=desc&limit=1') == every[-1:]
    assert ids('resource_name=first') == every[1:3]
    assert ids('resource_status=COMPLETE&resource_type=OS::Heat::Value') == [every[4]]
    nested = api.ask('GET', f'{path}/events', query_string='nested_depth=1').json['events'][0]
    assert nested['links'][-1] == {'href': url, 'rel': 'root_stack'}
    assert api.ask('GET', f'{path}/events', query_string='marker=nothing').status_code == 404


def test_the_events_of_one_resource_and_one_event(api):
    path = api.create('own-events')
    events = api.ask('GET', f'{path}/resources/second/events').json['events']
    assert {each['resource_name'] for each in events} == {'second'}
    shown = api.ask('GET', f'{path}/resources/second/events/{events[0]["id"]}').json['event']
    assert shown == {**events[0], 'resource_type': 'OS::Heat::Value', 'resource_properties': {'value': 'hello'}}
    none = api.ask('GET', f'{path}/resources/third/events')
    assert (none.status_code, none.json['error']['message']) == (404, 'No events found for resource third')
    no_event = api.ask('GET', f'{path}/resources/second/events/x')
    assert (no_event.status_code, no_event.json['error']['message']) == (404, 'No event x found')


def test_a_resource_is_marked_by_a_body_that_says_so(api):
    path = api.create('marked')
    for body, said in (
        ({}, 'Missing mandatory (mark_unhealthy) key from mark unhealthy request'),
        ({'mark_unhealthy': True, 'colour': 'blue'}, 'Unexpected argument(s): colour'),
        ({'mark_unhealthy': 'maybe'}, 'Unrecognized value "maybe" for "mark_unhealthy"'),
    ):
        refused = api.ask('PATCH', f'{path}/resources/first', json=body)
        assert refused.status_code == 400
        assert said in refused.json['error']['message']


def test_what_concerns_no_stack(api):
    build = api.ask('GET', 'build_info').json
    assert build['api'] == build['engine']
    services = api.ask('GET', 'services').json['services']
    assert sorted(each['binary'] for each in services) == [
        'convergence-engine',
        'convergence-worker',
        'convergence-worker',
    ]
    assert {each['status'] for each in services} == {'up'}
    types = api.ask('GET', 'resource_types', query_string='name=OS::Heat::V').json['resource_types']
    assert types == ['OS::Heat::Value']
    described = api.ask('GET', 'resource_types', query_string='with_description=1&name=OS::Heat::V')
    assert set(described.json['resource_types'][0]) == {'resource_type', 'description'}
    schema = api.ask('GET', 'resource_types/OS::Heat::Value').json
    assert schema['resource_type'] == 'OS::Heat::Value'
    assert api.ask('GET', 'resource_types/OS::No::Such').status_code == 404


def test_a_template_is_validated(api):
    source = {
        'heat_template_version': '2018-08-31',
        'description': 'd',
        'parameters': {'size': {'type': 'number', 'default': 3, 'constraints': [{'range': {'min': 1}}]}},
    }
    checked = api.ask('POST', 'validate', json={'template': source})
    assert checked.status_code == 200
    assert checked.json['Description'] == 'd'
    assert checked.json['Parameters']['size']['MinValue'] == 1
    wrong = api.ask('POST', 'validate', json={'template': 'heat_template_version: 2018-08-31\nresuorces: {}\n'})
    assert wrong.status_code == 400
    (problem,) = wrong.json['error']['problems']
    assert problem['line'] == 2
