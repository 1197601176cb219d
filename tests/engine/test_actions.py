"""Suspend, resume, check, and resources that a person says are broken."""

import contextlib
from dataclasses import dataclass

import pytest

from convergence import errors
from convergence.resources.attributes import attr
from convergence.resources.contract import FinalFailure, InProgress, ObjectNotFound, TransientFailure
from tests.harness import Crash
from tests.reality import Thing, fails, goes_on, meanwhile

CHAIN = {'a': 'x', 'b': {'value': 'x', 'after': ['a']}, 'c': {'value': 'x', 'after': ['b']}}
VALUES = {'a': 'x', 'b': 'x', 'c': 'x'}
ACTIONS = ('suspend', 'resume', 'check')


def mark(harness, stack, name, unhealthy=True, reason=None):
    harness.actions.resource_mark_unhealthy(harness.context, {'stack_id': stack}, name, unhealthy, reason)


def state(harness, stack, name):
    row = harness.row(stack, name)
    return f'{row.action}_{row.status}'


# --- suspend and resume -----------------------------------------------------------------------------------------


def test_what_uses_others_is_suspended_first_and_resumed_last(harness):
    stack = harness.created(CHAIN)
    harness.acted(stack, 'suspend')
    assert harness.reality.order('suspend') == ['c', 'b', 'a']
    assert harness.reality.asleep == set(harness.reality.objects)
    harness.assert_converged(stack, VALUES, 'SUSPEND_COMPLETE')
    assert harness.events(stack)[-2:] == ['SUSPEND_IN_PROGRESS', 'SUSPEND_COMPLETE']
    assert harness.events(stack, 'a')[-2:] == ['SUSPEND_IN_PROGRESS', 'SUSPEND_COMPLETE']
    harness.acted(stack, 'resume')
    assert harness.reality.order('resume') == ['a', 'b', 'c']
    assert harness.reality.asleep == set()
    harness.assert_converged(stack, VALUES, 'RESUME_COMPLETE')


def test_a_repeated_request_changes_nothing(harness):
    stack = harness.created(CHAIN)
    harness.acted(stack, 'suspend')
    assert harness.act(stack, 'suspend') == harness.stack(stack).traversal_id
    harness.run()
    assert harness.reality.calls['suspend', 'a'] == 1
    harness.acted(stack, 'resume')
    before = harness.stack(stack).traversal_id
    assert harness.act(stack, 'resume') == before


def test_what_was_suspended_keeps_what_it_was_made_from(harness):
    """After a round trip an update of the same template has nothing to do, and outputs are what they were."""
    stack = harness.created({'a': 'x', 'b': {'value': {'get_attr': ['a', 'value']}}})
    harness.acted(stack, 'suspend')
    harness.acted(stack, 'resume')
    harness.update(stack, {'a': 'x', 'b': {'value': {'get_attr': ['a', 'value']}}})
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'UPDATE_COMPLETE')
    assert harness.reality.order('update') == []


def test_a_suspended_stack_refuses_updates_and_can_be_deleted(harness):
    stack = harness.created(CHAIN)
    harness.acted(stack, 'suspend')
    with pytest.raises(errors.NotSupported, match='Updating a stack when it is suspended is not supported'):
        harness.update(stack, CHAIN)
    with pytest.raises(errors.NotSupported, match='Checking a stack when it is suspended is not supported'):
        harness.act(stack, 'check')
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_a_failed_suspension_can_be_repeated_or_taken_back(harness):
    stack = harness.created(CHAIN)
    harness.reality.once['suspend', 'b'] = [fails(FinalFailure('no'))]
    harness.act(stack, 'suspend')
    harness.run()
    assert harness.state(stack) == 'SUSPEND_FAILED'
    assert harness.stack(stack).status_reason == 'Resource SUSPEND failed: resources.b: no'
    assert [state(harness, stack, name) for name in 'abc'] == ['CREATE_COMPLETE', 'SUSPEND_FAILED', 'SUSPEND_COMPLETE']
    harness.acted(stack, 'suspend')
    assert harness.reality.order('suspend') == ['c', 'b', 'b', 'a']
    harness.acted(stack, 'resume')
    assert harness.reality.asleep == set()


def test_an_update_wakes_up_what_a_failed_resumption_has_left_asleep(harness):
    stack = harness.created(CHAIN)
    harness.acted(stack, 'suspend')
    harness.reality.once['resume', 'b'] = [fails(FinalFailure('no'))]
    harness.act(stack, 'resume')
    harness.run()
    assert harness.state(stack) == 'RESUME_FAILED'
    assert state(harness, stack, 'c') == 'SUSPEND_COMPLETE'
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.row(stack, 'c').physical_id not in harness.reality.asleep


def left_asleep(harness):
    """A stack in which nobody could resume `b`, which sleeps, and `c` after it."""
    stack = harness.created(CHAIN)
    harness.acted(stack, 'suspend')
    harness.reality.once['resume', 'b'] = [fails(FinalFailure('no'))]
    harness.act(stack, 'resume')
    harness.run()
    assert state(harness, stack, 'b') == 'RESUME_FAILED'
    return stack


def test_an_update_resumes_what_could_not_be_resumed_before_it_takes_it_for_what_is_wanted(harness):
    stack = left_asleep(harness)
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.reality.order('resume') == ['a', 'b', 'b', 'c']
    assert harness.reality.asleep == set()


def test_an_update_fails_where_it_cannot_resume_either_and_changes_nothing_that_sleeps(harness):
    stack = left_asleep(harness)
    harness.reality.once['resume', 'b'] = [fails(FinalFailure('still not'))]
    changed = {**CHAIN, 'b': {**CHAIN['b'], 'value': 'changed'}}
    harness.update(stack, changed)
    harness.run()
    assert harness.stack(stack).status_reason == 'Resource UPDATE failed: resources.b: still not'
    assert state(harness, stack, 'b') == 'RESUME_FAILED'
    assert harness.reality.calls['update', 'b'] == 0
    assert harness.reality.calls['resume', 'b'] == 2
    harness.update(stack, changed)
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert harness.reality.asleep == set()


def test_what_cannot_be_resumed_because_it_is_gone_is_made_again(harness):
    stack = left_asleep(harness)
    old = harness.row(stack, 'b').physical_id
    del harness.reality.objects[old]
    harness.reality.once['resume', 'b'] = [fails(ObjectNotFound('it is gone'))]
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.row(stack, 'b').physical_id != old
    assert harness.reality.calls['resume', 'b'] == 2


def test_what_was_never_made_cannot_be_suspended_and_an_update_makes_it(harness):
    """F052, F178: nothing says that it is suspended."""
    harness.reality.once['create', 'b'] = [fails(FinalFailure('no'))]
    stack = harness.create(CHAIN)
    harness.run()
    harness.act(stack, 'suspend')
    harness.run()
    assert harness.state(stack) == 'SUSPEND_FAILED'
    assert state(harness, stack, 'c') == 'INIT_COMPLETE'
    harness.act(stack, 'resume')
    harness.run()
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')


# --- check ------------------------------------------------------------------------------------------------------


def test_a_check_looks_at_everything_tells_of_all_failures_and_rolls_nothing_back(harness):
    """F179, F036: whatever a type raises."""
    stack = harness.created(CHAIN, disable_rollback=False)
    harness.reality.once['check', 'a'] = [fails(FinalFailure('gone'))]
    harness.reality.once['check', 'c'] = [fails(SystemExit('odd'))]
    harness.act(stack, 'check')
    harness.run()
    assert harness.state(stack) == 'CHECK_FAILED'
    reason = harness.stack(stack).status_reason
    assert reason == 'Resource CHECK failed: resources.a: gone; Resource CHECK failed: SystemExit: resources.c: odd'
    assert [state(harness, stack, name) for name in 'abc'] == ['CHECK_FAILED', 'CHECK_COMPLETE', 'CHECK_FAILED']
    assert harness.events(stack)[-1] == 'CHECK_FAILED'
    harness.assert_quiet()


def test_what_a_check_found_broken_is_replaced_by_the_next_update(harness):
    stack = harness.created(CHAIN)
    old = harness.row(stack, 'b').physical_id
    harness.reality.once['check', 'b'] = [fails(FinalFailure('broken'))]
    harness.act(stack, 'check')
    harness.run()
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.row(stack, 'b').physical_id != old
    assert harness.reality.order('create') == ['a', 'b', 'c', 'b']


def test_a_check_that_finds_everything_well_changes_nothing(harness):
    stack = harness.created(CHAIN)
    harness.acted(stack, 'check')
    harness.acted(stack, 'check')
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.reality.order('create') == ['a', 'b', 'c']


@dataclass(frozen=True)
class Progress:
    """Goes on whatever anybody does."""

    value: str = attr(live=True)


class Growing(Thing):
    """Its attribute is what somebody has set in the meantime."""

    Attributes = Progress
    now = ['small']  # noqa: RUF012 - the outside world

    def attribute(self, call, name):
        """As of now."""
        return self.now[-1]


def test_what_changes_by_itself_is_read_by_a_check_and_reaches_others_with_the_next_update(harness):
    harness.registry._types['Test::Growing'] = Growing(harness.reality)
    wanted = {'a': {'type': 'Test::Growing'}, 'b': {'value': {'get_attr': ['a', 'value']}}}
    stack = harness.created(wanted)
    Growing.now.append('large')
    harness.acted(stack, 'check')
    assert harness.row(stack, 'a').output.attributes == {'value': 'large'}
    assert harness.row(stack, 'b').properties['value'] == 'small'
    harness.update(stack, wanted)
    harness.run()
    assert harness.row(stack, 'b').properties['value'] == 'large'
    assert harness.reality.order('update') == ['b']


def test_a_check_of_a_half_made_stack_says_so_and_an_update_makes_the_rest(harness):
    """F178."""
    harness.reality.once['create', 'b'] = [fails(FinalFailure('no'))]
    stack = harness.create(CHAIN)
    harness.run()
    harness.act(stack, 'check')
    harness.run()
    assert harness.state(stack) == 'CHECK_FAILED'
    assert 'resources.b' in harness.stack(stack).status_reason
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')


def test_a_check_does_not_make_the_target_of_a_rollback_of_what_failed(harness):
    stack = harness.created({'a': 'x'})
    good = harness.stack(stack).last_good_template_id
    harness.reality.once['update', 'a'] = [fails(FinalFailure('no'))]
    harness.update(stack, {'a': 'y'})
    harness.run()
    harness.act(stack, 'check')
    harness.run()
    assert harness.stack(stack).last_good_template_id == good


def test_a_stack_that_was_rolled_back_to_nothing_is_checked_at_once(harness):
    harness.reality.once['create', 'a'] = [fails(FinalFailure('no'))]
    stack = harness.create({'a': 'x'}, disable_rollback=False)
    harness.run()
    assert harness.state(stack) == 'ROLLBACK_COMPLETE'
    harness.acted(stack, 'check')


# --- races ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('action', ACTIONS)
def test_an_action_waits_for_its_turn(harness, action):
    """F041: while anything else is in progress it is refused, and leaves nothing behind."""
    stack = harness.create(CHAIN)
    before = harness.stack(stack)
    with pytest.raises(errors.ActionInProgress, match=r'already has an action \(CREATE\) in progress'):
        harness.act(stack, action)
    assert harness.stack(stack) == before
    harness.run()
    harness.assert_converged(stack, VALUES, 'CREATE_COMPLETE')


@pytest.mark.parametrize('action', ['resume', 'check'])
@pytest.mark.parametrize('delivered', range(4))
def test_an_update_at_any_step_of_an_action_wins(harness, action, delivered):
    stack = harness.created(CHAIN)
    harness.acted(stack, 'suspend')
    harness.acted(stack, 'resume') if action == 'check' else None
    harness.act(stack, action)
    for _ in range(delivered):
        harness.deliver() if harness.messages.checks else None
    harness.update(stack, {**CHAIN, 'a': 'y'})
    harness.run()
    harness.assert_converged(stack, {**VALUES, 'a': 'y'}, 'UPDATE_COMPLETE')
    assert harness.reality.asleep == set()


@pytest.mark.parametrize('action', ACTIONS)
def test_a_delete_in_the_middle_of_an_action_wins(harness, action):
    stack = harness.created(CHAIN)
    if action == 'resume':
        harness.acted(stack, 'suspend')
    harness.reality.once[action, 'b'] = [meanwhile(lambda: harness.delete(stack))]
    harness.act(stack, action)
    harness.run()
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


@pytest.mark.parametrize('action', ACTIONS)
@pytest.mark.parametrize('commits', range(1, 8))
def test_an_action_survives_the_death_of_all_processes_after_any_commit(harness, action, commits):
    stack = harness.created(CHAIN)
    if action == 'resume':
        harness.acted(stack, 'suspend')
    harness.store.crash_after = harness.store.commits + commits
    with contextlib.suppress(Crash):
        harness.act(stack, action)
        harness.run()
    harness.restart()
    harness.recover()
    harness.assert_converged(stack, VALUES, f'{action.upper()}_COMPLETE')
    assert harness.reality.asleep == (set(harness.reality.objects) if action == 'suspend' else set())


@pytest.mark.parametrize('action', ACTIONS)
def test_a_long_action_is_polled_from_its_row(harness, action):
    stack = harness.created(CHAIN)
    if action == 'resume':
        harness.acted(stack, 'suspend')
    harness.reality.once[action, 'b'] = [lambda call: InProgress({'round': 1})]
    harness.reality.once['poll', 'b'] = [goes_on()]
    harness.act(stack, action)
    harness.recover()
    assert harness.state(stack) == f'{action.upper()}_COMPLETE'
    assert harness.reality.calls['poll', 'b'] == 2


def test_an_action_that_fails_for_the_moment_is_repeated(harness):
    stack = harness.created(CHAIN)
    harness.reality.once['suspend', 'b'] = [fails(TransientFailure('busy'))]
    harness.act(stack, 'suspend')
    harness.recover()
    assert harness.state(stack) == 'SUSPEND_COMPLETE'
    assert harness.reality.calls['suspend', 'b'] == 2


def test_an_action_ends_with_its_time(harness):
    stack = harness.created(CHAIN)
    harness.reality.once['check', 'b'] = [lambda call: InProgress({})]
    harness.reality.always['poll', 'b'] = goes_on()
    traversal = harness.act(stack, 'check')
    harness.deliver()
    harness.deliver()
    harness.expire(traversal)
    harness.sweep()
    assert harness.state(stack) == 'CHECK_FAILED'
    assert 'timed out' in harness.stack(stack).status_reason


# --- resources that a person says are broken ----------------------------------------------------------------------


def test_a_resource_that_is_said_to_be_broken_is_replaced_by_the_next_update(harness):
    stack = harness.created(CHAIN)
    old = harness.row(stack, 'b')
    mark(harness, stack, 'b', reason='it smells')
    marked = harness.row(stack, 'b')
    assert (marked.action, marked.status, marked.status_reason) == ('CHECK', 'FAILED', 'it smells')
    assert harness.events(stack, 'b')[-1] == 'CHECK_FAILED'
    harness.update(stack, CHAIN)
    harness.run()
    harness.assert_converged(stack, VALUES, 'UPDATE_COMPLETE')
    assert harness.row(stack, 'b').physical_id != old.physical_id


def test_a_resource_is_marked_by_the_id_of_its_object_and_is_well_again(harness):
    stack = harness.created(CHAIN)
    physical_id = harness.row(stack, 'b').physical_id
    mark(harness, stack, physical_id)
    assert harness.row(stack, 'b').status_reason == 'state changed by resource_mark_unhealthy api'
    mark(harness, stack, physical_id, unhealthy=False)
    assert state(harness, stack, 'b') == 'CHECK_COMPLETE'
    harness.update(stack, CHAIN)
    harness.run()
    assert harness.row(stack, 'b').physical_id == physical_id


def test_only_what_was_broken_can_be_well_again(harness):
    stack = harness.created(CHAIN)
    mark(harness, stack, 'b', unhealthy=False)
    assert state(harness, stack, 'b') == 'CREATE_COMPLETE'


def test_a_resource_with_which_something_is_being_done_is_not_marked(harness):
    """F180."""
    answers = []

    def try_it():
        try:
            mark(harness, stack, 'a')
        except errors.ActionInProgress as error:
            answers.append(str(error))

    stack = harness.created(CHAIN)
    harness.reality.once['update', 'a'] = [meanwhile(try_it)]
    harness.update(stack, {**CHAIN, 'a': 'y'})
    harness.run()
    assert answers == ['Resource a of stack s already has an action (UPDATE) in progress.']
    harness.assert_converged(stack, {**VALUES, 'a': 'y'}, 'UPDATE_COMPLETE')


def test_what_is_not_there_cannot_be_marked(harness):
    stack = harness.created({'a': 'x'})
    with pytest.raises(errors.ResourceNotFound, match=r'The Resource \(zzz\) could not be found in Stack s'):
        mark(harness, stack, 'zzz')
