"""What is known of a creation stays known, and what is not known is not taken for nothing, whatever comes in between."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from convergence.core.model import Action, Status
from convergence.resources.contract import Done, FinalFailure, InProgress, OutcomeUnknown, TransientFailure
from tests.harness import Harness, emptied
from tests.reality import fails, goes_on, starts
from tests.worker.test_lost_creations import BOTH, FIND, NEXT, PLAIN, TELLING, deliver_until, ends, lose, thing


@pytest.fixture(params=['memory', 'sqlite'])
def harness(request: pytest.FixtureRequest) -> Harness:
    """On both kinds of store. Whatever is not done at once waits in its row."""
    engine = emptied(request.getfixturevalue('sqlite')) if request.param == 'sqlite' else None
    return Harness(engine)


def deleted(harness: Harness, stack_id: str) -> None:
    harness.delete(stack_id)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


# --- a search that gets no answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize('wanted', ['x', 'y'])
@pytest.mark.parametrize('kind', [FIND, BOTH])
def test_a_repair_whose_find_fails_knows_no_more_than_before(harness: Harness, kind: str, wanted: str) -> None:
    stack_id = lose(harness, kind, 'answer_lost')
    token = harness.row(stack_id, 'r').token
    harness.reality.once['find', 'r'] = [fails(TransientFailure('busy'))] * 3
    harness.update(stack_id, thing(kind, wanted))
    harness.recover()
    harness.assert_converged(stack_id, {'r': wanted, 'other': 'x'}, 'UPDATE_COMPLETE')
    assert harness.row(stack_id, 'r').token == token
    assert harness.reality.calls['create', 'r'] == 1
    deleted(harness, stack_id)


@pytest.mark.parametrize('kind', [FIND, BOTH])
def test_a_delete_that_comes_upon_such_a_repair_looks_for_the_object(harness: Harness, kind: str) -> None:
    stack_id = lose(harness, kind, 'answer_lost')
    harness.reality.once['find', 'r'] = [fails(TransientFailure('busy'))]
    harness.update(stack_id, thing(kind, 'y'))
    while harness.row(stack_id, 'r').retry is None:
        harness.deliver()
    assert not harness.row(stack_id, 'r').nothing_made
    deleted(harness, stack_id)


# --- a creation that is put off -----------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', [*TELLING, PLAIN])
def test_what_was_put_off_when_its_stack_failed_is_not_made_in_order_to_be_deleted(
    harness: Harness, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    harness.reality.always['create', 'r'] = fails(TransientFailure('quota'))
    harness.reality.once['create', 'other'] = [fails(FinalFailure('no'))]
    stack_id = harness.create(thing(kind))
    for _ in range(2):
        harness.deliver()
    harness.messages.checks.clear()
    while harness.row(stack_id, 'r').status is Status.IN_PROGRESS:
        harness.sweep()
    row = harness.row(stack_id, 'r')
    assert (row.action, row.status, row.retry, row.nothing_made) == (Action.CREATE, Status.FAILED, None, True)
    calls = harness.reality.calls['create', 'r']
    deleted(harness, stack_id)
    assert harness.reality.calls['create', 'r'] == calls
    assert 'cannot be known' not in caplog.text


@pytest.mark.parametrize('kind', TELLING)
def test_a_creation_that_was_in_progress_has_promised_nothing(harness: Harness, kind: str) -> None:
    """What a poll raises says nothing about the object, however often the worker changes in between."""

    def create(call: Any) -> InProgress:
        harness.reality.make(call)
        return InProgress({'task': 1})

    harness.reality.once['create', 'r'] = [create]
    harness.reality.once['poll', 'r'] = [fails(TransientFailure('busy')), fails(FinalFailure('build failed'))]
    stack_id = harness.create(thing(kind))
    harness.recover()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    assert not harness.row(stack_id, 'r').nothing_made
    deleted(harness, stack_id)


def test_what_is_refused_after_it_was_put_off_is_forgotten(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    harness.reality.once['create', 'r'] = [fails(TransientFailure('busy')), fails(FinalFailure('quota'))]
    stack_id = harness.create(thing(PLAIN))
    harness.recover()
    assert harness.row(stack_id, 'r').nothing_made
    with caplog.at_level(logging.WARNING):
        deleted(harness, stack_id)
    assert 'cannot be known' not in caplog.text


# --- a creation in progress whose object is not known yet ---------------------------------------------------------


def takes_its_time(harness: Harness, kind: str, *, polls: int = 3) -> None:
    """The creation of `r` goes on in the service, where nobody can stop it; at the last poll the object is there."""
    done = iter(range(1, 1000))
    harness.registry.get(kind).can_cancel = lambda action: False  # type: ignore[method-assign]
    harness.reality.once['create', 'r'] = [lambda call: InProgress({'round': 0})]

    def poll(call: Any) -> Done | InProgress:
        number = next(done)
        return Done(harness.reality.make(call)) if number >= polls else InProgress({'round': number})

    harness.reality.always['poll', 'r'] = poll


def fails_after_r_has_begun(harness: Harness) -> None:
    def create(call: Any) -> None:
        raise FinalFailure('no') if harness.reality.calls['create', 'r'] else TransientFailure('not yet')

    harness.reality.always['create', 'other'] = create  # type: ignore[assignment]


def begun(harness: Harness, kind: str, **args: Any) -> str:
    stack_id = harness.create(thing(kind), **args)
    deliver_until(harness, lambda: harness.row(stack_id, 'r').progress is not None)
    return stack_id


@pytest.mark.parametrize('then', ['removed', 'deleted', 'replaced', 'removed_and_replaced'])
@pytest.mark.parametrize('kind', TELLING)
@pytest.mark.parametrize('cancelled', [False, True], ids=['', 'cancelled'])
def test_what_cannot_be_stopped_is_polled_until_its_object_is_known(
    harness: Harness, kind: str, then: str, cancelled: bool
) -> None:
    takes_its_time(harness, kind)
    stack_id = begun(harness, kind)
    if cancelled:
        harness.cancel(stack_id, rollback=False)
        harness.recover()
        assert harness.row(stack_id, 'r').progress is not None
    ends(harness, stack_id, NEXT[then](harness, stack_id, kind))
    assert harness.reality.calls['poll', 'r'] >= 3
    assert harness.reality.calls['cancel', 'r'] == 0 or cancelled


@pytest.mark.parametrize('kind', TELLING)
def test_a_rollback_polls_it_too(harness: Harness, kind: str) -> None:
    takes_its_time(harness, kind)
    fails_after_r_has_begun(harness)
    stack_id = begun(harness, kind, disable_rollback=False)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'ROLLBACK_COMPLETE')
    assert ('poll', 'r', None) in harness.reality.journal


def test_what_can_be_stopped_is_stopped_before_it_is_removed(harness: Harness) -> None:
    """Once; whether an update, a rollback or a delete removes it."""
    harness.reality.once['create', 'r'] = [starts(harness.reality)]
    harness.reality.always['poll', 'r'] = goes_on()
    stack_id = begun(harness, FIND)
    harness.update(stack_id, {'other': 'x'})
    ends(harness, stack_id, {'other': 'x'})
    assert [verb for verb, name, _ in harness.reality.journal if name == 'r' and verb != 'poll'] == [
        'create',
        'cancel',
        'delete',
    ]


# --- an object that comes after the creation has failed -----------------------------------------------------------


def comes_at_the_second_look(harness: Harness) -> None:
    harness.reality.once['find', 'r'] = [lambda call: None, lambda call: harness.reality.make(call) and None]


def cancelled(harness: Harness) -> str:
    harness.reality.once['create', 'r'] = [lambda call: InProgress({'task': 1})]
    harness.reality.always['poll', 'r'] = goes_on()
    stack_id = begun(harness, FIND)
    harness.cancel(stack_id, rollback=False)
    return stack_id


def removed_while_it_goes_on(harness: Harness) -> str:
    harness.reality.once['create', 'r'] = [lambda call: InProgress({'task': 1})]
    harness.reality.always['poll', 'r'] = goes_on()
    return begun(harness, FIND)


def too_late(harness: Harness) -> str:
    harness.reality.once['create', 'r'] = [lambda call: InProgress({'task': 1})]
    harness.reality.always['poll', 'r'] = goes_on()
    limit = {'metadata': {'convergence': {'time_limits': {'create': 0.000001}}}}
    return harness.create(thing(FIND, **limit))


def failed_while_it_went_on(harness: Harness) -> str:
    harness.reality.once['create', 'r'] = [lambda call: InProgress({'task': 1})]
    harness.reality.once['poll', 'r'] = [fails(FinalFailure('build failed'))]
    return harness.create(thing(FIND))


def connection_reset(harness: Harness) -> str:
    harness.reality.once['create', 'r'] = [fails(ConnectionResetError('by peer'))]
    return harness.create(thing(FIND))


def said_to_be_unknown(harness: Harness) -> str:
    harness.reality.once['create', 'r'] = [fails(OutcomeUnknown('no answer'))]
    return harness.create(thing(FIND))


WAYS = [cancelled, removed_while_it_goes_on, too_late, failed_while_it_went_on, connection_reset, said_to_be_unknown]


@pytest.mark.parametrize('then', ['removed', 'deleted'])
@pytest.mark.parametrize('way', WAYS, ids=lambda way: way.__name__)
def test_an_object_that_comes_late_is_found(harness: Harness, way: Callable[[Harness], str], then: str) -> None:
    """The worker that made the call is alive all the time; the service is only slow."""
    stack_id = way(harness)
    if way is not removed_while_it_goes_on:
        harness.run()
    comes_at_the_second_look(harness)
    wanted = NEXT[then](harness, stack_id, FIND)
    harness.run()
    row = harness.row(stack_id, 'r')
    assert (row.action, row.status) == (Action.DELETE, Status.IN_PROGRESS), 'it is looked for again'
    assert row.search_until is not None
    assert row.search_until > time.time() + 30
    ends(harness, stack_id, wanted)
    assert harness.reality.calls['find', 'r'] >= 2
