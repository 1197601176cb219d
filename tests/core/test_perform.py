"""One node of a traversal without a new goal: which rows it acts on, which it passes over, which it cannot do."""

from dataclasses import replace

import pytest

from convergence.core import graph
from convergence.core.begin import begin
from convergence.core.claim import MAX_CRASHES, Step
from convergence.core.complete import conclude
from convergence.core.effects import EndTraversal, FinishNode, InsertTraversal, KeepItem, NoteFailure, UpdateStack
from convergence.core.finish import finish
from convergence.core.model import Action, Change, Goal, NodeStatus, Phase, Status, TraversalStatus
from convergence.core.plan import plan
from convergence.core.results import End, Failed, Succeeded
from convergence.core.rows import Node
from tests.core.build import (
    DEFINITION,
    FRESH,
    MADE,
    NODE,
    RUNNING,
    STACK,
    TRAVERSAL,
    claim,
    definitions,
    events,
    finish_view,
    held,
    ids,
    never,
    node_view,
    of_kind,
    only,
    plan_view,
    planner,
    request,
    row,
    wants,
    worker,
)

CREATED, NEVER = MADE, FRESH
BROKEN = replace(MADE, action=Action.UPDATE, status=Status.FAILED)


def was(action, status=Status.COMPLETE):
    """The row after an action."""
    return replace(MADE, action=action, status=status)


def doing(action, resource):
    """A node of a traversal of that action."""
    return node_view(resource=resource, traversal=replace(TRAVERSAL, action=action))


TABLE = [
    (Action.CHECK, CREATED, Step.PERFORM),
    (Action.CHECK, was(Action.CHECK, Status.FAILED), Step.PERFORM),
    (Action.CHECK, was(Action.SNAPSHOT, Status.FAILED), Step.PERFORM),
    (Action.CHECK, BROKEN, Step.NOTHING),
    (Action.CHECK, NEVER, Step.NOTHING),
    (Action.SUSPEND, CREATED, Step.PERFORM),
    (Action.SUSPEND, was(Action.SUSPEND), Step.NOTHING),
    (Action.SUSPEND, was(Action.SUSPEND, Status.FAILED), Step.PERFORM),
    (Action.SUSPEND, was(Action.RESUME, Status.FAILED), Step.PERFORM),
    (Action.SUSPEND, was(Action.CHECK, Status.FAILED), Step.FAIL),
    (Action.SUSPEND, BROKEN, Step.FAIL),
    (Action.SUSPEND, NEVER, Step.FAIL),
    (Action.RESUME, was(Action.SUSPEND), Step.PERFORM),
    (Action.RESUME, was(Action.SUSPEND, Status.FAILED), Step.PERFORM),
    (Action.RESUME, was(Action.RESUME, Status.FAILED), Step.PERFORM),
    (Action.RESUME, was(Action.RESUME), Step.NOTHING),
    (Action.RESUME, was(Action.CHECK), Step.PERFORM),
    (Action.RESUME, was(Action.CHECK, Status.FAILED), Step.NOTHING),
    (Action.RESUME, CREATED, Step.NOTHING),
    (Action.SNAPSHOT, CREATED, Step.PERFORM),
    (Action.SNAPSHOT, BROKEN, Step.FAIL),
]


@pytest.mark.parametrize(('action', 'resource', 'step'), TABLE)
def test_what_is_done_follows_from_the_state_of_the_row(action, resource, step):
    who = replace(worker(), keeps_snapshots=lambda name: True)
    decision = begin(doing(action, resource), who, never)
    assert decision.verdict.step is step
    if step is Step.PERFORM:
        assert decision.verdict.claim.action is action
        assert events(decision) == [f'{action}_IN_PROGRESS']


def test_what_a_type_does_not_keep_is_passed_over_and_what_it_keeps_is_noted_before_it_is_asked():
    assert begin(doing(Action.SNAPSHOT, CREATED), worker(), never).verdict.step is Step.NOTHING
    who = replace(worker(), keeps_snapshots=lambda name: True)
    item = only(begin(doing(Action.SNAPSHOT, CREATED), who, never), KeepItem).item
    assert (item.snapshot_id, item.resource_id, item.physical_id, item.kept) == (TRAVERSAL.id, 'R', 'phys', {})


@pytest.mark.parametrize('action', [Action.CHECK, Action.SUSPEND, Action.RESUME, Action.SNAPSHOT])
def test_what_was_left_in_the_middle_comes_to_its_end_first(action):
    decision = begin(doing(action, was(Action.CREATE, Status.IN_PROGRESS)), worker(), never)
    assert decision.verdict.step is Step.RESUME
    assert decision.verdict.claim.completes_node is False


def test_success_leaves_what_the_row_was_made_from():
    going = held(replace(MADE, action=Action.CHECK, status=Status.IN_PROGRESS))
    claimed = claim(Step.PERFORM, Action.CHECK, going, pending=None)
    decision = finish(finish_view(claimed), claimed, Succeeded(None, 'phys'), worker())
    assert decision.verdict is End.DONE
    changes = decision.effects[0].changes
    assert not {'output', 'digest', 'definition', 'properties', 'template_id'} & set(changes)
    assert (changes['action'], changes['status']) == (Action.CHECK, Status.COMPLETE)


def test_a_check_that_fails_is_noted_and_the_others_go_on():
    going = held(replace(MADE, action=Action.CHECK, status=Status.IN_PROGRESS))
    checking = replace(TRAVERSAL, action=Action.CHECK)
    claimed = claim(Step.PERFORM, Action.CHECK, going, pending=None, traversal=checking)
    decision = finish(finish_view(claimed, traversal=checking), claimed, Failed('no'), worker())
    assert decision.verdict is End.DONE
    assert only(decision, NoteFailure).said == 'Resource CHECK failed: resources.r: no'
    assert of_kind(decision, FinishNode)
    assert not of_kind(decision, EndTraversal)


def test_when_all_is_visited_a_check_that_has_noted_a_failure_fails():
    node = Node('V1', 9, Phase.COMPLETE, NodeStatus.READY)
    checking = replace(TRAVERSAL, action=Action.CHECK, reason='what was found', failed_name='r')
    stack = replace(RUNNING, action=Action.CHECK)
    decision = conclude(node_view(node, None, traversal=checking, stack=stack), ids())
    assert only(decision, EndTraversal).status is TraversalStatus.FAILED
    assert only(decision, UpdateStack).changes['status_reason'] == 'what was found'


def test_what_is_suspended_is_woken_up_before_it_is_anything_else():
    decision = begin(node_view(resource=was(Action.SUSPEND)), worker(), wants(Change.IN_PLACE))
    assert (decision.verdict.step, decision.verdict.claim.action) == (Step.PERFORM, Action.RESUME)
    assert decision.verdict.claim.completes_node is False


def test_what_could_not_be_resumed_is_resumed_once_more_in_each_traversal_before_it_is_looked_at():
    unresumed = replace(was(Action.RESUME, Status.FAILED), traversal_id='V0')
    decision = begin(node_view(resource=unresumed), worker(), never)
    assert (decision.verdict.step, decision.verdict.claim.action) == (Step.PERFORM, Action.RESUME)
    assert decision.verdict.claim.completes_node is False
    claimed = decision.verdict.claim
    failed = finish(finish_view(claimed), claimed, Failed('no'), worker())
    assert (failed.verdict, events(failed)) == (End.RELEASED, ['RESUME_FAILED'])
    assert failed.wake == ((NODE.traversal_id, NODE.number),)
    tried = replace(unresumed, traversal_id=claimed.resource.traversal_id)
    assert begin(node_view(resource=tried), worker(), wants(Change.NONE)).verdict.step is Step.REPAIR


def test_what_a_cancelled_traversal_was_resuming_is_resumed_anew_and_not_stopped_first():
    left = replace(was(Action.RESUME, Status.IN_PROGRESS), progress={'x': 1}, traversal_id='V0')
    cancelling = replace(TRAVERSAL, cancels=True)
    decision = begin(node_view(resource=left, traversal=cancelling), worker(), never)
    assert (decision.verdict.step, decision.verdict.claim.action) == (Step.PERFORM, Action.RESUME)
    assert begin(node_view(resource=left), worker(), never).verdict.step is Step.RESUME
    mine = replace(left, traversal_id=cancelling.id)
    assert begin(node_view(resource=mine, traversal=cancelling), worker(), never).verdict.step is Step.RESUME


def test_what_a_check_found_broken_is_replaced_whatever_is_wanted():
    broken = was(Action.CHECK, Status.FAILED)
    assert begin(node_view(NODE, broken), worker(), wants(Change.NONE)).verdict.step is Step.REPLACE


# --- the graph ---------------------------------------------------------------------------------------------------


def planned(action):
    """Names of the nodes that have one, in order; `b` is built on `a`."""
    goal = Goal(definitions(a='', b='a'))
    rows = (row('A', 'a'), row('B', 'b', 'A'), row('OLD', 'b', 'A', replaced_by='B', template_id='old'))
    asked = request(goal, action, is_new_template=False)
    return only(plan(plan_view(*rows), STACK, asked, planner()), InsertTraversal).nodes


@pytest.mark.parametrize('action', [Action.CHECK, Action.RESUME, Action.SNAPSHOT])
def test_what_is_done_forwards_has_one_node_for_each_resource(action):
    nodes = planned(action)
    assert [(node.phase, node.name) for node in nodes if node.name] == [(Phase.UPDATE, 'a'), (Phase.UPDATE, 'b')]
    assert [node.status for node in nodes if node.name] == [NodeStatus.READY, NodeStatus.WAITING]


def test_suspending_goes_backwards_and_leaves_leftovers_alone():
    nodes = planned(Action.SUSPEND)
    assert [(node.phase, node.resource_id) for node in nodes if node.name] == [
        (Phase.CLEANUP, 'B'),
        (Phase.CLEANUP, 'A'),
    ]
    assert graph.COMPLETE.phase is nodes[-1].phase


def test_a_snapshot_that_another_operation_has_left_is_given_up_first():
    left = replace(was(Action.SNAPSHOT, Status.IN_PROGRESS), traversal_id='V0')
    decision = begin(doing(Action.SUSPEND, left), worker(), never)
    assert (decision.verdict.step, decision.verdict.claim.action) == (Step.CANCEL, Action.SNAPSHOT)
    mine = replace(left, traversal_id='V1')
    assert begin(doing(Action.SNAPSHOT, mine), worker(), never).verdict.step is Step.RESUME


def test_what_has_ended_too_many_workers_is_not_gone_on_with():
    lethal = replace(was(Action.CREATE, Status.IN_PROGRESS), crash_count=MAX_CRASHES)
    assert begin(doing(Action.CHECK, lethal), worker(), never).verdict.step is Step.FAIL


def test_objects_that_others_have_made_are_looked_at_and_not_touched():
    adopted = replace(MADE, definition=replace(DEFINITION, external_id='phys'))
    assert begin(doing(Action.CHECK, adopted), worker(), never).verdict.step is Step.PERFORM
    assert begin(doing(Action.SUSPEND, adopted), worker(), never).verdict.step is Step.NOTHING
