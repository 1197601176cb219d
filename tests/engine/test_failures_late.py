"""What a time limit stops, and what a cancel can still stop."""

import threading

import pytest

from convergence.engine.traversals import REMEMBERED
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
