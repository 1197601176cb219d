"""A preview says what an update would do, and does nothing."""

import json
import random

import pytest

from convergence import errors
from convergence.engine.preview.masking import UNKNOWN_TEXT
from convergence.engine.preview.preview import Previews
from convergence.resources.contract import FinalFailure
from convergence.rpc.operations import OPERATIONS
from tests.harness import Context, hot
from tests.reality import fails, goes_on, starts

FATES = ('unchanged', 'updated', 'replaced', 'added', 'deleted')
TEST = 'OS::Heat::TestResource'


class Preview:
    """Previews updates of one stack."""

    def __init__(self, harness, stack_id):
        self.harness, self.stack_id = harness, stack_id

    def __call__(self, resources, **args):
        source = resources if isinstance(resources, str) else hot(resources)
        previews = Previews(self.harness.reader, self.harness.registry, self.harness.stacks)
        return previews.preview_update_stack(self.harness.context, {'stack_id': self.stack_id}, source, args=args)


def fates(lists):
    """By name: the fate, with a question mark where it is only possible."""
    assert set(lists) == set(FATES)
    entries = [(fate, entry) for fate in FATES for entry in lists[fate]]
    names = [entry['resource_name'] for _, entry in entries]
    assert len(names) == len(set(names))
    return {entry['resource_name']: fate + '?' * (entry['certainty'] == 'possible') for fate, entry in entries}


def entry(lists, name):
    (found,) = [each for fate in FATES for each in lists[fate] if each['resource_name'] == name]
    return found


@pytest.fixture
def previewed(harness):
    def create(resources):
        return Preview(harness, harness.created(resources))

    return create


def test_the_operation_exists():
    assert OPERATIONS['preview_update_stack'].required == ('stack_identity', 'template')


def test_each_resource_has_one_fate(previewed):
    preview = previewed({'same': 'x', 'new value': 'x', 'new key': {'key': '1'}, 'gone': 'x'})
    lists = preview({'same': 'x', 'new value': 'y', 'new key': {'key': '2'}, 'more': 'x'})
    assert fates(lists) == {
        'same': 'unchanged',
        'new value': 'updated',
        'new key': 'replaced',
        'more': 'added',
        'gone': 'deleted',
    }
    updated = entry(lists, 'new value')
    assert updated['changed_properties'] == ['value'] and updated['reason'] == 'value changes'
    assert updated['properties'] == {'value': 'y'} and updated['resource_type'] == 'Test::Thing'
    assert entry(lists, 'more')['physical_resource_id'] == '' and entry(lists, 'more')['creation_time'] is None
    json.dumps(lists)


def test_another_spelling_of_the_same_value_is_no_change(previewed):
    preview = previewed({'t': {'type': TEST, 'wait_secs': 0}})
    assert fates(preview({'t': {'type': TEST, 'wait_secs': '0', 'value': 'test_string'}})) == {'t': 'unchanged'}


def test_another_type_is_a_new_object(previewed):
    lists = previewed({'a': 'x'})({'a': {'type': TEST}})
    assert fates(lists) == {'a': 'replaced'} and 'its type was Test::Thing' in entry(lists, 'a')['reason']


def test_a_type_that_asks_for_a_new_object_is_heard(previewed):
    preview = previewed({'t': {'type': TEST, 'value': 'x', 'update_replace': True}})
    assert fates(preview({'t': {'type': TEST, 'value': 'y', 'update_replace': True}})) == {'t': 'replaced'}


def test_what_only_waits_for_a_changed_resource_is_unchanged(previewed):
    preview = previewed({'a': {'key': '1'}, 'b': {'value': 'x', 'after': ['a']}})
    assert fates(preview({'a': {'key': '2'}, 'b': {'value': 'x', 'after': ['a']}})) == {
        'a': 'replaced',
        'b': 'unchanged',
    }


@pytest.mark.parametrize(
    ('use', 'fate'),
    [
        ({'link': {'get_resource': 'a'}}, 'updated?'),
        ({'link': {'get_attr': ['a', 'value']}}, 'updated?'),
        ({'key': {'get_resource': 'a'}}, 'replaced?'),
        (
            {'link': {'get_resource': 'a'}, 'value': 'new'},
            'updated?',
        ),  # the type itself decides, once it sees all values
    ],
    ids=str,
)
def test_what_uses_a_replaced_resource_may_change(previewed, use, fate):
    before = {name: 'old' if name == 'value' else value for name, value in use.items()}
    preview = previewed({'a': {'key': '1'}, 'b': before})
    lists = preview({'a': {'key': '2'}, 'b': use})
    assert fates(lists) == {'a': 'replaced', 'b': fate}
    name = next(iter(use))
    assert entry(lists, 'b')['properties'][name] == UNKNOWN_TEXT and name in entry(lists, 'b')['changed_properties']


def test_a_possible_change_is_passed_on(previewed):
    def chain(key):
        return {'a': {'key': key}, 'b': {'key': {'get_resource': 'a'}}, 'c': {'key': {'get_resource': 'b'}}, 'd': 'x'}

    assert fates(previewed(chain('1'))(chain('2'))) == {
        'a': 'replaced',
        'b': 'replaced?',
        'c': 'replaced?',
        'd': 'unchanged',
    }


def test_the_reference_of_a_resource_changed_in_place_stays_and_its_attributes_may_not(previewed):
    def using(value):
        return {
            't': {'type': TEST, 'value': value},
            'by id': {'key': {'get_resource': 't'}},
            'by attribute': {'value': {'get_attr': ['t', 'output']}},
        }

    assert fates(previewed(using('x'))(using('y'))) == {
        't': 'updated',
        'by id': 'unchanged',
        'by attribute': 'updated?',
    }


def test_an_attribute_asked_for_the_first_time_is_not_known_but_concerns_its_user_only(previewed):
    preview = previewed({'a': 'x', 'b': {'value': 'x'}})
    assert fates(preview({'a': 'x', 'b': {'value': {'get_attr': ['a', 'other']}}})) == {
        'a': 'unchanged',
        'b': 'updated?',
    }


def test_a_known_value_of_an_unchanged_resource_is_compared(previewed):
    preview = previewed({'a': 'x', 'b': {'value': 'x', 'link': {'get_attr': ['a', 'value']}}})
    lists = preview({'a': 'x', 'b': {'value': {'get_attr': ['a', 'value']}, 'link': {'get_attr': ['a', 'value']}}})
    assert fates(lists) == {'a': 'unchanged', 'b': 'unchanged'}
    assert entry(lists, 'b')['properties']['value'] == 'x'


@pytest.mark.parametrize(
    ('wanted', 'message'),
    [
        ({'type': 'OS::Heat::RandomString', 'length': {'get_attr': ['a', 'value']}}, 'RandomString.*length'),
        ({'value': {'list_join': [',', {'get_attr': ['a', 'value']}]}}, r'Test::Thing.*list_join'),
    ],
    ids=['a value that is not allowed', 'a function that cannot work'],
)
def test_an_update_that_must_fail_says_so_beforehand_and_where(previewed, wanted, message):
    before = {'a': {'value': '9999'}, 'u': {'value': {'get_attr': ['a', 'value']}}}
    with pytest.raises(errors.StackValidationFailed, match=message) as caught:
        previewed(before)({**before, 'b': wanted})
    assert {problem.place.path[:2] for problem in caught.value.problems} == {('resources', 'b')}


def test_the_code_of_a_type_may_fail_without_taking_the_preview_down(harness, previewed):
    preview = previewed({'a': 'x'})
    harness.reality.always['compare', 'a'] = fails(ZeroDivisionError('broken'))
    with pytest.raises(errors.StackValidationFailed, match='ZeroDivisionError: broken'):
        preview({'a': 'y'})


# --- rows in other states than complete -----------------------------------------------------------------------------


def test_what_failed_to_be_made_is_replaced_unless_it_is_of_use(harness):
    harness.reality.once['create', 'a'] = [starts(harness.reality)]
    harness.reality.once['poll', 'a'] = [fails(FinalFailure('no'))]
    stack_id = harness.create({'a': 'x', 'b': {'value': 'y', 'after': ['a']}})
    harness.run()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    lists = Preview(harness, stack_id)({'a': 'x', 'b': {'value': 'y', 'after': ['a']}})
    assert fates(lists) == {'a': 'replaced?', 'b': 'added'}
    assert 'its CREATE failed' in entry(lists, 'a')['reason']


def test_what_failed_to_be_updated_is_updated_again(harness, previewed):
    preview = previewed({'a': 'x'})
    harness.reality.once['update', 'a'] = [fails(FinalFailure('no'))]
    harness.update(preview.stack_id, {'a': 'y'})
    harness.run()
    lists = preview({'a': 'x'})
    assert fates(lists) == {'a': 'updated?'} and 'is repeated' in entry(lists, 'a')['reason']
    assert fates(preview({'a': {'value': 'x', 'key': 'new'}})) == {'a': 'replaced'}


def test_an_update_in_flight_is_taken_to_its_end_first(harness, previewed):
    preview = previewed({'a': 'x', 'b': {'link': {'get_attr': ['a', 'value']}}})
    harness.reality.once['update', 'a'] = [goes_on()]
    harness.update(preview.stack_id, {'a': 'y', 'b': {'link': {'get_attr': ['a', 'value']}}})
    harness.deliver()
    assert harness.row(preview.stack_id, 'a').status == 'IN_PROGRESS'
    there = preview({'a': 'y', 'b': {'link': {'get_attr': ['a', 'value']}}})
    assert fates(there) == {'a': 'unchanged?', 'b': 'updated?'}
    assert 'is unfinished' in entry(there, 'a')['reason']
    assert fates(preview({'a': 'x'}))['a'] == 'updated?'


def test_a_resource_that_was_never_begun_is_added_or_forgotten(harness):
    stack_id = harness.create({'a': 'x', 'b': {'after': ['a']}})
    preview = Preview(harness, stack_id)
    assert fates(preview({'a': 'x', 'b': {'after': ['a']}})) == {'a': 'added', 'b': 'added'}
    assert fates(preview({'a': 'x'})) == {'a': 'added'}


def test_what_is_retained_is_told(previewed):
    lists = previewed({'a': {'value': 'x', 'deletion_policy': 'Retain'}})({})
    assert fates(lists) == {'a': 'deleted'} and 'kept' in entry(lists, 'a')['reason']


# --- promises -------------------------------------------------------------------------------------------------------


def test_nothing_is_done(harness, previewed):
    preview = previewed({'a': 'x', 'b': {'key': '1'}, 'c': 'x'})
    journal = list(harness.reality.journal)
    before = (harness.stack(preview.stack_id), harness.rows(preview.stack_id), harness.store.commits)
    preview({'a': 'y', 'b': {'key': '2'}, 'd': 'x'})
    assert before == (harness.stack(preview.stack_id), harness.rows(preview.stack_id), harness.store.commits)
    assert [each for each in harness.reality.journal if each[0] != 'compare'] == [
        each for each in journal if each[0] != 'compare'
    ]
    assert harness.messages.checks == []


def test_no_secret_is_shown(harness):
    source = """
heat_template_version: 2018-08-31
parameters: {secret: {type: string, hidden: true, default: hush}, open: {type: string, default: seen}}
resources:
  a: {type: Test::Thing, properties: {value: {str_replace: {template: 'p=%', params: {'%': {get_param: secret}}}}}}
  b: {type: Test::Thing, properties: {link: {deep: [{get_param: secret}, {get_param: open}]}}}
"""
    stack_id = harness.stacks.create_stack(harness.context, 's', source)['stack_id']
    harness.run()
    lists = Preview(harness, stack_id)(source)
    assert fates(lists) == {'a': 'unchanged', 'b': 'unchanged'}
    assert 'hush' not in json.dumps(lists)
    assert entry(lists, 'b')['properties'] == {'link': {'deep': ['******', 'seen']}}
    changed = Preview(harness, stack_id)(source.replace('default: hush', 'default: silence'))
    assert fates(changed) == {'a': 'updated', 'b': 'updated'}
    assert 'hush' not in json.dumps(changed) and 'silence' not in json.dumps(changed)


def test_only_what_is_given_changes_in_a_partial_update(harness, previewed):
    preview = previewed({'a': 'x'})
    previews = Previews(harness.reader, harness.registry, harness.stacks)
    lists = previews.preview_update_stack(
        harness.context, {'stack_id': preview.stack_id}, None, args={'existing': True}
    )
    assert fates(lists) == {'a': 'unchanged'}


def test_another_project_cannot_preview(harness, previewed):
    preview = previewed({'a': 'x'})
    harness.context = Context(project_id='q')
    with pytest.raises(errors.EntityNotFound):
        preview({'a': 'y'})


@pytest.mark.parametrize('seed', range(6))
def test_the_update_does_what_the_preview_said(harness, previewed, seed):
    """What was certain comes true; what was possible does not turn out worse than it was said."""
    chance = random.Random(seed)

    def resources():
        found = {}
        for name in 'abcdefg':
            if chance.random() < 0.15:
                continue
            uses = [other for other in found if chance.random() < 0.4]
            body = {'value': chance.choice('xy'), 'key': chance.choice(['1', '1', '1', '2']), 'after': uses}
            if uses:
                body['link'] = chance.choice([{'get_resource': uses[0]}, {'get_attr': [uses[0], 'value']}])
            found[name] = body
        return found

    preview = previewed(resources())
    goal = resources()
    said = fates(preview(goal))
    ids = {row.name: row.physical_id for row in harness.rows(preview.stack_id)}
    harness.reality.calls.clear()
    harness.update(preview.stack_id, goal)
    harness.run()
    assert harness.state(preview.stack_id) == 'UPDATE_COMPLETE'
    now = {row.name: row.physical_id for row in harness.rows(preview.stack_id)}
    done = {}
    for name in {*ids, *now}:
        if name not in now:
            done[name] = 'deleted'
        elif name not in ids:
            done[name] = 'added'
        elif now[name] != ids[name]:
            done[name] = 'replaced'
        else:
            done[name] = 'updated' if harness.reality.calls['update', name] else 'unchanged'
    allowed = {'updated?': {'updated', 'unchanged'}, 'replaced?': {'replaced', 'updated', 'unchanged'}}
    assert set(said) == set(done)
    assert {name: fate for name, fate in done.items() if fate not in allowed.get(said[name], {said[name]})} == {}


def test_each_change_has_its_values_before_and_after(previewed):
    preview = previewed({'a': {'value': 'x', 'key': '1'}, 'b': 'x'})
    (change,) = entry(preview({'a': {'value': 'y', 'key': '1'}, 'b': 'x'}), 'a')['property_changes']
    assert change == {'property': 'value', 'before': 'x', 'after': 'y', 'needs_new_object': False}
    lists = preview({'a': {'value': 'x', 'key': '2'}, 'b': 'x'})
    (change,) = entry(lists, 'a')['property_changes']
    assert change == {'property': 'key', 'before': '1', 'after': '2', 'needs_new_object': True}
    assert entry(lists, 'b')['property_changes'] == []


def test_a_value_that_was_hidden_or_is_hidden_now_is_not_shown(harness):
    source = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, hidden: %s, default: %s}
resources:
  a: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
"""

    def created(name, hidden, word):
        text = source % (hidden, word)
        stack_id = harness.stacks.create_stack(harness.context, name, text)['stack_id']
        harness.run()
        return stack_id

    stack_id = created('first', 'true', 'canary-1')
    shown = Preview(harness, stack_id)(source % ('false', 'open'))
    assert entry(shown, 'a')['property_changes'][0]['after'] == 'open'
    assert 'canary-1' not in json.dumps(shown)
    stack_id = created('second', 'false', 'canary-2')
    assert 'canary-2' not in json.dumps(Preview(harness, stack_id)(source % ('true', 'canary-3')))


def test_a_type_that_each_update_makes_anew_is_said_to_be_replaced(harness):
    """The preview once called it unchanged and certain, and the update made a new handle."""
    handle = {'type': 'OS::Heat::UpdateWaitConditionHandle'}
    stack = harness.created({'handle': handle, 'other': 'x'})
    before = harness.row(stack, 'handle').physical_id
    lists = Preview(harness, stack)({'handle': handle, 'other': 'y'})
    assert fates(lists) == {'handle': 'replaced', 'other': 'updated'}
    assert entry(lists, 'handle')['reason'] == 'each update creates it again'
    harness.update(stack, {'handle': handle, 'other': 'y'})
    harness.run()
    assert harness.row(stack, 'handle').physical_id != before
