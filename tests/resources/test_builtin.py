from __future__ import annotations

import json
import string

import pytest

from convergence.core.model import Action
from convergence.resources.builtin.delay import Delay
from convergence.resources.builtin.none import NoneType
from convergence.resources.builtin.random_string import RandomString
from convergence.resources.builtin.test_resource import TestResource
from convergence.resources.builtin.value import Value
from convergence.resources.contract import Done, FinalFailure, InProgress, ObjectNotFound
from convergence.resources.registry import Registry
from tests.resources.calls import Row
from tests.resources.clock import Clock

# --- OS::Heat::TestResource -----------------------------------------------------------------------------------


def test_it_keeps_the_value_and_has_a_readable_id():
    row = Row(TestResource(), {'value': 'x'})
    assert isinstance(row.store(row.kind.create(row.call())), Done)
    assert row.subject.physical_id.startswith('stack-thing-')
    assert row.attribute('output') == 'x'


@pytest.mark.parametrize(
    ('properties', 'create_s', 'delete_s'),
    [
        ({'wait_secs': 3}, 3, 3),
        ({'wait_secs': 3, 'action_wait_secs': {'create': 1}}, 1, 3),
        ({'wait_secs': 3, 'action_wait_secs': {'delete': 0}}, 3, 0),
        ({'attr_wait_secs': 2.5}, 2.5, 0),
    ],
)
def test_it_waits_in_steps_of_a_second(properties, create_s, delete_s):
    clock = Clock()
    row = Row(TestResource(clock), properties)
    for action, begin, seconds in ((Action.CREATE, 'create', create_s), (Action.DELETE, 'delete', delete_s)):
        began_s = clock.now_s
        polls = row.poll(row.store(getattr(row.kind, begin)(row.call())), action, clock.advance)
        assert clock.now_s - began_s == seconds
        assert polls == -(-seconds // 1)


def test_a_clock_that_is_set_back_does_not_make_the_wait_longer():
    clock = Clock()
    row = Row(TestResource(clock), {'wait_secs': 5})
    answer = row.store(row.kind.create(row.call()))
    clock.advance(-1000)
    began_s = clock.now_s
    row.poll(answer, Action.CREATE, clock.advance)
    assert clock.now_s - began_s <= 6


@pytest.mark.parametrize('seconds', [0, 2])
def test_it_fails_after_the_wait_with_its_id(seconds):
    clock = Clock()
    row = Row(TestResource(clock), {'fail': True, 'wait_secs': seconds})
    with pytest.raises(FinalFailure, match='Test Resource failed thing') as caught:
        row.poll(row.store(row.kind.create(row.call())), Action.CREATE, clock.advance)
    assert (caught.value.physical_id or row.subject.physical_id).startswith('stack-thing-')


def test_an_update_acts_only_on_a_new_value():
    row = Row(TestResource(), {'value': 'b', 'wait_secs': 5})
    assert row.kind.update(row.call({'value': 'b'})) == Done()
    answer = row.kind.update(row.call({'value': 'a'}))
    assert isinstance(answer, InProgress)
    assert answer.data == {'value': 'b'}


@pytest.mark.parametrize(
    ('previous', 'desired', 'replaces'),
    [
        ('a', {'value': 'b', 'update_replace': True}, True),
        ('a', {'value': 'a', 'update_replace': True}, False),
        ('a', {'value': 'b'}, False),
    ],
)
def test_update_replace_replaces_on_a_new_value(previous, desired, replaces):
    row = Row(TestResource(), desired)
    assert row.kind.needs_replacement(row.call({'value': previous})) is replaces


def test_a_check_without_an_object_fails():
    row = Row(TestResource(), {})
    with pytest.raises(ObjectNotFound):
        row.kind.check(row.call())


def test_whatever_a_client_would_answer_is_ignored():
    row = Row(TestResource(), {'client_name': 'nova', 'entity_name': 'servers'})
    assert row.kind.create(row.call()).data == {'value': 'test_string'}


@pytest.mark.parametrize('properties', [{'wait_secs': -1}, {'action_wait_secs': {'create': -1}, 'attr_wait_secs': 5}])
def test_a_negative_wait_has_no_end(properties):
    row = Row(TestResource(Clock()), properties)
    answer = row.store(row.kind.create(row.call()))
    assert row.subject.physical_id is not None
    for _ in range(3):
        answer = row.kind.poll(row.call(), Action.CREATE, answer.progress)
        assert isinstance(answer, InProgress)


# --- OS::Heat::RandomString -----------------------------------------------------------------------------------


def drawn(properties):
    row = Row(RandomString(), properties)
    row.store(row.kind.create(row.call()))
    return row


def test_a_random_string_is_its_own_reference():
    row = drawn({})
    value = row.attribute('value')
    assert len(value) == 32
    assert set(value) <= set(string.ascii_letters + string.digits)
    assert row.kind.reference_id(row.call()) == value
    assert value not in row.subject.physical_id
    assert drawn({}).attribute('value') != value


def test_minimums_are_kept_and_nothing_else_is_chosen():
    properties = {
        'length': 20,
        'character_classes': [{'class': 'digits', 'min': 12}, {'class': 'lowercase', 'min': 4}],
        'character_sequences': [{'sequence': '!?', 'min': 4}],
    }
    for _ in range(20):
        value = drawn(properties).attribute('value')
        counts = [
            sum(character in group for character in value) for group in (string.digits, string.ascii_lowercase, '!?')
        ]
        assert counts == [12, 4, 4]


@pytest.mark.parametrize(
    ('classes', 'usual'),
    [({}, True), ({'character_classes': None}, True), ({'character_classes': []}, False)],
    ids=['not given', 'null', 'none'],
)
def test_further_characters_come_beside_letters_and_digits_unless_no_class_is_wanted(classes, usual):
    properties = {'length': 100, 'character_sequences': [{'sequence': '!?'}], **classes}
    value = set(drawn(properties).attribute('value'))
    assert value & set('!?')
    assert bool(value - set('!?')) is usual


def test_the_old_name_of_a_class_of_characters_still_says_which():
    assert set(drawn({'sequence': 'digits', 'length': 50}).attribute('value')) <= set(string.digits)
    described = Registry.builtin().describe('OS::Heat::RandomString')['properties']
    assert 'sequence' not in described, 'it works for those who have it, and is shown to nobody else'


# --- OS::Heat::Value, None, Delay -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('type_', 'value', 'read'),
    [
        (None, {'a': [1]}, {'a': [1]}),
        ('string', 5, '5'),
        ('string', {'a': 1}, '{"a": 1}'),
        ('number', '5', 5),
        ('number', '0.5', 0.5),
        ('boolean', 'yes', True),
        ('boolean', 'OFF', False),
        ('boolean', 1, True),
        ('comma_delimited_list', 'x, y', ['x', ' y']),
        ('comma_delimited_list', [1, 'b'], ['1', 'b']),
        ('json', '{"a": [1]}', {'a': [1]}),
        ('json', [1], [1]),
        (None, None, None),
        ('string', None, ''),
        ('number', None, 0),
        ('comma_delimited_list', None, []),
        ('json', None, {}),
        ('boolean', None, False),
    ],
)
def test_a_value_is_read_as_its_type(type_, value, read):
    row = Row(Value(), {'value': value, 'type': type_})
    found = row.attribute('value')
    assert found == read
    assert json.dumps(found) == json.dumps(read)


def test_none_has_any_attribute():
    row = Row(NoneType(), {'a': 1})
    assert row.attribute('whatever') is None


def test_a_delay_waits_by_chance_within_its_bounds():
    clock, asked = Clock(), []

    def uniform(low, high):
        asked.append((low, high))
        return high

    row = Row(Delay(clock, uniform), {'min_wait': 2, 'max_jitter': 3, 'jitter_multiplier': 2, 'actions': ['CREATE']})
    began_s = clock.now_s
    row.poll(row.store(row.kind.create(row.call())), Action.CREATE, clock.advance)
    assert clock.now_s - began_s == 8
    assert asked == [(0, 6)]
    assert row.kind.delete(row.call()) == Done()
