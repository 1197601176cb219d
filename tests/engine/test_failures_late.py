"""What a time limit stops, and what a cancel can still stop."""

import threading

import pytest

from convergence import errors
from convergence.db.scopes import WholeStack
from convergence.engine.traversals.traversals import REMEMBERED
from convergence.resources.contract import InProgress
from tests.worker.test_stuck import PATIENCE_S, Stuck, eventually, threaded_worker


@pytest.fixture
def stuck():
    """A stuck call that is let go at the end of the test."""
    call = Stuck()
    yield call
    call.release.set()


def test_a_time_limit_also_stops_what_a_superseded_traversal_has_left_running(harness, stuck):
    """The limit of a traversal that was superseded is looked at by nobody; the next one waits for its row in vain."""
    stack = harness.created({'r': 'x'})
    harness.reality.once['update', 'r'] = [stuck]
    worker = threaded_worker(harness, threads=2)
    first = harness.update(stack, {'r': 'y'})
    check = harness.messages.checks.pop()
    serving = threading.Thread(target=worker.check_resource, args=(None, *check))
    serving.start()
    assert stuck.entered.wait(PATIENCE_S)
    second = harness.update(stack, {'r': 'z'})
    harness.run()
    assert harness.row(stack, 'r').owner == worker.id
    assert harness.messages.cancels == []

    harness.expire(second)
    harness.sweep()
    assert sorted(harness.messages.cancels) == sorted([(stack, first), (stack, second)])
    assert harness.state(stack) == 'UPDATE_FAILED'
    for cancelled in harness.messages.cancels:
        worker.cancel(None, *cancelled)
    serving.join(PATIENCE_S)
    eventually(lambda: harness.row(stack, 'r').owner is None)

    harness.update(stack, {'r': 'w'})
    harness.recover()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert harness.reality.values() == {'r': 'w'}


def test_a_time_limit_stops_nothing_that_is_over_and_only_the_newest(harness):
    """A long history costs no more messages."""
    stack = harness.created({'r': 'x'})
    complete = harness.stack(stack).traversal_id
    superseded = [harness.update(stack, {'r': f'v{number}'}) for number in range(REMEMBERED + 5)]
    harness.messages.checks.clear()
    harness.expire(superseded[-1])
    harness.sweep()
    stopped = {traversal for _, traversal in harness.messages.cancels}
    assert stopped == set(superseded[-REMEMBERED:])
    assert complete not in stopped


def test_a_cancel_stops_what_older_operations_have_left_as_well(harness):
    """Nothing else would: what an operation that has failed elsewhere, or was superseded, has begun is waited for."""
    stack = harness.created({'r': 'x'})
    complete = harness.stack(stack).traversal_id
    superseded = harness.update(stack, {'r': 'y'})
    last = harness.update(stack, {'r': 'z'})
    harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack}, False, now=True)
    stopped = {traversal for _, traversal in harness.messages.cancels}
    assert stopped == {superseded, last}
    assert complete not in stopped


def removing(harness):
    """A stack whose update has everything in service, and takes its time to remove what is left."""
    stack = harness.created({'r': 'x', 'gone': 'x'})
    harness.reality.always = {(verb, 'gone'): lambda call: InProgress({'round': 1}) for verb in ('delete', 'poll')}
    harness.update(stack, {'r': 'y'})
    for _ in range(10):
        if harness.messages.checks:
            harness.deliver()
    now = harness.stack(stack)
    assert (harness.state(stack), now.last_good_template_id) == ('UPDATE_IN_PROGRESS', now.template_id)
    return stack


def test_there_is_no_way_back_from_what_is_in_service(harness):
    """A rollback would go to the very same template."""
    stack = removing(harness)
    traversals = len(harness.reader.traversals(stack))
    with pytest.raises(errors.NotSupported, match='in service already; only leftovers are being removed'):
        harness.cancel(stack, rollback=True)
    assert len(harness.reader.traversals(stack)) == traversals
    harness.reality.always.clear()
    harness.recover()
    harness.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')


def test_a_cancel_that_is_overtaken_by_the_last_resource_is_refused_too(harness):
    """Everything comes into service between the look at the stack and the lock on it."""
    stack = harness.created({'r': 'x', 'gone': 'x'})
    harness.reality.always = {(verb, 'gone'): lambda call: InProgress({'round': 1}) for verb in ('delete', 'poll')}
    harness.update(stack, {'r': 'y'})
    harness.store.before(WholeStack, harness.deliver)
    with pytest.raises(errors.NotSupported, match='in service already'):
        harness.cancel(stack, rollback=True)
    harness.reality.always.clear()
    harness.recover()
    harness.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')


def test_the_removal_of_leftovers_can_be_stopped_without_a_rollback(harness):
    stack = removing(harness)
    harness.cancel(stack, rollback=False)
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.reality.always.clear()
    harness.update(stack, {'r': 'y'})
    harness.recover()
    harness.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')
