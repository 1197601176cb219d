"""Objects that somebody changes behind the engine's back: checks find it, and updates put it right in place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from convergence.core.model import Action, Status
from convergence.resources.contract import Done, FinalFailure, InProgress, TransientFailure
from tests.engine.test_nested import CHILD, child_of, create, nested
from tests.harness import Crash, Harness, hot
from tests.reality import Thing, fails

BOTH: dict[str, Any] = {'r': 'x', 'reader': {'value': 'y', 'link': {'get_resource': 'r'}}}


def object_of(harness: Harness, stack_id: str, name: str = 'r') -> dict[str, Any]:
    """The physical object of a resource."""
    return harness.reality.objects[harness.row(stack_id, name).physical_id or '']


def drifted(harness: Harness, value: str = 'changed by hand') -> str:
    """A stack with an object that somebody has changed; its id."""
    stack_id = harness.created(BOTH)
    object_of(harness, stack_id)['value'] = value
    return stack_id


def checked(harness: Harness, stack_id: str) -> Any:
    """Check the stack, which fails; the row of `r`."""
    harness.act(stack_id, 'check')
    harness.run()
    assert harness.state(stack_id) == 'CHECK_FAILED'
    return harness.row(stack_id, 'r')


def updated(harness: Harness, stack_id: str, **args: Any) -> None:
    """Update the stack to what it is, and see it in order."""
    harness.update(stack_id, BOTH, **args)
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x', 'reader': 'y'}, 'UPDATE_COMPLETE')


def made(harness: Harness) -> int:
    """How often `r` was made."""
    return harness.reality.calls['create', 'r']


def test_an_update_that_compares_with_reality_changes_in_place_what_differs_and_nothing_else(harness: Harness) -> None:
    stack_id = drifted(harness)
    harness.update(stack_id, BOTH)
    harness.run()
    assert object_of(harness, stack_id)['value'] == 'changed by hand'  # nobody has looked
    before = harness.events(stack_id, 'reader')
    updated(harness, stack_id, converge=True)
    assert made(harness) == 1
    assert (harness.reality.calls['update', 'r'], harness.reality.calls['update', 'reader']) == (1, 0)
    assert harness.events(stack_id, 'reader') == before
    updated(harness, stack_id, converge=True)
    assert harness.reality.calls['update', 'r'] == 1


def test_the_update_of_what_differs_begins_from_what_is_really_there(harness: Harness) -> None:
    """A type that applies differences only has none to apply if it is told what it was last given."""
    stack_id = drifted(harness)
    told: list[Any] = []

    def remember(call: Any) -> None:
        told.append((call.previous.value, call.properties.value))

    harness.reality.once['update', 'r'] = [remember]  # type: ignore[list-item]
    updated(harness, stack_id, converge=True)
    assert told == [('changed by hand', 'x')]


def test_what_vanished_is_made_again_and_its_readers_get_the_new_one(harness: Harness) -> None:
    stack_id = harness.created(BOTH)
    old = harness.row(stack_id, 'r').physical_id
    del harness.reality.objects[old or '']
    updated(harness, stack_id, converge=True)
    new = harness.row(stack_id, 'r')
    assert (made(harness), object_of(harness, stack_id, 'reader')['link']) == (2, new.physical_id)
    assert [row.id for row in harness.rows(stack_id, 'r')] == [new.id]


def test_a_check_fails_where_an_object_differs_and_the_next_update_changes_it_in_place(harness: Harness) -> None:
    stack_id = drifted(harness, 'not for the log')
    row = checked(harness, stack_id)
    assert (row.action, row.status, row.repairable) == (Action.CHECK, Status.FAILED, True)
    assert 'value of r' in row.status_reason
    assert 'not for the log' not in row.status_reason + harness.stack(stack_id).status_reason
    updated(harness, stack_id)
    assert made(harness) == 1
    harness.acted(stack_id, 'check')


@pytest.mark.parametrize('error', [PermissionError('no entry'), FinalFailure('no entry'), TransientFailure('later')])
def test_what_cannot_be_looked_at_is_not_made_a_second_time(harness: Harness, error: Exception) -> None:
    """After a ``chmod`` neither check nor update could look into a directory, and made it again."""
    stack_id = harness.created(BOTH)
    harness.reality.always['observe', 'r'] = fails(error)
    assert checked(harness, stack_id).repairable
    harness.update(stack_id, BOTH)
    harness.recover()
    assert (harness.state(stack_id), made(harness)) == ('UPDATE_FAILED', 1)
    del harness.reality.always['observe', 'r']
    updated(harness, stack_id)
    assert made(harness) == 1


def test_a_look_that_fails_in_an_update_is_a_failed_check_and_the_next_update_looks_again(harness: Harness) -> None:
    stack_id = drifted(harness)
    harness.reality.always['observe', 'r'] = fails(FinalFailure('no entry'))
    harness.update(stack_id, BOTH, converge=True)
    harness.recover()
    row = harness.row(stack_id, 'r')
    assert (harness.state(stack_id), row.action, row.status) == ('UPDATE_FAILED', Action.CHECK, Status.FAILED)
    del harness.reality.always['observe', 'r']
    updated(harness, stack_id)
    assert made(harness) == 1


def test_what_no_update_can_put_right_is_said_and_a_person_has_it_made_anew(harness: Harness) -> None:
    stack_id = harness.created(BOTH)
    object_of(harness, stack_id)['key'] = 'another'
    checked(harness, stack_id)
    harness.update(stack_id, BOTH)
    harness.recover()
    assert (harness.state(stack_id), made(harness)) == ('UPDATE_FAILED', 1)
    assert 'key changed outside of the stack, and no update can restore that' in harness.stack(stack_id).status_reason
    harness.actions.resource_mark_unhealthy(harness.context, {'stack_id': stack_id}, 'r', True, 'give me another')
    updated(harness, stack_id)
    assert made(harness) == 2


def test_an_object_that_is_of_no_use_is_replaced_as_before(harness: Harness) -> None:
    stack_id = harness.created(BOTH)
    harness.reality.once['check', 'r'] = [fails(FinalFailure('it is ill'))]
    assert not checked(harness, stack_id).repairable
    updated(harness, stack_id)
    assert made(harness) == 2


def test_the_rollback_of_an_update_that_compares_with_reality_compares_too(harness: Harness) -> None:
    """It updated an object that was gone, and failed: the update had been on the way to make that again."""
    stack_id = harness.created(BOTH)
    harness.reality.objects.clear()
    harness.reality.once['create', 'r'] = [fails(FinalFailure('full'))]
    harness.update(stack_id, BOTH, converge=True, disable_rollback=False)
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x', 'reader': 'y'}, 'ROLLBACK_COMPLETE')


def test_a_check_that_is_cut_off_has_found_nothing_and_the_object_stays(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next update replaced what nobody had seen."""
    stack_id = harness.created(BOTH)
    kind = harness.registry.get(harness.row(stack_id, 'r').type)
    monkeypatch.setattr(type(kind), 'time_limits', {Action.CHECK: 0.0})
    harness.reality.once['check', 'r'] = [lambda call: InProgress({})]
    row = checked(harness, stack_id)
    assert (row.status_reason, row.repairable) == ('CHECK timed out', True)
    updated(harness, stack_id)
    assert made(harness) == 1


def test_a_check_that_raises_what_is_no_verdict_replaces_nothing(harness: Harness) -> None:
    stack_id = harness.created(BOTH)
    harness.reality.once['check', 'r'] = [fails(ConnectionError('reset by peer'))]
    assert checked(harness, stack_id).repairable
    updated(harness, stack_id)
    assert made(harness) == 1


def test_a_worker_that_takes_over_the_repair_looks_at_what_differs_itself(harness: Harness) -> None:
    stack_id = drifted(harness)
    told: list[Any] = []

    def die(call: Any) -> None:
        harness.store.dead = True
        raise Crash

    def remember(call: Any) -> Done | None:
        told.append(call.previous.value)
        return None

    harness.reality.once['update', 'r'] = [die, remember]  # type: ignore[list-item]
    harness.update(stack_id, BOTH, converge=True)
    with pytest.raises(Crash):
        harness.run()
    harness.restart()
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x', 'reader': 'y'}, 'UPDATE_COMPLETE')
    assert (made(harness), told) == (1, ['changed by hand'])


def test_what_is_in_nested_stacks_is_compared_too(harness: Harness) -> None:
    resources, files = {'child': {'type': CHILD, 'value': 'x'}, 'own': 'o'}, {CHILD: nested()}
    stack_id = create(harness, resources, files)
    harness.run()
    child = child_of(harness, stack_id)
    object_of(harness, child.id, 'thing0')['value'] = 'changed by hand'
    harness.stacks.update_stack(
        harness.context, {'stack_id': stack_id}, hot(resources), files=files, args={'converge': True}
    )
    harness.recover()
    assert (harness.state(stack_id), harness.state(child.id)) == ('UPDATE_COMPLETE', 'UPDATE_COMPLETE')
    assert object_of(harness, child.id, 'thing0')['value'] == 'x'
    assert harness.reality.calls['create', 'thing0'] == 1


class Anonymous(Thing):
    """What it makes has no id, and nobody can ask for it."""

    def create(self, call: Any) -> Any:
        """Make it, and say nothing more."""
        return replace(super().create(call), physical_id=None)

    def implements(self, hook: str) -> bool:
        """Everything but `find`."""
        return hook != 'find' and super().implements(hook)

    def observe(self, call: Any) -> Any:
        """Nobody can tell."""


def test_what_has_no_id_and_cannot_be_asked_for_is_not_made_a_second_time(harness: Harness) -> None:
    harness.registry._types['Test::Anonymous'] = Anonymous(harness.reality)
    wanted = {'r': {'type': 'Test::Anonymous', 'value': 'x'}}
    stack_id = harness.created(wanted)
    assert harness.row(stack_id, 'r').physical_id is None
    harness.update(stack_id, wanted, converge=True)
    harness.run()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert made(harness) == 1
