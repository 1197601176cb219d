"""A user asks to go back: from what is in progress, from what has failed, and from what is complete."""

from __future__ import annotations

import pytest

from convergence import errors
from convergence.engine.preview.preview import Previews
from convergence.engine.reads.history import HistoryReads
from convergence.resources.contract import FinalFailure
from tests.reality import fails, goes_on

FIRST = {'a': {'value': 'x'}, 'b': {'value': 'x', 'after': ['a']}}
SECOND = {'a': {'value': 'y'}, 'c': {'value': 'y', 'after': ['a']}}
X, Y = {'a': 'x', 'b': 'x'}, {'a': 'y', 'c': 'y'}


def back(harness, stack, **more):
    harness.rollbacks.stack_rollback(harness.context, {'stack_id': stack}, **more)
    harness.run()


def updated(harness):
    """A stack that has been one thing, and is another."""
    stack = harness.created(FIRST)
    harness.update(stack, SECOND)
    harness.run()
    return stack


def test_a_complete_stack_goes_back_to_what_it_was_before_and_forward_again(harness):
    """The templates are still there for that; older ones go."""
    stack = updated(harness)
    first, second = harness.stack(stack).previous_good_template_id, harness.stack(stack).template_id
    preview = Previews(harness.reader, harness.registry, harness.stacks).preview_rollback(
        harness.context, {'stack_id': stack}
    )
    assert {fate: [each['resource_name'] for each in lists] for fate, lists in preview.items() if lists} == {
        'updated': ['a'],
        'added': ['b'],
        'deleted': ['c'],
    }
    back(harness, stack)
    harness.assert_converged(stack, X, 'ROLLBACK_COMPLETE')
    now = harness.stack(stack)
    assert (now.template_id, now.previous_good_template_id) == (first, second)
    assert now.status_reason == 'Stack ROLLBACK completed successfully; requested after UPDATE_COMPLETE'
    back(harness, stack)
    harness.assert_converged(stack, Y, 'ROLLBACK_COMPLETE')
    harness.update(stack, {'a': {'value': 'z'}})
    harness.run()
    assert harness.reader.template(first) is None
    history = HistoryReads(harness.reader, harness.compiler, harness.ports.observations).list_traversals(
        harness.context, {'stack_id': stack}
    )
    assert [each['action'] for each in history] == ['UPDATE', 'ROLLBACK', 'ROLLBACK', 'UPDATE', 'CREATE']


def test_after_a_failure_the_stack_goes_back_to_what_was_last_complete(harness):
    """Also when the way back fails at first."""
    stack = harness.created(FIRST)
    harness.reality.always['create', 'c'] = fails(FinalFailure('no'))
    harness.update(stack, SECOND)
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.reality.always['update', 'a'] = fails(FinalFailure('not now'))
    back(harness, stack)
    assert harness.state(stack) == 'ROLLBACK_FAILED'
    harness.reality.always.clear()
    back(harness, stack)
    harness.assert_converged(stack, X, 'ROLLBACK_COMPLETE')


def test_while_only_leftovers_are_removed_the_way_back_is_open(harness):
    """A cancel with rollback has nothing to take back by then."""
    stack = harness.created(FIRST)
    harness.reality.always['delete', 'b'] = goes_on()
    harness.update(stack, SECOND)
    while harness.stack(stack).last_good_template_id != harness.stack(stack).template_id:
        harness.deliver()
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    told = 'Stack UPDATE: all resources of the goal are up; leftovers to delete: b'
    assert (
        harness.stack(stack).status_reason
        == [each for each in harness.reader.events(stack) if each.resource_name is None][-1].reason
        == told
    )
    with pytest.raises(errors.NotSupported, match='in service already'):
        harness.cancel(stack, rollback=True)
    back(harness, stack)
    harness.assert_converged(stack, X, 'ROLLBACK_COMPLETE')


def test_what_was_never_anything_else_has_nothing_to_go_back_to(harness):
    stack = harness.created(FIRST)
    with pytest.raises(errors.NotSupported, match='is the only one that was ever in service'):
        back(harness, stack)
    harness.reality.always['create', 'a'] = fails(FinalFailure('no'))
    other = harness.create(SECOND, name='other')
    harness.run()
    with pytest.raises(errors.NotSupported, match='no template of it was ever in service'):
        back(harness, other)


def test_nobody_goes_back_from_what_he_has_not_seen(harness):
    stack = updated(harness)
    with pytest.raises(errors.PreconditionFailed):
        back(harness, stack, expected_traversal='another')
    assert harness.state(stack) == 'UPDATE_COMPLETE'
