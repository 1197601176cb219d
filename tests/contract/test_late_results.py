"""What a worker makes known of an object whose row it has lost, on every store: it is kept track of, or left alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from convergence.core.rows import Resource
from convergence.db.schema.models import RESOURCE
from convergence.db.schema.row_columns import stored_values
from convergence.resources.contract import Done, InProgress
from tests.contract.conftest import BACKENDS, emptied
from tests.harness import Harness
from tests.reality import makes_then, meanwhile

FIND, PLAIN = 'Test::Thing', 'Test::Plain'


@pytest.fixture(params=BACKENDS)
def harness(request: pytest.FixtureRequest, engines: Any) -> Harness:
    """On each kind of store."""
    return Harness(None if request.param == 'memory' else emptied(engines(request.param)))


def leave(harness: Harness, stack: str, *names: str) -> None:
    harness.stacks.delete_stack(harness.context, {'stack_id': stack}, leave=list(names))


def left_behind(harness: Harness, stack: str) -> list[str | None]:
    """Physical ids that the events say were left behind, oldest first."""
    events = harness.reader.events(stack)
    return [event.physical_id for event in events if event.reason.startswith('left behind, as requested')]


@pytest.mark.parametrize('kind', [FIND, PLAIN])
def test_what_a_creation_makes_after_it_was_told_to_be_left_is_left(harness: Harness, kind: str) -> None:
    """And its id is told: nothing else knows it."""
    stack = harness.create({'r': {'type': kind, 'value': 'x'}, 'other': 'x'})
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, lambda: leave(harness, stack, 'r'))]
    harness.recover()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.names() == ['r']
    assert left_behind(harness, stack) == [None, *harness.reality.objects]
    assert 'delete' not in [verb for verb, name, _ in harness.reality.journal if name == 'r']


def test_what_was_left_stays_left_in_every_later_delete(harness: Harness) -> None:
    """The creation ends only when the delete that has left it was followed by another one."""

    def delete_twice() -> None:
        leave(harness, stack, 'r')
        leave(harness, stack, 'third')

    stack = harness.create({'r': 'x', 'other': 'x', 'third': {'value': 'x', 'after': ['other']}})
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, delete_twice)]
    harness.recover()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.names() == ['r']
    assert left_behind(harness, stack)[-1:] == list(harness.reality.objects)


def test_what_is_made_when_the_stack_is_gone_is_told_in_its_events(harness: Harness) -> None:
    def leave_it_and_go() -> None:
        leave(harness, stack, 'r')
        harness.run()
        assert harness.state(stack) == 'DELETE_COMPLETE'

    stack = harness.create({'r': 'x'})
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, leave_it_and_go)]
    harness.run()
    assert left_behind(harness, stack) == [None, *harness.reality.objects]


def test_an_object_that_is_found_after_it_was_told_to_be_left_is_not_deleted(harness: Harness) -> None:
    """A delete hangs in `find`: that is what leaving is for, and `find` answers all the same."""
    stack = harness.create({'r': 'x'})
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, ConnectionResetError('by peer'))]
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    harness.reality.once['find', 'r'] = [meanwhile(lambda: leave(harness, stack, 'r'))]
    harness.delete(stack)
    harness.recover()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.names() == ['r']
    assert left_behind(harness, stack)[-1:] == list(harness.reality.objects)


def test_objects_of_two_types_may_have_one_id(harness: Harness) -> None:
    """A row of another type says nothing of the object that a worker has made when it had lost its own row."""
    stack = harness.created({'other': {'type': FIND, 'value': 'x'}})
    physical_id = harness.row(stack, 'other').physical_id

    def lose_the_row() -> None:
        harness.die(harness.workers[0])
        harness.sweep()
        while harness.messages.checks:
            harness.deliver(worker=1)

    def create(call: Any) -> Done:
        lose_the_row()
        return Done(physical_id)

    harness.reality.once['create', 'r'] = [create]
    harness.update(stack, {'other': {'type': FIND, 'value': 'x'}, 'r': {'type': PLAIN, 'value': 'x'}})
    harness.deliver()
    harness.recover()
    assert {row.type for row in harness.rows(stack) if row.physical_id == physical_id} == {FIND, PLAIN}
    harness.update(stack, {'other': {'type': FIND, 'value': 'y'}, 'r': {'type': PLAIN, 'value': 'x'}})
    harness.recover()
    assert ('delete', 'r', physical_id) in harness.reality.journal
    assert [row.type for row in harness.rows(stack) if row.physical_id == physical_id] == [FIND]


# --- a database that has gone back --------------------------------------------------------------------------------


def put_back(harness: Harness, row: Resource) -> None:
    """The row is as it was: what was committed since is lost, as in a fail-over to a server that lacked it."""
    if harness.engine is None:
        harness.store.tables.resource[row.id] = row
        return
    with harness.store.writing() as connection:
        connection.execute(RESOURCE.update().where(RESOURCE.c.id == row.id), [stored_values(row)])
        connection.commit()


def hurry(harness: Harness) -> list[float]:
    """Nobody waits: each look at the clock of the store takes a second. What workers would have waited."""
    harness.store._clock = map(float, itertools.count()).__next__
    waited: list[float] = []
    for worker in harness.workers:
        worker._parts.checks._steps._pause = waited.append
        worker._parts.checks._steps.results._pause = waited.append
    return waited


@pytest.mark.parametrize('lost_by', ['finish', 'record'])
def test_a_result_whose_claim_the_database_has_lost_is_not_kept_for_ever(
    harness: Harness, lost_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody raises the fence again where the traversal is lost as well; the thread comes free, and the log tells."""
    stack = harness.created({'r': 'x'})
    before, waited = harness.row(stack, 'r'), hurry(harness)

    def loses_the_claim(call: Any) -> Any:
        put_back(harness, before)
        return InProgress({'round': 1}) if lost_by == 'record' else None

    harness.reality.once['update', 'r'] = [loses_the_claim]
    harness.update(stack, {'r': 'y'})
    harness.deliver()
    assert sum(waited) < 200.0
    assert 'Claim lost by the database, as after a fail-over' in caplog.text
    assert str(before.physical_id) in caplog.text
    assert harness.row(stack, 'r').owner is None
    harness.recover()
    harness.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')


def test_an_object_whose_claim_the_database_has_lost_becomes_a_leftover(harness: Harness) -> None:
    """The row does not mean it: by its state its creation has never begun."""
    stack = harness.create({'r': 'x'})
    before = harness.row(stack, 'r')
    hurry(harness)
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, lambda: put_back(harness, before))]
    harness.deliver()
    harness.recover()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 2
    assert harness.reality.calls['delete', 'r'] == 1
