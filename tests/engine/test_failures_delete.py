"""Section F of the catalogue of failures: delete."""

import pytest

from convergence import errors
from convergence.resources.contract import FinalFailure, ObjectNotFound, TransientFailure
from tests.harness import Crash, Harness, emptied, hot
from tests.reality import fails, goes_on, meanwhile, starts

BROKEN = FinalFailure('broken')
RESOURCES = {'a': 'x', 'b': {'value': 'x', 'after': ['a']}, 'c': {'value': {'get_attr': ['b', 'value']}}}


def test_a_delete_at_any_step_of_a_create_leaves_nothing(engine):
    """F085: after each number of delivered messages."""
    for delivered in range(4):
        harness = Harness(emptied(engine))
        stack = harness.create(RESOURCES)
        for _ in range(delivered):
            harness.deliver()
        harness.delete(stack)
        harness.run()
        harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_a_worker_that_does_not_hear_the_cancel_is_waited_for(harness):
    """F086: it is in a call; the delete waits for the row, then removes what was made."""
    ids = []
    harness.reality.once['create', 'r'] = [meanwhile(lambda: harness.delete(ids[0]), harness.run, harness.sweep)]
    ids.append(harness.create({'r': 'x'}))
    harness.run()
    harness.assert_converged(ids[0], {}, 'DELETE_COMPLETE')


def test_the_state_is_there_before_a_call_returns(harness):
    """F087: create, update, cancel, delete."""
    stack = harness.create({'r': 'x'})
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    harness.run()
    harness.update(stack, {'r': 'y', 's': {'value': 'x', 'after': ['r']}})
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    harness.deliver()
    harness.cancel(stack, rollback=True)
    assert harness.state(stack) == 'ROLLBACK_IN_PROGRESS'
    harness.delete(stack)
    assert harness.state(stack) == 'DELETE_IN_PROGRESS'
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_a_delete_that_is_repeated_changes_nothing(harness):
    """F088: while it runs, and when it is over."""
    stack = harness.created(RESOURCES)
    traversal = harness.delete(stack)
    assert harness.delete(stack) == traversal
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    with pytest.raises(errors.EntityNotFound):
        harness.delete(stack)


def test_the_name_is_free_as_soon_as_the_stack_is_gone(harness):
    """F088: not before, not with a failed delete, and afterwards at once."""
    stack = harness.created({'r': 'x'}, name='n')
    harness.reality.once['delete', 'r'] = [fails(BROKEN)]
    for state in ('DELETE_FAILED', 'DELETE_COMPLETE'):
        harness.delete(stack)
        with pytest.raises(errors.StackExists):
            harness.create({'r': 'x'}, name='n')
        harness.run()
        assert harness.state(stack) == state
    harness.created({'r': 'y'}, name='n')
    assert harness.reality.values() == {'r': 'y'}


def test_a_crash_at_any_commit_of_a_delete_is_made_good(engine):
    """F088: between the completion and whatever else there may be."""
    number = 1
    while True:
        harness = Harness(emptied(engine))
        stack = harness.created({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})
        harness.store.crash_after = harness.store.commits + number
        try:
            harness.delete(stack)
            harness.run()
        except Crash:
            harness.restart()
            harness.recover()
            harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
        else:
            break
        number += 1
    assert number > 5


def test_the_template_is_there_while_the_stack_is_being_deleted(harness):
    """F090: whoever looks still sees the parameters."""
    source = hot({'r': {'value': {'get_param': 'p'}}}, parameters={'p': {'type': 'string'}})
    identity = harness.stacks.create_stack(harness.context, 's', source, {'parameters': {'p': 'v'}})
    harness.run()
    harness.delete(identity['stack_id'])
    harness.deliver()
    stack = harness.stack(identity['stack_id'])
    content = harness.reader.template(stack.template_id).content
    assert content['environment'] == {'parameters': {'p': 'v'}}


def test_a_delete_that_is_refused_for_the_moment_is_repeated(harness):
    """F093: "in use" twice, then it goes."""
    stack = harness.created({'r': 'x'})
    harness.reality.once['delete', 'r'] = [fails(TransientFailure('in use')), fails(TransientFailure('in use'))]
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    assert harness.reality.calls['delete', 'r'] == 3


def test_a_delete_gets_the_properties_that_were_applied_last(harness):
    """F094: not those of an update that failed, nor of a template whose file is another one by now."""
    stack = harness.created({'r': 'applied'})
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.update(stack, {'r': 'wanted'})
    harness.run()
    seen = []
    harness.reality.once['delete', 'r'] = [lambda call: seen.append(call.properties.value)]
    harness.delete(stack)
    harness.run()
    assert seen == ['applied']
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_an_object_that_is_gone_already_is_deleted(harness):
    """The same for an action in progress: not found is what a delete wants."""
    stack = harness.created({'a': 'x', 'b': 'x'})
    harness.reality.objects.clear()
    harness.reality.once['delete', 'b'] = [lambda call: goes_on()(call)]
    harness.reality.once['poll', 'b'] = [fails(ObjectNotFound('gone'))]
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_deleted_rows_are_gone(harness):
    """F095: nothing that lists or counts has to leave them out."""
    stack = harness.created(RESOURCES)
    harness.update(stack, {'a': 'x'})
    harness.run()
    assert [row.name for row in harness.rows(stack)] == ['a']


def test_an_update_of_a_stack_that_is_being_deleted_is_refused(harness):
    """F096: pinned; also when the delete begins while the update is being prepared."""
    stack = harness.created({'r': 'x'})
    compiled = harness.compiler.compile

    def delete_first(*arguments):
        harness.compiler.compile = compiled
        harness.delete(stack)
        return compiled(*arguments)

    harness.compiler.compile = delete_first
    for _ in range(2):
        with pytest.raises(errors.ActionInProgress, match='Wait for its end, or cancel it'):
            harness.update(stack, {'r': 'y'})
    assert harness.state(stack) == 'DELETE_IN_PROGRESS'
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_a_stack_whose_deletion_has_failed_can_be_updated(harness):
    """F096: what is gone is made again, what could not be deleted is tried again and replaced, the rest stays."""
    wanted = {'a': 'x', 'b': {'value': 'x', 'after': ['a']}, 'c': {'value': 'x', 'after': ['b']}}
    stack = harness.created(wanted)
    kept = harness.row(stack, 'a').physical_id
    harness.reality.once['delete', 'b'] = [fails(BROKEN)]
    harness.delete(stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_FAILED'
    harness.update(stack, wanted)
    harness.run()
    harness.assert_converged(stack, dict.fromkeys('abc', 'x'), 'UPDATE_COMPLETE')
    assert harness.row(stack, 'a').physical_id == kept
    assert harness.reality.calls['create', 'b'] == harness.reality.calls['create', 'c'] == 2


@pytest.mark.parametrize('verb', ['create', 'update', 'delete'])
def test_a_stack_can_be_deleted_in_every_failed_state(harness, verb):
    """After each kind of failure, and with an action still in progress somewhere else."""
    resources = {'r': 'x', 's': 'x'}
    harness.reality.once[verb, 'r'] = [fails(BROKEN)]
    harness.reality.once[verb, 's'] = [starts(harness.reality) if verb == 'create' else goes_on()]
    harness.reality.once['poll', 's'] = [goes_on()]
    stack = harness.create(resources)
    harness.run()
    if verb == 'update':
        harness.update(stack, {'r': 'y', 's': 'y'})
        harness.run()
    elif verb == 'delete':
        harness.delete(stack)
        harness.run()
    assert harness.state(stack) == f'{verb.upper()}_FAILED'
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
