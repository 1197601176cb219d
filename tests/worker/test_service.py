"""A worker among others: what it cancels, what it misses, what it gives back, and how it ends."""

import threading
from functools import partial

import pytest

from convergence.core.model import Status
from convergence.db.schema.models import RESOURCE
from convergence.resources.contract import Done, InProgress
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.scheduler.timers import Timers
from tests.harness import Harness
from tests.reality import meanwhile, starts

PATIENT = PollPolicy(poll_interval_min_s=0.0, poll_interval_max_s=0.0, park_after_s=1000.0, transient_attempts=1)


@pytest.fixture
def patient(engine):
    """A harness whose workers poll until an action is done: so they are there to be cancelled."""
    return Harness(engine, pace=PATIENT)


def polled(step):
    """A create that takes a while, in the course of which something happens."""

    def create(call):
        step()
        return InProgress({'round': 1})

    return create


def test_a_cancel_stops_only_the_traversal_that_it_names(patient):
    """Two stacks on one worker; only one is cancelled."""
    first, second = patient.create({'r': 'x'}, name='first'), patient.create({'s': 'x'}, name='second')
    traversal = patient.stack(first).traversal_id
    patient.reality.once['create', 's'] = [polled(lambda: patient.workers[0].cancel(None, first, traversal))]
    patient.run()
    assert patient.state(first) == patient.state(second) == 'CREATE_COMPLETE'
    assert patient.reality.calls['cancel', 's'] == 0


def test_a_cancel_that_no_database_knows_of_stops_nothing_for_good(patient):
    """Whoever sent it: the traversal still runs, so somebody goes on with the action."""
    stack = patient.create({'r': 'x'})
    traversal = patient.stack(stack).traversal_id
    patient.reality.once['create', 'r'] = [
        lambda call: patient.workers[0].cancel(None, stack, traversal) or starts(patient.reality)(call)
    ]
    patient.run()
    patient.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert patient.reality.calls['create', 'r'] == 1


@pytest.mark.parametrize('ending', ['cancel', 'delete'])
def test_a_cancel_that_was_not_heard_is_made_up_for_with_the_next_heartbeat(patient, ending):
    """F097: the database says that the traversal is over; the worker looks there."""
    stack = patient.create({'r': 'x'})

    def over():
        patient.messages.lost = True
        if ending == 'cancel':
            patient.cancel(stack, rollback=False)
        else:
            patient.delete(stack)
        patient.messages.lost = False
        patient.workers[0].reconcile()

    patient.reality.once['create', 'r'] = [polled(over)]
    patient.run()
    assert patient.reality.calls['cancel', 'r'] == 1
    patient.recover()
    assert patient.state(stack) == ('CREATE_FAILED' if ending == 'cancel' else 'DELETE_COMPLETE')


def test_what_an_older_traversal_has_left_is_stopped_when_the_next_is_cancelled_and_nobody_hears_it(patient):
    """The update waits for what its predecessor has begun; then nobody does."""
    stack = patient.create({'r': 'x'})

    def over():
        patient.update(stack, {'r': 'y'})
        patient.messages.lost = True
        patient.cancel(stack, rollback=False)
        patient.messages.lost = False
        patient.workers[0].reconcile()

    patient.reality.once['create', 'r'] = [polled(over)]
    patient.run()
    assert patient.reality.calls['cancel', 'r'] == 1
    assert patient.state(stack) == 'UPDATE_FAILED'


def test_a_heartbeat_leaves_alone_what_an_update_supersedes(patient):
    """What is in flight goes on; the new traversal waits for it."""
    stack = patient.create({'r': 'x'})
    patient.reality.once['create', 'r'] = [
        polled(lambda: (patient.update(stack, {'r': 'y'}), patient.workers[0].reconcile()))
    ]
    patient.reality.once['poll', 'r'] = [lambda call: _made(patient, call)]
    patient.run()
    patient.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')
    assert patient.reality.calls['cancel', 'r'] == 0


def _made(harness, call):
    return Done(harness.reality.make(call))


def test_a_row_that_nothing_works_on_is_given_back_when_it_is_seen_twice(harness):
    """F026: it may just have been claimed when it is seen first."""
    stack = harness.create({'r': 'x'})
    worker = harness.workers[0]
    with harness.store.writing() as connection:
        connection.execute(RESOURCE.update().values(owner=worker.id, fence=3))
        connection.commit()
    worker.reconcile()
    assert harness.row(stack, 'r').owner == worker.id
    with harness.store.writing() as connection:
        connection.execute(RESOURCE.update().values(fence=4))
        connection.commit()
    worker.reconcile()
    assert harness.row(stack, 'r').owner == worker.id
    worker.reconcile()
    assert (harness.row(stack, 'r').owner, harness.row(stack, 'r').fence) == (None, 5)
    harness.run()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')


def test_a_row_is_not_given_back_while_something_runs(harness):
    """It is what runs."""
    worker = harness.workers[0]
    harness.reality.once['create', 'r'] = [meanwhile(worker.reconcile, worker.reconcile, worker.reconcile)]
    stack = harness.created({'r': 'x'})
    assert harness.row(stack, 'r').fence == 1


def test_rows_of_others_are_none_of_its_business(harness):
    """Only the sweeper may take from others, and only from the dead."""
    stack = harness.create({'r': 'x'})
    with harness.store.writing() as connection:
        connection.execute(RESOURCE.update().values(owner=harness.workers[1].id, status=Status.IN_PROGRESS))
        connection.commit()
    for _ in range(3):
        harness.workers[0].reconcile()
    assert harness.row(stack, 'r').owner == harness.workers[1].id


def test_a_worker_that_ends_lets_others_poll_what_it_had_parked(harness):
    """F038: its timers fire when it stops."""
    harness.reality.once['create', 'r'] = [starts(harness.reality)]
    stack = harness.create({'r': 'x'})
    harness.deliver()
    assert harness.messages.checks == []
    harness.workers[0].begin_to_stop(0.0)
    assert len(harness.messages.checks) == 1
    assert harness.workers[0].wait(0.0)
    harness.die(harness.workers[0])
    harness.deliver(worker=1)
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.sweeps.expired_claims(10) == []


# --- timers -----------------------------------------------------------------------------------------------------


def test_timers_fire_in_the_order_of_their_times():
    fired = []
    timers = Timers()
    for delay_s, number in ((-1.0, 2), (-3.0, 1), (-1.0, 3), (3600.0, 4)):
        timers.after(delay_s, partial(fired.append, number))
    assert 0 < timers._call_due() <= 3600.0
    assert fired == [1, 2, 3]
    assert timers._call_due() > 0


def test_only_a_timer_that_is_the_next_one_wakes_the_thread():
    """Each parked nested stack sets one that is ten minutes off: woken for each of them, the thread did nothing else."""
    timers = Timers()
    woken = []
    for delay_s in (60.0, 600.0, 600.0, 30.0, 59.0):
        timers._changed.clear()
        timers.after(delay_s, list)
        woken.append(timers._changed.is_set())
    assert woken == [True, False, False, True, False]


def test_timers_that_stop_fire_what_is_due_and_leave_the_rest_to_the_sweeper():
    """Who is told of a row before its time drops that."""
    fired = []
    timers = Timers()
    timers.after(3600.0, partial(fired.append, 1))
    timers.after(-1.0, partial(fired.append, 2))
    timers.stop()
    assert fired == [2]
    timers.after(60.0, partial(fired.append, 3))
    timers.after(0.0, partial(fired.append, 4))
    assert fired == [2, 4]
    assert timers._call_due() is None


def test_timers_beyond_the_limit_are_left_to_the_sweeper():
    fired = []
    timers = Timers(limit=2)
    for number in range(5):
        timers.after(-1.0, partial(fired.append, number))
    timers._call_due()
    assert fired == [0, 1]


def test_a_call_that_fails_does_not_end_the_timers(caplog):
    """The thread is the only one; it was never missed."""
    fired = []
    timers = Timers()
    timers.after(-2.0, lambda: fired.index('nothing'))
    timers.after(-1.0, partial(fired.append, 1))
    assert timers._call_due() is None
    assert fired == [1]
    assert 'Timer call failed' in caplog.text


def test_a_timer_that_is_set_while_the_thread_waits_is_not_overslept():
    """The one thread waits for the earliest, also when that comes last."""
    done = threading.Event()
    timers = Timers()
    timers.start()
    timers.after(3600.0, done.clear)
    timers.after(0.0, done.set)
    assert done.wait(60.0)
    timers.stop()
