"""Values that cannot be read any more: named wherever they are met, and never without a way out."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet

from convergence import errors
from convergence.db.schema.models import RESOURCE, SYNC_POINT, TEMPLATE
from convergence.engine.reads.damage import Damages
from convergence.engine.reads.stacks import StackReads
from convergence.resources.contract import FinalFailure
from tests.harness import Harness
from tests.reality import fails, meanwhile

CHAIN = {
    'a': {'value': 'x'},
    'b': {'value': 'x', 'after': ['a']},
    'c': {'value': 'x', 'after': ['b']},
}
CHANGED = {**CHAIN, 'a': {'value': 'y'}, 'b': {'value': 'y', 'after': ['a']}}
DAMAGE = {
    'another key': Fernet(Fernet.generate_key()).encrypt(b'{}').decode(),
    'no JSON': '{"half',
    'something else': '"a text"',
}


@pytest.fixture(params=DAMAGE)
def damaged(request):
    """What stands where something else stood."""
    return DAMAGE[request.param]


def spoil(harness: Harness, table, column, text, **keys):
    """Put a text where another one stood."""
    where = ' AND '.join(f'{name} = ?' for name in keys)
    with harness.store.writing() as connection:
        done = connection.exec_driver_sql(f'UPDATE {table.name} SET {column} = ? WHERE {where}', (text, *keys.values()))
        assert done.rowcount == 1
        connection.commit()


def spoil_node(harness, stack, name, column, text):
    """Spoil a node of the current operation."""
    traversal_id, number = harness.node(stack, name)
    spoil(harness, SYNC_POINT, column, text, traversal_id=traversal_id, number=number)


def show(harness, stack):
    """The stack as it is shown whole."""
    return StackReads(harness.reader, harness.compiler).show_stack(
        harness.context, {'stack_id': stack}, with_unreadable=True
    )[0]


def broken_off(harness, damaged, column, spoiled):
    """A stack whose update has met a damaged value."""
    stack = harness.created(CHAIN)
    harness.update(stack, CHANGED)
    harness.check(*harness.node(stack, 'a'))
    harness.messages.checks.clear()
    spoil_node(harness, stack, spoiled, column, damaged)
    harness.check(*harness.node(stack, 'b'))
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    return stack


def test_what_was_handed_on_and_cannot_be_read_fails_who_needs_it(harness, damaged):
    """No worker dies of it, nothing waits for it, and the next update is given the value anew."""
    stack = broken_off(harness, damaged, 'output', 'a')
    reason = harness.stack(stack).status_reason
    assert 'resources.b: the stored output of a cannot be read. Update the stack' in reason
    harness.update(stack, CHANGED)
    harness.run()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y', 'c': 'x'}, 'UPDATE_COMPLETE')


def test_what_is_wanted_and_cannot_be_read_fails_its_node(harness, damaged):
    stack = broken_off(harness, damaged, 'definition', 'b')
    assert 'resources.b: the stored plan of this operation for it cannot be read.' in harness.stack(stack).status_reason
    harness.update(stack, CHANGED)
    harness.run()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y', 'c': 'x'}, 'UPDATE_COMPLETE')


@pytest.mark.parametrize(('column', 'spoiled'), [('output', 'a'), ('definition', 'b')])
def test_a_stack_whose_operation_cannot_be_read_can_be_deleted(harness, damaged, column, spoiled):
    stack = broken_off(harness, damaged, column, spoiled)
    harness.stacks.delete_stack(harness.context, {'stack_id': stack})
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_what_a_worker_has_begun_is_stored_whatever_becomes_of_its_node(harness, damaged):
    stack = harness.create({'a': {'value': 'x'}})

    def spoiling():
        spoil_node(harness, stack, 'a', 'definition', damaged)

    harness.reality.always['create', 'a'] = meanwhile(spoiling)
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'CREATE_COMPLETE')


def test_a_stack_names_what_of_it_cannot_be_read_and_what_can_be_done(harness, damaged):
    stack = harness.created(CHAIN)
    assert 'unreadable' not in show(harness, stack)
    row = harness.row(stack, 'b')
    spoil(harness, RESOURCE, 'progress', '"half', id=row.id)
    spoil(harness, TEMPLATE, 'content', damaged, id=harness.stack(stack).template_id)
    harness.compiler.cache.clear()
    told = show(harness, stack)
    assert [(each['resource_name'], each['physical_resource_id'], each['parts']) for each in told['unreadable']] == [
        ('b', row.physical_id, ['progress']),
        (None, '', ['template']),
    ]
    assert '--leave b' in told['unreadable'][0]['ways_out']
    assert 'update the stack with a whole template; or delete it' in told['unreadable'][1]['ways_out']


def test_what_cannot_be_read_is_looked_for_anew_after_a_while_and_when_the_goal_is_another(harness):
    now = [0.0]
    stack, damages = harness.created(CHAIN), Damages(harness.reader, lambda: now[0])
    assert damages.of(harness.stack(stack)) == ()
    spoil(harness, RESOURCE, 'progress', '"half', id=harness.row(stack, 'b').id)
    now[0] = 59.0
    assert damages.of(harness.stack(stack)) == ()
    now[0] = 61.0
    assert [each['resource_name'] for each in damages.of(harness.stack(stack))] == ['b']
    spoil(harness, RESOURCE, 'progress', 'null', id=harness.row(stack, 'b').id)
    harness.update(stack, CHANGED)
    assert damages.of(harness.stack(stack)) == ()


def test_a_goal_that_cannot_be_read_is_replaced_by_an_update(harness, damaged):
    """With all of what an update compares with the present goal: immutable and hidden parameters."""
    stack = harness.created(CHAIN)
    spoil(harness, TEMPLATE, 'content', damaged, id=harness.stack(stack).template_id)
    harness.compiler.cache.clear()
    with pytest.raises(errors.GoalUnreadable):
        harness.update(stack, CHANGED, existing=True)
    with pytest.raises(errors.GoalUnreadable):
        StackReads(harness.reader, harness.compiler).get_template(harness.context, {'stack_id': stack})
    harness.update(stack, CHANGED)
    harness.run()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y', 'c': 'x'}, 'UPDATE_COMPLETE')
    # What was complete before cannot be gone back to.
    assert [each['parts'] for each in show(harness, stack)['unreadable']] == [['last good template but one']]


def test_there_is_no_way_back_to_a_goal_that_cannot_be_read(harness, damaged):
    """The stack fails instead of being in progress for ever, and says why."""
    stack = harness.created(CHAIN)
    spoil(harness, TEMPLATE, 'content', damaged, id=harness.stack(stack).template_id)
    harness.compiler.cache.clear()
    harness.reality.always['update', 'b'] = fails(FinalFailure('no'))
    harness.update(stack, CHANGED, disable_rollback=False)
    assert [each['parts'] for each in show(harness, stack)['unreadable']] == [['last good template']]
    with pytest.raises(errors.GoalUnreadable, match='update the stack with a whole template; or delete it'):
        harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'cannot be rolled back' in harness.stack(stack).status_reason
    harness.reality.always.clear()
    harness.update(stack, CHANGED)
    harness.run()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y', 'c': 'x'}, 'UPDATE_COMPLETE')
