"""F106: no call that changes anything begins once a cancel is committed and was told. On every store."""

from __future__ import annotations

from typing import Any

import pytest

from convergence.core.model import Status
from convergence.db.scopes import HeldResource, OneNode
from tests.contract.conftest import BACKENDS, emptied
from tests.harness import Harness
from tests.reality import fails, makes_then, meanwhile

TOKEN = 'Test::Token'


@pytest.fixture(params=BACKENDS)
def harness(request: pytest.FixtureRequest, engines: Any) -> Harness:
    """On each kind of store."""
    return Harness(None if request.param == 'memory' else emptied(engines(request.param)))


def cancel(harness: Harness, stack: str) -> None:
    """Whoever asked does not want it any more, and every worker hears of it."""
    harness.cancel(stack, rollback=False)
    harness.deliver_cancels()


def assert_ends_well(harness: Harness, stack: str) -> None:
    """Nobody holds anything, and the stack can be deleted."""
    harness.recover()
    assert {row.status for row in harness.rows(stack)} <= {Status.COMPLETE, Status.FAILED}
    harness.assert_quiet()
    harness.delete(stack)
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


@pytest.mark.parametrize('verb', ['create', 'update', 'delete', 'suspend'])
def test_nothing_is_called_after_a_cancel_that_comes_between_claim_and_call(harness: Harness, verb: str) -> None:
    stack = harness.create({'r': 'x'}) if verb == 'create' else harness.created({'r': 'x'})
    if verb == 'update':
        harness.update(stack, {'r': 'y'})
    elif verb == 'delete':
        harness.delete(stack)
    elif verb == 'suspend':
        harness.act(stack, 'suspend')
    harness.store.after(OneNode, lambda: cancel(harness, stack))
    harness.run()
    harness.sweep()
    assert harness.reality.calls[verb, 'r'] == 0
    assert harness.state(stack) == f'{verb.upper()}_FAILED'
    assert_ends_well(harness, stack)


def test_what_was_found_is_not_deleted_after_a_cancel(harness: Harness) -> None:
    stack = harness.create({'r': 'x'})
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, ConnectionResetError('by peer'))]
    harness.run()
    harness.reality.once['find', 'r'] = [meanwhile(lambda: cancel(harness, stack))]
    harness.delete(stack)
    harness.run()
    harness.sweep()
    assert harness.reality.calls['delete', 'r'] == 0
    assert harness.row(stack, 'r').physical_id in harness.reality.objects
    assert_ends_well(harness, stack)


def test_nothing_is_created_a_second_time_after_a_cancel(harness: Harness) -> None:
    """As it would be in order to learn what there is to delete."""
    stack = harness.create({'r': {'type': TOKEN, 'value': 'x'}})
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, ConnectionResetError('by peer'))]
    harness.run()
    harness.delete(stack)
    harness.store.after(OneNode, lambda: cancel(harness, stack))
    harness.run()
    harness.sweep()
    assert harness.reality.calls['create', 'r'] == 1
    assert_ends_well(harness, stack)


def test_a_repair_that_has_looked_changes_nothing_after_a_cancel(harness: Harness) -> None:
    stack = harness.created({'r': 'x'})
    harness.reality.once['update', 'r'] = [fails(ValueError('no'))]
    harness.update(stack, {'r': 'y'})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.update(stack, {'r': 'y'})
    harness.store.before(HeldResource, lambda: cancel(harness, stack))
    harness.run()
    harness.sweep()
    assert harness.reality.calls['observe', 'r'] == 1
    assert harness.reality.calls['update', 'r'] == 1
    assert_ends_well(harness, stack)
