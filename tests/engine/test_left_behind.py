"""Rows that a deleted stack has left: their objects are removed, and each is told."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from convergence.core.model import Action
from convergence.core.rows import Resource
from convergence.db.records import Keep
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.schema.models import RESOURCE
from convergence.db.schema.row_columns import stored_values
from convergence.resources.contract import FinalFailure
from tests.harness import Harness
from tests.reality import fails

TWO = {'a': 'x', 'b': {'value': 'x', 'after': ['a']}}


def deleted_but(harness: Harness, *left: str) -> str:
    """A stack that was deleted while the rows and objects of some names have stayed, whatever the cause; its id."""
    stack = harness.created(TWO)
    rows = {name: harness.row(stack, name) for name in left}
    objects = dict(harness.reality.objects)
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    for row in rows.values():
        put_back(harness, row)
        harness.reality.objects[row.physical_id or ''] = objects[row.physical_id or '']
    return stack


def put_back(harness: Harness, row: Resource) -> None:
    """The row is there again."""
    with harness.store.writing() as connection:
        connection.execute(insert(RESOURCE), [stored_values(row)])
        connection.commit()


def test_what_a_deleted_stack_has_left_is_removed_and_told(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    stack = deleted_but(harness, 'a', 'b')
    ids = {name: harness.row(stack, name).physical_id for name in 'ab'}
    name = harness.stack(stack).name
    harness.create({'other': 'x'}, name)  # the name is free, and stays somebody else's
    harness.recover()
    assert harness.rows(stack) == []
    assert set(harness.reality.values()) == {'other'}
    assert harness.state(stack) == 'DELETE_COMPLETE'
    told = [
        (event.resource_name, event.physical_id) for event in harness.reader.events(stack) if 'left' in event.reason
    ]
    assert sorted(each for each in told if each[0]) == sorted(ids.items())
    for physical_id in ids.values():
        assert f'physical id {physical_id}' in caplog.text
    assert harness.reader.stack_named('p', name).id != stack  # type: ignore[union-attr]


def test_nothing_is_done_about_a_stack_that_has_left_nothing(harness: Harness) -> None:
    stack = harness.created(TWO)
    harness.delete(stack)
    harness.run()
    last = harness.stack(stack).traversal_id
    harness.recover()
    assert harness.stack(stack).traversal_id == last


def test_what_cannot_be_removed_is_tried_again_later_and_never_forgotten(harness: Harness) -> None:
    """The rows are all that is known of the objects: they outlast the time for which deleted stacks are kept."""
    stack = deleted_but(harness, 'a')
    harness.reality.once['delete', 'a'] = [fails(FinalFailure('busy'))]
    harness.recover()
    assert harness.state(stack) == 'DELETE_FAILED'
    keeper = Sweeps(harness.store, Keep(deleted_s=-1e6))
    keeper.purge_stacks(10)
    assert [row.name for row in harness.rows(stack)] == ['a']
    assert harness.sweeps.left_behind(10, 300.0) == []
    assert [found.stack_id for found in harness.sweeps.left_behind(10, -1.0)] == [stack]
    harness.recover()
    assert harness.row(stack, 'a').action is Action.DELETE


def test_what_an_abandoned_stack_has_left_is_forgotten_and_stays(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    stack = harness.created(TWO)
    row = harness.row(stack, 'a')
    harness.abandonment.abandon_stack(harness.context, {'stack_id': stack})
    harness.run()
    put_back(harness, row)
    harness.recover()
    assert harness.rows(stack) == []
    assert harness.reality.names() == ['a', 'b']
    assert harness.state(stack) == 'DELETE_COMPLETE'
    told = [event.reason for event in harness.reader.events(stack) if event.resource_name == 'a']
    assert told[-2:] == [
        'left when the stack was deleted; it is forgotten now, and stays: the stack was abandoned',
        'abandoned',
    ]
    assert f'physical id {row.physical_id}' in caplog.text


def test_a_row_that_stands_for_nothing_is_no_reason(harness: Harness) -> None:
    stack = deleted_but(harness)
    bare = Resource('bare', stack, 'n', 'Test::Thing', Action.INIT, harness.stack(stack).status, 0.0)
    put_back(harness, bare)
    assert harness.sweeps.left_behind(10, 300.0) == []
