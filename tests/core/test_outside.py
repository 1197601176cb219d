"""What people and things outside say of a resource: signals, hooks, health; and what a stack says of its progress."""

from dataclasses import replace

import pytest

from convergence.core import acceptance, orphans, signals, stall
from convergence.core.acceptance import Marked
from convergence.core.effects import (
    ClearHook,
    CountEvent,
    DeleteResource,
    InsertEvents,
    InsertSignal,
    RevokeAddresses,
    StallTraversal,
    UpdateResource,
    UpdateStack,
)
from convergence.core.model import Action, Hook, Status, TraversalStatus
from convergence.core.views import FinishView, SignalView
from tests.core.build import FRESH, MADE, NOW, RUNNING, TRAVERSAL, ids, only, plan_view

PAUSED = replace(MADE, hook=Hook.PRE_UPDATE, hook_traversal_id='V1')


def told(decision):
    """The events of a decision: action, status and reason."""
    return [
        (event.action, event.status, event.reason)
        for effect in decision.effects
        if isinstance(effect, InsertEvents)
        for event in effect.events
    ]


def finish_view(resource):
    return FinishView(NOW, resource, None, TRAVERSAL, RUNNING)


def signal_view(resource, **changes):
    return replace(SignalView(NOW, RUNNING, resource, TRAVERSAL), **changes)


@pytest.mark.parametrize(
    'row',
    [
        None,
        FRESH,
        replace(MADE, action=Action.DELETE, status=Status.FAILED),
        replace(MADE, token=None, physical_id=None),
    ],
    ids=['no row', 'never begun', 'being deleted', 'nothing made'],
)
def test_of_nothing_it_cannot_be_said_that_it_is_broken(row):
    decision = acceptance.mark(finish_view(row), True, 'broken', ids())
    assert (decision.verdict, decision.effects) == (Marked.ABSENT, ())


@pytest.mark.parametrize('row', [replace(MADE, owner='W'), replace(MADE, status=Status.IN_PROGRESS)], ids=str)
def test_a_row_that_is_worked_on_is_not_marked(row):
    assert acceptance.mark(finish_view(row), True, 'broken', ids()).verdict is Marked.BUSY


def test_a_resource_is_marked_broken_and_well_again_and_twice_is_once():
    broken = acceptance.mark(finish_view(MADE), True, 'broken', ids())
    update = only(broken, UpdateResource)
    assert (update.owner, update.fence) == (None, MADE.fence)
    assert (update.changes['action'], update.changes['status']) == (Action.CHECK, Status.FAILED)
    assert told(broken) == [(Action.CHECK, Status.FAILED, 'broken')]
    row = replace(MADE, action=Action.CHECK, status=Status.FAILED)
    assert acceptance.mark(finish_view(row), True, 'again', ids()).effects == ()
    well = acceptance.mark(finish_view(row), False, 'well', ids())
    assert only(well, UpdateResource).changes['status'] is Status.COMPLETE
    assert acceptance.mark(finish_view(MADE), False, 'well', ids()).effects == ()


def test_a_signal_wakes_its_resource_and_what_is_built_on_it():
    view = signal_view(MADE, dependents=('X',), ready=(('V1', 3, 'R'), ('V1', 4, 'X')))
    decision = signals.receive(view, 'sig', {'data': 1}, 'said', ids())
    assert decision.verdict is True
    assert only(decision, InsertSignal).signal.details == {'data': 1}
    assert [effect.resource_id for effect in decision.effects if isinstance(effect, CountEvent)] == ['R', 'X']
    assert decision.wake == (('V1', 3), ('V1', 4))
    assert told(decision) == [(Action.SIGNAL, Status.COMPLETE, 'said')]


def test_a_signal_to_a_resource_that_is_gone_changes_nothing():
    decision = signals.receive(signal_view(None), 'sig', None, 'said', ids())
    assert (decision.verdict, decision.effects) == (False, ())


def test_a_hook_is_cleared_where_the_row_waits_and_wakes_that_row_alone():
    view = signal_view(PAUSED, ready=(('V1', 3, 'R'), ('V1', 4, 'X')))
    decision = signals.clear(view, Hook.PRE_UPDATE, ids())
    assert only(decision, ClearHook) == ClearHook('R', Hook.PRE_UPDATE, 'V1')
    assert decision.wake == (('V1', 3),)


@pytest.mark.parametrize(
    'view',
    [
        signal_view(None),
        signal_view(PAUSED, traversal=None),
        signal_view(PAUSED, traversal=replace(TRAVERSAL, status=TraversalStatus.FAILED)),
        signal_view(MADE),
        signal_view(replace(PAUSED, hook=Hook.PRE_DELETE)),
        signal_view(replace(PAUSED, hook_traversal_id='V0')),
    ],
    ids=['no row', 'no traversal', 'over', 'not paused', 'at another hook', 'for another traversal'],
)
def test_a_hook_at_which_nothing_waits_cannot_be_cleared(view):
    decision = signals.clear(view, Hook.PRE_UPDATE, ids())
    assert (decision.verdict, decision.effects) == (False, ())


def test_a_stall_is_told_once_and_keeps_the_cause_whatever_words_it_has():
    """The cause was once cut out of the stack's text at the words in which a stall is told."""
    cause = 'resources.a: said "; no progress since Monday"'
    traversal = replace(TRAVERSAL, action=Action.ROLLBACK, cause=cause)
    view = plan_view(stack=RUNNING, traversal=traversal)
    decision = stall.stalled(view, 'V1', 950.0, 'noon, waiting for a', {'progress': 1}, ids())
    assert only(decision, InsertEvents).details == {'progress': 1}
    assert only(decision, StallTraversal) == StallTraversal('V1', 950.0)
    reason = only(decision, UpdateStack).changes['status_reason']
    assert reason == f'Stack ROLLBACK started; {cause}; no progress since noon, waiting for a'
    assert told(decision) == [(Action.ROLLBACK, Status.IN_PROGRESS, 'No progress since noon, waiting for a')]
    again = plan_view(stack=RUNNING, traversal=replace(traversal, stalled_at=950.0))
    assert stall.stalled(again, 'V1', 960.0, 'later', {}, ids()).effects == ()
    moves = stall.moving(again, 'V1', ids())
    assert only(moves, UpdateStack).changes['status_reason'] == f'Stack ROLLBACK started; {cause}'
    assert told(moves) == [(Action.ROLLBACK, Status.IN_PROGRESS, 'Progress again')]


@pytest.mark.parametrize(
    'view',
    [
        plan_view(stack=RUNNING, traversal=None),
        plan_view(stack=None, traversal=TRAVERSAL),
        plan_view(stack=RUNNING, traversal=replace(TRAVERSAL, id='V0')),
        plan_view(stack=replace(RUNNING, status=Status.COMPLETE), traversal=TRAVERSAL),
        plan_view(stack=RUNNING, traversal=replace(TRAVERSAL, status=TraversalStatus.FAILED)),
    ],
    ids=['no traversal', 'no stack', 'superseded', 'over', 'failed'],
)
def test_what_is_over_does_not_stall(view):
    assert stall.stalled(view, 'V1', 950.0, 'noon', {}, ids()).effects == ()
    assert stall.moving(view, 'V1', ids()).effects == ()


def test_what_is_left_behind_is_told_so_that_it_can_be_found():
    unseen = replace(MADE, id='Q', name='q', physical_id=None, token='t-1', owner='W', fence=4)
    effects = orphans.leave([MADE, unseen], NOW, ids())
    assert effects[:2] == [DeleteResource('R', None, 1), DeleteResource('Q', 'W', 4)]
    reasons = [event.reason for event in effects[2].events]
    assert 'physical id phys' in reasons[0] and 'token t-1' in reasons[1]
    assert orphans.leave([], NOW, ids()) == []
    assert orphans.summary([]) == ''
    assert orphans.summary([MADE] * (orphans.MANY + 2)).endswith('and 2 more, see the events')
    assert orphans.unknown(['r', 'nobody'], [MADE]) == ['nobody']
    assert 'never created' in orphans.object_of(replace(FRESH, definition=None))


def test_progress_is_told_while_the_operation_goes_on_and_not_afterwards():
    view = plan_view(stack=RUNNING, traversal=TRAVERSAL)
    decision = stall.progressed(view, 'V1', '3 of 9 are done', {'done': 3}, ids())
    assert only(decision, InsertEvents).details == {'done': 3}
    assert told(decision) == [(TRAVERSAL.action, Status.IN_PROGRESS, '3 of 9 are done')]
    assert stall.progressed(view, 'V0', 'late', {}, ids()).effects == ()
    over = plan_view(stack=replace(RUNNING, status=Status.COMPLETE), traversal=TRAVERSAL)
    assert stall.progressed(over, 'V1', 'late', {}, ids()).effects == ()


def test_all_signal_addresses_of_a_row_become_void_at_once_and_that_is_told():
    decision = signals.revoke(signal_view(MADE), 'another', ids())
    assert decision.verdict is True
    assert only(decision, RevokeAddresses) == RevokeAddresses('R', 'another')
    assert told(decision) == [(Action.SIGNAL, Status.COMPLETE, 'All signal addresses are revoked')]
    assert signals.revoke(signal_view(None), 'another', ids()).effects == ()


def test_what_happens_to_an_object_has_its_action_polled_at_once_where_one_is_under_way():
    busy = signal_view(replace(MADE, status=Status.IN_PROGRESS), ready=(('V1', 3, 'R'), ('V1', 4, 'X')))
    decision = signals.stir(busy)
    assert only(decision, CountEvent).resource_id == 'R'
    assert decision.wake == (('V1', 3),)
    assert signals.stir(signal_view(MADE)).effects == ()
