"""Rows of which something that is stored cannot be read: the node fails, and the reason says what to do."""

from dataclasses import replace

import pytest

from convergence.core.begin import begin
from convergence.core.claim import Step
from convergence.core.effects import FailNode, InsertEvents, UpdateResource
from convergence.core.model import Action, Status
from tests.core.build import CLEANUP, MADE, NODE, events, never, node_view, of_kind, only, worker

DAMAGED = replace(MADE, damaged=('data',))


def reason(decision):
    """What the event says."""
    (event,) = only(decision, InsertEvents).events
    return event.reason


@pytest.mark.parametrize(('node', 'action'), [(NODE, Action.UPDATE), (CLEANUP, Action.DELETE)], ids=['', 'cleanup'])
def test_nothing_is_done_with_an_object_of_which_too_little_is_known(node, action):
    decision = begin(node_view(node, DAMAGED), worker(), never)
    assert (decision.verdict.step, decision.verdict.claim) == (Step.FAIL, None)
    assert events(decision) == [f'{action}_{Status.FAILED}']
    assert of_kind(decision, UpdateResource) == [], 'the row stays as it is'
    assert only(decision, FailNode).number == node.number


@pytest.mark.parametrize(
    ('view', 'what'),
    [
        (node_view(replace(NODE, damaged=('definition',))), 'the stored plan of this operation for it'),
        (node_view(unread=('a', 'b')), 'the stored output of a, b'),
    ],
    ids=['definition', 'inputs'],
)
def test_what_an_operation_has_stored_and_cannot_be_read_is_stored_again_by_the_next(view, what):
    decision = begin(view, worker(), never)
    assert decision.verdict.step is Step.FAIL
    assert what in reason(decision)
    assert 'Update the stack' in reason(decision)


def test_inputs_that_are_too_large_are_refused_with_the_limit():
    decision = begin(node_view(input_bytes=11), replace(worker(), max_input_bytes=10), never)
    assert decision.verdict.step is Step.FAIL
    assert '11 bytes' in reason(decision)
    assert 'max_input_bytes is 10' in reason(decision)
