"""What is known of a creation stays known, and what is not known is not taken for nothing, whatever comes in between."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from convergence.core.model import Action, Status
from convergence.resources.contract import FinalFailure, InProgress, TransientFailure
from tests.harness import Harness, database
from tests.reality import fails
from tests.worker.test_lost_creations import BOTH, FIND, PLAIN, TELLING, lose, thing


@pytest.fixture(params=['memory', 'sqlite'])
def harness(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Harness]:
    """On both kinds of store. Whatever is not done at once waits in its row."""
    engine = database(f'sqlite:///{tmp_path / "convergence.sqlite"}') if request.param == 'sqlite' else None
    yield Harness(engine)
    if engine is not None:
        engine.dispose()


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
