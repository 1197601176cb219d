"""One decision: what a preview calls certain is what a worker does, for every state a row can be in."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergence.core import states
from convergence.core.begin import begin
from convergence.core.claim import Step
from convergence.core.decide import (
    PlannedStep,
    ResourceGoal,
    StepKind,
    decide,
    difference,
    is_left_in_the_middle,
    possible,
)
from convergence.core.model import BEGINNINGS, Action, Change, Handover, Restriction, Status
from convergence.core.object_state import is_put_off, was_never_made
from convergence.core.rows import Retry
from tests.core.build import DEFINITION, MADE, NODE, PENDING, node_view, wants, worker

STEPS = {
    StepKind.RESUME: {Step.PERFORM},
    StepKind.DROP_SNAPSHOT: {Step.CANCEL},
    StepKind.FINISH: {Step.RESUME, Step.CANCEL},
    StepKind.REFUSE: {Step.FAIL},
    StepKind.CREATE: {Step.CREATE},
    StepKind.ADOPT: {Step.ADOPT},
    StepKind.UPDATE: {Step.UPDATE},
    StepKind.REPLACE: {Step.REPLACE},
    StepKind.KEEP: {Step.NOTHING, Step.READ},
    StepKind.REPAIR: {Step.REPAIR},
    StepKind.CLEAR: {Step.CLEAR},
    StepKind.RECLAIM: {Step.RECLAIM},
}
"""What a worker may be seen to do for each answer."""

BACKING_OFF = {'status': Status.IN_PROGRESS, 'retry': Retry(1, 'later', clean=True)}

DEFINITIONS = st.builds(
    lambda type_name, restrictions, external_id: replace(
        DEFINITION, type=type_name, restrictions=frozenset(restrictions), external_id=external_id
    ),
    st.sampled_from(['Type', 'Other']),
    st.sets(st.sampled_from(Restriction)),
    st.sampled_from([None, None, None, 'theirs']),
)


@st.composite
def rows(draw):
    """A row in any state that the transition table knows, as such a row can be."""
    action, status = draw(st.sampled_from(sorted(states.RESOURCE)))
    if action is Action.INIT:
        return replace(MADE, action=action, status=status, token=None, digest=None, output=None, definition=None)
    damaged = draw(st.sampled_from([(), (), (), ('data',), ('definition', 'properties')]))
    runs = status is Status.IN_PROGRESS
    goes_on = status is not Status.COMPLETE and action is not Action.ADOPT
    never_made = status is Status.FAILED and action in BEGINNINGS and draw(st.booleans())
    token, physical_id = (
        (None, None)
        if never_made
        else draw(
            st.sampled_from([('token', 'phys'), (None, 'phys'), *([('token', None)] if status != 'COMPLETE' else [])])
        )
    )
    if action is Action.ADOPT:
        token, physical_id = None, None if never_made else 'phys'  # nothing was made, and the object was named
    definition = None if never_made else draw(DEFINITIONS)
    if definition is not None and action not in (Action.ADOPT, Action.CHECK):
        definition = replace(definition, external_id=None)  # the objects of others are only read
    handover = draw(st.sampled_from([None, None, None, *Handover]))
    retries = [None, Retry(1, 'later', clean=True), Retry(2, 'later', clean=False)] if runs else [None]
    return replace(
        MADE,
        action=action,
        status=status,
        token=token,
        physical_id=physical_id,
        progress=draw(st.sampled_from([None, {'step': 1}])) if goes_on else None,
        clearing=(action, runs) == (Action.UPDATE, True) and draw(st.booleans()),
        retry=draw(st.sampled_from(retries)),
        pending=PENDING if runs else None,
        definition=definition,
        template_id=draw(st.sampled_from(['T0', 'T1'])),
        traversal_id=draw(st.sampled_from([None, 'V1'])) if handover is None else None,
        damaged=damaged,
        handover=handover,
    )


@settings(max_examples=20 * settings.default.max_examples)
@given(row=rows(), wanted=DEFINITIONS, change=st.sampled_from(Change), renewed=st.booleans())
def test_a_worker_does_what_was_decided(row, wanted, change, renewed):
    view = node_view(replace(NODE, definition=wanted), row)
    # The digest of PENDING is none that a node could have.
    goal = ResourceGoal(wanted, repeats=False, woken=row.traversal_id is not None)
    after = difference(row, wanted, change, view.traversal.template_id, renewed)
    planned = decide(row, goal, after)
    done = begin(view, worker(), wants(change, is_renewed=renewed)).verdict.step
    assert done in STEPS[planned.kind]


@settings(max_examples=20 * settings.default.max_examples)
@given(
    row=rows(),
    wanted=DEFINITIONS,
    changes=st.sets(st.sampled_from(Change), min_size=1),
    renewed=st.booleans(),
    data=st.data(),
)
def test_what_is_certain_of_several_possible_differences_happens_with_each(row, wanted, changes, renewed, data):
    """This is how a preview asks, with a template that no row was made from."""
    goals = [ResourceGoal(wanted), *([ResourceGoal(wanted, repeats=True)] if is_left_in_the_middle(row) else [])]
    steps = possible(row, goals, {difference(row, wanted, each, '', renewed) for each in changes})
    change = data.draw(st.sampled_from(sorted(changes)))
    view = node_view(replace(NODE, definition=wanted), replace(row, template_id='T0', traversal_id=None))
    done = begin(view, worker(), wants(change, is_renewed=renewed)).verdict.step
    assert any(done in STEPS[planned.kind] for planned in steps)
    if len(steps) == 1:
        assert done in STEPS[next(iter(steps)).kind]


@given(row=rows(), wanted=DEFINITIONS, change=st.sampled_from(Change))
def test_only_an_object_that_may_exist_is_changed_or_looked_at(row, wanted, change):
    if decide(row, ResourceGoal(wanted), change).kind in (
        StepKind.UPDATE,
        StepKind.REPAIR,
        StepKind.KEEP,
    ):
        assert not was_never_made(row)
        assert not is_put_off(row)


@pytest.mark.parametrize(
    ('row', 'change', 'planned'),
    [
        (None, Change.NONE, StepKind.CREATE),
        (MADE, Change.NONE, StepKind.KEEP),
        (MADE, Change.IN_PLACE, StepKind.UPDATE),
        (MADE, Change.REPLACE, StepKind.REPLACE),
        (replace(MADE, action=Action.CHECK, status=Status.FAILED), Change.NONE, StepKind.REPLACE),
        (replace(MADE, action=Action.SNAPSHOT, status=Status.FAILED), Change.NONE, StepKind.UPDATE),
        (replace(MADE, action=Action.UPDATE, status=Status.FAILED), Change.NONE, StepKind.REPAIR),
        (replace(MADE, action=Action.SUSPEND), Change.NONE, StepKind.RESUME),
        (replace(MADE, action=Action.SUSPEND, **BACKING_OFF), Change.NONE, StepKind.FINISH),
        (replace(MADE, action=Action.SUSPEND, status=Status.IN_PROGRESS), Change.NONE, StepKind.FINISH),
        (replace(MADE, action=Action.RESUME, status=Status.FAILED), Change.REPLACE, StepKind.RESUME),
        (replace(MADE, action=Action.RESUME, **BACKING_OFF), Change.IN_PLACE, StepKind.FINISH),
        (replace(MADE, action=Action.RESUME), Change.NONE, StepKind.KEEP),
        (replace(MADE, action=Action.CHECK, **BACKING_OFF), Change.IN_PLACE, StepKind.FINISH),
        (replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS), Change.NONE, StepKind.FINISH),
        (replace(MADE, action=Action.DELETE, status=Status.FAILED), Change.NONE, StepKind.REPLACE),
        (
            replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS, clearing=True),
            Change.NONE,
            StepKind.CLEAR,
        ),
        (replace(MADE, handover=Handover.RELEASED), Change.NONE, StepKind.RECLAIM),
    ],
    ids=str,
)
def test_the_course_of_a_state(row, change, planned):
    assert decide(row, ResourceGoal(DEFINITION), change).kind is planned


@pytest.mark.parametrize(
    ('change', 'planned'),
    [
        (Change.NONE, StepKind.REPAIR),
        (Change.IN_PLACE, StepKind.REPAIR),
        (Change.REPLACE, StepKind.REPLACE),
    ],
)
def test_what_an_operation_could_not_resume_it_looks_at_and_does_not_resume_for_ever(change, planned):
    unresumed = replace(MADE, action=Action.RESUME, status=Status.FAILED)
    assert decide(unresumed, ResourceGoal(DEFINITION, woken=True), change).kind is planned
    for action in (Action.SUSPEND, Action.UPDATE):
        row = replace(MADE, action=action)
        assert decide(row, ResourceGoal(DEFINITION, woken=True), change) == decide(
            row, ResourceGoal(DEFINITION), change
        )


def test_a_stack_that_could_not_be_resumed_wakes_what_is_in_it_when_it_gets_its_goal():
    unresumed = replace(MADE, action=Action.RESUME, status=Status.FAILED)
    assert decide(unresumed, ResourceGoal(DEFINITION, nests=True), Change.NONE).kind is StepKind.UPDATE


@pytest.mark.parametrize('row', [MADE, replace(MADE, action=Action.SNAPSHOT, status=Status.FAILED)], ids=str)
def test_a_restriction_refuses_what_it_names_and_nothing_else(row):
    update = ResourceGoal(replace(DEFINITION, restrictions=frozenset({Restriction.UPDATE})))
    place = ResourceGoal(replace(DEFINITION, restrictions=frozenset({Restriction.REPLACE})))
    refused = PlannedStep(StepKind.REFUSE, 'ResourceActionRestricted: update is restricted for resource.')
    assert decide(row, update, Change.IN_PLACE) == refused
    assert decide(row, update, Change.REPLACE).kind is StepKind.REPLACE
    assert decide(row, place, Change.REPLACE).kind is StepKind.REFUSE
    assert decide(row, place, Change.IN_PLACE).kind is StepKind.UPDATE
