"""Observations: what they tell of a row, and when there is something to compare."""

from dataclasses import replace

import pytest

from convergence.core.acceptance import AcceptanceOutcome, accept
from convergence.core.conditions import conditions, conditions_of
from convergence.core.model import Action, DriftPolicy, Status, TraversalStatus
from convergence.core.observation import (
    LONGEST_REPAIR_PAUSE_S,
    DriftPolicies,
    DriftSummary,
    Observation,
    ObservationResult,
    ObservationSource,
    ObservedState,
    is_news,
    is_observable,
    pause_s,
    repair_pause_s,
)
from convergence.core.rows import Acceptance, Resource, Stack, Traversal
from convergence.core.views import FinishView

STACK = Stack('S', 's', 'p', Action.UPDATE, Status.COMPLETE, '', 'T', 'T', 'V', 60, False, 1.0)
ROW = Resource('R', 'S', 'r', 'Type', Action.CREATE, Status.COMPLETE, 1.0, physical_id='x', fence=3)
SEEN = Observation(
    'R', 'S', 'r', 3, ObservedState.DIFFERS, ('p',), {'p': 1}, 'why', 5.0, 2, 9.0, ObservationSource.POLL, due_at=10.0
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


@pytest.mark.parametrize(
    ('told', 'found', 'wanted'),
    [
        (None, 'HEALTHY', False),
        (None, 'UNKNOWN', False),
        (None, 'DIFFERS', True),
        ('DIFFERS', 'DIFFERS', False),
        ('DIFFERS', 'UNKNOWN', False),
        ('DIFFERS', 'GONE', True),
        ('GONE', 'HEALTHY', True),
    ],
)
def test_each_drift_is_told_once_and_once_that_it_is_over(told, found, wanted):
    assert is_news(told and ObservedState(told), ObservedState(found)) is wanted


def test_an_observation_says_nothing_of_a_row_that_was_claimed_since():
    assert SEEN.as_of(3) is SEEN
    later = SEEN.as_of(4)
    assert (later.found, later.names, later.live, later.observed_at, later.same_results) == (
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
        (ObservationResult(ObservedState.DIFFERS, ('p',), {'p': 1}, 'said otherwise'), 3, True),
        (ObservationResult(ObservedState.DIFFERS, ('p',), {'p': 2}, 'why'), 3, False),
        (ObservationResult(ObservedState.GONE), 3, False),
        (ObservationResult(ObservedState.DIFFERS, ('p',), {'p': 1}, 'why'), 4, False),
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


def drifted_of(found):
    """The conditions of a resource, and `Drifted` among them."""
    return {each.type.value: each for each in conditions_of(ROW, found)}.get('Drifted')


def test_a_resource_is_known_to_differ_only_when_somebody_has_looked():
    assert drifted_of(None) is None
    assert drifted_of(SEEN.as_of(9)) is None
    differs = drifted_of(SEEN)
    assert (differs.holds, differs.reason, differs.message, differs.since) == (True, 'Differs', 'why', 5.0)
    healthy = drifted_of(replace(SEEN, found=ObservedState.HEALTHY, names=(), reason=''))
    assert (healthy.holds, healthy.reason) == (False, 'Healthy')


@pytest.mark.parametrize(
    ('changes', 'ready', 'progressing', 'reason'),
    [
        ({}, True, False, 'CreateComplete'),
        ({'status': Status.IN_PROGRESS}, False, True, 'CreateInProgress'),
        ({'status': Status.FAILED, 'action': Action.UPDATE}, False, False, 'UpdateFailed'),
        ({'action': Action.SUSPEND}, False, False, 'SuspendComplete'),
    ],
)
def test_a_resource_is_ready_or_getting_on(changes, ready, progressing, reason):
    first, second = conditions_of(replace(ROW, **changes), None)
    assert (first.holds, second.holds, first.reason) == (ready, progressing, reason)


def test_what_is_known_of_objects_is_counted():
    healthy = replace(SEEN, resource_id='H', found=ObservedState.HEALTHY, observed_at=11.0)
    assert DriftSummary.of([]) == DriftSummary()
    assert DriftSummary.of([SEEN, healthy, SEEN.as_of(9)]) == DriftSummary(3, 2, 1, 5.0, 11.0)


def test_a_stack_has_drifted_when_one_object_has():
    traversal = Traversal('V', 'S', Action.UPDATE, TraversalStatus.COMPLETE, 'T', False, 1.0, 2.0, in_service_at=1.5)

    def told(summary):
        return {each.type.value: each for each in conditions(STACK, traversal, summary)}.get('Drifted')

    assert told(DriftSummary()) is None
    assert told(DriftSummary(3, 0, 0)) is None
    assert (told(DriftSummary(3, 2, 0)).holds, told(DriftSummary(3, 2, 0)).reason) == (False, 'AsMade')
    drifted = told(DriftSummary(3, 2, 1, 5.0, 9.0))
    assert (drifted.holds, drifted.since, drifted.traversal_id) == (True, 5.0, 'V')
    assert drifted.message == '1 of 3 observed objects changed outside of the stack.'


def test_pauses_between_repairs_grow_to_an_hour():
    assert [repair_pause_s(10.0, repairs) for repairs in (0, 1, 2, 3, 99)] == [
        10.0,
        10.0,
        20.0,
        40.0,
        LONGEST_REPAIR_PAUSE_S,
    ]


def test_of_several_policies_the_most_exact_holds():
    said = {'r': DriftPolicy.REPAIR}
    policies = DriftPolicies(DriftPolicy.REPORT, {'T': DriftPolicy.IGNORE}, said.get)
    assert [policies.of(*one) for one in (('r', 'T'), ('s', 'T'), ('s', 'U'))] == [
        DriftPolicy.REPAIR,
        DriftPolicy.IGNORE,
        DriftPolicy.REPORT,
    ]
    assert DriftPolicies().of('r', 'T') is DriftPolicy.REPORT


def test_a_resource_whose_repair_was_given_up_says_so():
    assert drifted_of(replace(SEEN, given_up=True)).reason == 'RepairGivenUp'
    assert drifted_of(replace(SEEN, given_up=True, found=ObservedState.HEALTHY)).reason == 'Healthy'


def test_what_is_seen_is_taken_for_wanted_and_for_applied_at_once():
    row = replace(ROW, properties={'p': 0, 'q': 2})
    decision = accept(FinishView(11.0, row, None, None, STACK), SEEN, ('p',), lambda: 'new')
    assert decision.verdict is AcceptanceOutcome.DONE
    update, told = decision.effects
    assert (update.resource_id, update.owner, update.fence) == ('R', None, 3)
    assert update.changes['accepted'] == Acceptance({'p': 0}, {'p': 1})
    assert (update.changes['properties'], update.changes['fence']) == ({'p': 1, 'q': 2}, 4)
    assert told.events[0].reason == 'Accepted the live values of: p'


@pytest.mark.parametrize(
    ('row', 'outcome'),
    [
        (None, AcceptanceOutcome.ABSENT),
        (replace(ROW, action=Action.DELETE), AcceptanceOutcome.ABSENT),
        (replace(ROW, replaced_by='R2'), AcceptanceOutcome.ABSENT),
        (replace(ROW, owner='W'), AcceptanceOutcome.BUSY),
        (replace(ROW, status=Status.FAILED), AcceptanceOutcome.BUSY),
        (replace(ROW, fence=4), AcceptanceOutcome.STALE),
    ],
)
def test_nothing_is_accepted_of_what_is_worked_on_or_has_changed_since_it_was_seen(row, outcome):
    decision = accept(FinishView(11.0, row, None, None, STACK), SEEN, ('p',), lambda: 'new')
    assert (decision.verdict, decision.effects) == (outcome, ())
