"""What was interrupted or has failed is looked at again: by an operation that only checks, and by a repair."""

from __future__ import annotations

import pytest

from convergence.core.model import Action, Status
from tests.harness import Crash, Harness, emptied
from tests.reality import fails
from tests.worker.test_lost_creations import FIND, PLAIN, kill, thing


@pytest.fixture(params=['memory', 'sqlite'])
def harness(request: pytest.FixtureRequest) -> Harness:
    """On both kinds of store."""
    engine = emptied(request.getfixturevalue('sqlite')) if request.param == 'sqlite' else None
    return Harness(engine)


@pytest.mark.parametrize('action', ['check', 'suspend', 'resume'])
def test_a_creation_that_was_cut_off_is_not_made_anew(harness: Harness, action: str) -> None:
    harness.reality.once['create', 'r'] = [lambda call: kill(harness)]  # type: ignore[list-item]
    alone = {'r': {'type': PLAIN, 'value': 'x'}}
    stack_id = harness.create(alone)
    with pytest.raises(Crash):
        harness.run()
    harness.restart()
    harness.cancel(stack_id, rollback=False)
    harness.act(stack_id, action)
    harness.run()
    for _ in range(3):
        harness.sweep()
        harness.run()
    (row,) = harness.rows(stack_id, 'r')
    assert (row.action, row.status, row.replaced_by) == (Action.CREATE, Status.FAILED, None)
    assert harness.state(stack_id) == f'{action.upper()}_FAILED'
    assert f'State CREATE_FAILED invalid for {action}' in harness.stack(stack_id).status_reason
    harness.update(stack_id, alone)
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x'}, 'UPDATE_COMPLETE')


@pytest.mark.parametrize('wanted', ['y', 'z'])
def test_an_update_that_a_repair_leads_to_has_a_limit_and_a_beginning_of_its_own(harness: Harness, wanted: str) -> None:
    limits = {'metadata': {'convergence': {'time_limits': {'update': 600, 'create': 900}}}}
    stack_id = harness.created(thing(FIND, **limits))
    harness.reality.once['update', 'r'] = [fails(ValueError('no'))]
    harness.update(stack_id, thing(FIND, 'y', **limits))
    harness.recover()
    failed = harness.row(stack_id, 'r')
    assert (failed.status, failed.deadline) == (Status.FAILED, None)
    seen = []
    harness.reality.once['update', 'r'] = [lambda call: seen.append(harness.row(stack_id, 'r'))]  # type: ignore[func-returns-value]
    harness.update(stack_id, thing(FIND, wanted, **limits))
    harness.recover()
    harness.assert_converged(stack_id, {'r': wanted, 'other': 'x'}, 'UPDATE_COMPLETE')
    (row,) = seen
    assert row.began_at is not None
    assert failed.began_at is not None
    assert row.began_at > failed.began_at
    assert row.deadline == pytest.approx(row.began_at + 600)
    assert harness.row(stack_id, 'r').deadline is None
