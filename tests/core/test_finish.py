"""The end of an action, every kind of it, in every situation: what becomes of the row, and who is woken."""

from dataclasses import replace

import pytest

from convergence.core.claim import Step
from convergence.core.effects import (
    AppendCleanup,
    Decision,
    DeleteResource,
    EndTraversal,
    FailNode,
    FinishNode,
    InsertEvents,
    InsertResources,
    NoteFailure,
    UpdateResource,
)
from convergence.core.finish import as_claimed, finish
from convergence.core.handoff import Handoff
from convergence.core.held import abandon, escalate, record, release
from convergence.core.lost_commits import is_unknown, known_again, put_in_doubt
from convergence.core.model import Action, NodeStatus, Output, Phase, Restriction, Status, TraversalStatus
from convergence.core.orphans import Tracking, keep_track
from convergence.core.results import (
    End,
    Failed,
    NeedsReplacement,
    NotBegun,
    Parked,
    Succeeded,
    may_have_made,
)
from convergence.core.rows import Retry
from convergence.core.views import FinishView
from convergence.worker.checks.fences import Fences
from tests.core.build import (
    FRESH,
    MADE,
    NODE,
    NOW,
    PENDING,
    RUNNING,
    STACK,
    TRAVERSAL,
    claim,
    events,
    finish_view,
    held,
    ids,
    of_kind,
    only,
    plan_view,
    row,
    superseded,
    worker,
)

NEW = Output('R', 'new-phys')
CREATING = held(replace(MADE, status=Status.IN_PROGRESS, output=None, physical_id=None, pending=PENDING))
CLAIM = claim(Step.CREATE, Action.CREATE, CREATING)
DELETING = claim(Step.DELETE, Action.DELETE, held(replace(MADE, action=Action.DELETE, status=Status.IN_PROGRESS)))
RESULTS = {
    'succeeded': Succeeded(NEW, 'new-phys', {'k': 1}),
    'failed': Failed('broken', 'new-phys', {'k': 1}),
    'parked': Parked({'round': 1}, 5.0, 'new-phys', {'k': 1}),
    'unsuitable': NeedsReplacement('of no use', 'new-phys', {'k': 1}),
}
FAILED = replace(TRAVERSAL, status=TraversalStatus.FAILED)
CURRENT = finish_view(CLAIM)
WAITS = ('V2', 8)

# For each result and situation: the verdict, who is woken, and whether the node is finished or the traversal failed.
TABLE = {
    ('succeeded', 'current'): (End.DONE, (), 'finished'),
    ('succeeded', 'failed'): (End.RELEASED, (), None),
    ('succeeded', 'superseded'): (End.RELEASED, (WAITS,), None),
    ('succeeded', 'node done'): (End.RELEASED, (), None),
    ('succeeded', 'node gone'): (End.RELEASED, (WAITS,), None),
    ('failed', 'current'): (End.FAILED, (), 'failed'),
    ('failed', 'failed'): (End.RELEASED, (), None),
    ('failed', 'superseded'): (End.RELEASED, (WAITS,), None),
    ('failed', 'node done'): (End.RELEASED, (), None),
    ('failed', 'node gone'): (End.RELEASED, (WAITS,), None),
    ('parked', 'current'): (End.RELEASED, (), None),
    ('parked', 'failed'): (End.RELEASED, (), None),
    ('parked', 'superseded'): (End.RELEASED, (WAITS,), None),
    ('parked', 'node done'): (End.RELEASED, (), None),
    ('parked', 'node gone'): (End.RELEASED, (WAITS,), None),
    ('unsuitable', 'current'): (End.RELEASED, (), None),
    ('unsuitable', 'failed'): (End.RELEASED, (), None),
    ('unsuitable', 'superseded'): (End.RELEASED, (WAITS,), None),
    ('unsuitable', 'node done'): (End.RELEASED, (), None),
    ('unsuitable', 'node gone'): (End.RELEASED, (WAITS,), None),
}
SITUATIONS = {
    'current': CURRENT,
    'failed': replace(CURRENT, traversal=FAILED),
    'superseded': superseded(CURRENT, WAITS),
    'node done': replace(CURRENT, node=replace(NODE, status=NodeStatus.DONE)),
    'node gone': superseded(replace(CURRENT, node=None, traversal=None), WAITS),
}
STATES = {
    'succeeded': {'status': 'COMPLETE', 'progress': None, 'wake_at': None, 'output': NEW},
    'failed': {'status': 'FAILED', 'status_reason': 'broken', 'progress': None, 'wake_at': None},
    'parked': {'progress': {'round': 1}, 'wake_at': NOW + 5.0},
    'unsuitable': {'status': 'FAILED', 'status_reason': 'of no use', 'progress': None},
}


@pytest.mark.parametrize(('result', 'situation'), TABLE, ids='-'.join)
def test_every_end_frees_the_row_stores_what_is_known_and_wakes_whoever_waits(result, situation):
    """F001, F002, F004, F009: in a superseded traversal the row's node of the new one is woken, and no node touched."""
    verdict, wake, effect = TABLE[result, situation]
    decision = finish(SITUATIONS[situation], CLAIM, RESULTS[result], worker())
    assert (decision.verdict, decision.wake) == (verdict, wake)
    update = only(decision, UpdateResource)
    assert (update.owner, update.fence) == ('W', CREATING.fence)
    assert (update.changes['owner'], update.changes['physical_id'], update.changes['data']) == (
        None,
        'new-phys',
        {'k': 1},
    )
    assert {key: update.changes[key] for key in STATES[result]} == STATES[result]
    assert bool(of_kind(decision, FinishNode)) == (effect == 'finished')
    assert bool(of_kind(decision, EndTraversal)) == bool(of_kind(decision, FailNode)) == (effect == 'failed')


@pytest.mark.parametrize('result', RESULTS)
@pytest.mark.parametrize(
    'resource',
    [
        None,
        replace(CREATING, owner=None),
        replace(CREATING, owner='other'),
        replace(CREATING, fence=7),
    ],
    ids=['gone', 'free', 'held by another', 'another fence'],
)
def test_whoever_has_lost_the_row_writes_nothing(result, resource):
    """I2, F021."""
    decision = finish(replace(CURRENT, resource=resource), CLAIM, RESULTS[result], worker())
    assert (decision.verdict, decision.effects, decision.wake) == (End.FENCED, (), ())
    assert not record(replace(CURRENT, resource=resource), CLAIM, RESULTS['parked']).verdict
    assert not escalate(replace(CURRENT, resource=resource), CLAIM, worker()).verdict


def test_a_success_makes_true_what_was_pending():
    changes = only(finish(CURRENT, CLAIM, RESULTS['succeeded'], worker()), UpdateResource).changes
    assert {
        key: changes[key] for key in ('definition', 'properties', 'requires', 'template_id', 'digest', 'pending')
    } == {
        'definition': PENDING.definition,
        'properties': PENDING.properties,
        'requires': (),
        'template_id': 'T1',
        'digest': 'digest',
        'pending': None,
    }


def test_what_is_not_known_any_more_does_not_overwrite_what_was():
    """F020."""
    changes = only(finish(CURRENT, CLAIM, Succeeded(NEW), worker()), UpdateResource).changes
    assert 'physical_id' not in changes
    assert 'data' not in changes


def test_a_deleted_row_is_removed():
    decision = finish(finish_view(DELETING), DELETING, Succeeded(None), worker())
    removed = only(decision, DeleteResource)
    assert (decision.verdict, removed.owner, removed.fence) == (End.DONE, 'W', 2)
    assert events(decision) == ['DELETE_COMPLETE']


def test_a_failed_deletion_fails_the_traversal_in_cleanup():
    """F080: so that nobody rolls back."""
    ended = only(finish(finish_view(DELETING), DELETING, Failed('stuck'), worker()), EndTraversal)
    assert (ended.failed_phase, ended.reason) == (Phase.CLEANUP, 'Resource DELETE failed: resources.r: stuck')


def test_a_leftover_of_an_older_traversal_that_ends_has_its_node_checked_again():
    """It does not finish, nor fail, what it was not meant for; and what it was made from is not what is wanted."""
    leftover = replace(CLAIM, step=Step.RESUME, completes_node=False)
    for result in ('succeeded', 'failed'):
        decision = finish(CURRENT, leftover, RESULTS[result], worker())
        assert (decision.verdict, decision.wake) == (End.RELEASED, (('V1', 3),))
        assert of_kind(decision, FinishNode) == of_kind(decision, EndTraversal) == []
    assert only(finish(CURRENT, leftover, RESULTS['succeeded'], worker()), UpdateResource).changes['digest'] is None


def test_a_node_that_is_attended_to_wakes_the_one_chained_to_it():
    chained = replace(NODE, next_in_backlog=6)
    claimed = replace(CLAIM, node=chained)
    view = replace(CURRENT, node=chained)
    assert finish(view, claimed, RESULTS['succeeded'], worker()).wake == (('V1', 6),)
    assert finish(view, claimed, RESULTS['parked'], worker()).wake == (('V1', 6),)
    assert finish(view, claimed, RESULTS['failed'], worker()).wake == ()


def test_a_failed_resource_found_in_good_order_is_complete_again_without_an_event_of_an_update():
    """F069."""
    resource = held(replace(MADE, status=Status.FAILED))
    claimed = claim(Step.REPAIR, Action.UPDATE, resource)
    decision = finish(finish_view(claimed), claimed, Succeeded(NEW), worker())
    changes = only(decision, UpdateResource).changes
    assert (changes['action'], changes['status']) == ('CREATE', 'COMPLETE')


def test_a_look_does_not_wake_what_could_not_be_resumed():
    """It is there, and nobody sees whether it sleeps: the operation fails for the reason why it could not be resumed."""
    asleep = held(replace(MADE, action=Action.RESUME, status=Status.FAILED, status_reason='not now'))
    claimed = claim(Step.REPAIR, Action.UPDATE, asleep)
    decision = finish(finish_view(claimed), claimed, Succeeded(None), worker())
    assert decision.verdict is End.FAILED
    assert 'status' not in only(decision, UpdateResource).changes
    assert only(decision, EndTraversal).reason == 'Resource UPDATE failed: resources.r: not now'
    gone = finish(finish_view(claimed), claimed, NeedsReplacement('it does not exist any more'), worker())
    assert gone.verdict is not End.FAILED
    assert not of_kind(gone, EndTraversal)


def test_an_update_that_was_begun_and_then_refused_has_changed_the_object():
    """Its row is FAILED, and keeps all that it may refer to: whoever wants the old object back has to put it right."""
    resource = held(replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS, requires=('NEW', 'OLD')))
    claimed = claim(Step.UPDATE, Action.UPDATE, resource)
    decision = finish(finish_view(claimed), claimed, RESULTS['unsuitable'], worker())
    changes = only(decision, UpdateResource).changes
    assert (changes['action'], changes['status']) == ('UPDATE', 'FAILED')
    assert not {'requires', 'pending', 'properties', 'template_id'} & changes.keys()
    assert events(decision) == ['UPDATE_FAILED']


def test_reading_an_output_is_no_change_of_state():
    claimed = claim(Step.READ, Action.CREATE, held())
    decision = finish(finish_view(claimed), claimed, Succeeded(NEW), worker())
    changes = only(decision, UpdateResource).changes
    assert (changes['output'], 'status' in changes, events(decision)) == (NEW, False, [])


def test_what_was_only_read_for_a_goal_that_is_given_up_keeps_what_the_row_was_made_from():
    """Whoever planned a deletion meanwhile has put it in order by that: it would go before what requires it by now."""
    claimed = claim(Step.READ, Action.CREATE, held(), pending=replace(PENDING, requires=('NEW',)))
    changes = only(finish(finish_view(claimed), claimed, Succeeded(NEW), worker()), UpdateResource).changes
    assert changes['requires'] == ('NEW',)
    late = only(finish(superseded(finish_view(claimed)), claimed, Succeeded(NEW), worker()), UpdateResource).changes
    assert not {'requires', 'definition', 'properties', 'template_id'} & late.keys()


def test_what_becomes_known_on_the_way_is_stored_at_once():
    """F027."""
    decision = record(CURRENT, CLAIM, RESULTS['parked'])
    assert only(decision, UpdateResource).changes == {
        'physical_id': 'new-phys',
        'data': {'k': 1},
        'progress': {'round': 1},
    }
    assert decision.verdict


def test_a_repair_that_becomes_an_update_says_so():
    resource = held(replace(MADE, status=Status.FAILED, requires=('OLD',)))
    claimed = claim(Step.REPAIR, Action.UPDATE, resource, pending=replace(PENDING, requires=('NEW',)))
    decision = escalate(finish_view(claimed), claimed, worker())
    changes = only(decision, UpdateResource).changes
    assert (changes['action'], changes['status'], changes['requires']) == ('UPDATE', 'IN_PROGRESS', ('NEW', 'OLD'))
    assert events(decision) == ['UPDATE_IN_PROGRESS']


def test_a_row_is_taken_from_an_owner_that_is_gone_under_a_new_fence():
    """F021, F023: its action stays in the middle, and whoever waits is woken."""
    view = FinishView(NOW, CREATING, None, None, RUNNING, (('V1', 3),))
    decision = release(view, CREATING.fence, worker())
    assert (decision.verdict, decision.wake) == (End.RELEASED, (('V1', 3),))
    assert only(decision, UpdateResource).changes == {
        'owner': None,
        'fence': 3,
        'wake_at': None,
        'search_until': NOW + 60.0,
    }


@pytest.mark.parametrize('resource', [None, MADE, replace(CREATING, fence=9)])
def test_a_row_that_is_free_or_held_anew_is_not_taken(resource):
    decision = release(FinishView(NOW, resource, None, None, RUNNING), CREATING.fence, worker())
    assert (decision.verdict, decision.effects) == (End.FENCED, ())


# --- what is made too late --------------------------------------------------------------------------------------


def test_a_late_object_is_taken_in_by_the_row_that_it_was_made_for():
    """F021."""
    free = replace(CREATING, owner=None, fence=3)
    decision = keep_track(plan_view(free), CLAIM, 'late', ids())
    update = only(decision, UpdateResource)
    assert (update.owner, update.fence, update.changes) == (None, 3, {'physical_id': 'late'})


@pytest.mark.parametrize('rows', [(), (replace(MADE, physical_id='another'),), (row('X1'),)])
def test_a_late_object_becomes_a_leftover_that_nobody_chooses_first(rows):
    """F021: the row is gone, or has found another object."""
    (made,) = only(keep_track(plan_view(*rows), CLAIM, 'late', ids()), InsertResources).resources
    assert (made.physical_id, made.action, made.status, made.owner, made.template_id) == (
        'late',
        'CREATE',
        'FAILED',
        None,
        None,
    )
    assert (made.definition, made.token, made.created_at) == (CREATING.definition, 'token', NOW)


def test_a_leftover_is_cleaned_up_before_what_it_was_built_on():
    decision = keep_track(
        plan_view(traversal=TRAVERSAL), replace(CLAIM, resource=replace(CREATING, requires=('Q',))), 'late', ids()
    )
    append = only(decision, AppendCleanup)
    assert (append.holds_up, append.rows_after, append.node.status) == (8, ('Q',), NodeStatus.READY)


def test_an_object_that_is_known_needs_nothing_and_one_that_is_looked_for_is_waited_for():
    known = keep_track(plan_view(row('X1', physical_id='late')), CLAIM, 'late', ids())
    looked_for = keep_track(plan_view(replace(CREATING, owner='other', fence=9)), CLAIM, 'late', ids())
    assert (known.verdict, known.effects) == (Tracking.KNOWN, ())
    assert (looked_for.verdict, looked_for.effects) == (Tracking.HELD, ())


@pytest.mark.parametrize('stack', [None, replace(STACK, deleted_at=5.0)])
def test_an_object_of_a_stack_that_is_gone_can_only_be_reported(stack):
    assert keep_track(plan_view(stack=stack), CLAIM, 'late', ids()).verdict is Tracking.LOST


def test_a_holder_who_was_shown_an_older_state_of_its_own_row_lets_it_go_on():
    """A server that lags says that somebody else holds the row; nobody does, so nobody else would ever end that."""
    mine = replace(held(FRESH), token='token', status=Status.IN_PROGRESS, action=Action.CREATE)
    claimed = claim(Step.CREATE, Action.CREATE, mine)
    tracked = keep_track(replace(plan_view(mine, traversal=TRAVERSAL), stack=RUNNING), claimed, 'phys', ids())
    assert tracked.verdict is Tracking.KNOWN
    changes = only(tracked, UpdateResource).changes
    assert (changes['physical_id'], changes['owner'], changes['fence']) == ('phys', None, mine.fence + 1)
    assert tracked.wake == ((NODE.traversal_id, NODE.number),)
    over = replace(TRAVERSAL, status=TraversalStatus.FAILED)
    late = keep_track(replace(plan_view(mine, traversal=over), stack=RUNNING), claimed, 'phys', ids())
    assert late.wake == ()
    others = replace(mine, owner='X', fence=mine.fence + 1)
    assert keep_track(replace(plan_view(others), stack=RUNNING), claimed, 'phys', ids()).verdict is Tracking.HELD


def test_a_late_object_without_an_id_is_known_by_its_token():
    """The row that has the token finds it out; where none has it any more, a leftover does, or tells that it cannot."""
    begun = replace(CLAIM, resource=replace(CREATING, token='K'))
    same = replace(begun.resource, owner=None, fence=CREATING.fence + 1)
    assert keep_track(plan_view(same), begun, None, ids()) == Decision(Tracking.KNOWN)
    others = plan_view(replace(CREATING, token='another', owner='other', fence=9))
    (made,) = only(keep_track(others, begun, None, ids()), InsertResources).resources
    assert (made.token, made.physical_id, made.is_lost) == ('K', None, True)


def test_what_the_database_has_lost_is_put_in_doubt_unless_the_row_has_moved_on():
    done = claim(Step.UPDATE, Action.UPDATE, held(MADE))
    free = replace(MADE, owner=None, fence=done.resource.fence - 1)
    assert only(put_in_doubt(plan_view(free), done, 'lost'), UpdateResource).changes['status'] is Status.FAILED
    later = replace(free, fence=done.resource.fence)
    assert put_in_doubt(plan_view(later), done, 'lost') == Decision(Tracking.KNOWN)
    assert put_in_doubt(plan_view(replace(done.resource, fence=0)), done, 'lost') == Decision(Tracking.HELD)
    forgotten = replace(done, traversal=replace(TRAVERSAL, id='T9', started_at=TRAVERSAL.started_at + 1))
    view, busy = plan_view(later, traversal=TRAVERSAL), replace(later, status=Status.IN_PROGRESS)
    assert only(put_in_doubt(view, forgotten, 'lost'), UpdateResource).changes['status'] is Status.FAILED
    assert put_in_doubt(plan_view(busy, traversal=TRAVERSAL), forgotten, 'lost') == Decision(Tracking.HELD)
    superseded = replace(done, traversal=replace(TRAVERSAL, id='T9'))
    assert put_in_doubt(view, superseded, 'lost') == Decision(Tracking.KNOWN), 'by one of the same moment'
    assert of_kind(put_in_doubt(plan_view(later), done, 'lost', is_certain=True), UpdateResource)
    again = replace(later, action=Action.UPDATE)
    assert put_in_doubt(plan_view(again), done, 'lost', is_certain=True) == Decision(Tracking.KNOWN)


def test_a_row_that_is_only_to_be_resumed_does_not_hide_what_the_database_has_lost():
    """Resumed, it would pass for what it was before."""
    unresumed = replace(MADE, action=Action.RESUME, status=Status.FAILED)
    changed = claim(Step.UPDATE, Action.UPDATE, held(replace(MADE, action=Action.RESUME)))
    before = plan_view(replace(unresumed, owner=None, fence=changed.resource.fence - 1))
    assert only(put_in_doubt(before, changed, 'lost'), UpdateResource).changes['action'] is Action.UPDATE
    removed = replace(changed, step=Step.DELETE, action=Action.DELETE)
    assert only(put_in_doubt(before, removed, 'lost'), UpdateResource).changes['action'] is Action.CHECK
    looked = claim(Step.REPAIR, Action.UPDATE, held(unresumed))
    assert put_in_doubt(before, looked, 'lost') == Decision(Tracking.KNOWN)


def test_an_object_of_others_becomes_no_leftover_where_its_use_is_forgotten():
    borrowed = replace(CREATING, definition=replace(PENDING.definition, external_id='theirs'))
    lost = known_again(plan_view(), claim(Step.ADOPT, Action.CREATE, borrowed), 'theirs', False, ids())
    assert lost == Decision(Tracking.KNOWN)


def test_an_object_that_no_row_knows_is_news_whatever_was_done_to_it():
    """Whoever has made it may have died."""
    changed = claim(Step.UPDATE, Action.UPDATE, held(MADE))
    assert not is_unknown(plan_view(MADE), changed, MADE.physical_id)
    assert is_unknown(plan_view(replace(MADE, physical_id='another')), changed, MADE.physical_id)
    assert not is_unknown(plan_view(), claim(Step.DELETE, Action.DELETE, held(MADE)), MADE.physical_id)


def test_one_process_never_gives_out_a_fence_twice_even_where_rows_go_back():
    fences = Fences()
    first = fences.next(replace(MADE, fence=4))
    assert (first, fences.next(replace(MADE, fence=4)), fences.next(replace(MADE, fence=9))) == (5, 6, 10)


def test_who_does_not_stop_is_refused_from_then_on():
    decision = abandon(CURRENT, CLAIM, 'it took too long', worker())
    update = only(decision, UpdateResource)
    assert (update.changes['status'], update.changes['fence']) == (Status.FAILED, update.fence + 1)
    assert update.changes['owner'] is None


@pytest.mark.parametrize('result', [RESULTS['failed'], RESULTS['parked']], ids=['failed', 'parked'])
def test_only_a_success_is_stored_without_another_look(result):
    assert as_claimed(CLAIM, RESULTS['succeeded'], 1.0).assumed
    assert as_claimed(CLAIM, result, 1.0) is None
    assert as_claimed(replace(CLAIM, step=Step.REPAIR), RESULTS['succeeded'], 1.0) is None


@pytest.mark.parametrize(
    ('result', 'perhaps'),
    [
        (Succeeded(None), True),
        (Parked(None, 1.0), True),
        (Failed('no'), True),
        (Failed('no', nothing_made=True), False),
        (Failed('no', nothing_made=True, findable=True), True),
        (NeedsReplacement('other'), False),
    ],
    ids=['made', 'going on', 'unknown', 'said nothing', 'can be asked', 'unsuitable'],
)
def test_a_creation_may_have_made_something_unless_its_type_says_no_and_cannot_be_asked(result, perhaps):
    creation = claim(Step.CREATE, Action.CREATE, held())
    assert may_have_made(creation, result) is perhaps
    assert not may_have_made(claim(Step.CREATE, Action.CREATE, held(replace(MADE, token=None))), result)
    assert not may_have_made(claim(Step.UPDATE, Action.UPDATE, held()), result)


def test_whoever_had_nothing_called_gives_the_step_to_another_and_what_was_promised_stays():
    retry = Retry(2, 'busy', clean=True)
    claimed = claim(Step.CREATE, Action.CREATE, held(retry=retry))
    decision = finish(finish_view(claimed), claimed, NotBegun(), worker())
    assert only(decision, UpdateResource).changes == {'owner': None, 'wake_at': None, 'retry': retry}
    assert decision.wake == ((NODE.traversal_id, NODE.number),)
    elsewhere = superseded(finish_view(claimed), ('V2', 5))
    assert finish(elsewhere, claimed, NotBegun(), worker()).wake == (('V2', 5),)


def test_of_what_was_parked_with_the_beginning_of_its_stack_nothing_is_left_to_write():
    claimed = claim(Step.CREATE, Action.CREATE, held())
    decision = finish(
        finish_view(claimed), claimed, Parked(None, 5.0, handoff=Handoff('R', ('V', 0), traversal_id='W')), worker()
    )
    assert (decision.verdict, decision.effects) == (End.RELEASED, ())


def test_the_end_of_an_action_may_be_that_of_a_traversal_which_is_being_cancelled():
    claimed = claim(Step.UPDATE, Action.UPDATE, held(action=Action.UPDATE, status=Status.IN_PROGRESS))
    cancelling = finish_view(claimed, traversal=replace(TRAVERSAL, status=TraversalStatus.CANCELLING))
    for result, end in (
        (Succeeded(None), End.OVER),
        (Failed('no'), End.OVER),
        (Parked(None, 1.0), End.RELEASED),
        (NotBegun(), End.RELEASED),
    ):
        assert finish(cancelling, claimed, result, worker()).verdict is end


def test_a_replacement_that_is_restricted_is_a_failure_that_says_so():
    definition = replace(PENDING.definition, restrictions=(Restriction.REPLACE,))
    claimed = claim(
        Step.UPDATE,
        Action.UPDATE,
        held(action=Action.UPDATE, status=Status.IN_PROGRESS),
        node=replace(NODE, definition=definition),
    )
    decision = finish(finish_view(claimed), claimed, NeedsReplacement('it is too small'), worker())
    assert decision.verdict is End.FAILED
    (event,) = only(decision, InsertEvents).events
    assert event.status is Status.FAILED
    assert 'it is too small' in event.reason
    assert 'restricted' in event.reason


def test_a_check_that_fails_at_one_resource_goes_on_with_the_others():
    checking = replace(TRAVERSAL, action=Action.CHECK)
    going = held(action=Action.CHECK, status=Status.IN_PROGRESS)
    claimed = claim(Step.PERFORM, Action.CHECK, going, pending=None, traversal=checking)
    decision = finish(finish_view(claimed, traversal=checking), claimed, Failed('gone'), worker())
    assert decision.verdict is End.DONE
    assert 'gone' in only(decision, NoteFailure).said
    assert only(decision, FinishNode).number == NODE.number
