"""Before a replacement and back: what there can be only once is given up first, and taken back on the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from convergence.core.begin import begin
from convergence.core.claim import MAX_CRASHES, Creation, Step
from convergence.core.effects import FinishNode, InsertResources, InsertTraversal, UpdateResource, UpdateResources
from convergence.core.finish import finish
from convergence.core.lost_commits import put_in_doubt
from convergence.core.model import Action, Change, Handover, Status, TraversalStatus
from convergence.core.plan import plan
from convergence.core.replacement import replacement
from convergence.core.results import End, Failed, NeedsReplacement, Succeeded
from tests.core.build import (
    DEFINITION,
    FRESH,
    MADE,
    STACK,
    TRAVERSAL,
    claim,
    definitions,
    events,
    finish_view,
    held,
    node_view,
    of_kind,
    only,
    plan_view,
    planner,
    request,
    row,
    superseded,
    wants,
    worker,
)

YIELDING = replace(worker(), creation=lambda type_name: Creation(hands_over=True))
RELEASING = replace(MADE, handover=Handover.RELEASING, traversal_id='V1')
RELEASED = replace(RELEASING, handover=Handover.RELEASED)
LEFT = replace(RELEASED, traversal_id='V0')
RIVAL = row('R2', 'r')


def step(resource, **changes):
    return begin(node_view(resource=resource, **changes), YIELDING, wants(Change.NONE)).verdict


def test_a_row_gives_way_before_another_one_is_made():
    begun = replacement(node_view(), YIELDING, 'R')
    assert of_kind(begun, InsertResources) == []
    assert begun.wake == (('V1', 3),)
    giving = replace(MADE, **only(begun, UpdateResource).changes)
    assert step(giving).step is Step.HAND_OVER
    assert step(RELEASED).step is Step.REPLACE
    assert of_kind(replacement(node_view(resource=RELEASED), YIELDING, 'R'), InsertResources)
    # Only this traversal has asked for it; and only of what the worker can see to be given.
    assert of_kind(replacement(node_view(resource=LEFT), YIELDING, 'R'), InsertResources) == []


@pytest.mark.parametrize(
    'old',
    [
        replace(MADE, token=None, physical_id=None, output=None),
        replace(MADE, action=Action.DELETE),
        replace(MADE, definition=replace(DEFINITION, external_id='theirs')),
    ],
    ids=['never made', 'going already', 'of others'],
)
def test_what_has_nothing_to_give_is_replaced_at_once(old):
    assert of_kind(replacement(node_view(resource=old), YIELDING, 'R'), InsertResources)


def test_what_was_given_is_taken_back_before_anything_else():
    took = step(LEFT, rivals=(RIVAL, replace(FRESH, id='R3')))
    assert took.step is Step.RECLAIM
    assert took.claim.rivals == (RIVAL,)  # in the other one nothing was ever made
    assert took.claim.resource.handover is Handover.RECLAIMING
    # A worker that dies in the middle: the next one does the same, in whatever traversal.
    assert step(replace(took.claim.resource, owner=None)).step is Step.RECLAIM


def test_nothing_is_taken_while_somebody_works_on_what_may_have_it():
    assert step(LEFT, rivals=(replace(RIVAL, owner='other'),)).step is Step.WAIT


def test_the_end_of_either_step_has_the_node_checked_again():
    for doing, resource, after in (
        (Step.HAND_OVER, RELEASING, Handover.RELEASED),
        (Step.RECLAIM, replace(LEFT, handover=Handover.RECLAIMING), None),
    ):
        claimed = claim(doing, Action.UPDATE, held(resource), pending=None, completes_node=False)
        decision = finish(finish_view(claimed), claimed, Succeeded(None), YIELDING)
        assert (decision.verdict, decision.wake) == (End.RELEASED, (('V1', 3),))
        changes = only(decision, UpdateResource).changes
        assert changes['handover'] is after
        assert 'status' not in changes
        assert events(decision) == ['UPDATE_COMPLETE']


def test_what_others_took_without_a_note_is_applied_again():
    claimed = claim(Step.RECLAIM, Action.UPDATE, held(replace(MADE, handover=Handover.DEPRIVED)), completes_node=False)
    changes = only(finish(finish_view(claimed), claimed, Succeeded(None), YIELDING), UpdateResource).changes
    assert (changes['handover'], changes['status'], changes['digest']) == (None, Status.FAILED, None)


def test_a_plan_that_came_in_between_is_not_forgotten():
    """It lets another row take what this one has just taken back."""
    claimed = claim(Step.RECLAIM, Action.UPDATE, held(replace(LEFT, handover=Handover.RECLAIMING)))
    view = superseded(finish_view(claimed), ('V2', 8))
    decision = finish(view, claimed, Succeeded(None), YIELDING)
    assert 'handover' not in only(decision, UpdateResource).changes
    assert decision.wake == (('V2', 8),)


@pytest.mark.parametrize('doing', [Step.HAND_OVER, Step.RECLAIM])
def test_who_fails_fails_the_node_and_is_in_doubt(doing):
    claimed = claim(doing, Action.UPDATE, held(RELEASING), pending=None, completes_node=False)
    decision = finish(finish_view(claimed), claimed, Failed('the network is away'), YIELDING)
    assert decision.verdict is End.FAILED
    changes = only(decision, UpdateResource).changes
    assert (changes['action'], changes['status'], changes['digest']) == (Action.UPDATE, Status.FAILED, None)
    assert 'handover' not in changes  # perhaps it gave a part: whoever wants it takes that back first


def test_what_is_gone_takes_nothing_back_and_is_replaced():
    claimed = claim(Step.RECLAIM, Action.UPDATE, held(LEFT), pending=None, completes_node=False)
    decision = finish(finish_view(claimed), claimed, NeedsReplacement('gone'), YIELDING)
    changes = only(decision, UpdateResource).changes
    assert (changes['action'], changes['status']) == (Action.CHECK, Status.FAILED)
    assert of_kind(decision, FinishNode) == []


@pytest.mark.parametrize('resource', [RELEASING, LEFT], ids=['gives way', 'takes back'])
def test_who_kills_every_worker_fails(resource):
    assert step(replace(resource, crash_count=MAX_CRASHES)).step is Step.FAIL


def test_nothing_begins_in_a_traversal_that_is_being_cancelled():
    assert step(RELEASING, traversal=replace(TRAVERSAL, status=TraversalStatus.CANCELLING)).step is Step.OVER


def test_who_comes_back_is_visited_and_all_others_of_the_name_may_lose_what_they_have():
    back = replace(row('A', template_id='T1', replaced_by='A2'), handover=Handover.RELEASED)
    now, other = row('A2'), row('B')
    decision = plan(plan_view(back, now, other), STACK, request(definitions(a='', b='')), planner())
    written = [(each.resource_ids, each.changes) for each in of_kind(decision, UpdateResources)]
    assert (('A2',), {'handover': Handover.DEPRIVED}) in written
    (inserted,) = of_kind(decision, InsertTraversal)
    assert 'A' in {node.resource_id for node in inserted.nodes}


def lasting(**changes):
    return row('A2', 'a', **changes)


@pytest.mark.parametrize('wanted', [row('A'), row('A', status=Status.FAILED), replace(FRESH, id='A', name='a')])
def test_who_never_gave_way_to_the_chosen_row_does_so_before_anything_else(wanted):
    """A leftover of somebody who had lost his row, or of a time that the database has forgotten."""
    late = lasting(status=Status.FAILED, created_at=0.0)
    wanted = replace(wanted, template_id='T1')
    exclusive = replace(planner(), hands_over=lambda name: True)
    decision = plan(plan_view(wanted, late), STACK, request(definitions(a='')), exclusive)
    written = [(each.resource_ids, each.changes) for each in of_kind(decision, UpdateResources)]
    assert (('A',), {'handover': Handover.RECLAIMING}) in written
    assert (('A2',), {'handover': Handover.DEPRIVED}) in written
    (inserted,) = of_kind(decision, InsertTraversal)
    assert 'A' in {node.resource_id for node in inserted.nodes}, 'it is visited, whatever it was made from'


@pytest.mark.parametrize(
    ('other', 'hands_over'),
    [
        (lasting(status=Status.FAILED), False),
        (lasting(handover=Handover.RELEASED), True),
        (lasting(action=Action.DELETE), True),
        (lasting(token=None, physical_id=None, output=None), True),
        (replace(lasting(), definition=replace(DEFINITION, external_id='theirs')), True),
    ],
    ids=['its type has nothing to give', 'given', 'going', 'never made', 'of others'],
)
def test_what_has_nothing_that_the_chosen_row_needs_is_left_alone(other, hands_over):
    wanted = row('A', template_id='T1')
    exclusive = replace(planner(), hands_over=lambda name: hands_over)
    decision = plan(plan_view(wanted, other), STACK, request(definitions(a='')), exclusive)
    assert not [each for each in of_kind(decision, UpdateResources) if 'handover' in each.changes]


@pytest.mark.parametrize('doing', [Step.HAND_OVER, Step.RECLAIM])
@pytest.mark.parametrize('status', [Status.COMPLETE, Status.FAILED])
def test_of_what_the_database_has_lost_nobody_knows_who_has_it(doing, status):
    done = claim(doing, Action.UPDATE, held(LEFT), rivals=(RIVAL, row('R3', 'r')))
    now = plan_view(replace(LEFT, status=status), RIVAL, row('B'))
    decision = put_in_doubt(now, done, 'lost')
    written = [(each.resource_ids, each.changes) for each in of_kind(decision, UpdateResources)]
    assert written == [
        (('R',), {'handover': Handover.RECLAIMING}),
        (('R2',), {'handover': Handover.DEPRIVED}),
    ]
    assert not of_kind(put_in_doubt(now, claim(Step.UPDATE, Action.UPDATE, held(LEFT)), 'lost'), UpdateResources)


@pytest.mark.parametrize('status', [Status.FAILED, Status.IN_PROGRESS])
def test_what_is_being_removed_goes_before_another_one_is_made_that_needs_what_it_has(status):
    """Half gone, it is not asked to give way: each update was refused for as long as it was there."""
    going = row('R', 'r', action=Action.DELETE, status=status)
    wanted = request(definitions(r=''))
    first = {'UPDATE': 1, 'CLEANUP': 0}
    for hands_over, waiting in ((True, first), (False, {'UPDATE': 0, 'CLEANUP': 1})):
        plans = replace(planner(), hands_over=lambda type_name, hands_over=hands_over: hands_over)
        made = only(plan(plan_view(going), STACK, wanted, plans), InsertTraversal).nodes
        assert {each.phase.value: each.waiting for each in made if each.name} == waiting


def test_what_is_being_removed_is_not_waited_for_where_something_else_is_wanted():
    """It may never be gone: then an update to something else is the way out."""
    going = row('R', 'r', action=Action.DELETE, status=Status.FAILED)
    changed = {name: replace(each, properties={'other': 1}) for name, each in definitions(r='').items()}
    plans = replace(planner(), hands_over=lambda type_name: True)
    made = only(plan(plan_view(going), STACK, request(changed), plans), InsertTraversal).nodes
    assert {each.phase.value: each.waiting for each in made if each.name} == {'UPDATE': 0, 'CLEANUP': 1}
