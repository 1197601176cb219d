"""Section E of the catalogue of failures: failure and rollback."""

import pytest

from convergence.resources.contract import FinalFailure, InProgress
from convergence.worker.attempts.attempt import PollPolicy
from tests.harness import Harness, hot
from tests.reality import fails, goes_on, meanwhile, starts

BROKEN = FinalFailure('broken')
BACK = {'disable_rollback': False}


def test_the_way_back_leads_to_the_last_good_template_not_to_the_last_attempted_one(harness):
    """F073: T1 was superseded by T2, which fails: back to T0."""
    stack = harness.created({'r': 'v0'})
    harness.update(stack, {'r': 'v1'}, **BACK)
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.update(stack, {'r': 'v2'}, **BACK)
    harness.run()
    harness.assert_converged(stack, {'r': 'v0'}, 'ROLLBACK_COMPLETE')


def test_a_failed_create_is_rolled_back_to_nothing(harness):
    """F074: the stack stays, empty, and can be updated."""
    harness.reality.once['create', 'b'] = [fails(BROKEN)]
    stack = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}}, **BACK)
    harness.run()
    harness.assert_converged(stack, {}, 'ROLLBACK_COMPLETE')
    harness.update(stack, {'a': 'y'})
    harness.run()
    harness.assert_converged(stack, {'a': 'y'}, 'UPDATE_COMPLETE')


def test_parameters_come_back_too(harness):
    """F075: environment and files travel with the template."""
    source = hot({'r': {'value': {'get_param': 'p'}, 'link': {'get_file': 'f'}}}, parameters={'p': {'type': 'string'}})
    identity = harness.stacks.create_stack(
        harness.context, 's', source, {'parameters': {'p': 'v0'}}, {'f': 'file0'}, BACK
    )
    harness.run()
    harness.compiler.cache.clear()
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.stacks.update_stack(harness.context, identity, source, {'parameters': {'p': 'v1'}}, {'f': 'file1'})
    harness.run()
    harness.assert_converged(identity['stack_id'], {'r': 'v0'}, 'ROLLBACK_COMPLETE')
    (found,) = harness.reality.objects.values()
    assert found['link'] == 'file0'


def test_what_runs_when_something_else_fails_is_kept_until_the_rollback_has_it(harness):
    """F076: B is being created when A fails; the rollback waits for its row, then removes it."""
    harness.reality.once['create', 'b'] = [starts(harness.reality)]
    harness.reality.once['poll', 'b'] = [goes_on(), goes_on()]
    harness.reality.once['create', 'a'] = [fails(BROKEN)]
    stack = harness.create({'b': 'x', 'a': 'x'}, **BACK)
    harness.run()
    harness.assert_converged(stack, {}, 'ROLLBACK_COMPLETE')
    assert harness.reality.calls['create', 'b'] == 1


def test_a_resource_that_was_being_removed_is_made_again_by_the_rollback(harness):
    """F077: its removal runs when something else fails: it is made again, and there is only one of it."""
    stack = harness.created({'r': 'x', 'gone': 'x'})
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.reality.once['delete', 'gone'] = [meanwhile(harness.run)]
    harness.update(stack, {'r': 'y'}, **BACK)
    removal = harness.node(stack, 'gone', 'CLEANUP')
    harness.messages.checks.sort(key=lambda check: check != removal)
    harness.run()
    harness.assert_converged(stack, {'r': 'x', 'gone': 'x'}, 'ROLLBACK_COMPLETE')
    assert (harness.reality.calls['create', 'gone'], harness.reality.calls['delete', 'gone']) == (2, 1)


def test_a_replaced_resource_is_in_service_again_after_the_rollback(harness):
    """F078: replaced first, then something else fails: the old object serves again, the new one goes."""
    good = {'r': {'value': 'x', 'key': '1'}, 'user': {'link': {'get_resource': 'r'}}}
    stack = harness.created(good)
    kept = harness.row(stack, 'r').physical_id
    harness.reality.once['update', 'user'] = [fails(BROKEN)]
    harness.update(stack, {**good, 'r': {'value': 'x', 'key': '2'}}, **BACK)
    harness.run()
    harness.assert_converged(stack, {'r': 'x', 'user': ''}, 'ROLLBACK_COMPLETE')
    assert harness.row(stack, 'r').physical_id == kept
    assert harness.reality.objects[harness.row(stack, 'user').physical_id]['link'] == kept


@pytest.mark.parametrize('afterwards', ['update', 'delete'])
def test_a_failed_rollback_is_final_but_not_the_end(harness, afterwards):
    """F079: no rollback of a rollback; the stack can be updated and deleted."""
    stack = harness.created({'r': 'v0'})
    harness.reality.once['update', 'r'] = [fails(BROKEN), fails(BROKEN)]
    harness.update(stack, {'r': 'v1'}, **BACK)
    harness.run()
    assert harness.state(stack) == 'ROLLBACK_FAILED'
    assert len(harness.reader.traversals(stack)) == 3
    if afterwards == 'update':
        harness.update(stack, {'r': 'v2'})
        harness.run()
        harness.assert_converged(stack, {'r': 'v2'}, 'UPDATE_COMPLETE')
    else:
        harness.delete(stack)
        harness.run()
        harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_the_text_of_a_failure_names_action_and_resource(harness):
    """F081, F193: the action is that which failed, though the row's last success was another one."""
    harness.reality.once['create', 'r'] = [fails(BROKEN)]
    stack = harness.create({'r': 'x'})
    harness.run()
    assert harness.stack(stack).status_reason == 'Resource CREATE failed: resources.r: broken'
    harness.update(stack, {'r': 'x'})
    harness.run()
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.update(stack, {'r': 'y'})
    harness.run()
    assert harness.stack(stack).status_reason == 'Resource UPDATE failed: resources.r: broken'
    harness.reality.once['delete', 'r'] = [fails(BROKEN)]
    harness.delete(stack)
    harness.run()
    assert harness.stack(stack).status_reason == 'Resource DELETE failed: resources.r: broken'


def test_a_resource_that_could_never_be_made_failed_to_be_created(harness):
    """F081: refused twice before anything was called: it was never there to be updated."""
    resources = {'a': 'x', 'r': {'value': 'x', 'link': {'get_attr': ['a', 'other']}}}
    harness.reality.always['attribute other', 'a'] = fails(BROKEN)
    stack = harness.create(resources)
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    harness.update(stack, resources)
    harness.run()
    assert harness.stack(stack).status_reason.startswith('Resource CREATE failed: resources.r: ')


def test_the_first_failure_is_the_root_cause(harness):
    """Two nodes fail; the second, which ran at the same time, does not hide the first."""
    broken = fails(FinalFailure('second'))
    ids = []

    def first_fails(call):
        harness.run()
        return broken(call)

    harness.reality.once['create', 'b'] = [first_fails]
    harness.reality.once['create', 'a'] = [fails(FinalFailure('first'))]
    ids.append(harness.create({'b': 'x', 'a': 'x'}))
    harness.run()
    assert harness.stack(ids[0]).status_reason == 'Resource CREATE failed: resources.a: first'
    assert harness.events(ids[0]) == ['CREATE_IN_PROGRESS', 'CREATE_FAILED']
    assert harness.row(ids[0], 'b').status_reason == 'second (after a had failed)'


@pytest.mark.parametrize('generations', [1, 2])
def test_a_crash_in_the_middle_of_an_update_leaves_nothing_behind_after_a_delete(harness, generations):
    """F084: both generations are removed, dependents first."""

    def template(key):
        return {'a': {'value': 'x', 'key': key}, 'b': {'key': key, 'link': {'get_resource': 'a'}}}

    stack = harness.created(template('0'))
    for generation in range(generations):
        harness.update(stack, template(str(generation + 1)))
        harness.deliver()
        harness.deliver()
        harness.restart()
        harness.sweep()
        harness.deliver()
    harness.restart()
    harness.reality.journal.clear()
    harness.delete(stack)
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    order = harness.reality.order('delete')
    assert order == sorted(order, reverse=True)


@pytest.mark.parametrize('rollback', [True, False])
def test_a_cancel_stops_what_runs_and_tells_the_type(engine, rollback):
    """F097, F102, F106: the action in progress ends, the type is told once, nothing else starts."""
    harness = Harness(engine, pace=PollPolicy(0.0, 0.0, 1000.0, 1))
    stack = harness.created({'r': 'v0', 's': {'value': 'x', 'after': ['r']}})

    def cancelled(call):
        harness.cancel(stack, rollback=rollback)
        harness.deliver_cancels()
        return InProgress({'round': 1})

    harness.reality.once['update', 'r'] = [cancelled]
    harness.update(stack, {'r': 'v1', 's': {'value': 'y', 'after': ['r']}})
    harness.run()
    harness.assert_quiet()
    assert harness.reality.calls['cancel', 'r'] == 1
    assert harness.reality.calls['update', 's'] == 0
    if rollback:
        harness.assert_converged(stack, {'r': 'v0', 's': 'x'}, 'ROLLBACK_COMPLETE')
    else:
        assert harness.state(stack) == 'UPDATE_FAILED'
        assert harness.stack(stack).status_reason == 'Stack UPDATE cancelled'
    harness.update(stack, {'r': 'v2', 's': {'value': 'z', 'after': ['r']}})
    harness.run()
    harness.assert_converged(stack, {'r': 'v2', 's': 'z'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


def test_a_cancel_that_nobody_hears_is_in_the_database_all_the_same(harness):
    """F097: nothing that has not begun begins."""
    stack = harness.created({'r': 'v0', 's': {'value': 'x', 'after': ['r']}})
    harness.messages.lost = True
    harness.update(stack, {'r': 'v1', 's': {'value': 'y', 'after': ['r']}})
    harness.cancel(stack, rollback=False)
    harness.messages.lost = False
    harness.recover()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert harness.reality.values() == {'r': 'v0', 's': 'x'}


@pytest.mark.parametrize('rollback', [True, False])
def test_a_time_limit_ends_a_traversal_and_what_runs_in_it(engine, rollback):
    """F107, F108: the action is stopped, the stack fails, or is rolled back with a time limit of its own."""
    harness = Harness(engine, pace=PollPolicy(0.0, 0.0, 1000.0, 1))
    stack = harness.created({'r': 'v0'})

    def late(call):
        harness.expire(harness.stack(stack).traversal_id)
        harness.sweep()
        harness.deliver_cancels()
        return InProgress({'round': 1})

    harness.reality.once['update', 'r'] = [late]
    harness.update(stack, {'r': 'v1'}, disable_rollback=not rollback)
    harness.run()
    harness.assert_quiet()
    if rollback:
        harness.assert_converged(stack, {'r': 'v0'}, 'ROLLBACK_COMPLETE')
        return
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert harness.stack(stack).status_reason == 'UPDATE timed out, waiting for r'
    harness.update(stack, {'r': 'v1'})
    harness.run()
    harness.assert_converged(stack, {'r': 'v1'}, 'UPDATE_COMPLETE')


def test_a_stack_that_was_rolled_back_says_why(harness):
    stack = harness.created({'r': 'v0'}, disable_rollback=False)
    harness.reality.once['update', 'r'] = [fails(FinalFailure('disk full'))]
    harness.update(stack, {'r': 'v1'}, disable_rollback=False)
    harness.run()
    cause = 'Resource UPDATE failed: resources.r: disk full'
    assert harness.state(stack) == 'ROLLBACK_COMPLETE'
    assert harness.stack(stack).status_reason == f'Stack ROLLBACK completed successfully; {cause}'
    reasons = [event.reason for event in harness.reader.events(stack) if event.resource_name is None]
    assert f'Stack ROLLBACK started; {cause}' in reasons
