"""What cannot be deleted, and what cannot even be read: named, and left behind where that is asked for."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet

from convergence import errors
from convergence.core.model import Status
from convergence.db.schema.models import RESOURCE, TEMPLATE
from convergence.engine.reads.resources import ResourceReads
from convergence.engine.reads.stacks import StackReads
from convergence.resources.contract import FinalFailure, InProgress
from tests.harness import Harness
from tests.reality import fails, goes_on

CHAIN = {
    'a': {'value': 'x'},
    'b': {'value': 'x', 'after': ['a']},
    'c': {'value': 'x', 'after': ['b']},
}
NO = FinalFailure('the service is gone')


def delete(harness, stack, *names):
    harness.stacks.delete_stack(harness.context, {'stack_id': stack}, leave=list(names))


def left(harness, stack):
    """What the events say that was left, by name."""
    events = harness.reader.events(stack)
    return {event.resource_name: event for event in events if event.reason.startswith('left behind')}


def test_a_delete_leaves_behind_what_it_is_told_to(harness):
    """And says so, with all that is needed to find it: in an event, and in the stack's reason to its end."""
    stack = harness.created(CHAIN)
    row = harness.row(stack, 'b')
    harness.reality.always['delete', 'b'] = fails(NO)
    delete(harness, stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_FAILED'
    delete(harness, stack, 'b')
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert set(harness.reality.objects) == {row.physical_id}
    told = f'Test::Thing, physical id {row.physical_id}, token {row.token}'
    assert left(harness, stack)['b'].reason == f'left behind, as requested: {told}'
    assert left(harness, stack)['b'].physical_id == row.physical_id
    assert harness.stack(stack).status_reason == f'Stack DELETE completed successfully; left behind: b ({told})'


def test_a_delete_that_hangs_is_superseded_by_one_that_leaves_what_hangs(harness):
    stack = harness.created(CHAIN)
    harness.reality.once['delete', 'c'] = [lambda call: InProgress({'round': 1})]
    harness.reality.always['poll', 'c'] = goes_on()
    delete(harness, stack)
    harness.deliver()
    first = harness.stack(stack).traversal_id
    delete(harness, stack)
    assert harness.stack(stack).traversal_id == first, 'without a name nothing changes'
    delete(harness, stack, 'c')
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.values() == {'c': 'x'}


def test_every_row_of_a_name_is_left(harness):
    """One that is in service, and one that it has replaced and that could not be deleted."""
    stack = harness.created({'a': {'value': 'x', 'key': '1'}})
    harness.reality.always['delete', 'a'] = fails(NO)
    harness.update(stack, {'a': {'value': 'x', 'key': '2'}})
    harness.run()
    assert len(harness.rows(stack, 'a')) == 2
    delete(harness, stack, 'a')
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert len(harness.reality.objects) == 2
    assert harness.stack(stack).status_reason.count('physical id') == 2


def test_names_that_the_stack_does_not_have_are_refused_together(harness):
    stack = harness.created(CHAIN)
    with pytest.raises(errors.Invalid, match=r'stack s has no resource y, z\. It has: a, b, c\.'):
        delete(harness, stack, 'a', 'z', 'y')
    assert harness.state(stack) == 'CREATE_COMPLETE'


def damage(harness, table, key, *columns):
    """What another key has sealed stands where something else stood."""
    sealed = Fernet(Fernet.generate_key()).encrypt(b'{}').decode()
    assignments = ', '.join(f'{name} = ?' for name in columns)
    with harness.store.writing() as connection:
        connection.exec_driver_sql(
            f'UPDATE {table.name} SET {assignments} WHERE id = ?', (*[sealed] * len(columns), key)
        )
        connection.commit()


@pytest.mark.parametrize('column', ['definition', 'properties', 'pending', 'data', 'output', 'progress', 'retry'])
def test_a_row_that_cannot_be_read_hides_nothing_and_holds_nothing_up(harness: Harness, column):
    """Its stack is listed and shown, its deletion says what to do, and the rest of it is deleted."""
    stack = harness.created(CHAIN)
    row = harness.row(stack, 'b')
    damage(harness, RESOURCE, row.id, column)
    identity = {'stack_id': stack}
    stacks, resources = (kind(harness.reader, harness.compiler) for kind in (StackReads, ResourceReads))
    assert [each['stack_name'] for each in stacks.list_stacks(harness.context)] == ['s']
    assert stacks.show_stack(harness.context, identity)[0]['stack_status'] == 'COMPLETE'
    shown = {each['resource_name']: each for each in resources.list_stack_resources(harness.context, identity)}
    assert shown['b']['resource_status_reason'].startswith(f'Stored values are unreadable ({column})')
    assert shown['b']['physical_resource_id'] == row.physical_id
    delete(harness, stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_FAILED'
    reason = harness.stack(stack).status_reason
    assert f'cannot be read ({column})' in reason
    assert row.physical_id in reason
    assert '--leave b' in reason
    delete(harness, stack, 'b')
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert set(harness.reality.objects) == {row.physical_id}


def test_an_update_that_needs_a_row_that_cannot_be_read_says_so(harness):
    stack = harness.created(CHAIN)
    damage(harness, RESOURCE, harness.row(stack, 'b').id, 'properties', 'definition')
    harness.update(stack, {**CHAIN, 'b': {'value': 'y', 'after': ['a']}})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'resources.b: its stored data cannot be read (definition, properties)' in (
        harness.stack(stack).status_reason
    )


def test_a_goal_that_cannot_be_read_keeps_no_stack_from_being_shown_and_deleted(harness):
    stack = harness.created(CHAIN)
    damage(harness, TEMPLATE, harness.stack(stack).template_id, 'content')
    harness.compiler.cache.clear()
    reads = StackReads(harness.reader, harness.compiler)
    assert reads.show_stack(harness.context, {'stack_id': stack})[0]['stack_name'] == 's'
    delete(harness, stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    assert harness.stack(stack).status is Status.COMPLETE
