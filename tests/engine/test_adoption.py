"""Objects that others have made: they are used and read, but never made, changed or deleted."""

import pytest

from tests.reality import fails

OUTSIDE = 'made-by-others'


@pytest.fixture
def outside(harness):
    """An object that exists already."""
    harness.reality.objects[OUTSIDE] = {'value': 'theirs'}
    return harness.reality.objects[OUTSIDE]


def adopted(**properties):
    return {'external_id': OUTSIDE, **properties}


def touched(harness):
    """What has been done to the object, apart from looking at it."""
    return {verb for (verb, name) in harness.reality.calls if name == 'a'} & {'create', 'update', 'delete', 'poll'}


def test_the_object_is_used_and_outlives_the_stack(harness, outside):
    stack = harness.created({'a': adopted(), 'b': {'link': {'get_attr': ['a', 'value']}}})
    row = harness.row(stack, 'a')
    assert row.physical_id == OUTSIDE
    assert harness.row(stack, 'b').properties['link'] == 'theirs'
    assert harness.events(stack, 'a') == ['ADOPT_IN_PROGRESS', 'ADOPT_COMPLETE']
    harness.delete(stack)
    harness.run()
    assert harness.reality.objects == {OUTSIDE: outside}
    assert touched(harness) == set()


def test_other_properties_do_not_change_the_object(harness, outside):
    stack = harness.created({'a': adopted(value='x')})
    harness.update(stack, {'a': adopted(value='y', key='other')})
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert outside == {'value': 'theirs'}
    assert touched(harness) == set()


def test_an_object_that_is_not_there_fails_the_stack_until_it_is(harness):
    stack = harness.create({'a': adopted()})
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert f'there is no object with the external_id {OUTSIDE}' in harness.stack(stack).status_reason
    harness.reality.objects[OUTSIDE] = {'value': 'theirs'}
    harness.update(stack, {'a': adopted()})
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert harness.row(stack, 'a').physical_id == OUTSIDE


@pytest.mark.parametrize(
    ('before', 'after'),
    [({}, adopted()), (adopted(), {}), (adopted(), {'external_id': 'another'})],
    ids=['added', 'removed', 'changed'],
)
def test_another_object_under_the_same_name_fails_the_update(harness, outside, before, after):
    harness.reality.objects['another'] = {'value': 'theirs'}
    stack = harness.created({'a': before})
    physical_id = harness.row(stack, 'a').physical_id
    harness.update(stack, {'a': after})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'external_id cannot be added, changed or removed by an update' in harness.stack(stack).status_reason
    assert harness.row(stack, 'a').physical_id == physical_id
    harness.delete(stack)
    harness.run()
    assert set(harness.reality.objects) == {OUTSIDE, 'another'}


def test_a_rollback_forgets_the_object_and_leaves_it(harness, outside):
    stack = harness.created({'b': 'x'})
    harness.reality.once['update', 'b'] = [fails(ValueError('no'))]
    harness.update(stack, {'a': adopted(), 'b': {'value': 'y', 'after': ['a']}}, disable_rollback=False)
    harness.run()
    assert harness.state(stack) == 'ROLLBACK_COMPLETE'
    assert [row.name for row in harness.rows(stack)] == ['b']
    assert OUTSIDE in harness.reality.objects


def test_a_worker_that_dies_while_it_looks_leaves_nothing_behind(harness, outside):
    def die(call):
        harness.die(harness.workers[0])

    harness.reality.once['observe', 'a'] = [die]
    stack = harness.create({'a': adopted()})
    harness.recover()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    harness.delete(stack)
    harness.run()
    assert harness.reality.objects == {OUTSIDE: outside}
    assert touched(harness) == set()
