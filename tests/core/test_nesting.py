"""Resources whose objects are stacks: what is decided about them, and what their stacks owe them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergence.core import nesting
from convergence.core.begin import begin
from convergence.core.claim import Step
from convergence.core.complete import conclude
from convergence.core.decide import ResourceGoal, StepKind, decide, difference
from convergence.core.effects import DoubtParents, InsertTraversal, NotifyNode, TellParent, UpdateResource
from convergence.core.failure import cancel_stack
from convergence.core.model import (
    Action,
    Change,
    DeletionPolicy,
    Goal,
    NodeStatus,
    Phase,
    Restriction,
    Status,
    TraversalStatus,
)
from convergence.core.orphans import keep_track
from convergence.core.plan import plan
from convergence.core.rows import Node
from convergence.core.views import FinishView, PlanView
from tests.core.build import (
    CLEANUP,
    DEFINITION,
    FRESH,
    MADE,
    NODE,
    PENDING,
    RUNNING,
    STACK,
    TRAVERSAL,
    claim,
    definitions,
    held,
    ids,
    node_view,
    only,
    plan_view,
    planner,
    request,
    row,
    superseded,
    wants,
    worker,
)
from tests.core.test_decide import DEFINITIONS, STEPS, rows

NESTED = replace(MADE, physical_id='token')
"""The row of a resource whose object is a stack: that is known by the row's token."""
CHILD = replace(RUNNING, parent_id='P', parent_resource_id='PR', root_id='P', nested_depth=1)
LAST = Node('V1', 9, Phase.COMPLETE, NodeStatus.READY)


def nester():
    """The worker ``W``, to whom every object is a stack."""
    return replace(worker(), nests=lambda type_name: True)


def under_way(action, **changes):
    """A row that is parked while its stack is at work."""
    busy = {'status': Status.IN_PROGRESS, 'progress': {'traversal': 'C1'}, 'pending': PENDING, 'wake_at': 9e9}
    return replace(NESTED, action=action, traversal_id='V0', **{**busy, **changes})


# --- the resource ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('resource', 'change', 'kind'),
    [
        (under_way(Action.CREATE), Change.NONE, StepKind.CREATE),
        (under_way(Action.UPDATE), Change.NONE, StepKind.UPDATE),
        (under_way(Action.RESUME), Change.NONE, StepKind.UPDATE),
        (under_way(Action.CHECK), Change.NONE, StepKind.UPDATE),
        (under_way(Action.SUSPEND), Change.NONE, StepKind.FINISH),
        (under_way(Action.UPDATE), Change.REPLACE, StepKind.REPLACE),
        (replace(NESTED, status=Status.FAILED), Change.NONE, StepKind.CREATE),
        (replace(NESTED, action=Action.UPDATE, status=Status.FAILED), Change.NONE, StepKind.UPDATE),
        (replace(NESTED, action=Action.CHECK, status=Status.FAILED), Change.NONE, StepKind.UPDATE),
        (replace(NESTED, digest=None), Change.NONE, StepKind.UPDATE),
        (NESTED, Change.NONE, StepKind.KEEP),
    ],
    ids=str,
)
def test_a_stack_gets_another_goal_whatever_it_is_busy_with(resource, change, kind):
    """F115; and F130: what has failed in it the stack itself sees to."""
    assert decide(resource, ResourceGoal(DEFINITION, nests=True), change).kind is kind


def test_what_is_under_way_for_the_same_goal_goes_on():
    goal = ResourceGoal(DEFINITION, repeats=True, nests=True)
    assert decide(under_way(Action.CREATE), goal, Change.NONE).kind is StepKind.FINISH


def test_a_restriction_protects_a_nested_stack_too():
    goal = ResourceGoal(replace(DEFINITION, restrictions=(Restriction.UPDATE,)), nests=True)
    assert decide(under_way(Action.UPDATE), goal, Change.NONE).kind is StepKind.REFUSE


def test_a_template_that_has_changed_is_a_change():
    changed = replace(DEFINITION, nested='another digest')
    assert difference(NESTED, changed, Change.NONE, 'T1', renewed=False) is Change.IN_PLACE
    assert difference(replace(NESTED, definition=changed), changed, Change.NONE, 'T1', renewed=False) is Change.NONE


@settings(max_examples=5 * settings.default.max_examples)
@given(resource=rows(), wanted=DEFINITIONS, change=st.sampled_from(Change))
def test_a_worker_does_what_was_decided_about_a_stack(resource, wanted, change):
    view = node_view(replace(NODE, definition=wanted), resource)
    after = difference(resource, wanted, change, view.traversal.template_id, renewed=False)
    planned = decide(resource, ResourceGoal(wanted, nests=True), after)
    assert begin(view, nester(), wants(change)).verdict.step in STEPS[planned.kind]


def test_a_stack_is_known_before_there_is_one_and_stays_the_same():
    first = begin(node_view(NODE, FRESH), nester(), wants(Change.IN_PLACE)).verdict.claim
    assert first.step is Step.CREATE
    assert first.resource.physical_id == first.resource.token is not None
    again = begin(node_view(NODE, under_way(Action.CREATE)), nester(), wants(Change.NONE)).verdict.claim
    assert (again.step, again.resource.token, again.resource.progress) == (Step.CREATE, 'token', None)


def test_what_a_stack_does_for_an_older_traversal_is_not_joined():
    """It may be late, or be cancelled any moment; what this very traversal has begun goes on."""
    pending = replace(PENDING, digest='')
    older = under_way(Action.UPDATE, pending=pending)
    assert begin(node_view(NODE, older), nester(), wants(Change.NONE)).verdict.step is Step.UPDATE


def test_a_stack_is_deleted_in_the_middle_of_what_it_does():
    decision = begin(node_view(CLEANUP, under_way(Action.UPDATE)), nester(), wants(Change.NONE))
    assert decision.verdict.step is Step.DELETE
    others = begin(node_view(CLEANUP, under_way(Action.UPDATE)), worker(), wants(Change.NONE))
    assert others.verdict.step is Step.CANCEL


@pytest.mark.parametrize('retains', [True, False])
def test_a_stack_is_told_that_it_stays(retains):
    """Abandoned or retained: what is nested in it has to stay, too (F126)."""
    policy = DeletionPolicy.DELETE if retains else DeletionPolicy.RETAIN
    kept = replace(NESTED, definition=replace(DEFINITION, deletion_policy=policy))
    view = node_view(CLEANUP, kept, traversal=replace(TRAVERSAL, retains=retains))
    assert begin(view, nester(), wants(Change.NONE)).verdict.step is Step.DELETE
    assert begin(view, worker(), wants(Change.NONE)).verdict.step is Step.NOTHING


# --- the stack ------------------------------------------------------------------------------------------------


def test_a_stack_that_comes_to_rest_tells_its_resource_and_nobody_else():
    whole = node_view(LAST, None, stack=CHILD)
    assert only(conclude(whole, ids()), TellParent).resource_id == 'PR'
    cancelled = cancel_stack(replace(plan_view(traversal=TRAVERSAL), stack=CHILD), ids())
    assert only(cancelled, TellParent).resource_id == 'PR'
    alone = conclude(node_view(LAST, None), ids())
    assert not any(isinstance(effect, TellParent) for effect in alone.effects)


def test_nobody_acts_for_a_resource_that_he_does_not_hold():
    parent = held(under_way(Action.CREATE))
    assert nesting.may_act(parent, 'token', parent.fence)
    assert not nesting.may_act(None, 'token', parent.fence)
    assert not nesting.may_act(parent, 'token', parent.fence - 1)
    assert not nesting.may_act(parent, 'another', parent.fence)
    assert not nesting.may_act(replace(parent, owner=None), 'token', parent.fence)
    assert not nesting.may_act(replace(parent, status=Status.FAILED), 'token', parent.fence)


HELD = held(under_way(Action.CREATE), event_count=3)
AROUND = FinishView(50.0, HELD, NODE, TRAVERSAL, RUNNING)


@pytest.mark.parametrize(('deadline', 'wake_at'), [(None, 650.0), (900.0, 650.0), (90.0, 90.0)])
def test_the_row_is_let_go_of_when_its_stack_gets_something_to_do(deadline, wake_at):
    row = replace(HELD, deadline=deadline)
    view = PlanView(50.0, None, around=replace(AROUND, resource=row))
    (let_go,) = nesting.park(view, {'traversal': 'N'}, 600.0)
    assert (let_go.resource_id, let_go.owner, let_go.fence) == (row.id, 'W', row.fence)
    assert let_go.changes == {
        'owner': None,
        'progress': {'traversal': 'N'},
        'wake_at': wake_at,
        'polled_event_count': 3,
        'crash_count': 0,
        'retry': None,
    }


def test_the_one_behind_the_window_is_told_when_the_row_is_let_go_of():
    view = PlanView(50.0, None, around=replace(AROUND, node=replace(NODE, next_in_backlog=9)))
    let_go, told = nesting.park(view, {}, 600.0)
    assert (let_go.resource_id, told) == (HELD.id, NotifyNode(NODE.traversal_id, 9))


@pytest.mark.parametrize(
    'around',
    [
        None,
        superseded(AROUND, ('V2', 1)),
        replace(AROUND, traversal=replace(TRAVERSAL, status=TraversalStatus.FAILED)),
        replace(AROUND, node=replace(NODE, status=NodeStatus.DONE)),
        replace(AROUND, node=None),
        replace(AROUND, resource=None),
    ],
)
def test_where_somebody_else_waits_for_the_row_whoever_holds_it_lets_go_of_it(around):
    assert nesting.park(PlanView(50.0, None, around=around), {}, 600.0) == ()


def test_what_nobody_waits_for_is_not_wanted():
    assert nesting.is_wanted(under_way(Action.UPDATE))
    assert not nesting.is_wanted(NESTED)
    assert not nesting.is_wanted(None)


def test_a_nested_stack_has_the_time_that_is_left_to_whoever_waits_for_it():
    """F110."""

    def deadline(**changes):
        decision = plan(plan_view(), STACK, request(Goal(definitions(a='')), **changes), planner())
        return only(decision, InsertTraversal).traversal.deadline

    own = deadline()
    assert deadline(deadline=own - 100.0) == own - 100.0
    assert deadline(deadline=own + 100.0) == own


def test_what_was_made_late_in_a_nested_stack_is_found_by_the_next_update_above():
    """The stacks around it come down to it, though nothing of theirs has changed."""
    lost = claim(Step.CREATE, Action.CREATE, replace(held(FRESH), token='token'))
    over = replace(TRAVERSAL, status=TraversalStatus.COMPLETE)
    view = replace(plan_view(row('A'), traversal=over), stack=replace(CHILD, status=Status.COMPLETE))
    assert only(keep_track(view, lost, 'phys-late', ids()), DoubtParents).resource_id == 'PR'
    root = keep_track(replace(view, stack=STACK), lost, 'phys-late', ids())
    assert not any(isinstance(effect, DoubtParents) for effect in root.effects)


def test_a_stack_is_tidy_when_an_update_to_its_own_goal_would_change_nothing():
    assert nesting.is_tidy([row('A'), row('B')])
    assert not nesting.is_tidy([row('A'), row('A1', 'a')])
    assert not nesting.is_tidy([row('A', status=Status.FAILED)])
    assert not nesting.is_tidy([row('A', digest=None)])


def test_an_update_in_place_forgets_what_was_known_of_the_one_before():
    decision = begin(node_view(NODE, under_way(Action.UPDATE)), nester(), wants(Change.IN_PLACE))
    changes = only(decision, UpdateResource).changes
    assert (changes['progress'], changes['digest']) == (None, None)
