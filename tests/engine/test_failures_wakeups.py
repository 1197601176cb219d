"""Section A of the catalogue of failures: a traversal waits for something that nobody will send.

Nothing here is swept unless the test is about the sweep: every wake-up must come from whoever lets go of a row.
"""

import random

import pytest

from convergence.db.repositories.reads.stacks import StackFilter
from convergence.db.scopes import HeldResource, OneReplacement, WholeStack
from convergence.engine.sweeper.tasks import SweepOptions
from convergence.resources.contract import FinalFailure, TransientFailure
from convergence.worker.attempts.attempt import PollPolicy
from tests.harness import Crash, Harness, emptied
from tests.reality import fails, goes_on, meanwhile, starts

NEW = {'value': 'new'}
OLD = {'value': 'old'}


@pytest.fixture
def creating(harness):
    """A stack whose only resource is just being created when it is updated: the way into most races."""
    ids = []
    harness.reality.once['create', 'r'] = []

    def begin(*steps, then=None):
        behaviour = meanwhile(lambda: harness.update(ids[0], {'r': NEW}), harness.run, *steps)

        def create(call):
            answer = behaviour(call)
            return then(call) if then else answer

        harness.reality.once['create', 'r'].append(create)
        ids.append(harness.create({'r': OLD}))
        harness.run()
        return ids[0]

    return begin


def test_a_superseded_completion_wakes_the_new_traversal(harness, creating):
    """F001, F010: and the object has the new value, not only the row."""
    stack = creating()
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


def test_a_superseded_failure_wakes_the_new_traversal(harness, creating):
    """F002: the stack is not failed by what nobody waits for any more."""
    stack = creating(then=fails(FinalFailure('too late')))
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')
    assert 'UPDATE_FAILED' not in harness.events(stack)
    assert 'CREATE_FAILED' not in harness.events(stack)


def test_a_superseded_failure_that_left_an_object_is_repaired_or_removed(harness, creating):
    """F002: whatever the failed create had made."""

    def makes_and_fails(call):
        raise FinalFailure('half made', physical_id=harness.reality.make(call))

    stack = creating(then=makes_and_fails)
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')


def test_a_superseded_time_limit_is_not_charged_to_the_new_traversal(harness):
    """F003: the old traversal is late while its action goes on."""
    harness.reality.once['create', 'r'] = [starts(harness.reality)]
    harness.reality.once['poll', 'r'] = [goes_on(), goes_on()]
    stack = harness.create({'r': OLD})
    old = harness.stack(stack).traversal_id
    harness.deliver()
    harness.update(stack, {'r': NEW})
    harness.expire(old)
    harness.traversals.time_out(stack, old)
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    harness.run()
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


def test_an_update_that_begins_between_a_cancel_and_its_effect_is_woken(engine):
    """F004: the cancelled action ends after the new traversal has found the row held."""
    harness = Harness(engine, pace=PollPolicy(0.0, 0.0, 1000.0, 1))
    stack = harness.create({'r': OLD})

    def cancelled_and_updated(call):
        harness.cancel(stack, rollback=False)
        harness.deliver_cancels()
        harness.update(stack, {'r': NEW})
        harness.run()
        return starts(harness.reality)(call)

    harness.reality.once['create', 'r'] = [cancelled_and_updated]
    harness.deliver()
    assert harness.reality.calls['cancel', 'r'] == 1
    harness.run()
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')


@pytest.mark.parametrize('moment', ['before', 'after'])
@pytest.mark.parametrize('goal', ['old', 'new', 'other'])
def test_a_replacement_that_is_overtaken_leaves_one_object(harness, moment, goal):
    """F005, F006, F007, F012, F030: a new update, just before or just after the new row is made."""
    goals = {
        'old': ({'value': 'v', 'key': '1'}, 'v'),
        'new': ({'value': 'v', 'key': '2'}, 'v'),
        'other': ({'value': 'w', 'key': '3'}, 'w'),
    }
    stack = harness.created({'r': goals['old'][0]})
    watch = harness.store.before if moment == 'before' else harness.store.after
    watch(OneReplacement, lambda: (harness.update(stack, {'r': goals[goal][0]}), harness.run()))
    harness.update(stack, {'r': goals['new'][0]})
    harness.run()
    harness.assert_converged(stack, {'r': goals[goal][1]}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == (1 if goal == 'old' else 2)


@pytest.mark.parametrize('moment', ['before', 'after'])
def test_a_replacement_that_is_rolled_back_does_not_disturb_later_updates(harness, moment):
    """F012: the old row must not go on pointing to a replacement that was discarded."""
    stack = harness.created({'r': {'value': 'v', 'key': '1'}})
    watch = harness.store.before if moment == 'before' else harness.store.after
    watch(OneReplacement, lambda: (harness.cancel(stack, rollback=True), harness.run()))
    harness.update(stack, {'r': {'value': 'v', 'key': '2'}})
    harness.run()
    harness.assert_converged(stack, {'r': 'v'}, 'ROLLBACK_COMPLETE')
    assert harness.row(stack, 'r').replaced_by is None
    harness.update(stack, {'r': {'value': 'v', 'key': '3'}})
    harness.run()
    harness.assert_converged(stack, {'r': 'v'}, 'UPDATE_COMPLETE')


def test_a_deletion_in_progress_wakes_the_traversal_that_wants_the_name_again(harness):
    """F009, F062, F071: a cleanup node before, an update node now."""
    stack = harness.created({'r': OLD, 'q': OLD})
    harness.reality.once['delete', 'r'] = [meanwhile(lambda: harness.update(stack, {'r': NEW, 'q': OLD}), harness.run)]
    harness.update(stack, {'q': OLD})
    harness.run()
    harness.assert_converged(stack, {'r': 'new', 'q': 'old'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 2


def test_a_creation_in_progress_wakes_the_traversal_that_removes_it(harness):
    """F009 mirrored: an update node before, a cleanup node now."""
    stack = harness.created({'q': OLD})
    harness.reality.once['create', 'r'] = [meanwhile(lambda: harness.update(stack, {'q': OLD}), harness.run)]
    harness.update(stack, {'q': OLD, 'r': OLD})
    harness.run()
    harness.assert_converged(stack, {'q': 'old'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['delete', 'r'] == 1


def test_the_replacement_of_a_root_completes_the_stack(harness):
    """F011: the stack waits for the node, whichever row it works on."""
    stack = harness.created({'a': 'x', 'root': {'value': 'v', 'key': '1', 'after': ['a']}})
    harness.update(stack, {'a': 'x', 'root': {'value': 'v', 'key': '2', 'after': ['a']}})
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'root': 'v'}, 'UPDATE_COMPLETE')


def test_going_back_after_a_failed_replacement_keeps_the_old_object(harness):
    """F013: without a rollback, by an update to the old template."""
    stack = harness.created({'r': {'value': 'v', 'key': '1'}})
    kept = harness.row(stack, 'r').physical_id
    harness.reality.once['create', 'r'] = [fails(FinalFailure('no room'))]
    harness.update(stack, {'r': {'value': 'v', 'key': '2'}})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.update(stack, {'r': {'value': 'v', 'key': '1'}})
    harness.run()
    harness.assert_converged(stack, {'r': 'v'}, 'UPDATE_COMPLETE')
    assert harness.row(stack, 'r').physical_id == kept


def test_repeating_a_failed_replacement_is_no_false_success(harness):
    """F014: the same template again acts again, and succeeds only when reality is right."""
    stack = harness.created({'r': {'value': 'v', 'key': '1'}})
    for _ in range(2):
        harness.reality.once['create', 'r'] = [fails(FinalFailure('no room'))]
        harness.update(stack, {'r': {'value': 'w', 'key': '2'}})
        harness.run()
        assert harness.state(stack) == 'UPDATE_FAILED'
    harness.update(stack, {'r': {'value': 'w', 'key': '2'}})
    harness.run()
    harness.assert_converged(stack, {'r': 'w'}, 'UPDATE_COMPLETE')


FIRST = {'a': 'x', 'b': {'value': 'x', 'key': '1', 'after': ['a']}, 'gone': 'x'}
SECOND = {'a': 'y', 'b': {'value': {'get_attr': ['a', 'value']}, 'key': '2'}, 'c': {'value': 'z', 'after': ['b']}}


def whole_life(harness):
    """Create, update with every kind of change, delete; a step each, so that a crash ends just one."""
    stack = harness.create(FIRST)
    harness.run()
    yield stack, {'a': 'x', 'b': 'x', 'gone': 'x'}, 'CREATE_COMPLETE'
    harness.update(stack, SECOND)
    harness.run()
    yield stack, {'a': 'y', 'b': 'y', 'c': 'z'}, 'UPDATE_COMPLETE'
    harness.delete(stack)
    harness.run()
    yield stack, {}, 'DELETE_COMPLETE'


def test_a_crash_after_any_commit_is_made_good(engine):
    """F015, F024: every commit of a life in turn is the last thing that a process does; nobody has to help."""
    total = Harness(engine)
    for _ in whole_life(total):
        pass
    assert total.store.commits > 25
    for number in range(1, total.store.commits + 1):
        harness = Harness(emptied(engine))
        harness.store.crash_after = number
        life = whole_life(harness)
        expected = [
            ({'a': 'x', 'b': 'x', 'gone': 'x'}, 'CREATE_COMPLETE'),
            ({'a': 'y', 'b': 'y', 'c': 'z'}, 'UPDATE_COMPLETE'),
            ({}, 'DELETE_COMPLETE'),
        ]
        try:
            for _ in life:
                expected.pop(0)
        except Crash:
            harness.restart()
            harness.recover()
        else:
            raise AssertionError(f'no crash after commit {number}')
        (stack,) = harness.reader.stacks(StackFilter('p', show_deleted=True))
        harness.assert_converged(stack.id, *expected[0])


def test_a_stack_of_which_every_message_was_lost_is_found_by_the_sweeper(harness):
    """F016: a message is only a hint."""
    harness.messages.lost = True
    stack = harness.create(FIRST)
    harness.messages.lost = False
    harness.recover()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x', 'gone': 'x'}, 'CREATE_COMPLETE')


def test_a_traversal_that_is_silent_past_its_deadline_fails(harness):
    """F016: nobody has to ask for it."""
    stack = harness.create({'r': OLD})
    harness.messages.checks.clear()
    harness.expire(harness.stack(stack).traversal_id)
    harness.sweep()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'timed out' in harness.stack(stack).status_reason


@pytest.mark.parametrize('seed', range(12))
def test_messages_doubled_and_in_any_order_change_nothing(harness, seed):
    """F017: as many creates, updates and deletes as when each message comes once."""
    shuffle = random.Random(seed)
    stack = harness.create(FIRST)
    harness.run(shuffle=shuffle, doubled=True)
    harness.assert_converged(stack, {'a': 'x', 'b': 'x', 'gone': 'x'}, 'CREATE_COMPLETE')
    harness.update(stack, SECOND)
    harness.run(shuffle=shuffle, doubled=True)
    harness.assert_converged(stack, {'a': 'y', 'b': 'y', 'c': 'z'}, 'UPDATE_COMPLETE')
    harness.delete(stack)
    harness.run(shuffle=shuffle, doubled=True)
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    counts = {key: count for key, count in harness.reality.calls.items() if key[0] in ('create', 'update', 'delete')}
    assert counts == {
        ('create', 'a'): 1,
        ('create', 'b'): 2,
        ('create', 'gone'): 1,
        ('create', 'c'): 1,
        ('update', 'a'): 1,
        ('delete', 'a'): 1,
        ('delete', 'b'): 2,
        ('delete', 'gone'): 1,
        ('delete', 'c'): 1,
    }


@pytest.mark.parametrize('seed', range(12))
def test_lost_messages_cost_only_time(harness, seed):
    """F015, F016: any message may vanish, at any step."""
    chance = random.Random(seed)
    stack = harness.create(FIRST)

    def unreliable():
        for _ in range(100):
            if not harness.messages.checks and not harness.sweep():
                return
            if harness.messages.checks:
                position = chance.randrange(len(harness.messages.checks))
                if chance.random() < 0.4:
                    harness.messages.checks.pop(position)
                else:
                    harness.deliver(position, worker=chance.randrange(2))
        raise AssertionError('never quiet')

    unreliable()
    harness.update(stack, SECOND)
    unreliable()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y', 'c': 'z'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'b'] == 2


def test_nothing_starts_after_a_failure_and_the_next_update_begins_it(harness):
    """F018, F051, F083."""
    harness.reality.once['create', 'a'] = [fails(FinalFailure('broken'))]
    stack = harness.create({'a': 'x', 'b': 'x'})
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    untouched = harness.row(stack, 'b')
    assert (untouched.action, untouched.status, harness.reality.calls['create', 'b']) == ('INIT', 'COMPLETE', 0)
    harness.update(stack, {'a': 'x', 'b': 'x'})
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'UPDATE_COMPLETE')


def test_an_old_worker_may_end_at_any_moment_of_a_new_plan(harness):
    """F019: before the plan is committed the old traversal counts, afterwards the new one; there is nothing between."""
    stack = harness.create({'r': OLD})
    harness.store.before(HeldResource, lambda: harness.update(stack, {'r': NEW}))
    harness.deliver()
    harness.run()
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')
    harness.update(stack, {'r': {'value': 'third'}})
    harness.store.before(WholeStack, harness.run)
    harness.update(stack, {'r': {'value': 'fourth'}})
    harness.run()
    harness.assert_converged(stack, {'r': 'fourth'}, 'UPDATE_COMPLETE')


def test_what_an_older_traversal_has_parked_for_long_is_found_by_the_next_sweep(engine):
    """F016: the message of the new traversal is lost; the sweep does not wait until the old pause is over."""
    pause_s = 900.0
    harness = Harness(
        engine,
        pace=PollPolicy(pause_s, pause_s, park_after_s=-1.0, transient_attempts=9, jitter=lambda low, high: pause_s),
    )
    harness.reality.once['create', 'r'] = [fails(TransientFailure('busy'))]
    stack = harness.create({'r': OLD})
    harness.run()
    assert harness.row(stack, 'r').retry is not None
    harness.messages.lost = True
    harness.delete(stack)
    harness.messages.lost = False
    harness.sweep()
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


FULL = {'threads': 8, 'busy': 8, 'waiting': 3, 'stuck': 0}


@pytest.mark.parametrize(
    ('loads', 'lease_s', 'is_told'),
    [
        ((FULL, FULL), 60.0, False),
        ((FULL, FULL), -1.0, True),
        ((FULL, {**FULL, 'waiting': 0}), 60.0, True),
        ((FULL, {**FULL, 'busy': 7}), 60.0, True),
        ((FULL, {}), 60.0, True),
    ],
    ids=['all are full', 'for as long as a lease', 'one has nothing waiting', 'one has a thread', 'one says nothing'],
)
def test_a_node_is_not_told_of_again_while_every_worker_has_more_than_it_can_begin(harness, loads, lease_s, is_told):
    """It most likely waits there: with a large tree the messages of the sweeper were a third of all, for nothing."""
    stack = harness.create({'r': OLD})
    harness.messages.checks.clear()
    for worker, load in zip(harness.workers, loads, strict=True):
        harness.roster.beat(worker.id, load)
    harness.sweeper(SweepOptions(older_than_s=-1.0, lease_s=lease_s)).sweep()
    assert harness.messages.checks == ([harness.node(stack, 'r')] if is_told else [])
