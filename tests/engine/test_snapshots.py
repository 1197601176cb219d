"""Snapshots: taken, listed, limited, deleted with all that is kept for them, and come back to."""

import contextlib
import json

import pytest

from convergence import errors
from convergence.resources.contract import Done, FinalFailure, InProgress, TransientFailure
from tests.harness import Crash, hot
from tests.reality import fails, goes_on, meanwhile

KEPT = {
    'a': {'type': 'Test::Kept', 'value': 'x'},
    'b': {'value': {'get_attr': ['a', 'value']}},
}
VALUES = {'a': 'x', 'b': 'x'}


def ask(harness, operation, stack, *arguments):
    return getattr(harness.snapshots, operation)(harness.context, {'stack_id': stack}, *arguments)


def taken(harness, stack, name=None):
    """A snapshot that is complete; its id."""
    snapshot = ask(harness, 'stack_snapshot', stack, name)
    assert (snapshot['status'], harness.state(stack)) == ('IN_PROGRESS', 'SNAPSHOT_IN_PROGRESS')
    harness.run()
    assert harness.state(stack) == 'SNAPSHOT_COMPLETE', harness.stack(stack).status_reason
    return snapshot['id']


def heartbeat(harness):
    """Each worker looks after what is kept once."""
    for worker in harness.workers:
        worker._parts.snapshot_removal()


def fill(harness, stack, content):
    """Somebody uses the object of `a`."""
    harness.reality.objects[harness.row(stack, 'a').physical_id]['content'] = content


def content(harness, stack):
    return harness.reality.objects[harness.row(stack, 'a').physical_id].get('content')


def test_a_snapshot_keeps_what_the_stack_is(harness):
    stack = harness.created(KEPT)
    before = harness.row(stack, 'b')
    snapshot = ask(harness, 'show_snapshot', stack, taken(harness, stack, 'first'))
    assert (snapshot['name'], snapshot['action'], snapshot['status']) == ('first', 'SNAPSHOT', 'COMPLETE')
    assert snapshot['status_reason'] == 'Stack SNAPSHOT completed successfully'
    assert set(snapshot['data']['resources']) == {'a', 'b'}
    assert snapshot['data']['template']['resources']['a']['type'] == 'Test::Kept'
    assert ask(harness, 'stack_list_snapshots', stack) == [snapshot]
    assert list(harness.reality.copies) == [f'{snapshot["id"]}/a']
    assert harness.row(stack, 'b') == before, 'its type keeps nothing: nothing happens to it'
    harness.assert_converged(stack, VALUES, 'SNAPSHOT_COMPLETE')


def test_an_update_after_a_snapshot_has_only_its_own_to_do(harness):
    stack = harness.created(KEPT)
    taken(harness, stack)
    harness.update(stack, KEPT)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.reality.order('update') == []


def test_a_stack_comes_back_to_a_snapshot(harness):
    stack = harness.created(KEPT)
    fill(harness, stack, 'old')
    snapshot = taken(harness, stack)
    fill(harness, stack, 'new')
    harness.update(stack, {'a': {'type': 'Test::Kept', 'value': 'y'}, 'c': 'z'})
    harness.run()
    ask(harness, 'stack_restore', stack, snapshot)
    assert harness.state(stack) == 'RESTORE_IN_PROGRESS'
    harness.run()
    harness.assert_converged(stack, VALUES, 'RESTORE_COMPLETE')
    assert content(harness, stack) == 'old'
    harness.update(stack, KEPT)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')


def test_only_the_content_has_changed_and_comes_back(harness):
    stack = harness.created(KEPT)
    fill(harness, stack, 'old')
    snapshot = taken(harness, stack)
    fill(harness, stack, 'new')
    ask(harness, 'stack_restore', stack, snapshot)
    harness.run()
    assert content(harness, stack) == 'old'
    fill(harness, stack, 'newer')
    harness.update(stack, KEPT)
    harness.run()
    assert content(harness, stack) == 'newer', 'an update restores nothing'


def test_what_was_kept_of_another_type_is_not_restored(harness):
    """F175."""
    stack = harness.created(KEPT)
    snapshot = taken(harness, stack)
    harness.update(stack, {'a': 'x'})
    harness.run()
    ask(harness, 'stack_restore', stack, snapshot)
    harness.run()
    harness.assert_converged(stack, VALUES, 'RESTORE_COMPLETE')


def test_a_restoration_that_fails_is_rolled_back_if_so_wanted(harness):
    stack = harness.created(KEPT, disable_rollback=False)
    snapshot = taken(harness, stack)
    harness.update(stack, {**KEPT, 'a': {'type': 'Test::Kept', 'value': 'y'}})
    harness.run()
    harness.reality.once['update', 'b'] = [fails(FinalFailure('no'))]
    ask(harness, 'stack_restore', stack, snapshot)
    harness.run()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y'}, 'ROLLBACK_COMPLETE')


def test_a_stack_that_was_rolled_back_to_nothing_comes_back_to_nothing(harness):
    harness.reality.once['create', 'a'] = [fails(FinalFailure('no'))]
    stack = harness.create(KEPT, disable_rollback=False)
    harness.run()
    harness.assert_converged(stack, {}, 'ROLLBACK_COMPLETE')
    snapshot = ask(harness, 'stack_snapshot', stack)['id']
    harness.run()
    assert harness.state(stack) == 'SNAPSHOT_COMPLETE'
    assert ask(harness, 'show_snapshot', stack, snapshot)['data']['template']['resources'] == {}
    harness.update(stack, KEPT, disable_rollback=False)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    ask(harness, 'stack_restore', stack, snapshot)
    harness.run()
    harness.assert_converged(stack, {}, 'RESTORE_COMPLETE')
    harness.reality.once['create', 'a'] = [fails(FinalFailure('no'))]
    harness.update(stack, KEPT, disable_rollback=False)
    harness.run()
    harness.assert_converged(stack, {}, 'ROLLBACK_COMPLETE')


# --- refusals (F172) ---------------------------------------------------------------------------------------------


def test_a_busy_stack_is_not_taken_and_nothing_is_left_of_the_request(harness):
    stack = harness.create(KEPT)
    with pytest.raises(errors.ActionInProgress):
        ask(harness, 'stack_snapshot', stack)
    assert ask(harness, 'stack_list_snapshots', stack) == []


def test_a_suspended_stack_is_neither_taken_nor_restored(harness):
    stack = harness.created(KEPT)
    snapshot = taken(harness, stack)
    harness.acted(stack, 'suspend')
    with pytest.raises(errors.NotSupported, match='suspended'):
        ask(harness, 'stack_snapshot', stack)
    with pytest.raises(errors.NotSupported, match='suspended'):
        ask(harness, 'stack_restore', stack, snapshot)


def test_what_is_not_complete_is_neither_restored_nor_deleted_meanwhile(harness):
    stack = harness.created(KEPT)
    snapshot = ask(harness, 'stack_snapshot', stack)['id']
    with pytest.raises(errors.NotSupported, match='SNAPSHOT_IN_PROGRESS'):
        ask(harness, 'stack_restore', stack, snapshot)
    with pytest.raises(errors.NotSupported, match='in-progress'):
        ask(harness, 'delete_snapshot', stack, snapshot)


def test_a_snapshot_of_another_stack_does_not_exist(harness):
    snapshot = taken(harness, harness.created(KEPT))
    other = harness.created({'a': 'x'}, name='other')
    for operation in ('show_snapshot', 'delete_snapshot', 'stack_restore'):
        with pytest.raises(errors.EntityNotFound, match=rf'The Snapshot \({snapshot}\) for Stack \(other\)'):
            ask(harness, operation, other, snapshot)


def test_a_stack_has_no_more_snapshots_than_it_may(harness):
    """One that is being deleted does not count."""
    stack = harness.created({'a': 'x'})
    ids = [taken(harness, stack) for _ in range(3)]
    with pytest.raises(errors.RequestLimitExceeded, match='maximum snapshots per stack, 3'):
        ask(harness, 'stack_snapshot', stack)
    ask(harness, 'delete_snapshot', stack, ids[0])
    taken(harness, stack)


def test_hidden_values_are_not_shown(harness):
    parameters = {'secret': {'type': 'string', 'hidden': True}}
    text = hot({'r': {'value': {'get_param': 'secret'}}}, parameters=parameters)
    identity = harness.stacks.create_stack(harness.context, 's', text, {'parameters': {'secret': 'canary'}})
    harness.run()
    stack = identity['stack_id']
    snapshot = taken(harness, stack)
    assert 'canary' not in json.dumps(ask(harness, 'show_snapshot', stack, snapshot))
    harness.update(stack, {'r': 'other'})
    harness.run()
    ask(harness, 'stack_restore', stack, snapshot)
    harness.run()
    assert harness.reality.values() == {'r': 'canary'}


# --- failures and deaths -------------------------------------------------------------------------------------------


def test_a_snapshot_that_fails_says_so_and_the_next_update_makes_sure(harness):
    stack = harness.created(KEPT)
    harness.reality.once['snapshot', 'a'] = [fails(FinalFailure('no'))]
    snapshot = ask(harness, 'stack_snapshot', stack)['id']
    harness.run()
    assert harness.state(stack) == 'SNAPSHOT_FAILED'
    assert ask(harness, 'show_snapshot', stack, snapshot)['status'] == 'FAILED'
    assert 'resources.a: no' in ask(harness, 'show_snapshot', stack, snapshot)['status_reason']
    harness.update(stack, KEPT)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.reality.order('create') == ['a', 'b']


def test_what_is_kept_is_known_before_it_is_done(harness):
    """F173, F174: the object answers where it keeps what, and takes its time; then it fails, and nothing is lost sight of."""
    stack = harness.created(KEPT)
    copies = harness.reality
    harness.reality.once['snapshot', 'a'] = [lambda call: InProgress({}, kept=copies.copy(call, 'early'))]
    harness.reality.once['poll', 'a'] = [goes_on(), fails(FinalFailure('disk full'))]
    snapshot = ask(harness, 'stack_snapshot', stack)['id']
    harness.recover()
    assert harness.state(stack) == 'SNAPSHOT_FAILED'
    assert [item.kept for item in harness.kept.items(snapshot)] == [{'copy': 'early/a'}]


def test_an_update_supersedes_a_snapshot_which_has_then_failed(harness):
    stack = harness.created(KEPT)
    harness.reality.once['snapshot', 'a'] = [meanwhile(lambda: harness.update(stack, {**KEPT, 'b': 'z'}))]
    snapshot = ask(harness, 'stack_snapshot', stack)['id']
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'z'}, 'UPDATE_COMPLETE')
    assert ask(harness, 'show_snapshot', stack, snapshot)['status'] == 'FAILED'
    assert 'superseded by UPDATE' in ask(harness, 'show_snapshot', stack, snapshot)['status_reason']


def test_a_long_snapshot_that_is_superseded_is_told_so(harness):
    stack = harness.created(KEPT)
    harness.reality.once['snapshot', 'a'] = [lambda call: InProgress({'round': 1})]
    ask(harness, 'stack_snapshot', stack)
    harness.deliver()
    harness.update(stack, KEPT)
    harness.recover()
    assert harness.reality.calls['cancel', 'a'] == 1
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')


@pytest.mark.parametrize('commits', range(1, 6))
def test_a_snapshot_survives_the_death_of_all_processes_after_any_commit(harness, commits):
    stack = harness.created(KEPT)
    harness.store.crash_after = harness.store.commits + commits
    with contextlib.suppress(Crash):
        ask(harness, 'stack_snapshot', stack)
        harness.run()
    harness.restart()
    harness.recover()
    harness.assert_converged(stack, VALUES, 'SNAPSHOT_COMPLETE')
    assert len(harness.reality.copies) == 1
    assert [each['status'] for each in ask(harness, 'stack_list_snapshots', stack)] == ['COMPLETE']


# --- deleting ------------------------------------------------------------------------------------------------------


def test_a_deleted_snapshot_leaves_nothing_behind(harness):
    stack = harness.created(KEPT)
    first, second = taken(harness, stack), taken(harness, stack)
    ask(harness, 'delete_snapshot', stack, first)
    ask(harness, 'delete_snapshot', stack, first)
    shown = ask(harness, 'show_snapshot', stack, first)
    assert (shown['action'], shown['status']) == ('DELETE', 'IN_PROGRESS')
    heartbeat(harness)
    assert [each['id'] for each in ask(harness, 'stack_list_snapshots', stack)] == [second]
    assert list(harness.reality.copies) == [f'{second}/a']
    assert harness.state(stack) == 'SNAPSHOT_COMPLETE', 'the stack is not concerned'


def test_a_snapshot_that_cannot_be_deleted_says_why_and_is_deleted_later(harness):
    """F177."""
    stack = harness.created(KEPT)
    snapshot = taken(harness, stack)
    harness.reality.once['delete_snapshot', 'a'] = [fails(TransientFailure('in use'))]
    ask(harness, 'delete_snapshot', stack, snapshot)
    heartbeat(harness)
    shown = ask(harness, 'show_snapshot', stack, snapshot)
    assert (shown['action'], shown['status']) == ('DELETE', 'FAILED')
    assert shown['status_reason'] == 'resources.a: in use; its deletion is repeated'
    harness.let_attempts_age()
    heartbeat(harness)
    assert ask(harness, 'stack_list_snapshots', stack) == []
    assert harness.reality.copies == {}


def test_the_snapshots_of_a_deleted_stack_go_with_it(harness):
    """F091, F176: also where the resource is gone, or has another type by now. F092: the stack waits for none of it."""
    stack = harness.created(KEPT)
    taken(harness, stack)
    harness.update(stack, {'a': 'other type'})
    harness.run()
    taken(harness, stack)
    harness.delete(stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    heartbeat(harness)
    assert harness.reality.copies == {}
    assert harness.kept.of_stack(stack) == []


def test_a_stack_deleted_while_its_snapshot_is_taken_leaves_nothing(harness):
    stack = harness.created(KEPT)
    harness.reality.once['snapshot', 'a'] = [meanwhile(lambda: harness.delete(stack), lambda: heartbeat(harness))]
    ask(harness, 'stack_snapshot', stack)
    harness.run()
    harness.recover()
    heartbeat(harness)
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert (harness.reality.copies, harness.kept.of_stack(stack)) == ({}, [])


def test_an_abandoned_stack_leaves_what_is_kept(harness):
    stack = harness.created(KEPT)
    taken(harness, stack)
    harness.abandonment.abandon_stack(harness.context, {'stack_id': stack})
    harness.run()
    heartbeat(harness)
    assert len(harness.reality.copies) == 1


# --- the deletion policy -------------------------------------------------------------------------------------------


def test_what_has_the_policy_snapshot_is_kept_before_it_goes(harness):
    stack = harness.created({'a': {'type': 'Test::Kept', 'value': 'x', 'deletion_policy': 'Snapshot'}})
    row = harness.row(stack, 'a')
    fill(harness, stack, 'precious')
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    assert harness.reality.copies == {f'{row.id}/a': 'precious'}
    heartbeat(harness)
    assert harness.reality.copies, 'it belongs to the user'


def test_nothing_goes_before_its_snapshot_is_done(harness):
    stack = harness.created({'a': {'type': 'Test::Kept', 'value': 'x', 'deletion_policy': 'Snapshot'}})
    harness.reality.once['snapshot', 'a'] = [lambda call: InProgress({'round': 1})]
    harness.reality.once['poll', 'a'] = [goes_on(), lambda call: Done()]
    harness.delete(stack)
    harness.deliver()
    assert harness.reality.calls['delete', 'a'] == 0
    harness.recover()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert [verb for verb, _, _ in harness.reality.journal if verb in ('snapshot', 'poll', 'delete')] == [
        'snapshot',
        'poll',
        'poll',
        'delete',
    ]


def test_what_cannot_be_kept_does_not_go(harness):
    stack = harness.created({'a': {'type': 'Test::Kept', 'value': 'x', 'deletion_policy': 'Snapshot'}})
    harness.reality.once['snapshot', 'a'] = [fails(FinalFailure('disk full'))]
    harness.delete(stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_FAILED'
    assert harness.reality.names() == ['a']


def test_a_type_that_keeps_nothing_refuses_the_policy(harness):
    with pytest.raises(errors.StackValidationFailed, match='Snapshot is not supported by this type'):
        harness.create({'a': {'value': 'x', 'deletion_policy': 'Snapshot'}})
