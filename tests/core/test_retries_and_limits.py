"""Calls that fail for the moment, actions with a limit of their own, workers that die again and again, and events."""

from dataclasses import replace

import pytest

from convergence.core.begin import begin
from convergence.core.claim import MAX_CRASHES, NO_NODE, Step, Worker
from convergence.core.digest import digest
from convergence.core.effects import EndTraversal, InsertResources, UpdateResource
from convergence.core.finish import finish
from convergence.core.held import abandon, give_up, interrupt, release
from convergence.core.model import Action, Change, Output, Status, TraversalStatus
from convergence.core.replacement import replacement
from convergence.core.results import End, Failed, NeedsReplacement, Parked, Postponed, Succeeded
from convergence.core.rows import Retry
from tests.core.build import (
    CLEANUP,
    DEFINITION,
    FRESH,
    MADE,
    NODE,
    NOW,
    PENDING,
    STACK,
    TRAVERSAL,
    claim,
    events,
    finish_view,
    held,
    ids,
    never,
    node_view,
    of_kind,
    only,
    superseded,
    wants,
    worker,
)

WANTED = replace(PENDING, digest=digest(DEFINITION, {}))
BACKING_OFF = replace(
    FRESH,
    action=Action.CREATE,
    status=Status.IN_PROGRESS,
    token='token',
    definition=DEFINITION,
    pending=WANTED,
    retry=Retry(2, 'quota', clean=True),
    wake_at=NOW - 1.0,
    traversal_id='V1',
)
ANOTHER = replace(NODE, definition=replace(DEFINITION, properties={'p': 2}))
LIMITED = replace(DEFINITION, time_limits={Action.CREATE: 60.0, Action.DELETE: 5.0})


def changes(decision):
    """What becomes of the row."""
    return only(decision, UpdateResource).changes


# --- repeating ------------------------------------------------------------------------------------------------


def test_a_postponed_call_waits_in_its_row_with_all_that_is_known_of_it():
    made = claim(Step.CREATE, Action.CREATE, held(replace(BACKING_OFF, retry=None)))
    decision = finish(finish_view(made), made, Postponed('quota', 3, 8.0), worker())
    assert decision.verdict is End.RELEASED
    row = changes(decision)
    assert (row['owner'], row['wake_at'], row['retry']) == (None, NOW + 8.0, Retry(3, 'quota', clean=True))
    assert 'status' not in row
    assert row['status_reason'] == 'attempt 3 failed, retrying: quota'


def test_what_backs_off_is_repeated_under_a_claim_that_knows_that_nothing_was_made():
    begun = begin(node_view(resource=BACKING_OFF), worker(), never).verdict
    assert (begun.step, begun.claim.clean, begun.claim.attempts) == (Step.RESUME, True, 2)
    assert begun.claim.completes_node
    # Whoever takes over from this worker does not know it any more.
    assert begun.claim.resource.retry == Retry(2, 'quota', clean=False)


def test_it_is_not_repeated_before_its_time():
    assert begin(node_view(resource=replace(BACKING_OFF, wake_at=NOW + 1.0)), worker(), never).verdict.step is Step.WAIT


def test_a_creation_that_made_nothing_is_begun_anew_where_something_else_is_wanted_by_now():
    begun = begin(node_view(ANOTHER, BACKING_OFF), worker(), wants(Change.IN_PLACE)).verdict
    assert (begun.step, begun.claim.attempts) == (Step.CREATE, 0)
    assert begun.claim.resource.token != BACKING_OFF.token


def test_a_creation_that_may_have_made_something_is_finished_first():
    unclean = replace(BACKING_OFF, retry=Retry(2, 'quota', clean=False))
    begun = begin(node_view(ANOTHER, unclean), worker(), never).verdict
    assert (begun.step, begun.claim.completes_node) == (Step.RESUME, False)


def test_an_update_that_backs_off_is_given_up_for_another_one():
    updating = replace(BACKING_OFF, action=Action.UPDATE, physical_id='phys')
    begun = begin(node_view(ANOTHER, updating), worker(), wants(Change.IN_PLACE)).verdict
    assert (begun.step, begun.claim.action) == (Step.REPAIR, Action.UPDATE)


@pytest.mark.parametrize(
    'result',
    [
        Succeeded(Output('R', 'phys'), 'phys'),
        Failed('broken'),
        Parked({}, 1.0),
    ],
)
def test_any_other_end_forgets_the_attempts(result):
    made = claim(Step.RESUME, Action.CREATE, held(replace(BACKING_OFF, crash_count=2)))
    row = changes(finish(finish_view(made), made, result, worker()))
    assert (row['retry'], row['crash_count']) == (None, 0)


# --- limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('limited', 'by_type', 'deadline'),
    [
        (LIMITED, None, NOW + 60.0),
        (LIMITED, 3.0, NOW + 60.0),
        (DEFINITION, 3.0, NOW + 3.0),
        (DEFINITION, None, None),
    ],
)
def test_the_template_limits_an_action_or_else_the_type(limited, by_type, deadline):
    limiting = Worker('W', ids(), 64, lambda name, action: by_type)
    view = node_view(replace(NODE, definition=limited), FRESH)
    assert begin(view, limiting, wants(Change.IN_PLACE)).verdict.claim.resource.deadline == deadline


def test_a_removal_is_limited_by_the_definition_it_was_made_from():
    begun = begin(node_view(CLEANUP, replace(MADE, definition=LIMITED)), worker(), never).verdict
    assert (begun.step, begun.claim.resource.deadline) == (Step.DELETE, NOW + 5.0)


def test_an_action_that_is_resumed_or_parked_keeps_its_limit():
    parked = replace(BACKING_OFF, retry=None, progress={}, deadline=NOW + 9.0)
    begun = begin(node_view(resource=parked), worker(), never).verdict
    assert begun.claim.resource.deadline == NOW + 9.0
    assert 'deadline' not in changes(finish(finish_view(begun.claim), begun.claim, Parked({}, 1.0), worker()))
    ended = finish(finish_view(begun.claim), begun.claim, Failed('broken'), worker())
    assert changes(ended)['deadline'] is None


# --- workers that die -----------------------------------------------------------------------------------------


def test_each_worker_that_dies_in_the_middle_is_counted_and_one_that_lives_is_not():
    row = held(replace(BACKING_OFF, crash_count=1))
    view = finish_view(claim(Step.RESUME, Action.CREATE, row))
    assert changes(release(view, row.fence, worker(), lost=True))['crash_count'] == 2
    assert 'crash_count' not in changes(release(view, row.fence, worker()))


@pytest.mark.parametrize(('node', 'action'), [(NODE, Action.CREATE), (NODE, Action.UPDATE), (CLEANUP, Action.DELETE)])
def test_what_kills_every_worker_fails_before_it_has_killed_them_all(node, action):
    lethal = replace(MADE, action=action, status=Status.IN_PROGRESS, crash_count=MAX_CRASHES)
    decision = begin(node_view(node, lethal), worker(), never)
    assert decision.verdict.step is Step.FAIL
    assert (changes(decision)['status'], changes(decision)['crash_count']) == (Status.FAILED, 0)
    end = only(decision, EndTraversal)
    assert (end.status, end.failed_name) == (TraversalStatus.FAILED, 'r')
    assert f'{MAX_CRASHES} workers in a row have died in the middle of {action}' in end.reason
    # One less, and it is tried again.
    assert (
        begin(node_view(node, replace(lethal, crash_count=MAX_CRASHES - 1)), worker(), never).verdict.step
        is Step.RESUME
    )


def test_what_kills_every_worker_that_looks_at_a_resource_fails_too():
    """No action of the resource: it stays what it is, and is looked at again by the next operation."""
    unread = replace(MADE, output=None, crash_count=MAX_CRASHES)
    failed = replace(MADE, status=Status.FAILED, crash_count=MAX_CRASHES)
    for row, doing in ((unread, 'reading its attributes'), (failed, 'comparing it with its record')):
        decision = begin(node_view(resource=row), worker(), wants(Change.NONE))
        assert decision.verdict.step is Step.FAIL
        assert changes(decision) == {'crash_count': 0}
        assert (
            f'{MAX_CRASHES} workers in a row have died in the middle of {doing}' in only(decision, EndTraversal).reason
        )
        again = begin(node_view(resource=replace(row, crash_count=0)), worker(), wants(Change.NONE))
        assert again.verdict.step in (Step.READ, Step.REPAIR)


def test_the_deaths_during_creations_that_nobody_can_find_are_counted_from_row_to_row():
    """Each is replaced by another row, and the next worker dies of that."""
    made = claim(Step.RESUME, Action.CREATE, held(replace(BACKING_OFF, retry=None, crash_count=3)))
    given_back = changes(finish(finish_view(made), made, NeedsReplacement('nothing was found'), worker()))
    assert (given_back['retry'], given_back['crash_count']) == (None, 3)
    old = replace(made.resource, **given_back)
    (new,) = only(replacement(node_view(resource=old), worker(), old.id), InsertResources).resources
    begun = begin(node_view(resource=new), worker(), wants(Change.IN_PLACE)).verdict
    assert (begun.step, begun.claim.resource.crash_count) == (Step.CREATE, 3)
    last = begin(node_view(resource=replace(new, crash_count=MAX_CRASHES)), worker(), wants(Change.IN_PLACE))
    assert last.verdict.step is Step.FAIL
    assert (changes(last)['action'], changes(last)['status'], changes(last)['crash_count']) == (
        Action.CREATE,
        Status.FAILED,
        0,
    )
    assert f'{MAX_CRASHES} workers in a row have died in the middle of CREATE' in only(last, EndTraversal).reason


def test_what_kills_every_worker_that_cancels_it_is_deleted_without_that():
    parked = replace(MADE, action=Action.CREATE, status=Status.IN_PROGRESS, progress={'n': 1}, crash_count=MAX_CRASHES)
    cancelling = replace(TRAVERSAL, cancels=True)
    told = begin(node_view(CLEANUP, replace(parked, crash_count=0), traversal=cancelling), worker(), never).verdict
    untold = begin(node_view(CLEANUP, parked, traversal=cancelling), worker(), never)
    assert (told.step, untold.verdict.step) == (Step.CANCEL, Step.DELETE)
    assert changes(untold)['crash_count'] == 0


# --- events ---------------------------------------------------------------------------------------------------


def test_what_happens_before_an_action_is_parked_wakes_it_at_once():
    made = claim(Step.CREATE, Action.CREATE, held(replace(BACKING_OFF, retry=None, event_count=4)))
    missed = replace(made.resource, event_count=5)
    decision = finish(finish_view(made, resource=missed), made, Parked({}, 30.0), worker())
    assert (changes(decision)['wake_at'], changes(decision)['polled_event_count']) == (NOW, 4)
    assert ('V1', 3) in decision.wake
    quiet = finish(finish_view(made), made, Parked({}, 30.0), worker())
    assert (changes(quiet)['wake_at'], quiet.wake) == (NOW + 30.0, ())


def test_what_happens_while_an_action_is_parked_ends_its_sleep():
    asleep = replace(BACKING_OFF, retry=None, progress={}, wake_at=NOW + 30.0, event_count=5, polled_event_count=5)
    assert begin(node_view(resource=asleep), worker(), never).verdict.step is Step.WAIT
    assert begin(node_view(resource=replace(asleep, event_count=6)), worker(), never).verdict.step is Step.RESUME


# --- stacks at rest -------------------------------------------------------------------------------------------

LEFT = replace(BACKING_OFF, retry=None, progress={'x': 1}, fence=7)
AT_REST = {'stack': STACK, 'node': None}


def left_view(row=LEFT, **changes):
    """A free row, as it is seen when its stack has come to rest."""
    made = claim(Step.RESUME, Action.CREATE, row)
    return finish_view(made, **{**AT_REST, **changes})


def test_a_long_action_of_a_stack_at_rest_is_claimed_to_be_interrupted():
    decision = interrupt(left_view(), 7, worker())
    made = decision.verdict
    assert (made.step, made.action, made.node.number) == (Step.INTERRUPT, Action.CREATE, NO_NODE)
    assert (made.resource.owner, made.resource.fence) == ('W', 8)
    end = finish(left_view(made.resource), made, Failed('CREATE cancelled'), worker())
    assert (end.verdict, end.wake) == (End.RELEASED, ())
    assert changes(end)['status'] is Status.FAILED
    assert of_kind(end, EndTraversal) == []


@pytest.mark.parametrize('decide', [interrupt, give_up])
@pytest.mark.parametrize(
    'view',
    [
        left_view(held(LEFT)),
        left_view(replace(LEFT, fence=8)),
        left_view(replace(LEFT, status=Status.COMPLETE)),
        left_view(stack=replace(STACK, status=Status.IN_PROGRESS)),
        left_view(resource=None),
    ],
)
def test_it_is_left_to_whoever_sees_to_it(decide, view):
    decision = decide(view, 7, worker())
    assert not decision.verdict
    assert decision.effects == ()


def test_a_row_that_is_given_up_says_which_failure_it_follows_from():
    failed = replace(TRAVERSAL, status=TraversalStatus.FAILED, failed_name='db')
    decision = give_up(left_view(traversal=failed), 7, worker())
    assert decision.verdict is True
    assert changes(decision)['status_reason'].endswith('(after db had failed)')
    assert events(decision) == ['CREATE_FAILED']


def test_a_check_that_is_cut_off_says_nothing_of_the_object():
    """It was replaced by the next update, although nobody had seen it."""
    checking = replace(MADE, action=Action.CHECK, status=Status.IN_PROGRESS)
    assert changes(give_up(left_view(replace(LEFT, action=Action.CHECK)), 7, worker()))['repairable']
    assert not changes(give_up(left_view(), 7, worker()))['repairable']
    lethal = begin(node_view(NODE, replace(checking, crash_count=MAX_CRASHES)), worker(), never)
    assert changes(lethal)['repairable']
    made = claim(Step.PERFORM, Action.CHECK, held(checking))
    assert changes(abandon(finish_view(made), made, 'it did not stop', worker()))['repairable']


# --- the first failure ----------------------------------------------------------------------------------------


def test_what_fails_later_names_the_first_failure():
    made = claim(Step.CREATE, Action.CREATE, held(replace(BACKING_OFF, retry=None)))
    failed = replace(TRAVERSAL, status=TraversalStatus.FAILED, failed_name='db')
    later = finish(finish_view(made, traversal=failed), made, Failed('broken'), worker())
    assert changes(later)['status_reason'] == 'broken (after db had failed)'
    first = finish(finish_view(made), made, Failed('broken'), worker())
    assert changes(first)['status_reason'] == 'broken'
    assert only(first, EndTraversal).failed_name == 'r'
    assert finish(superseded(finish_view(made)), made, Failed('broken'), worker()).verdict is End.RELEASED
