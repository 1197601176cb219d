"""States, failures, ends, digests: the tables."""

from dataclasses import replace

import pytest

from convergence.core.complete import conclude
from convergence.core.conditions import conditions
from convergence.core.digest import digest
from convergence.core.effects import BeginCancel, EndTraversal, FinishNode, NoteInService, PurgeTemplates, UpdateStack
from convergence.core.failure import (
    Cancelled,
    Outcome,
    cancel_patiently,
    cancel_stack,
    end_cancel,
    fail_stack,
    node_failed,
    outcome,
    stack_reason,
    timed_out,
)
from convergence.core.model import Action, Definition, NodeStatus, Output, Phase, Status, TraversalStatus
from convergence.core.rows import Node
from convergence.core.states import RESOURCE, STACK, resource_state, stack_state
from tests.core.build import (
    MADE,
    NODE,
    NOW,
    RUNNING,
    TRAVERSAL,
    events,
    ids,
    node_view,
    of_kind,
    only,
    plan_view,
    superseded,
)
from tests.core.build import STACK as A_STACK

FAILED = replace(TRAVERSAL, status=TraversalStatus.FAILED, reason='why', failed_phase=Phase.UPDATE)
WITH_ROLLBACK = replace(FAILED, rollback_on_failure=True)


# --- states -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('table', [STACK, RESOURCE], ids=['stack', 'resource'])
def test_every_state_that_can_be_reached_has_a_way_on(table):
    for following in table.values():
        assert following
        assert following <= set(table)


@pytest.mark.parametrize('table', [STACK, RESOURCE], ids=['stack', 'resource'])
def test_every_state_leads_to_a_deletion(table):
    """Every failed state can be deleted; a resource never begun needs no deletion, its row just goes."""
    for state in table:
        reached, waiting = {state}, [state]
        while waiting:
            for following in table[waiting.pop()] - reached:
                reached.add(following)
                waiting.append(following)
        assert (Action.DELETE, Status.IN_PROGRESS) in reached


def test_a_change_that_the_table_does_not_have_is_a_defect():
    with pytest.raises(AssertionError, match='CREATE_COMPLETE to CREATE_COMPLETE'):
        stack_state(A_STACK, Action.CREATE, Status.COMPLETE, '')
    with pytest.raises(AssertionError, match='r: CREATE_COMPLETE to CREATE_FAILED'):
        resource_state(MADE, Action.CREATE, Status.FAILED)
    assert resource_state(MADE, Action.UPDATE, Status.IN_PROGRESS, 'why') == {
        'action': 'UPDATE',
        'status': 'IN_PROGRESS',
        'status_reason': 'why',
    }


# --- failure ----------------------------------------------------------------------------------------------------

OUTCOMES = {
    'without rollback': (RUNNING, FAILED, Outcome.FAIL),
    'with rollback': (RUNNING, WITH_ROLLBACK, Outcome.ROLL_BACK),
    'too late, with rollback': (RUNNING, replace(WITH_ROLLBACK, failed_phase=None), Outcome.ROLL_BACK),
    'in cleanup': (RUNNING, replace(WITH_ROLLBACK, failed_phase=Phase.CLEANUP), Outcome.FAIL),
    'too late, all in service': (
        replace(RUNNING, last_good_template_id='T1'),
        replace(WITH_ROLLBACK, failed_phase=None),
        Outcome.FAIL,
    ),
    'a delete, too late': (
        replace(RUNNING, last_good_template_id=None, action=Action.DELETE),
        replace(FAILED, template_id=None, failed_phase=None, action=Action.DELETE),
        Outcome.FAIL,
    ),
    'a create, never good': (replace(RUNNING, last_good_template_id=None), WITH_ROLLBACK, Outcome.ROLL_BACK),
    'still running': (RUNNING, TRAVERSAL, Outcome.NOTHING),
    'superseded': (replace(RUNNING, traversal_id='V2'), WITH_ROLLBACK, Outcome.NOTHING),
    'settled': (replace(RUNNING, status=Status.FAILED), WITH_ROLLBACK, Outcome.NOTHING),
    'gone': (RUNNING, None, Outcome.NOTHING),
    'cancelled': (RUNNING, replace(WITH_ROLLBACK, status=TraversalStatus.CANCELLED), Outcome.NOTHING),
}


@pytest.mark.parametrize('case', OUTCOMES)
def test_what_a_failure_means_for_the_stack(case):
    """F070, F080, F044b."""
    stack, traversal, expected = OUTCOMES[case]
    assert outcome(stack, traversal) is expected


@pytest.mark.parametrize('case', OUTCOMES)
def test_a_stack_is_failed_only_where_that_is_the_outcome(case):
    stack, traversal, expected = OUTCOMES[case]
    decision = fail_stack(plan_view(stack=stack, traversal=traversal), ids())
    assert bool(decision.effects) == (expected is Outcome.FAIL)
    if decision.effects:
        assert only(decision, UpdateStack).changes['status_reason'] == 'why'
        assert events(decision) == [f'{traversal.action}_FAILED']


def test_a_stack_that_cannot_be_rolled_back_is_failed_with_both_reasons():
    view = plan_view(stack=RUNNING, traversal=WITH_ROLLBACK)
    reason = only(fail_stack(view, ids(), 'unreadable'), UpdateStack).changes['status_reason']
    assert reason == 'why; it cannot be rolled back: unreadable'


def test_a_failing_node_ends_its_traversal_and_says_where():
    ended, failed = node_failed(TRAVERSAL, NODE, Action.UPDATE, 'r', 'broken', NOW)
    assert (ended.status, ended.failed_phase, ended.expected) == ('FAILED', 'UPDATE', 'RUNNING')
    assert ended.reason == 'Resource UPDATE failed: resources.r: broken'
    assert failed.number == 3
    assert timed_out(TRAVERSAL, NOW).reason == 'UPDATE timed out'


def test_a_cancel_ends_traversal_and_stack_together():
    """F053."""
    decision = cancel_stack(plan_view(stack=RUNNING, traversal=TRAVERSAL), ids())
    assert (decision.verdict, only(decision, EndTraversal).status) == ('V1', 'CANCELLED')
    update = only(decision, UpdateStack)
    assert (update.changes['action'], update.changes['status']) == ('UPDATE', 'FAILED')
    for stack in (None, A_STACK):
        assert cancel_stack(plan_view(stack=stack, traversal=TRAVERSAL), ids()).effects == ()


def test_a_patient_cancel_waits_for_what_runs_and_for_nothing_else():
    """Whoever is told reads what it waits for, and until when; asked again it changes nothing."""
    busy = [replace(MADE, id=name, name=name, status=Status.IN_PROGRESS) for name in 'gfedcba']
    view = replace(plan_view(*busy, replace(MADE, id='idle'), stack=RUNNING), traversal=TRAVERSAL)
    decision = cancel_patiently(view, ids(), NOW + 60, str)
    assert decision.verdict == Cancelled('V1', NOW + 60)
    assert only(decision, BeginCancel) == BeginCancel('V1', NOW + 60)
    told = 'Stack UPDATE cancelling: waits for a, b, c, d, e and 2 more until 1060.0'
    assert only(decision, UpdateStack).changes == {'status_reason': told}
    assert events(decision) == ['UPDATE_IN_PROGRESS']

    cancelling = replace(view, traversal=replace(TRAVERSAL, status=TraversalStatus.CANCELLING, deadline=NOW + 60))
    assert cancel_patiently(cancelling, ids(), NOW + 90, str).effects == ()
    assert end_cancel(cancelling, ids()).verdict is None

    over = (
        end_cancel(replace(cancelling, resources=(MADE,)), ids()),
        end_cancel(replace(cancelling, now=NOW + 60), ids()),
        cancel_patiently(replace(view, resources=(MADE,)), ids(), NOW + 60, str),
        cancel_patiently(view, ids(), NOW, str),
        cancel_patiently(cancelling, ids(), NOW, str),
    )
    for ended in over:
        assert only(ended, EndTraversal).status is TraversalStatus.CANCELLED
        assert only(ended, UpdateStack).changes['status'] is Status.FAILED
    assert only(over[0], EndTraversal).expected is TraversalStatus.CANCELLING


# --- the end ----------------------------------------------------------------------------------------------------

IN_SERVICE = Node('V1', 8, Phase.IN_SERVICE, NodeStatus.READY, required_by=(9,))
COMPLETE = Node('V1', 9, Phase.COMPLETE, NodeStatus.READY)


def test_what_is_in_service_is_what_a_rollback_comes_back_to():
    """F073. What was that before is kept, for users who want to go back from there."""
    decision = conclude(node_view(IN_SERVICE, None), ids())
    changes = only(decision, UpdateStack).changes
    assert changes == {'last_good_template_id': 'T1', 'previous_good_template_id': 'T0'}
    again = conclude(node_view(IN_SERVICE, None, stack=replace(RUNNING, last_good_template_id='T1')), ids())
    assert only(again, UpdateStack).changes == {'last_good_template_id': 'T1'}
    assert only(decision, FinishNode).required_by == (9,)


def test_that_everything_is_up_is_told_where_something_is_still_to_be_removed():
    decision = conclude(node_view(IN_SERVICE, None, leftovers=('old', 'older')), ids())
    told = 'Stack UPDATE: all resources of the goal are up; leftovers to delete: old, older'
    assert only(decision, UpdateStack).changes['status_reason'] == told
    assert events(decision) == ['UPDATE_IN_PROGRESS']
    assert only(decision, NoteInService) == NoteInService('V1', NOW)
    assert events(conclude(node_view(IN_SERVICE, None), ids())) == []


@pytest.mark.parametrize('action', [Action.RESUME, Action.CHECK, Action.SNAPSHOT, Action.SUSPEND])
def test_what_was_never_in_service_does_not_pass_for_it(action):
    """F052: whatever was done to the objects as they are, the stack is not what its template says."""
    traversal = replace(TRAVERSAL, action=action)
    stack = replace(RUNNING, action=action)
    behind = conclude(node_view(COMPLETE, None, traversal=traversal, stack=stack), ids())
    status = 'COMPLETE' if action is Action.SUSPEND else 'FAILED'
    assert only(behind, UpdateStack).changes['status'] == status
    assert (only(behind, EndTraversal).status, events(behind)) == (status, [f'{action}_{status}'])
    good = replace(stack, last_good_template_id='T1')
    assert events(conclude(node_view(COMPLETE, None, traversal=traversal, stack=good), ids())) == [f'{action}_COMPLETE']


AT_REST = replace(RUNNING, status=Status.COMPLETE, last_good_template_id='T1')
UP = replace(TRAVERSAL, in_service_at=950.0)
OVER = replace(UP, status=TraversalStatus.COMPLETE, finished_at=990.0)
CONDITIONS = {
    'not up yet': (RUNNING, TRAVERSAL, (False, 'NotYet', 900.0), (True, 'Update', 900.0)),
    'up, leftovers go': (RUNNING, UP, (True, 'InService', 950.0), (True, 'RemovingLeftovers', 950.0)),
    'complete': (AT_REST, OVER, (True, 'InService', 950.0), (False, 'Complete', 990.0)),
    'a leftover stays': (
        replace(AT_REST, status=Status.FAILED),
        replace(OVER, status=TraversalStatus.FAILED, failed_phase=Phase.CLEANUP),
        (True, 'InService', 950.0),
        (False, 'Failed', 990.0),
    ),
    'failed': (
        replace(RUNNING, status=Status.FAILED),
        replace(FAILED, finished_at=960.0),
        (False, 'UpdateFailed', 960.0),
        (False, 'Failed', 960.0),
    ),
    'makes no progress': (
        RUNNING,
        replace(TRAVERSAL, stalled_at=940.0),
        (False, 'NotYet', 900.0),
        (False, 'Stalled', 940.0),
    ),
    'being cancelled': (
        RUNNING,
        replace(TRAVERSAL, status=TraversalStatus.CANCELLING),
        (False, 'NotYet', 900.0),
        (True, 'Cancelling', None),
    ),
    'suspended': (
        replace(AT_REST, action=Action.SUSPEND),
        replace(OVER, action=Action.SUSPEND),
        (False, 'Suspended', 900.0),
        (False, 'Complete', 990.0),
    ),
    'being checked': (
        replace(RUNNING, action=Action.CHECK, last_good_template_id='T1'),
        replace(TRAVERSAL, action=Action.CHECK),
        (True, 'InService', None),
        (True, 'Check', 900.0),
    ),
    'found broken': (
        replace(AT_REST, action=Action.CHECK, status=Status.FAILED),
        replace(OVER, action=Action.CHECK, status=TraversalStatus.FAILED),
        (False, 'CheckFailed', 990.0),
        (False, 'Failed', 990.0),
    ),
    'resumed, never up': (
        replace(RUNNING, action=Action.RESUME, status=Status.FAILED),
        replace(OVER, action=Action.RESUME, status=TraversalStatus.FAILED),
        (False, 'NeverInService', 900.0),
        (False, 'Failed', 990.0),
    ),
    'being deleted': (
        replace(RUNNING, action=Action.DELETE),
        replace(UP, action=Action.DELETE),
        (False, 'Deleting', 900.0),
        (True, 'RemovingLeftovers', 950.0),
    ),
}


@pytest.mark.parametrize('case', CONDITIONS)
def test_a_stack_says_whether_all_is_up_and_whether_it_gets_on(case):
    stack, traversal, ready, progressing = CONDITIONS[case]
    found = {each.type: (each.holds, each.reason, each.since) for each in conditions(stack, traversal)}
    assert found == {'Ready': ready, 'Progressing': progressing}
    assert conditions(stack, None) == ()


def test_nothing_in_service_is_no_template_to_come_back_to():
    decision = conclude(node_view(IN_SERVICE, None, traversal=replace(TRAVERSAL, template_id=None)), ids())
    assert decision.verdict
    assert of_kind(decision, UpdateStack) == []


def test_complete_is_the_end_of_stack_traversal_and_old_templates():
    decision = conclude(node_view(COMPLETE, None), ids())
    update = only(decision, UpdateStack)
    assert (update.changes['action'], update.changes['status'], update.traversal_id) == ('UPDATE', 'COMPLETE', 'V1')
    assert only(decision, PurgeTemplates).keep == ('T0', 'T1')
    assert only(decision, EndTraversal).status == 'COMPLETE'
    assert events(decision) == ['UPDATE_COMPLETE']
    assert 'deleted_at' not in update.changes


def test_the_end_of_a_delete_is_the_end_of_the_stack():
    view = node_view(
        COMPLETE,
        None,
        stack=replace(RUNNING, action=Action.DELETE),
        traversal=replace(TRAVERSAL, action=Action.DELETE, template_id=None),
    )
    assert only(conclude(view, ids()), UpdateStack).changes['deleted_at'] == NOW


@pytest.mark.parametrize('node', [IN_SERVICE, COMPLETE])
def test_the_end_comes_once_and_only_to_a_running_traversal(node):
    """F044b."""
    for view in (
        superseded(node_view(node, None)),
        node_view(node, None, traversal=FAILED),
        node_view(replace(node, status=NodeStatus.WAITING), None),
        node_view(replace(node, status=NodeStatus.DONE), None),
    ):
        decision = conclude(view, ids())
        assert (decision.verdict, decision.effects) == (False, ())


# --- digest -----------------------------------------------------------------------------------------------------

USER = Definition('u', 'Type', {'p': 1}, requires=('r',), uses={'r': ('x',)})
INPUT = Output('R', 'phys', {'x': 1, 'unused': 1})


def test_a_digest_does_not_depend_on_the_order_of_keys():
    one = Definition('r', 'T', {'a': 1, 'b': 2})
    other = Definition('r', 'T', {'b': 2, 'a': 1})
    assert digest(one, {}) == digest(other, {})
    assert len(digest(one, {})) == 64


@pytest.mark.parametrize(
    'changed',
    [
        (replace(USER, properties={'p': 2}), INPUT),
        (replace(USER, properties={'p': True}), INPUT),
        (replace(USER, type='Other'), INPUT),
        (replace(USER, metadata={'m': 1}), INPUT),
        (replace(USER, uses={}), INPUT),
        (USER, replace(INPUT, resource_id='R2')),
        (USER, replace(INPUT, reference='other')),
        (USER, replace(INPUT, attributes={'x': 2})),
        (USER, replace(INPUT, attributes={})),
        (USER, replace(INPUT, attributes={}, errors={'x': 'unreadable'})),
    ],
    ids=range(10),
)
def test_a_digest_tells_apart_what_makes_a_difference(changed):
    assert digest(changed[0], {'r': changed[1]}) != digest(USER, {'r': INPUT})


def test_a_digest_does_not_tell_apart_what_is_not_used():
    other = replace(INPUT, attributes={'x': 1, 'unused': 2})
    assert digest(USER, {'r': other, 'more': INPUT}) == digest(USER, {'r': INPUT})
    with pytest.raises(KeyError):
        digest(USER, {})


@pytest.mark.parametrize(
    ('reason', 'said'),
    [
        ('no such image', 'resources.a: no such image'),
        ('ValueError: no: such image', 'ValueError: resources.a: no: such image'),
        ('State: of a b', 'State: resources.a: of a b'),
        ('http://x: refused', 'resources.a: http://x: refused'),
        ('', 'resources.a: '),
        ('Resource UPDATE failed: resources.b: no', 'resources.a.resources.b: no'),
        (
            'Resource CREATE failed: ValueError: resources.b.resources.c: no',
            'ValueError: resources.a.resources.b.resources.c: no',
        ),
        (
            'Stack CREATE cancelled; Resource CREATE failed: resources.b: no',
            'resources.a: Stack CREATE cancelled; Resource CREATE failed: resources.b: no',
        ),
        (
            'Resource CHECK failed: resources.b: gone; Resource CHECK failed: KeyError: resources.c: x',
            'resources.a.resources.b: gone; Resource CREATE failed: KeyError: resources.a.resources.c: x',
        ),
    ],
)
def test_the_reason_of_a_stack_names_the_class_and_then_the_path_down_to_what_failed(reason, said):
    assert stack_reason(Action.CREATE, 'a', reason) == f'Resource CREATE failed: {said}'
