"""One thing that cannot be attended to, for whatever reason, must not keep the sweeper from the others."""

import threading
from itertools import pairwise

import pytest

from convergence import errors
from convergence.core.model import Phase
from convergence.db.backoff import LONGEST, Backoff
from convergence.db.null_ports import ALL_PENDING
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.scopes import HeldResource, LastNode
from convergence.engine.sweeper.tasks import SweepOptions
from convergence.resources.contract import FinalFailure
from tests.harness import Harness, things
from tests.reality import fails, meanwhile

BROKEN = FinalFailure('broken')


class Poison(Exception):
    """Something that nobody has thought of."""


@pytest.fixture
def sweeper(harness):
    """A sweeper that lasts, and looks at one thing of each kind at a time."""
    return make_sweeper(harness, limit=1)


def make_sweeper(harness, limit=500):
    return harness.sweeper(SweepOptions(older_than_s=-1.0, limit=limit))


def poison(harness, scope, is_poisoned):
    """Transactions on such scopes fail, however often they are tried."""
    transact = harness.store.transact
    tried = []

    def poisoned(wanted, decide, following=None):
        if isinstance(wanted, scope) and is_poisoned(wanted):
            tried.append(wanted)
            raise Poison(f'{wanted} cannot be had')
        return transact(wanted, decide, following)

    harness.store.transact = poisoned
    return tried


def test_rows_of_the_dead_are_taken_over_whatever_is_wrong_with_one_of_them(harness, sweeper, caplog):
    """The poisoned one comes first in every answer of the database, and only one is asked for."""
    harness.reality.always = {('create', name): meanwhile(lambda: None) for name in 'abc'}
    stack = harness.create(things('abc'))
    for address in harness.messages.checks:
        harness.workers[0]._parts.checks._steps.begin(*address)
    harness.messages.checks.clear()
    harness.reality.always.clear()
    harness.die(harness.workers[0])
    bad = harness.sweeps.expired_claims(1)[0].resource_id
    tried = poison(harness, HeldResource, lambda scope: scope.resource_id == bad)
    for _ in range(10):
        sweeper.sweep()
    owners = {row.id: row.owner for row in harness.rows(stack)}
    assert owners.pop(bad) is not None
    assert set(owners.values()) == {None}
    assert bad in caplog.text
    assert 2 <= len(tried) < 8, 'it is tried again, but less and less often'


@pytest.mark.parametrize('limit', [1, 500])
def test_stacks_are_settled_whatever_is_wrong_with_one_of_them(harness, limit):
    harness.settling = False
    harness.reality.always['create', 'r'] = fails(BROKEN)
    stacks = [harness.create({'r': 'x'}, name) for name in 'abc']
    harness.run()
    bad = harness.sweeps.unsettled(1)[0].stack_id
    fail = harness.traversals._fail

    def poisoned(stack, *reason):
        if stack.id == bad:
            raise Poison('no')
        fail(stack, *reason)

    harness.traversals._fail = poisoned
    sweeper = make_sweeper(harness, limit)
    for _ in range(4):
        sweeper.sweep()
    assert {stack: harness.state(stack) for stack in stacks} == {
        stack: 'CREATE_IN_PROGRESS' if stack == bad else 'CREATE_FAILED' for stack in stacks
    }
    harness.traversals._fail = fail
    for _ in range(LONGEST):
        sweeper.sweep()
    assert harness.state(bad) == 'CREATE_FAILED'


def test_late_traversals_are_ended_whatever_is_wrong_with_one_of_them(harness, sweeper):
    stacks = [harness.create({'r': 'x'}, name) for name in 'abc']
    for stack in stacks:
        harness.expire(harness.stack(stack).traversal_id)
    harness.messages.checks.clear()
    bad = harness.sweeps.overdue(1)[0].stack_id
    time_out = harness.traversals.time_out

    def poisoned(stack_id, traversal_id):
        if stack_id == bad:
            raise Poison('no')
        time_out(stack_id, traversal_id)

    harness.traversals.time_out = poisoned
    for _ in range(4):
        sweeper.sweep()
    assert sorted(harness.state(stack) for stack in stacks) == ['CREATE_FAILED', 'CREATE_FAILED', 'CREATE_IN_PROGRESS']


def test_ready_nodes_are_cast_whatever_is_wrong_with_one_that_is_concluded(harness):
    """They count as told from the moment they were found: who is not told then is not found again for a while."""
    ended, ready = harness.create({'r': 'x'}, 'ended'), harness.create({'s': 'x'}, 'ready')

    def away():
        raise errors.DatabaseUnavailable('The database cannot be reached: for a moment')

    harness.store.before(LastNode, away)
    harness.check(*harness.node(ended, 'r'))
    poison(harness, LastNode, lambda scope: True)
    harness.messages.checks.clear()
    last = harness.sweeps.undispatched(-1.0, 10)
    assert {node.phase for node in last} == {Phase.UPDATE, Phase.IN_SERVICE}
    make_sweeper(harness).sweep()
    assert harness.messages.checks == [harness.node(ready, 's')]


@pytest.mark.parametrize('limit', [1, 10])
def test_nodes_are_removed_whatever_is_wrong_with_one_traversal(harness, monkeypatch, limit):
    stacks = [harness.created({'r': 'x'}, name) for name in 'abc']
    traversals = {harness.stack(stack).traversal_id for stack in stacks}
    purge, bad = Sweeps._purge, []

    def poisoned(self, over):
        bad[:] = bad or [over[0].id]
        if any(each.id in bad for each in over):
            raise Poison('no')
        return purge(self, over)

    monkeypatch.setattr(Sweeps, '_purge', poisoned)
    for _ in range(4):
        harness.sweeps.purge_nodes(limit)
    assert {each for each in traversals if StackReader(harness.store).nodes(each)} == set(bad)


def test_a_database_that_is_away_ends_the_sweep_instead_of_failing_everything_in_turn(harness, sweeper):
    """Each of a thousand rows would be waited for as long as a restart takes."""
    stack = harness.create(things('abc'))
    for address in harness.messages.checks:
        harness.workers[0]._parts.checks._steps.begin(*address)
    harness.die(harness.workers[0])
    transact, tried = harness.store.transact, []

    def away(scope, decide, following=None):
        tried.append(scope)
        raise errors.DatabaseUnavailable('The database cannot be reached: refused')

    harness.store.transact = away
    with pytest.raises(errors.DatabaseUnavailable):
        make_sweeper(harness).sweep()
    assert len(tried) == 1
    harness.store.transact = transact
    harness.messages.checks.clear()
    harness.recover()
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_an_engine_answers_while_its_sweeper_is_held_up(engine):
    """A chore waits for a row; requests do not wait for the chore."""
    harness = Harness(engine)
    entered, going_on, ended = threading.Event(), threading.Event(), threading.Event()

    def held_up(limit):
        entered.set()
        going_on.wait(60.0)
        return []

    harness.pending, harness.sweeps.expired_claims = ALL_PENDING, held_up
    sweeper = harness.sweeper(SweepOptions(interval_s=0.01))
    harness.sweeps.overdue = lambda limit: ended.set() or []
    sweeper.start()
    assert entered.wait(60.0)
    stack = harness.created({'r': 'x'})
    harness.update(stack, {'r': 'y'})
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert not ended.is_set()
    going_on.set()
    assert ended.wait(60.0)
    sweeper.stop()


def test_whoever_closes_an_engine_may_take_its_database_away(engine):
    """A sweep in progress is waited for: what it finds gone afterwards would be told as an outage."""
    harness = Harness(engine)
    entered, going_on = threading.Event(), threading.Event()

    def held_up(limit):
        entered.set()
        going_on.wait(60.0)
        return []

    harness.pending, harness.sweeps.expired_claims = ALL_PENDING, held_up
    sweeper = harness.sweeper(SweepOptions(interval_s=0.01))
    sweeper.start()
    assert entered.wait(60.0)
    sweeper.stop()
    assert not sweeper.wait(0.01)
    going_on.set()
    assert sweeper.wait(60.0)


# --- what is remembered -----------------------------------------------------------------------------------------


def rounds_in_which_it_is_tried(backoff, rounds):
    tried = []
    for number in range(rounds):
        backoff.begin()
        if not backoff.is_passed_over('item'):
            tried.append(number)
            backoff.failed('item')
    return tried


def test_what_fails_again_and_again_is_tried_less_and_less_often_but_for_ever():
    tried = rounds_in_which_it_is_tried(Backoff(), 300)
    pauses = [later - earlier - 1 for earlier, later in pairwise(tried)]
    assert pauses[:5] == [0, 1, 2, 4, 8]
    assert set(pauses[8:]) == {LONGEST}


def test_what_has_succeeded_begins_anew():
    backoff = Backoff()
    rounds_in_which_it_is_tried(backoff, 10)
    backoff.succeeded('item')
    assert len(backoff) == 0
    assert rounds_in_which_it_is_tried(backoff, 2) == [0, 1]


def test_no_more_is_remembered_than_is_allowed_nor_for_longer_than_it_matters():
    backoff = Backoff(most=3)
    backoff.begin()
    for number in range(5):
        backoff.failed(number)
    assert len(backoff) == 3
    for _ in range(LONGEST + 2):
        backoff.begin()
    assert len(backoff) == 0
