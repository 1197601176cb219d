"""A stack that makes no progress says so: since when, what it waits for, and who holds that."""

from __future__ import annotations

import logging

import pytest

from convergence.db.schema.models import RESOURCE
from convergence.engine.reads.answers import ExplainReads
from convergence.engine.sweeper.tasks import SweepOptions
from convergence.resources.contract import FinalFailure, InProgress, TransientFailure
from tests.harness import Harness
from tests.reality import fails


def report(harness: Harness) -> None:
    """A sweep of an engine to which everything is too slow."""
    harness.sweeper(SweepOptions(stall_after_s=-1.0)).sweep()


def explain(harness: Harness, stack_id: str) -> dict:
    """What the engine says of a stack."""
    return ExplainReads(harness.reader, harness.compiler).stack_explain(harness.context, {'stack_id': stack_id})


def reasons(harness: Harness, stack_id: str) -> list[str]:
    """The events of the stack itself."""
    return [event.reason for event in harness.reader.events(stack_id) if event.resource_name is None]


def test_a_stack_that_stands_still_says_so_once_in_event_reason_and_log(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    stack = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})
    before = harness.stack(stack).status_reason
    with caplog.at_level(logging.WARNING):
        report(harness)
        report(harness)
    shown = harness.stack(stack).status_reason
    assert shown.startswith(f'{before}; no progress since ')
    assert 'waiting for a (taken up by no worker' in shown
    assert len([reason for reason in reasons(harness, stack) if reason.startswith('No progress since')]) == 1
    assert len([line for line in caplog.messages if 'no progress since' in line]) == 1
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'


def test_when_it_goes_on_it_says_that_too(harness: Harness) -> None:
    stack = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})
    before = harness.stack(stack).status_reason
    report(harness)
    harness.deliver()
    report(harness)
    assert harness.stack(stack).status_reason == before
    assert reasons(harness, stack)[-1] == 'Progress again'
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'CREATE_COMPLETE')


def test_a_stack_at_rest_is_not_reported(harness: Harness) -> None:
    stack = harness.created({'a': 'x'})
    events = reasons(harness, stack)
    report(harness)
    assert reasons(harness, stack) == events


def test_who_holds_what_it_waits_for_is_named(harness: Harness) -> None:
    def look(call: object) -> None:
        report(harness)

    harness.reality.once['create', 'a'] = [look]
    stack = harness.create({'a': 'x'})
    harness.run()
    assert any('a (CREATE, held by host, for ' in reason for reason in reasons(harness, stack))


def test_what_backs_off_shows_its_attempts_and_its_last_error(harness: Harness) -> None:
    harness.reality.once['create', 'a'] = [fails(TransientFailure('quota exceeded'))] * 2
    stack = harness.create({'a': 'x'})
    harness.deliver()
    (node,) = explain(harness, stack)['frontier']
    assert (node['state'], node['attempts'], node['last_error']) == ('backing off', 1, 'quota exceeded')
    assert node['next_retry_in_s'] is not None
    assert harness.row(stack, 'a').status_reason == 'attempt 1 failed, retrying: quota exceeded'
    report(harness)
    assert 'a (CREATE, attempt 1 failed: quota exceeded)' in harness.stack(stack).status_reason
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'CREATE_COMPLETE')


def test_a_parked_action_shows_when_it_is_polled_again(harness: Harness) -> None:
    def begins(call: object) -> InProgress:
        return InProgress({}, poll_after_s=20.0)

    harness.reality.once['create', 'a'] = [begins]
    stack = harness.create({'a': 'x'})
    harness.deliver()
    (node,) = explain(harness, stack)['frontier']
    assert (node['state'], node['attempts'], node['owner']) == ('parked', 0, None)


def test_a_failed_stack_names_the_first_failure_and_what_it_kept_from_being_made(harness: Harness) -> None:
    harness.reality.once['create', 'db'] = [fails(FinalFailure('disk full'))]
    stack = harness.create({'db': 'x', 'web': {'value': 'x', 'after': ['db']}})
    harness.run()
    explained = explain(harness, stack)
    assert explained['root_cause'] == {
        'resource_name': 'db',
        'path': 'db',
        'action': 'CREATE',
        'reason': 'disk full',
    }
    assert explained['following'] == [
        {'resource_name': 'web', 'resource_status': 'INIT_COMPLETE', 'reason': 'not begun, because db had failed'},
    ]


@pytest.mark.parametrize('how', ['late', 'cancelled'])
def test_an_update_does_not_wait_for_what_was_given_up_before_anybody_was_told(harness: Harness, how: str) -> None:
    """The engine died, or the cancel was lost: the action is still parked when the next update comes."""
    polls: list[str] = []

    def never_ends(call: object) -> InProgress:
        polls.append('polled')
        return InProgress({'round': 1}, poll_after_s=1000.0)

    stack = harness.created({'a': 'one'})
    harness.reality.once['update', 'a'] = [never_ends]
    harness.update(stack, {'a': 'two'})
    harness.deliver()
    if how == 'late':
        harness.expire(harness.stack(stack).traversal_id or '')
        harness.messages.lost = True
        harness.traversals.time_out(stack, harness.stack(stack).traversal_id or '')
    else:
        harness.messages.lost = True
        harness.cancel(stack, rollback=False)
    harness.messages.lost = False
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert harness.row(stack, 'a').progress == {'round': 1}
    harness.update(stack, {'a': 'three'})
    harness.run()
    harness.assert_converged(stack, {'a': 'three'}, 'UPDATE_COMPLETE')


def test_what_a_lost_creation_may_still_make_is_waited_for_and_said(harness: Harness) -> None:
    """Until when, and by which token a person may look for it."""
    harness.reality.once['create', 'a'] = [fails(ConnectionResetError('by peer'))]
    stack = harness.create({'a': {'type': 'Test::Token', 'value': 'x'}})
    harness.deliver()
    token = harness.row(stack, 'a').token
    with harness.store.writing() as connection:
        connection.execute(RESOURCE.update().values(search_until=4e9))
        connection.commit()
    harness.delete(stack)
    harness.deliver()
    (node,) = explain(harness, stack)['frontier']
    assert (node['state'], node['lost_token'], node['search_until']) == ('searching', token, '2096-10-02T07:06:40Z')
    assert explain(harness, stack)['summary'].endswith(
        'it waits until 2096-10-02T07:06:40Z for objects that lost creations of a may still produce.'
    )
    harness.recover()
    assert harness.state(stack) == 'DELETE_COMPLETE'


def test_a_find_that_does_not_answer_is_shown(harness: Harness) -> None:
    harness.reality.once['create', 'a'] = [fails(ConnectionResetError('by peer'))]
    stack = harness.create({'a': 'x'})
    harness.deliver()
    harness.reality.once['find', 'a'] = [fails(FinalFailure('no such filter'))]
    harness.delete(stack)
    harness.deliver()
    (node,) = explain(harness, stack)['frontier']
    assert (node['state'], node['attempts'], node['last_error']) == (
        'backing off',
        1,
        'find() does not answer: no such filter',
    )
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
