"""A creation ends without an answer, in each way in which that can be, and then anything else is asked for.

However a type can tell what was made, there is one object in the end where one is wanted, and none is left when the
stack is gone. Where it cannot tell, the user is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from convergence.core.effects import Decision, UpdateResource
from convergence.core.model import Action, Status
from convergence.db.scopes import StackAlone
from convergence.resources.contract import (
    Done,
    FinalFailure,
    ForeignObject,
    InProgress,
    OutcomeUnknown,
    ReplacementNeeded,
    TransientFailure,
)
from tests.harness import Crash, Harness, emptied
from tests.reality import fails, makes_then

FIND, TOKEN, BOTH, PLAIN = 'Test::Thing', 'Test::Token', 'Test::Enforced', 'Test::Plain'
TELLING = (FIND, TOKEN, BOTH)


@pytest.fixture(params=['memory', 'sqlite'])
def harness(request: pytest.FixtureRequest) -> Harness:
    """On both kinds of store."""
    engine = emptied(request.getfixturevalue('sqlite')) if request.param == 'sqlite' else None
    return Harness(engine)


def thing(kind: str, value: str = 'x', **more: Any) -> dict[str, Any]:
    """A template of one resource `r`, and one that stays."""
    return {'r': {'type': kind, 'value': value, **more}, 'other': 'x'}


# --- how the answer is lost ---------------------------------------------------------------------------------------


def kill(harness: Harness) -> None:
    """The process is gone in the middle of the call."""
    harness.store.dead = True
    raise Crash


def killed_after(harness: Harness) -> None:
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, lambda: kill(harness))]


def killed_before(harness: Harness) -> None:
    harness.reality.once['create', 'r'] = [lambda call: kill(harness)]


def answer_lost(harness: Harness) -> None:
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, ConnectionResetError('by peer'))]


def said_to_be_unknown(harness: Harness) -> None:
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, OutcomeUnknown('no answer'))]


def raised_before(harness: Harness) -> None:
    harness.reality.once['create', 'r'] = [fails(ConnectionResetError('by peer'))]


def refused(harness: Harness) -> None:
    harness.reality.once['create', 'r'] = [fails(FinalFailure('quota exceeded'))]


LOSSES: dict[str, Callable[[Harness], None]] = {
    each.__name__: each
    for each in (killed_after, killed_before, answer_lost, said_to_be_unknown, raised_before, refused)
}


def lose(harness: Harness, kind: str, loss: str, **args: Any) -> str:
    """Create a stack whose `r` is lost; what comes next is asked for before anybody has noticed."""
    LOSSES[loss](harness)
    stack_id = harness.create(thing(kind), **args)
    if loss.startswith('killed'):
        with pytest.raises(Crash):
            harness.run()
        harness.restart()
    else:
        harness.run()
    return stack_id


def deliver_until(harness: Harness, reached: Callable[[], bool]) -> None:
    """One message after the other: no pause is ever long here, and the moment would pass."""
    for _ in range(20):
        if reached():
            return
        harness.deliver()
    raise AssertionError('it never came to that')


# --- what is asked for then ---------------------------------------------------------------------------------------

NEXT: dict[str, Callable[[Harness, str, str], dict[str, str]]] = {}
"""Asks for something; what is wanted then, by resource name."""


def next_step(step: Callable[[Harness, str, str], dict[str, str]]) -> Callable[[Harness, str, str], dict[str, str]]:
    """Something that may be asked for next."""
    NEXT[step.__name__] = step
    return step


@next_step
def same(harness: Harness, stack_id: str, kind: str) -> dict[str, str]:
    harness.update(stack_id, thing(kind))
    return {'r': 'x', 'other': 'x'}


@next_step
def changed(harness: Harness, stack_id: str, kind: str) -> dict[str, str]:
    harness.update(stack_id, thing(kind, 'y'))
    return {'r': 'y', 'other': 'x'}


@next_step
def replaced(harness: Harness, stack_id: str, kind: str) -> dict[str, str]:
    harness.update(stack_id, thing(kind, 'y', key='new'))
    return {'r': 'y', 'other': 'x'}


@next_step
def removed(harness: Harness, stack_id: str, kind: str) -> dict[str, str]:
    harness.update(stack_id, {'other': 'x'})
    return {'other': 'x'}


@next_step
def deleted(harness: Harness, stack_id: str, kind: str) -> dict[str, str]:
    harness.delete(stack_id)
    return {}


@next_step
def removed_and_replaced(harness: Harness, stack_id: str, kind: str) -> dict[str, str]:
    """The leftover is still looked for when the next operation comes."""
    harness.update(stack_id, {'other': 'x'})
    harness.run()
    harness.update(stack_id, thing(kind, 'z', key='newest'))
    return {'r': 'z', 'other': 'x'}


def ends(harness: Harness, stack_id: str, wanted: dict[str, str]) -> None:
    """Everything is as it is wanted; and gone when the stack is."""
    harness.recover()
    end = 'DELETE_COMPLETE' if not wanted else 'UPDATE_COMPLETE'
    harness.assert_converged(stack_id, wanted, end)
    if wanted:
        harness.delete(stack_id)
        harness.recover()
        harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


TABLE = [
    (store, loss, then)
    for store in ('memory', 'sqlite')
    for loss in LOSSES
    for then in NEXT
    if store == 'memory' or loss in ('killed_after', 'answer_lost')
]


@pytest.mark.parametrize(('harness', 'loss', 'then'), TABLE, indirect=['harness'], ids=lambda value: str(value))
@pytest.mark.parametrize('kind', TELLING)
def test_nothing_is_left_and_nothing_made_twice(harness: Harness, kind: str, loss: str, then: str) -> None:
    stack_id = lose(harness, kind, loss)
    ends(harness, stack_id, NEXT[then](harness, stack_id, kind))
    token_calls = harness.reality.calls['create', 'r']
    if kind == TOKEN and loss == 'refused' and then in ('removed', 'deleted'):
        assert token_calls == 1, 'what its type says was not made is not created again in order to be deleted'


@pytest.mark.parametrize('loss', ['killed_after', 'killed_before'])
@pytest.mark.parametrize('kind', TELLING)
def test_a_stack_whose_worker_was_killed_ends_by_itself(harness: Harness, kind: str, loss: str) -> None:
    stack_id = lose(harness, kind, loss)
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x', 'other': 'x'}, 'CREATE_COMPLETE')


@pytest.mark.parametrize('loss', ['answer_lost', 'raised_before', 'refused'])
@pytest.mark.parametrize('kind', TELLING)
def test_a_rollback_leaves_nothing(harness: Harness, kind: str, loss: str) -> None:
    stack_id = lose(harness, kind, loss, disable_rollback=False)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'ROLLBACK_COMPLETE')


@pytest.mark.parametrize('loss', ['killed_after', 'answer_lost'])
@pytest.mark.parametrize('kind', TELLING)
def test_a_replacement_that_is_lost_leaves_nothing_and_what_it_was_to_replace_stays(
    harness: Harness, kind: str, loss: str
) -> None:
    stack_id = harness.created(thing(kind), disable_rollback=False)
    LOSSES[loss](harness)
    harness.update(stack_id, thing(kind, 'y', key='new'))
    if loss == 'killed_after':
        with pytest.raises(Crash):
            harness.run()
        harness.restart()
        harness.cancel(stack_id, rollback=True)
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x', 'other': 'x'}, 'ROLLBACK_COMPLETE')


# --- the second creation ------------------------------------------------------------------------------------------


def test_it_is_repeated_with_the_properties_of_the_attempt(harness: Harness) -> None:
    """And not with those of whatever is wanted by now; in the end they are what is wanted."""
    stack_id = lose(harness, TOKEN, 'answer_lost')
    values: list[str] = []
    harness.reality.always['create', 'r'] = lambda call: values.append(f'{call.token} {call.properties.value}')  # type: ignore[func-returns-value]
    token = harness.row(stack_id, 'r').token
    harness.update(stack_id, thing(TOKEN, 'y', key='new'))
    harness.recover()
    assert f'{token} x' in values
    assert [each for each in values if each.startswith(str(token))] == [f'{token} x']
    harness.assert_converged(stack_id, {'r': 'y', 'other': 'x'}, 'UPDATE_COMPLETE')


def test_it_may_take_its_time_without_telling_the_id(harness: Harness) -> None:
    """The deletion waits in its row until the id is known, whichever worker polls."""
    stack_id = lose(harness, TOKEN, 'answer_lost')
    harness.reality.once['create', 'r'] = [lambda call: InProgress({'round': 1})]
    made = harness.reality.tokens[str(harness.row(stack_id, 'r').token)]
    harness.reality.once['poll', 'r'] = [
        lambda call: InProgress({'round': 2}),
        lambda call: InProgress({'round': 3}, physical_id=made),
    ]
    harness.let_time_pass()
    harness.delete(stack_id)
    deliver_until(harness, lambda: harness.row(stack_id, 'r').progress is not None)
    row = harness.row(stack_id, 'r')
    assert (row.action, row.progress) == (Action.DELETE, {'creating_first': {'round': 1}})
    harness.recover()
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


def test_while_it_is_not_possible_it_is_tried_again_and_then_the_deletion_fails(harness: Harness) -> None:
    stack_id = lose(harness, TOKEN, 'answer_lost')
    harness.reality.always['create', 'r'] = fails(TransientFailure('busy'))
    harness.delete(stack_id)
    harness.recover()
    assert harness.state(stack_id) == 'DELETE_FAILED'
    assert harness.stack(stack_id).status_reason == (
        'Resource DELETE failed: resources.r: it is not known if its interrupted creation has made an object, '
        'because a second creation with the same token is still not possible: busy'
    )
    assert harness.reality.calls['create', 'r'] == 4, 'once at first, and as often as calls are made'
    harness.reality.always.clear()
    harness.delete(stack_id)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


@pytest.mark.parametrize('error', [ValueError('no'), FinalFailure('no'), FinalFailure('no', physical_id='r-1')])
def test_where_it_fails_the_deletion_says_so_unless_the_object_is_named(harness: Harness, error: Exception) -> None:
    """An object may be there: that a creation is not possible any more does not prove that none was."""
    stack_id = lose(harness, TOKEN, 'answer_lost')
    harness.reality.always['create', 'r'] = fails(error)
    named = getattr(error, 'physical_id', None)
    if named:
        (lost,) = (key for key, entry in harness.reality.objects.items() if entry['name'] == 'r')
        harness.reality.objects[named] = harness.reality.objects.pop(lost)
    harness.delete(stack_id)
    harness.recover()
    if named:
        harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')
        return
    assert harness.state(stack_id) == 'DELETE_FAILED'
    assert 'with the same token fails: ' in harness.stack(stack_id).status_reason
    assert 'r' in harness.reality.names()
    harness.reality.always.clear()
    harness.delete(stack_id)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


def test_where_somebody_else_has_what_there_is_only_once_there_is_nothing_to_delete(harness: Harness) -> None:
    """Somebody has removed the object that only a second creation tells of, and another one has its address."""
    stack_id = lose(harness, TOKEN, 'answer_lost')
    (lost,) = (key for key, entry in harness.reality.objects.items() if entry['name'] == 'r')
    del harness.reality.objects[lost]
    harness.reality.always['create', 'r'] = fails(ForeignObject('x-1 has the address'))
    harness.delete(stack_id)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


@pytest.mark.parametrize('kind', TELLING)
def test_a_creation_that_is_put_off_and_then_not_wanted_any_more_is_not_made(harness: Harness, kind: str) -> None:
    harness.reality.always['create', 'r'] = fails(TransientFailure('busy'))
    stack_id = harness.create(thing(kind))
    harness.deliver()
    if harness.messages.checks:
        harness.deliver()
    calls = harness.reality.calls['create', 'r']
    assert calls
    harness.delete(stack_id)
    harness.recover()
    assert harness.reality.calls['create', 'r'] == calls
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


# --- find() -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('error', [TransientFailure('busy'), FinalFailure('no'), ValueError('odd')])
@pytest.mark.parametrize('kind', [FIND, BOTH])
def test_a_find_that_fails_is_no_answer_and_nothing_is_made_twice(
    harness: Harness, kind: str, error: Exception
) -> None:
    stack_id = lose(harness, kind, 'killed_after')
    harness.reality.once['find', 'r'] = [fails(error)] * 7
    harness.recover()
    assert harness.reality.calls['create', 'r'] == 1
    harness.assert_converged(stack_id, {'r': 'x', 'other': 'x'}, 'CREATE_COMPLETE')


def test_a_find_that_fails_is_no_answer_for_another_goal_either(harness: Harness) -> None:
    """What waits to ask again is no creation that was cleanly put off."""
    stack_id = lose(harness, FIND, 'killed_after')
    harness.reality.once['find', 'r'] = [fails(TransientFailure('busy'))] * 2
    harness.sweep()
    deliver_until(harness, lambda: harness.row(stack_id, 'r').retry is not None)
    retry = harness.row(stack_id, 'r').retry
    assert retry is not None
    assert (retry.clean, retry.error) == (False, 'find() does not answer: busy')
    harness.update(stack_id, thing(FIND, 'y', key='new'))
    ends(harness, stack_id, {'r': 'y', 'other': 'x'})


@pytest.mark.parametrize('kind', [FIND, BOTH])
def test_a_delete_whose_find_never_answers_waits_and_fails_at_its_deadline(harness: Harness, kind: str) -> None:
    stack_id = lose(harness, kind, 'killed_after')
    harness.reality.always['find', 'r'] = fails(ValueError('odd'))
    traversal_id = harness.delete(stack_id)
    harness.sweep()
    for _ in range(30):  # no pause is ever long here: it would ask for ever
        harness.fire_timers()
        if harness.messages.checks:
            harness.deliver()
    assert harness.state(stack_id) == 'DELETE_IN_PROGRESS'
    retry = harness.row(stack_id, 'r').retry
    assert retry is not None
    assert retry.attempts > 5
    assert retry.error == 'find() does not answer: ValueError: odd'
    if harness.engine is None:
        return
    harness.expire(traversal_id)
    for _ in range(5):
        harness.sweep()
        harness.deliver_cancels()
    assert harness.state(stack_id) == 'DELETE_FAILED'
    assert harness.stack(stack_id).status_reason == 'DELETE timed out, waiting for r'
    row = harness.row(stack_id, 'r')
    assert (row.action, row.status) == (Action.DELETE, Status.FAILED)
    assert row.status_reason.endswith('find() does not answer: ValueError: odd')
    harness.reality.always.clear()
    harness.delete(stack_id)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')


def test_a_delete_whose_find_never_answers_fails_when_the_resource_has_a_limit_of_its_own(harness: Harness) -> None:
    limit = {'metadata': {'convergence': {'time_limits': {'delete': 0.000001}}}}
    answer_lost(harness)
    stack_id = harness.create(thing(FIND, **limit))
    harness.run()
    harness.reality.always['find', 'r'] = fails(ValueError('odd'))
    harness.delete(stack_id)
    harness.recover()
    assert harness.state(stack_id) == 'DELETE_FAILED'
    assert harness.stack(stack_id).status_reason == (
        'Resource DELETE failed: resources.r: the object of its creation is not known, because find() does not answer: '
        'ValueError: odd'
    )


# --- types that cannot tell ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('then', ['removed', 'deleted'])
@pytest.mark.parametrize('loss', ['killed_after', 'killed_before', 'answer_lost'])
def test_what_cannot_be_known_is_told(harness: Harness, loss: str, then: str, caplog: pytest.LogCaptureFixture) -> None:
    stack_id = lose(harness, PLAIN, loss)
    token = harness.row(stack_id, 'r').token
    NEXT[then](harness, stack_id, PLAIN)
    with caplog.at_level(logging.WARNING):
        harness.recover()
    told = (
        'its creation ended without an answer and may have made an object: Test::Plain has neither find() nor '
        f'token_enforced. Search for an object with the token {token} and delete it manually'
    )
    assert told in caplog.text
    events = [event.reason for event in harness.reader.events(stack_id) if event.resource_name == 'r']
    assert told in events
    assert harness.reality.calls['delete', 'r'] == 0
    left = [] if loss == 'killed_before' else ['r']
    assert [name for name in harness.reality.names() if name == 'r'] == left


@pytest.mark.parametrize('kind', [*TELLING, PLAIN])
def test_only_what_can_be_asked_again_is_waited_for(harness: Harness, kind: str) -> None:
    """The lost request may still make something. Of a type that can tell in no way a wait tells nothing."""
    stack_id = lose(harness, kind, 'killed_before')
    harness.delete(stack_id)
    harness.sweep()
    effect = UpdateResource(
        harness.row(stack_id, 'r').id, None, harness.row(stack_id, 'r').fence, {'search_until': 4e9}
    )
    harness.store.transact(StackAlone(stack_id), lambda view: Decision(None, (effect,)))
    for _ in range(10):
        if harness.messages.checks:
            harness.deliver()
    ended = harness.state(stack_id) == 'DELETE_COMPLETE'
    assert ended is (kind == PLAIN)


@pytest.mark.parametrize('lands', [True, False])
def test_what_holds_something_that_there_is_only_once_is_waited_for(harness: Harness, lands: bool) -> None:
    """The request of a dead worker was still on its way. Another object was asked for, and refused: the port was taken."""
    asked: list[Any] = []

    def ask(call: Any) -> None:
        asked.append(call)
        kill(harness)

    harness.reality.once['create', 'r'] = [ask]
    stack_id = harness.create(thing('Test::Holder'))
    with pytest.raises(Crash):
        harness.run()
    harness.restart()
    harness.sweep()
    row = harness.row(stack_id, 'r')

    def search_until(at: float) -> None:
        effect = UpdateResource(row.id, None, harness.row(stack_id, 'r').fence, {'search_until': at})
        harness.store.transact(StackAlone(stack_id), lambda view: Decision(None, (effect,)))

    search_until(4e9)
    for _ in range(10):
        if harness.messages.checks:
            harness.deliver()
    assert harness.reality.calls['create', 'r'] == 1
    assert harness.row(stack_id, 'r').status is Status.IN_PROGRESS
    if lands:
        harness.reality.make(asked[0])
    else:
        search_until(0.0)
    harness.recover()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    assert harness.reality.names() == ['other', 'r']
    assert harness.reality.calls['create', 'r'] == (1 if lands else 2)


@pytest.mark.parametrize('then', [None, *NEXT])
@pytest.mark.parametrize('crashes', [1, 2])
def test_what_find_says_to_lack_something_is_replaced_and_removed(
    harness: Harness, crashes: int, then: str | None
) -> None:
    """However often a worker dies in making it: one token never has two objects."""
    reality = harness.reality

    def lacking(call: Any) -> None:
        physical_id = reality.tokens.get(call.token)
        if physical_id in reality.objects:
            raise ReplacementNeeded('it lacks something', physical_id=physical_id)

    reality.always['find', 'r'] = lacking
    dies = makes_then(reality, lambda: kill(harness))
    reality.once['create', 'r'] = [dies] * crashes
    stack_id = harness.create(thing(FIND))
    for _ in range(crashes):
        with pytest.raises(Crash):
            harness.recover()
        harness.restart()
    if then is None:
        harness.recover()
        harness.assert_converged(stack_id, {'r': 'x', 'other': 'x'}, 'CREATE_COMPLETE')
        assert reality.calls['create', 'r'] == crashes + 1
    else:
        ends(harness, stack_id, NEXT[then](harness, stack_id, FIND))


def test_of_a_type_that_says_that_it_made_nothing_nothing_is_told(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    stack_id = lose(harness, PLAIN, 'refused')
    harness.delete(stack_id)
    harness.recover()
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')
    assert 'cannot be known' not in caplog.text


def test_an_object_without_an_id_is_deleted(harness: Harness) -> None:
    """Its creation was complete: there is one, and its type knows by the token which."""
    harness.reality.once['create', 'r'] = [lambda call: Done()]
    harness.reality.once['delete', 'r'] = [lambda call: Done()]
    stack_id = harness.created({'r': {'type': PLAIN, 'value': 'x'}})
    assert harness.row(stack_id, 'r').physical_id is None
    harness.delete(stack_id)
    harness.recover()
    assert harness.reality.calls['delete', 'r'] == 1
    harness.assert_converged(stack_id, {}, 'DELETE_COMPLETE')
