"""Observations: what they tell of a row, and when there is something to compare."""

from dataclasses import replace

import pytest

from convergence.core.model import Action, Status
from convergence.core.observation import Comparison, LookSource, Observation, ObservedState, is_observable, pause_s
from convergence.core.rows import Resource, Stack

STACK = Stack('S', 's', 'p', Action.UPDATE, Status.COMPLETE, '', 'T', 'T', 'V', 60, False, 1.0)
ROW = Resource('R', 'S', 'r', 'Type', Action.CREATE, Status.COMPLETE, 1.0, physical_id='x', fence=3)
SEEN = Observation(
    'R', 'S', 3, ObservedState.DIFFERS, ('p',), {'p': 1}, 'why', 5.0, 2, 9.0, LookSource.POLL, due_at=10.0
)


def test_only_finished_objects_of_stacks_at_rest_are_compared():
    assert is_observable(STACK, ROW)
    for stack in (
        replace(STACK, status=Status.IN_PROGRESS),
        replace(STACK, action=Action.SUSPEND),
        replace(STACK, deleted_at=2.0),
    ):
        assert not is_observable(stack, ROW)
    for row in (
        replace(ROW, status=Status.FAILED),
        replace(ROW, action=Action.SUSPEND),
        replace(ROW, owner='W'),
        replace(ROW, physical_id=None),
        replace(ROW, replaced_by='R2'),
    ):
        assert not is_observable(STACK, row)


def test_an_observation_says_nothing_of_a_row_that_was_claimed_since():
    assert SEEN.as_of(3) is SEEN
    later = SEEN.as_of(4)
    assert (later.found, later.names, later.live, later.looked_at, later.alike) == (
        ObservedState.UNKNOWN,
        (),
        {},
        None,
        0,
    )
    assert later.due_at == SEEN.due_at


@pytest.mark.parametrize(
    ('comparison', 'fence', 'same'),
    [
        (Comparison(ObservedState.DIFFERS, ('p',), {'p': 1}, 'said otherwise'), 3, True),
        (Comparison(ObservedState.DIFFERS, ('p',), {'p': 2}, 'why'), 3, False),
        (Comparison(ObservedState.GONE), 3, False),
        (Comparison(ObservedState.DIFFERS, ('p',), {'p': 1}, 'why'), 4, False),
    ],
)
def test_what_was_found_is_the_same_or_not(comparison, fence, same):
    assert SEEN.says(comparison, fence) is same


def test_pauses_grow_to_the_interval():
    assert [pause_s(80.0, alike) for alike in (0, 1, 2, 3, 10**6)] == [10.0, 20.0, 40.0, 80.0, 80.0]


def test_what_is_not_as_it_was_made_is_drift():
    assert [each for each in ObservedState if each.is_drift] == [
        ObservedState.DIFFERS,
        ObservedState.UNHEALTHY,
        ObservedState.GONE,
    ]
