"""Every pair of steps of the engine against each other, on databases where transactions really overlap.

One step is stopped in the middle of a transaction, all its locks held, until the other one asks for a lock, which it
may have to wait for. Whatever follows, nobody may wait for ever: everything that happens afterwards comes from the
messages that the two have sent, without a sweep.
"""

from __future__ import annotations

import contextlib
import threading

import pytest
from sqlalchemy import event

from convergence import errors
from convergence.resources.contract import FinalFailure
from tests.contract.rows import at_once
from tests.harness import Harness, WatchedStore
from tests.reality import fails, goes_on

PATIENCE_S = 60.0
"""Only a test that fails waits as long as this."""


class MeetingStore(WatchedStore):
    """Stops one thread in the middle of one of its transactions until another thread wants to lock something.

    :ivar meetings: how often that happened.
    """

    def __init__(self, engine):
        super().__init__(engine)
        self.thread = None
        self.transaction = 0
        self.arrived = threading.Event()
        self.met = threading.Event()
        self.meetings = 0
        event.listen(engine, 'before_cursor_execute', self._statement)

    def meet(self, transaction):
        """The present thread is to be stopped in its transaction of this number."""
        self.thread, self.transaction = threading.get_ident(), transaction

    def transact(self, scope, decide, following=None):
        """As always, but for the meeting."""
        if threading.get_ident() != self.thread:
            return super().transact(scope, decide, following)
        self.transaction -= 1
        if self.transaction:
            return super().transact(scope, decide, following)

        def decide_late(view):
            self.arrived.set()
            assert self.met.wait(PATIENCE_S)
            return decide(view)

        return super().transact(scope, decide_late, following)

    def _statement(self, connection, cursor, statement, *rest):
        waits = self.arrived.is_set() and not self.met.is_set()
        if waits and threading.get_ident() != self.thread and 'FOR UPDATE' in statement:
            self.meetings += 1
            self.met.set()


@pytest.fixture
def world(server_engine):
    """A harness whose steps can be made to meet, and the deadlocks that the database complained of."""
    store = MeetingStore(server_engine)
    harness = Harness(server_engine)
    for part in (harness.dispatcher, harness.traversals):
        part._store = store
    harness.store = store
    harness.workers = [harness.new_worker(), harness.new_worker()]
    harness.deadlocks, harness.ready = [], None

    def note(context):
        if 'deadlock' in str(context.original_exception).lower():
            harness.deadlocks.append(str(context.original_exception))

    event.listen(server_engine, 'handle_error', note)
    yield harness
    event.remove(server_engine, 'handle_error', note)
    event.remove(server_engine, 'before_cursor_execute', store._statement)


BASE = {'r': {'value': 'x', 'key': '1'}, 'gone': 'x'}
NEXT = {'r': {'value': 'y', 'key': '1'}, 'z': {'value': 'z', 'after': ['r']}}
REPLACING = {**NEXT, 'r': {'value': 'y', 'key': '2'}}
OTHER = {'r': {'value': 'other', 'key': '1'}, 'z': 'other'}


def behave(harness, verb, behaviour):
    """What the next call for ``r`` does."""
    harness.reality.once[verb, 'r'] = [behaviour]


def check(name='r', phase='UPDATE', before=lambda harness: None):
    """A step: a worker looks at a node."""

    def prepare(harness, stack, worker):
        before(harness)
        address = harness.node(stack, name, phase)
        return lambda: harness.check(*address, worker=worker)

    return prepare


def asked(operation):
    """A step: a user asks for something; being refused is fine."""

    def prepare(harness, stack, worker):
        def run():
            with contextlib.suppress(errors.NotSupported, errors.ActionInProgress):
                operation(harness, stack)

        return run

    return prepare


STEPS = {
    'succeeds': check(),
    'fails': check(before=lambda harness: behave(harness, 'update', fails(FinalFailure('no')))),
    'parks': check(before=lambda harness: behave(harness, 'update', goes_on())),
    'removes': check('gone', 'CLEANUP'),
    'updates': asked(lambda harness, stack: harness.update(stack, OTHER)),
    'deletes': asked(lambda harness, stack: harness.delete(stack)),
    'cancels': asked(lambda harness, stack: harness.cancel(stack, rollback=False)),
    'rolls back': asked(lambda harness, stack: harness.cancel(stack, rollback=True)),
    'sweeps': asked(lambda harness, stack: harness.sweep()),
}
TWO_TRANSACTIONS = ('succeeds', 'fails', 'parks', 'removes')
"""A claim, then a finish; the others do all they do in one."""


def meet(harness, wanted, first, second, transaction):
    """Let two steps meet while a stack is updated, then let everything end."""
    store = harness.store
    store.arrived.clear()
    store.met.clear()
    store.thread = None
    stack = harness.ready or harness.created(BASE)
    harness.update(stack, wanted)
    one, other = STEPS[first](harness, stack, 0), STEPS[second](harness, stack, 1)

    def stopped_in_the_middle():
        store.meet(transaction)
        try:
            one()
        finally:
            store.arrived.set()

    def meeting():
        assert store.arrived.wait(PATIENCE_S)
        try:
            other()
        finally:
            store.met.set()

    problems = [result for result in at_once(stopped_in_the_middle, meeting) if result is not None]
    assert problems == []
    store.thread = None
    harness.run()
    steps = {first, second}
    harness.ready = settled(harness, stack, 'deletes' in steps, steps & {'cancels', 'rolls back'})


def settled(harness, stack, deleted, cancelled):
    """It has come to an end by itself; then it comes to the one that is asked for, and can be used again."""
    harness.assert_quiet()
    assert not harness.state(stack).endswith('IN_PROGRESS'), harness.stack(stack)
    if deleted:
        if cancelled and harness.state(stack) == 'DELETE_FAILED':
            # The cancel came after the delete and ended it; it is asked for again.
            harness.delete(stack)
            harness.run()
        harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
        return None
    harness.reality.once.clear()
    harness.update(stack, BASE)
    harness.run()
    harness.assert_converged(stack, {'r': 'x', 'gone': 'x'}, 'UPDATE_COMPLETE')
    return stack


@pytest.mark.parametrize('first', STEPS)
def test_two_steps_that_meet_lose_no_wake_up(world, first):
    """F001 to F010, F017, F043, F131: in each transaction of the first; and in one order of locks, without a deadlock."""
    number = 0
    for second in STEPS:
        for transaction in (1, 2) if first in TWO_TRANSACTIONS else (1,):
            number += 1
            meet(world, NEXT, first, second, transaction)
    assert world.deadlocks == []
    assert world.store.meetings >= number // 2


def test_a_replacement_that_meets_anything_loses_no_wake_up(world):
    """F005, F007, F032: the transaction that makes the new row is the second one of its worker."""
    for second in STEPS:
        meet(world, REPLACING, 'succeeds', second, 2)
    assert world.deadlocks == []
