"""The answer to a commit is lost, and nobody knows whether it took effect: it did."""

import itertools

import pytest

from convergence import errors
from convergence.core.model import TraversalStatus
from convergence.db.scopes import NewStack, StackAlone, WholeStack
from convergence.db.statements.loading.load import load
from tests.harness import Harness, emptied
from tests.on_databases import DATABASES

OLD, NEW = {'r': 'old'}, {'r': 'new'}


@pytest.fixture(params=DATABASES)
def harness(request, engines):
    """A harness on each kind of database."""
    return Harness(emptied(engines(request.param)))


def lose_the_answer(harness, scope, then=lambda: None):
    """To the next commit of a transaction on such a scope. Whatever comes `then` comes before the next attempt."""
    once, armed = harness.store._once, [True]

    def lost(wanted, decide, following):
        committed = once(wanted, decide, following)
        if armed and isinstance(wanted, scope):
            armed.clear()
            then()
            raise errors.DatabaseUnavailable('The database cannot be reached: it closed the connection')
        return committed

    harness.store._once = lost


def test_a_create_is_accepted_once(harness):
    """And the caller's own stack is not held against it."""
    lose_the_answer(harness, NewStack)
    stack = harness.create(OLD)
    harness.run()
    harness.assert_converged(stack, OLD, 'CREATE_COMPLETE')
    assert len(harness.reader.traversals(stack)) == 1
    assert harness.messages.sent == 1
    with pytest.raises(errors.StackExists):
        harness.create(NEW)


def test_a_create_that_reaches_the_limit_is_accepted(harness):
    """In the second attempt the stack is one too many: it counts itself."""
    limits = harness.stacks._limits
    harness.stacks._limits = type(limits)(max_stacks_per_project=1)
    lose_the_answer(harness, NewStack)
    stack = harness.create(OLD)
    harness.run()
    harness.assert_converged(stack, OLD, 'CREATE_COMPLETE')
    with pytest.raises(errors.RequestLimitExceeded):
        harness.create(OLD, 'other')


def test_an_update_is_accepted_once(harness):
    stack = harness.created(OLD)
    lose_the_answer(harness, WholeStack)
    harness.update(stack, NEW)
    harness.run()
    harness.assert_converged(stack, NEW, 'UPDATE_COMPLETE')
    assert len(harness.reader.traversals(stack)) == 2
    assert harness.events(stack) == [
        'CREATE_IN_PROGRESS',
        'CREATE_COMPLETE',
        'UPDATE_IN_PROGRESS',
        'UPDATE_COMPLETE',
    ]


def test_an_update_that_was_accepted_and_superseded_at_once_is_not_accepted_again(harness):
    """It was there, and another one came before the second attempt: that one counts."""
    stack = harness.created(OLD)
    lose_the_answer(harness, WholeStack, lambda: harness.update(stack, {'r': 'third'}))
    harness.update(stack, NEW)
    harness.run()
    harness.assert_converged(stack, {'r': 'third'}, 'UPDATE_COMPLETE')
    statuses = [each.status for each in harness.reader.traversals(stack)]
    assert statuses == [TraversalStatus.COMPLETE, TraversalStatus.SUPERSEDED, TraversalStatus.COMPLETE]


def test_a_delete_stops_the_workers_all_the_same(harness):
    """What it took over from is known from its first attempt."""
    stack = harness.created(OLD)
    running = harness.update(stack, NEW)
    lose_the_answer(harness, WholeStack)
    harness.delete(stack)
    assert harness.messages.cancels == [(stack, running)]
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_a_cancel_with_rollback_is_accepted_once(harness):
    stack = harness.created(OLD)
    running = harness.update(stack, NEW)
    lose_the_answer(harness, WholeStack)
    harness.cancel(stack, rollback=True)
    assert harness.messages.cancels == [(stack, running)]
    harness.run()
    harness.assert_converged(stack, OLD, 'ROLLBACK_COMPLETE')
    assert len(harness.reader.traversals(stack)) == 3


def test_a_cancel_is_accepted_once(harness):
    stack = harness.created(OLD)
    running = harness.update(stack, NEW)
    lose_the_answer(harness, StackAlone)
    harness.cancel(stack, rollback=False)
    assert harness.messages.cancels == [(stack, running)]
    assert harness.state(stack) == 'UPDATE_FAILED'
    with pytest.raises(errors.NotSupported):
        harness.cancel(stack, rollback=False)


def test_a_commit_that_did_not_take_effect_is_made_again(harness):
    """The other way round: the connection was lost before."""
    stack = harness.created(OLD)
    once, failures = harness.store._once, [errors.DatabaseUnavailable('gone'), errors.Conflict('changed')]

    def lost(wanted, decide, following):
        if failures and isinstance(wanted, WholeStack):
            with harness.store.writing() as connection:
                decide(load(connection, wanted))
            raise failures.pop()
        return once(wanted, decide, following)

    harness.store._once = lost
    harness.update(stack, NEW)
    harness.run()
    harness.assert_converged(stack, NEW, 'UPDATE_COMPLETE')
    assert failures == []


def test_who_is_refused_for_another_reason_is_refused(harness):
    """The name belongs to somebody else, whose stack came between the look and the write."""
    harness.reader.stack_named = lambda project_id, name: None
    harness.created(OLD)
    with pytest.raises(errors.StackExists):
        harness.create(NEW)


def test_an_outage_without_an_end_is_told(harness):
    """Whether the update was accepted is not known then, and nothing is claimed."""
    stack = harness.created(OLD)

    def away(wanted, decide, following):
        raise errors.DatabaseUnavailable('The database cannot be reached: refused')

    harness.store._once = away
    harness.store._clock = map(float, itertools.count()).__next__  # each look at it is a second later
    with pytest.raises(errors.DatabaseUnavailable):
        harness.update(stack, NEW)
