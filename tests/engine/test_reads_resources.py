"""What callers are told about resources, events, and what a stack waits for."""

import json

import pytest

from convergence import errors
from convergence.db.schema.models import SERVICE
from convergence.engine.reads.answers import ExplainReads, ResourceReads
from convergence.engine.reads.explain import FRONTIER
from convergence.resources.contract import FinalFailure
from convergence.rpc.operations import EventQuery
from tests.harness import Context, hot, things
from tests.reality import fails, meanwhile, starts

CHAIN = {
    'a': {'value': 'one', 'metadata': {'for': 'nobody'}, 'description': 'the first'},
    'b': {'link': {'get_attr': ['a', 'value']}, 'after': ['a'], 'metadata': {'of': {'get_resource': 'a'}}},
    'r': {'type': 'OS::Heat::RandomString', 'after': ['a']},
}


@pytest.fixture
def reads(harness):
    return ResourceReads(harness.reader, harness.compiler)


@pytest.fixture
def explained(harness):
    def explain(stack_id):
        return ExplainReads(harness.reader, harness.compiler).stack_explain(harness.context, {'stack_id': stack_id})

    return explain


def chain(harness):
    return {'stack_id': harness.created(CHAIN)}


def listed(reads, harness, identity, **filters):
    return [row['resource_name'] for row in reads.list_stack_resources(harness.context, identity, filters=filters)]


# --- resources ----------------------------------------------------------------------------------------------------


def test_resources_are_listed_by_name_with_their_state(harness, reads):
    identity = chain(harness)
    rows = reads.list_stack_resources(harness.context, identity)
    assert [row['resource_name'] for row in rows] == ['a', 'b', 'r']
    assert rows[0]['resource_identity'] == {
        'tenant': 'p',
        'stack_name': 's',
        'stack_id': identity['stack_id'],
        'path': '/resources/a',
    }
    assert (rows[0]['resource_action'], rows[0]['resource_status']) == ('CREATE', 'COMPLETE')
    assert rows[0]['physical_resource_id'] in harness.reality.objects
    assert rows[0]['required_by'] == ['b', 'r'] and rows[1]['required_by'] == []
    assert rows[0]['creation_time'].endswith('Z') and rows[0]['updated_time'].endswith('Z')
    assert 'attributes' not in rows[0]


def test_resources_that_were_not_begun_are_listed_too(harness, reads):
    identity = {'stack_id': harness.create({'a': 'x', 'b': {'after': ['a']}})}
    rows = reads.list_stack_resources(harness.context, identity)
    assert [(row['resource_name'], row['resource_action'], row['physical_resource_id']) for row in rows] == [
        ('a', 'INIT', ''),
        ('b', 'INIT', ''),
    ]
    assert rows[0]['required_by'] == ['b']


@pytest.mark.parametrize(
    ('filters', 'expected'),
    [
        ({'name': 'a'}, ['a']),
        ({'name': ['a', 'b']}, ['a', 'b']),
        ({'type': 'Thing'}, ['a', 'b']),
        ({'type': ['Random', 'Nothing']}, ['r']),
        ({'status': 'COMPLETE'}, ['a', 'b', 'r']),
        ({'status': 'CREATE_COMPLETE'}, ['a', 'b', 'r']),
        ({'status': 'FAILED'}, []),
        ({'action': 'UPDATE'}, []),
        ({'action': 'CREATE', 'name': 'b'}, ['b']),
        ({'physical_resource_id': 'nothing'}, []),
        ({'id': 'nothing'}, []),
        ({'name': None}, ['a', 'b', 'r']),
    ],
    ids=str,
)
def test_resources_are_filtered(harness, reads, filters, expected):
    assert listed(reads, harness, chain(harness), **filters) == expected


def test_an_unknown_filter_is_refused_instead_of_being_ignored(harness, reads, history):
    with pytest.raises(errors.Invalid, match='there is no filter nmae; did you mean name'):
        listed(reads, harness, {'stack_id': harness.create({'a': 'x'}, name='other')}, nmae='a')
    with pytest.raises(errors.Invalid, match='there is no filter resource_nam; did you mean resource_name'):
        history(filters={'resource_nam': 'a'})


def test_details_come_from_what_was_stored(harness, reads):
    identity = chain(harness)
    calls = dict(harness.reality.calls)
    a, b, _ = reads.list_stack_resources(harness.context, identity, with_detail=True)
    assert a['attributes'] == {'value': 'one', 'other': 'one'} and a['metadata'] == {'for': 'nobody'}
    assert (a['description'], b['description']) == ('the first', '')
    assert b['attributes'].keys() == {'value', 'other'} and b['metadata'] == {'of': a['physical_resource_id']}
    alone = reads.describe_stack_resource(harness.context, identity, 'b')
    assert [each['type'] for each in alone.pop('conditions')] == ['Ready', 'Progressing']
    assert alone == b
    with_attr = reads.describe_stack_resource(harness.context, identity, 'a', with_attr=['nothing'])
    assert with_attr['attributes'] == {'value': 'one', 'other': 'one', 'nothing': None}
    assert reads.describe_stack_resource(harness.context, identity, 'a', with_attr=True).items() >= a.items()
    assert dict(harness.reality.calls) == calls, 'reading called a resource type'


def test_metadata_that_depends_on_something_not_there_yet_is_empty(harness, reads):
    stack_id = harness.create({'a': 'x', 'b': {'after': ['a'], 'metadata': {'of': {'get_resource': 'a'}}}})
    assert reads.describe_stack_resource(harness.context, {'stack_id': stack_id}, 'b')['metadata'] == {}


def test_all_attributes_asked_at_once_are_shown_as_attributes(harness, reads):
    stack_id = harness.created({'a': 'x', 'b': {'link': {'get_attr': ['a']}}})
    shown = reads.describe_stack_resource(harness.context, {'stack_id': stack_id}, 'a')
    assert shown['attributes'] == {'value': 'x', 'other': 'x'}


def test_an_unknown_resource_is_named(harness, reads):
    with pytest.raises(errors.ResourceNotFound, match=r'The Resource \(z\) could not be found in Stack s'):
        reads.describe_stack_resource(harness.context, chain(harness), 'z')


def test_a_replacement_is_shown_from_its_beginning_and_once(harness, reads):
    stack_id = harness.created({'a': {'value': 'x', 'key': '1'}})
    (old,) = harness.reality.objects
    seen = []
    harness.reality.once['create', 'a'] = [
        meanwhile(lambda: seen.extend(reads.list_stack_resources(harness.context, {'stack_id': stack_id})))
    ]
    harness.update(stack_id, {'a': {'value': 'x', 'key': '2'}})
    harness.run()
    (during,) = seen
    assert during['resource_status'] == 'IN_PROGRESS' and during['physical_resource_id'] != old
    (after,) = reads.list_stack_resources(harness.context, {'stack_id': stack_id})
    assert [after['physical_resource_id']] == list(harness.reality.objects)


def test_a_leftover_that_cannot_be_removed_is_shown_if_its_name_is_not_wanted(harness, reads):
    stack_id = harness.created({'a': 'x', 'b': 'y'})
    harness.reality.always['delete', 'b'] = fails(FinalFailure('stuck'))
    harness.update(stack_id, {'a': 'x'})
    harness.run()
    rows = reads.list_stack_resources(harness.context, {'stack_id': stack_id})
    assert [(row['resource_name'], row['resource_action'], row['resource_status']) for row in rows] == [
        ('a', 'CREATE', 'COMPLETE'),
        ('b', 'DELETE', 'FAILED'),
    ]
    assert 'stuck' in rows[1]['resource_status_reason']


def test_pages_of_resources_are_the_whole_list_cut(harness, reads):
    identity = {'stack_id': harness.created({f'r{number}': {'value': 'x'} for number in range(7)})}

    def page(**asked):
        return reads.list_stack_resources(harness.context, identity, **asked)

    whole, found = page(), []
    while part := page(limit=3, marker=found[-1]['resource_name'] if found else None):
        found += part
    assert found == whole and len(whole) == 7
    assert [each['resource_name'] for each in page(limit=2, marker='r3x')] == ['r4', 'r5']
    assert [each['resource_name'] for each in page(limit=1, filters={'name': ['r2', 'r6']})] == ['r2']
    assert page(limit=0) == []
    assert [each['required_by'] for each in page(limit=1, with_detail=True)] == [[]]
    for nonsense in ({'limit': -1}, {'limit': 1, 'nested_depth': 1}):
        with pytest.raises(errors.Invalid, match='limit'):
            page(**nonsense)


@pytest.mark.parametrize('operation', ['list_stack_resources', 'list_events'])
def test_resources_and_events_of_another_project_do_not_exist(harness, reads, operation):
    identity = chain(harness)
    with pytest.raises(errors.EntityNotFound):
        getattr(reads, operation)(Context(project_id='q'), identity)
    with pytest.raises(errors.EntityNotFound):
        reads.describe_stack_resource(Context(project_id='q'), identity, 'a')


def test_a_deleted_stack_has_no_resources_but_a_history(harness, reads):
    stack_id = harness.created({'a': 'x'})
    harness.delete(stack_id)
    harness.run()
    assert reads.list_stack_resources(harness.context, {'stack_id': stack_id}) == []
    assert reads.list_events(harness.context, {'stack_id': stack_id})[-1]['resource_action'] == 'DELETE'


# --- events -------------------------------------------------------------------------------------------------------


def told(events):
    return [f'{each["resource_name"]} {each["resource_action"]}_{each["resource_status"]}' for each in events]


HISTORY = [
    's CREATE_IN_PROGRESS',
    'a CREATE_IN_PROGRESS',
    'a CREATE_COMPLETE',
    'b CREATE_IN_PROGRESS',
    'b CREATE_COMPLETE',
    's CREATE_COMPLETE',
]


@pytest.fixture
def history(harness, reads):
    """A function that queries the events of a stack with the history above."""
    identity = {'stack_id': harness.created({'a': 'x', 'b': {'value': 'y', 'after': ['a']}})}
    return lambda **query: reads.list_events(harness.context, identity, EventQuery(**query))


def test_events_are_told_in_the_order_of_their_happening(history):
    events = history()
    assert told(events) == HISTORY
    stack, resource = events[0], events[2]
    assert stack['resource_type'] == 'OS::Heat::Stack'
    assert stack['physical_resource_id'] == stack['stack_identity']['stack_id']
    assert resource['resource_type'] == 'Test::Thing' and resource['event_time'].endswith('Z')
    assert resource['event_identity']['path'].startswith('/resources/a/events/')
    assert 'root_stack_id' not in stack
    json.dumps(events)


@pytest.mark.parametrize(
    ('query', 'expected'),
    [
        ({'sort_dir': 'desc'}, HISTORY[::-1]),
        ({'limit': 2}, HISTORY[:2]),
        ({'limit': 2, 'sort_dir': 'desc'}, HISTORY[:-3:-1]),
        ({'filters': {'resource_name': 'a'}}, HISTORY[1:3]),
        ({'filters': {'resource_name': 's'}}, [HISTORY[0], HISTORY[5]]),
        ({'filters': {'resource_name': ['s', 'b']}}, [HISTORY[0], *HISTORY[3:]]),
        ({'filters': {'resource_type': 'OS::Heat::Stack'}}, [HISTORY[0], HISTORY[5]]),
        ({'filters': {'resource_type': 'Test::Thing', 'resource_status': 'COMPLETE'}}, [HISTORY[2], HISTORY[4]]),
        ({'filters': {'resource_status': 'CREATE_COMPLETE'}}, [HISTORY[2], HISTORY[4], HISTORY[5]]),
        ({'filters': {'resource_action': 'DELETE'}}, []),
        ({'sort_keys': ['resource_name']}, [HISTORY[0], HISTORY[5], *HISTORY[1:5]]),
    ],
    ids=str,
)
def test_events_are_selected_and_sorted(history, query, expected):
    assert told(history(**query)) == expected


@pytest.mark.parametrize('order', [{}, {'sort_dir': 'desc'}, {'sort_keys': ['resource_status']}], ids=str)
def test_pages_of_events_cover_everything_once(history, order):
    seen, marker = [], None
    while page := history(limit=2, marker=marker, **order):
        seen += page
        marker = page[-1]['event_identity']['path'].rpartition('/')[2]
    assert seen == history(**order) and len(seen) == len(HISTORY)


def test_one_event_is_found_by_its_id(history):
    wanted = history()[3]
    event_id = wanted['event_identity']['path'].rpartition('/')[2]
    (found,) = history(filters={'uuid': event_id})
    assert found == {**wanted, 'resource_properties': {'value': 'y'}}
    event_id = history()[0]['event_identity']['path'].rpartition('/')[2]
    assert history(filters={'id': event_id})[0]['resource_properties'] == {}


def test_an_event_has_the_properties_of_its_time_or_none_and_no_secret(harness, reads):
    source = hot({'a': {'value': {'get_param': 'p'}, 'key': 'k'}}, parameters={'p': {'type': 'string', 'hidden': True}})
    identity = harness.stacks.create_stack(harness.context, 's', source, {'parameters': {'p': 'hush'}})
    harness.run()

    def told(number):
        event = reads.list_events(harness.context, identity)[number]['event_identity']['path'].rpartition('/')[2]
        return reads.list_events(harness.context, identity, EventQuery(filters={'id': event}))[0]['resource_properties']

    assert told(1) == told(2) == {'value': '******', 'key': 'k'}
    harness.stacks.update_stack(harness.context, identity, hot({'a': {'value': 'shown', 'key': 'k'}}))
    harness.run()
    assert (told(1), told(2), told(-2)) == ({}, {}, {'value': 'shown', 'key': 'k'})


def test_events_with_nesting_name_the_root(history):
    event = history(nested_depth=2)[1]
    assert event['root_stack_id'] == event['stack_identity']


def test_an_unknown_marker_or_sort_key_is_refused_by_name(history):
    with pytest.raises(errors.EntityNotFound, match='nowhere'):
        history(marker='nowhere')
    with pytest.raises(errors.Invalid, match='sort_keys'):
        history(sort_keys=['colour'])


# --- explain ------------------------------------------------------------------------------------------------------


def test_a_stack_that_nobody_works_on_yet_names_what_is_ready(harness, explained):
    stack_id = harness.create({'a': 'x', 'b': {'after': ['a']}})
    explanation = explained(stack_id)
    counts = explanation['counts']
    assert (counts['ready'], counts['claimed'], counts['parked'], counts['done']) == (1, 0, 0, 0)
    assert counts['total'] == counts['ready'] + counts['waiting'] == 4
    (node,) = explanation['frontier']
    assert (node['resource_name'], node['phase'], node['state'], node['owner']) == ('a', 'UPDATE', 'ready', None)
    assert node['age_s'] >= 0.0
    assert explanation['traversal']['status'] == 'RUNNING' and 3500 < explanation['traversal']['deadline_in_s'] <= 3600
    assert 'no worker has taken up a yet' in explanation['summary']


def test_a_node_in_work_names_the_worker_that_holds_it(harness, explained):
    seen = []
    harness.reality.once['create', 'a'] = [meanwhile(lambda: seen.append(explained(stack_id)))]
    stack_id = harness.create({'a': 'x', 'b': 'y'})
    harness.run()
    first, second = seen[0]['frontier']
    assert (first['resource_name'], first['state'], first['owner']) == ('a', 'claimed', harness.workers[0].id)
    assert (first['owner_host'], first['owner_is_up']) == ('host', True)
    assert first['resource_status'] == 'CREATE_IN_PROGRESS' and first['reason']
    assert (second['resource_name'], second['owner_is_up']) == ('b', None)
    assert seen[0]['counts']['claimed'] == 1 and 'waits for a' in seen[0]['summary']


@pytest.mark.parametrize('gone', ['unregistered', 'late'])
def test_a_worker_that_is_gone_is_told(harness, explained, gone):
    seen = []

    def vanish():
        if gone == 'unregistered':
            harness.die(harness.workers[0])
        else:
            with harness.store.writing() as connection:
                connection.execute(SERVICE.update().values(beat_at=0.0, lease_s=1.0))
                connection.commit()
        seen.append(explained(stack_id))

    harness.reality.once['create', 'a'] = [meanwhile(vanish)]
    stack_id = harness.create({'a': 'x'})
    harness.run()
    assert seen[0]['frontier'][0]['owner_is_up'] is False
    assert 'worker that held a is gone' in seen[0]['summary']


def test_a_parked_action_is_told_with_its_next_poll(harness, explained):
    harness.reality.always['create', 'a'] = starts(harness.reality)
    stack_id = harness.create({'a': 'x'})
    harness.deliver()
    explanation = explained(stack_id)
    assert explanation['counts']['parked'] == 1 and explanation['counts']['ready'] == 0
    (node,) = explanation['frontier']
    assert node['state'] == 'parked' and node['wake_in_s'] >= 0.0


def test_the_frontier_is_bounded_and_says_what_was_left_off(harness, explained):
    explanation = explained(harness.create(things(f'r{number:04d}' for number in range(FRONTIER + 5))))
    assert len(explanation['frontier']) == FRONTIER and explanation['frontier_left_off'] == 5
    assert explanation['counts']['ready'] == FRONTIER + 5


def test_a_failed_traversal_gives_its_reason_and_no_frontier(harness, explained):
    harness.reality.always['create', 'a'] = fails(FinalFailure('no more addresses'))
    stack_id = harness.create({'a': 'x', 'b': 'y'})
    harness.run()
    explanation = explained(stack_id)
    traversal = explanation['traversal']
    assert (traversal['status'], traversal['failed_phase']) == ('FAILED', 'UPDATE')
    assert 'no more addresses' in traversal['reason'] and 'no more addresses' in explanation['summary']
    assert explanation['frontier'] == [] and traversal['deadline_in_s'] is None


def test_a_complete_stack_is_done_even_when_its_nodes_have_been_removed(harness, explained):
    stack_id = harness.created({'a': 'x', 'b': 'y'})
    before = explained(stack_id)
    harness.recover()
    after = explained(stack_id)
    assert harness.reader.node_counts(harness.stack(stack_id).traversal_id) == {}
    assert before['counts'] == after['counts'] and after['counts']['done'] == after['counts']['total']
    assert 'COMPLETE' in after['summary']


def test_another_project_gets_no_explanation(harness):
    stack_id = harness.created({'a': 'x'})
    with pytest.raises(errors.EntityNotFound):
        ExplainReads(harness.reader, harness.compiler).stack_explain(Context(project_id='q'), {'stack_id': stack_id})
