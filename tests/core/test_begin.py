"""One node: what is to be done for it now. Every step, and what each is decided from."""

from dataclasses import replace

import pytest

from convergence.core.begin import begin
from convergence.core.claim import ACTING, MAX_CRASHES, Creation, Step
from convergence.core.digest import digest
from convergence.core.effects import (
    AppendCleanup,
    DeleteResource,
    EndTraversal,
    FailNode,
    FinishNode,
    InsertResources,
    NotifyNode,
    PointNode,
    UpdateResource,
)
from convergence.core.model import (
    Action,
    Change,
    DeletionPolicy,
    Handover,
    Hook,
    NodeStatus,
    Output,
    Status,
    TraversalStatus,
)
from convergence.core.replacement import replacement
from tests.core.build import (
    CLEANUP,
    DEFINITION,
    FRESH,
    MADE,
    NODE,
    NOW,
    PENDING,
    RUNNING,
    TRAVERSAL,
    cannot,
    events,
    never,
    node_view,
    of_kind,
    only,
    superseded,
    wants,
    worker,
)

SAME = wants(Change.NONE)


def step(view, assess=never):
    """What is to be done."""
    return begin(view, worker(), assess).verdict.step


NOT_NOW = {
    'superseded': superseded(node_view()),
    'failed': node_view(traversal=replace(TRAVERSAL, status=TraversalStatus.FAILED)),
    'cancelled': node_view(traversal=replace(TRAVERSAL, status=TraversalStatus.CANCELLED)),
    'waiting': node_view(replace(NODE, status=NodeStatus.WAITING)),
    'done': node_view(replace(NODE, status=NodeStatus.DONE)),
    'failed node': node_view(replace(NODE, status=NodeStatus.FAILED)),
    'row gone': node_view(resource=None),
    'cleanup of a superseded traversal': superseded(node_view(CLEANUP)),
}


@pytest.mark.parametrize('case', NOT_NOW)
def test_what_nobody_waits_for_is_dropped_without_a_write(case):
    decision = begin(NOT_NOW[case], worker(), never)
    assert (decision.verdict.step, decision.effects, decision.wake) == (Step.DROP, (), ())


@pytest.mark.parametrize('node', [NODE, CLEANUP], ids=['update', 'cleanup'])
def test_a_row_that_somebody_holds_is_waited_for(node):
    """Whoever holds it wakes us; but whom we were to wake must not wait for that."""
    view = node_view(replace(node, next_in_backlog=5), replace(MADE, owner='other'))
    decision = begin(view, worker(), never)
    assert (decision.verdict.step, decision.wake) == (Step.WAIT, (('V1', 5),))
    assert decision.effects == (NotifyNode('V1', 5),)


@pytest.mark.parametrize(
    'resource',
    [
        replace(MADE, status=Status.IN_PROGRESS, wake_at=NOW + 5, pending=PENDING, traversal_id='V1'),
        replace(MADE, action=Action.DELETE, status=Status.IN_PROGRESS, wake_at=NOW + 5, traversal_id='V1'),
    ],
)
def test_a_row_that_this_traversal_has_parked_sleeps_until_its_time(resource):
    """F017: a message that comes early is a double."""
    node = CLEANUP if resource.action is Action.DELETE else NODE
    assert step(node_view(node, resource)) is Step.WAIT
    assert step(node_view(node, replace(resource, wake_at=NOW - 5))) is Step.RESUME
    assert step(node_view(node, replace(resource, traversal_id='V0'))) is Step.RESUME


# --- update -----------------------------------------------------------------------------------------------------


def test_a_row_never_begun_is_created():
    decision = begin(node_view(resource=FRESH), worker(), SAME)
    claim = decision.verdict.claim
    assert (claim.step, claim.action, claim.completes_node) == (Step.CREATE, 'CREATE', True)
    update = only(decision, UpdateResource)
    assert (update.owner, update.fence) == (None, 0)
    assert {key: update.changes[key] for key in ('owner', 'fence', 'action', 'status', 'token', 'properties')} == {
        'owner': 'W',
        'fence': 1,
        'action': 'CREATE',
        'status': 'IN_PROGRESS',
        'token': 'new-1',
        'properties': {'p': 2},
    }
    assert claim.resource.fence == 1
    assert events(decision) == ['CREATE_IN_PROGRESS']


def test_where_the_service_enforces_it_the_same_creation_has_the_same_token_again():
    """The database may have lost that it was begun. Another template, or another creation before, is another."""
    enforcing = replace(worker(), creation=lambda name: Creation(is_enforced=True))

    def token(row=FRESH, traversal=TRAVERSAL):
        return begin(node_view(resource=row, traversal=traversal), enforcing, SAME).verdict.claim.resource.token

    assert token() == token()
    assert token(replace(FRESH, id='other')) != token() != token(traversal=replace(TRAVERSAL, template_id='T9'))


def test_a_create_that_was_refused_before_it_began_is_a_create_again():
    refused = replace(FRESH, action=Action.CREATE, status=Status.FAILED)
    assert step(node_view(resource=refused), SAME) is Step.CREATE


def test_what_is_as_wanted_is_finished_at_once_and_remembers_what_it_was_made_from():
    inputs = {'q': Output('Q', 'phys-q')}
    node = replace(NODE, definition=replace(DEFINITION, requires=('q',)), requires=(1,))
    decision = begin(node_view(node, inputs=inputs), worker(), SAME)
    assert decision.verdict.step is Step.NOTHING
    update, finish = only(decision, UpdateResource), only(decision, FinishNode)
    assert (update.changes['requires'], update.changes['template_id']) == (('Q',), 'T1')
    assert update.changes['digest'] == digest(node.definition, inputs)
    assert 'owner' not in update.changes
    assert (finish.number, finish.required_by, finish.output) == (3, (7,), MADE.output)


def test_a_change_is_made_in_place_under_a_claim():
    """F060: until it has succeeded it is built on what it was and what it is to be built on."""
    inputs = {'q': Output('Q', 'phys-q')}
    node = replace(NODE, definition=replace(DEFINITION, requires=('q',)), requires=(1,))
    decision = begin(node_view(node, replace(MADE, requires=('OLD',)), inputs=inputs), worker(), wants(Change.IN_PLACE))
    changes = only(decision, UpdateResource).changes
    assert decision.verdict.step is Step.UPDATE
    assert changes['requires'] == ('OLD', 'Q')
    assert (changes['digest'], changes['status']) == (None, 'IN_PROGRESS')
    assert 'properties' not in changes


@pytest.mark.parametrize(
    'view',
    [
        node_view(resource=replace(MADE, type='Other')),
        node_view(resource=replace(MADE, action=Action.DELETE)),
        node_view(resource=replace(MADE, action=Action.DELETE, status=Status.IN_PROGRESS, progress={})),
    ],
    ids=['type', 'being deleted', 'deletion in progress'],
)
def test_a_row_that_cannot_be_used_is_replaced(view):
    decision = begin(view, worker(), wants(Change.IN_PLACE))
    assert (decision.verdict.step, decision.verdict.resource_id, decision.effects) == (Step.REPLACE, 'R', ())


def test_a_change_that_needs_a_new_object_replaces():
    assert step(node_view(), wants(Change.REPLACE)) is Step.REPLACE


@pytest.mark.parametrize('change', [Change.NONE, Change.IN_PLACE])
def test_a_failed_row_is_looked_at_before_it_is_thrown_away(change):
    decision = begin(node_view(resource=replace(MADE, status=Status.FAILED)), worker(), wants(change))
    assert (decision.verdict.step, decision.verdict.claim.action) == (Step.REPAIR, 'UPDATE')
    assert events(decision) == []


@pytest.mark.parametrize('output', [None, Output('R', 'phys', errors={'x': 'unreadable'})])
def test_an_output_that_lacks_something_is_read(output):
    view = node_view(replace(NODE, asked=('x',)), replace(MADE, output=output))
    decision = begin(view, worker(), SAME)
    assert (decision.verdict.step, decision.verdict.claim.action) == (Step.READ, 'CREATE')
    assert not {'action', 'status', 'definition', 'properties', 'requires'} & set(
        only(decision, UpdateResource).changes
    )


PARKED = replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS, progress={'x': 1})
STOPPED = replace(MADE, status=Status.FAILED, progress={'x': 1})
CANCELLING = replace(TRAVERSAL, cancels=True)


@pytest.mark.parametrize(
    ('resource', 'state', 'same'),
    [
        (replace(MADE, status=Status.IN_PROGRESS), None, True),
        (replace(MADE, status=Status.IN_PROGRESS), None, False),
        (PARKED, None, True),
        (PARKED, None, False),
        (STOPPED, 'IN_PROGRESS', True),
    ],
)
def test_an_action_left_in_the_middle_is_brought_to_its_end_first(resource, state, same):
    """It finishes the node only where its end is what the node wants."""
    pending = replace(PENDING, template_id='T0', digest=digest(DEFINITION, {}) if same else 'another')
    decision = begin(node_view(resource=replace(resource, pending=pending)), worker(), never)
    claim = decision.verdict.claim
    assert (claim.step, claim.action, claim.completes_node) == (Step.RESUME, resource.action, same)
    assert claim.pending.template_id == ('T1' if same else 'T0')
    assert only(decision, UpdateResource).changes.get('status') == state


def test_an_action_that_was_stopped_goes_on_only_where_its_end_is_wanted():
    """Else reality is looked at, as after any other failure."""
    stopped = replace(STOPPED, pending=replace(PENDING, digest='another'))
    assert step(node_view(resource=stopped), wants(Change.IN_PLACE)) is Step.REPAIR


@pytest.mark.parametrize('node', [NODE, CLEANUP], ids=['update', 'cleanup'])
def test_what_a_cancelled_traversal_has_left_is_stopped_not_waited_for(node):
    """F098, F108: unless its end is what is wanted."""
    view = node_view(node, replace(PARKED, pending=replace(PENDING, digest='another')), traversal=CANCELLING)
    claim = begin(view, worker(), never).verdict.claim
    assert (claim.step, claim.action, claim.completes_node) == (Step.CANCEL, 'UPDATE', False)
    wanted = replace(PARKED, pending=replace(PENDING, digest=digest(DEFINITION, {})))
    assert step(node_view(resource=wanted, traversal=CANCELLING)) is Step.RESUME


@pytest.mark.parametrize(
    ('resource', 'action'),
    [
        (FRESH, 'CREATE'),
        (replace(FRESH, action=Action.CREATE, status=Status.FAILED), 'CREATE'),
        (MADE, 'UPDATE'),
    ],
)
def test_what_cannot_be_had_fails_the_node_and_leaves_what_works(resource, action):
    """F035, F081."""
    decision = begin(node_view(resource=resource), worker(), cannot)
    assert (decision.verdict.step, decision.verdict.stack_id) == (Step.FAIL, 'S')
    assert only(decision, EndTraversal).reason == f'Resource {action} failed: resources.r: no such value'
    assert only(decision, FailNode).number == 3
    assert events(decision) == [f'{action}_FAILED']
    assert bool(of_kind(decision, UpdateResource)) == (action == 'CREATE')


LOST = replace(FRESH, action=Action.CREATE, status=Status.FAILED, token='t', definition=DEFINITION)

# --- cleanup ----------------------------------------------------------------------------------------------------


def test_the_row_in_service_is_left_alone():
    decision = begin(node_view(CLEANUP, chosen_id='R'), worker(), never)
    assert (decision.verdict.step, len(decision.effects)) == (Step.NOTHING, 1)
    assert only(decision, FinishNode).number == 4


def test_a_row_that_is_gone_is_cleaned_up():
    decision = begin(node_view(CLEANUP, None), worker(), never)
    assert (decision.verdict.step, only(decision, FinishNode).number) == (Step.NOTHING, 4)


def test_a_row_never_begun_is_removed_without_a_call():
    """F028."""
    decision = begin(node_view(CLEANUP, FRESH), worker(), never)
    assert decision.verdict.step is Step.NOTHING
    removed = only(decision, DeleteResource)
    assert (removed.owner, removed.fence) == (None, 0)


@pytest.mark.parametrize('changes', [{'token': 't'}, {'physical_id': 'p'}])
def test_a_row_of_which_something_may_exist_is_deleted_by_a_call(changes):
    """F027: begun is enough."""
    row = replace(FRESH, action=Action.CREATE, status=Status.FAILED, **changes)
    assert step(node_view(CLEANUP, row)) is Step.DELETE


def test_a_retained_row_goes_and_its_object_stays():
    """F065."""
    kept = replace(MADE, definition=replace(DEFINITION, deletion_policy=DeletionPolicy.RETAIN))
    decision = begin(node_view(CLEANUP, kept), worker(), never)
    assert (decision.verdict.step, only(decision, DeleteResource).resource_id) == (Step.NOTHING, 'R')
    assert events(decision) == ['DELETE_COMPLETE']


@pytest.mark.parametrize(
    'resource',
    [
        MADE,
        replace(MADE, action=Action.CREATE, status=Status.FAILED, progress={'x': 1}),
        replace(MADE, action=Action.UPDATE, status=Status.FAILED),
        replace(MADE, action=Action.DELETE, status=Status.FAILED, progress={'x': 1}),
    ],
)
def test_a_leftover_is_deleted_from_every_state(resource):
    decision = begin(node_view(CLEANUP, resource), worker(), never)
    claim = decision.verdict.claim
    assert (claim.step, claim.action, claim.resource.progress) == (Step.DELETE, 'DELETE', None)
    assert events(decision) == ['DELETE_IN_PROGRESS']


@pytest.mark.parametrize(
    ('resource', 'told'),
    [
        (replace(MADE, action=Action.CREATE, status=Status.IN_PROGRESS, progress={'x': 1}), []),
        (replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS, progress={'x': 1}), []),
        (replace(LOST, status=Status.IN_PROGRESS, progress={'x': 1}), []),
        (replace(LOST, status=Status.FAILED, progress={'x': 1}), ['CREATE_IN_PROGRESS']),
    ],
    ids=['being made', 'being changed', 'not known yet', 'failed, and not known yet'],
)
def test_what_goes_on_is_stopped_before_its_object_is_deleted(resource, told):
    decision = begin(node_view(CLEANUP, resource), worker(), never)
    claim = decision.verdict.claim
    assert (claim.step, claim.action, claim.resource.progress) == (Step.CANCEL, resource.action, {'x': 1})
    assert not claim.completes_node
    assert events(decision) == told


def test_a_stop_that_kills_every_worker_is_left_out():
    lethal = replace(LOST, status=Status.IN_PROGRESS, progress={'x': 1}, crash_count=MAX_CRASHES)
    assert begin(node_view(CLEANUP, lethal), worker(), never).verdict.step is Step.DELETE


def test_a_deletion_in_progress_is_resumed():
    doomed = replace(MADE, action=Action.DELETE, status=Status.IN_PROGRESS, progress={'x': 1})
    decision = begin(node_view(CLEANUP, doomed), worker(), never)
    assert (decision.verdict.step, decision.verdict.claim.resource.progress) == (Step.RESUME, {'x': 1})
    assert events(decision) == []


@pytest.mark.parametrize(
    ('action', 'step'), [(Action.UPDATE, Step.PAUSE), (Action.RESTORE, Step.PAUSE), (Action.CREATE, Step.NOTHING)]
)
def test_an_update_pauses_before_a_resource_whether_it_changes_it_or_not(action, step):
    """And goes on once the hook is cleared."""
    node = replace(NODE, definition=replace(DEFINITION, hooks=(Hook.PRE_UPDATE,)))
    traversal = replace(TRAVERSAL, action=action)
    assert begin(node_view(node, traversal=traversal), worker(), SAME).verdict.step is step
    cleared = replace(
        MADE,
        hook=Hook.PRE_UPDATE,
        hook_traversal_id='V1',
        cleared=Hook.PRE_UPDATE,
        cleared_traversal_id='V1',
    )
    assert begin(node_view(node, cleared, traversal=traversal), worker(), SAME).verdict.step is Step.NOTHING


CANCELLED_PATIENTLY = replace(TRAVERSAL, status=TraversalStatus.CANCELLING)
BUSY = replace(MADE, status=Status.IN_PROGRESS, pending=PENDING, progress={'x': 1}, traversal_id='V1')


@pytest.mark.parametrize(
    ('node', 'resource', 'wanted', 'completes'),
    [
        (NODE, FRESH, Step.OVER, None),
        (NODE, MADE, Step.OVER, None),
        (NODE, replace(MADE, status=Status.FAILED), Step.OVER, None),
        (CLEANUP, MADE, Step.OVER, None),
        (CLEANUP, None, Step.OVER, None),
        (NODE, BUSY, Step.RESUME, False),
        (NODE, replace(BUSY, pending=replace(PENDING, digest=digest(DEFINITION, {}))), Step.RESUME, True),
        (NODE, replace(BUSY, owner='other'), Step.WAIT, None),
        (NODE, replace(BUSY, wake_at=NOW + 9), Step.WAIT, None),
        (NODE, replace(BUSY, crash_count=MAX_CRASHES), Step.FAIL, None),
        (NODE, replace(BUSY, action=Action.SNAPSHOT, traversal_id='V0'), Step.CANCEL, False),
        (CLEANUP, BUSY, Step.RESUME, False),
        (CLEANUP, replace(BUSY, action=Action.DELETE), Step.RESUME, False),
    ],
)
def test_while_a_traversal_is_being_cancelled_what_has_begun_goes_on_and_nothing_else(
    node, resource, wanted, completes
):
    """Nothing is written for what does not begin: the row stays what it is."""
    decision = begin(node_view(node, resource, traversal=CANCELLED_PATIENTLY), worker(), never)
    claim = decision.verdict.claim
    assert (decision.verdict.step, claim and claim.completes_node) == (wanted, completes)
    assert wanted not in (Step.OVER, Step.WAIT) or decision.effects == ()


def test_every_step_is_reached_by_a_test_above_and_those_that_act_hold_the_row():
    """F006: no branch that only a rare race reaches goes untried."""
    views = {
        Step.DROP: (NOT_NOW['done'], never),
        Step.WAIT: (node_view(resource=replace(MADE, owner='o')), never),
        Step.OVER: (node_view(resource=FRESH, traversal=CANCELLED_PATIENTLY), never),
        Step.NOTHING: (node_view(), SAME),
        Step.FAIL: (node_view(), cannot),
        Step.CREATE: (node_view(resource=FRESH), SAME),
        Step.ADOPT: (node_view(replace(NODE, definition=replace(DEFINITION, external_id='x')), FRESH), SAME),
        Step.UPDATE: (node_view(), wants(Change.IN_PLACE)),
        Step.REPLACE: (node_view(), wants(Change.REPLACE)),
        Step.REPAIR: (node_view(resource=replace(MADE, status=Status.FAILED)), SAME),
        Step.READ: (node_view(resource=replace(MADE, output=None)), SAME),
        Step.RESUME: (node_view(resource=replace(MADE, status=Status.IN_PROGRESS)), never),
        Step.PAUSE: (
            node_view(replace(NODE, definition=replace(DEFINITION, hooks=(Hook.PRE_UPDATE,)))),
            wants(Change.IN_PLACE),
        ),
        Step.PERFORM: (node_view(traversal=replace(TRAVERSAL, action=Action.CHECK)), never),
        Step.CANCEL: (node_view(CLEANUP, PARKED, traversal=CANCELLING), never),
        Step.CLEAR: (
            node_view(resource=replace(MADE, action=Action.UPDATE, status=Status.IN_PROGRESS, clearing=True)),
            never,
        ),
        Step.HAND_OVER: (node_view(resource=replace(MADE, handover=Handover.RELEASING, traversal_id='V1')), never),
        Step.RECLAIM: (node_view(resource=replace(MADE, handover=Handover.RELEASED, traversal_id='V0')), never),
        Step.DELETE: (node_view(CLEANUP), never),
    }
    # That one is not for a node: see test_retries_and_limits.
    assert set(views) == set(Step) - {Step.INTERRUPT}
    for wanted, (view, assess) in views.items():
        decision = begin(view, worker(), assess)
        assert decision.verdict.step is wanted
        assert (decision.verdict.claim is not None) == (wanted in ACTING)


# --- replacement ------------------------------------------------------------------------------------------------


def test_a_replacement_is_a_new_row_that_the_node_points_to():
    decision = replacement(node_view(has_cleanup=True), worker(), 'R')
    (new,) = only(decision, InsertResources).resources
    assert (decision.verdict, new.id, new.name, new.type, new.action, new.replaces, new.template_id) == (
        'new-1',
        'new-1',
        'r',
        'Type',
        'INIT',
        'R',
        'T1',
    )
    update = only(decision, UpdateResource)
    assert (update.resource_id, update.owner, update.fence, update.changes) == ('R', None, 1, {'replaced_by': 'new-1'})
    assert only(decision, PointNode).resource_id == 'new-1'
    assert of_kind(decision, AppendCleanup) == []


def test_a_replaced_row_gets_a_cleanup_node_where_the_plan_has_foreseen_none():
    decision = replacement(node_view(), worker(), 'R')
    late = only(decision, AppendCleanup)
    assert (late.node.number, late.node.resource_id, late.node.waiting, late.node.required_by) == (10, 'R', 1, (9,))
    assert (late.node.status, late.before) == (NodeStatus.WAITING, 9)


OVERTAKEN = {
    'superseded': superseded(node_view()),
    'failed': node_view(traversal=replace(TRAVERSAL, status=TraversalStatus.FAILED)),
    'node done': node_view(replace(NODE, status=NodeStatus.DONE)),
    'row gone': node_view(resource=None),
    'held again': node_view(resource=replace(MADE, owner='other')),
    'replaced already': node_view(resource=replace(MADE, replaced_by='X')),
    'another row': node_view(resource=replace(MADE, id='X')),
    'no update node': node_view(CLEANUP),
}


@pytest.mark.parametrize('case', OVERTAKEN)
def test_a_replacement_that_was_overtaken_writes_nothing(case):
    """F007, F030."""
    decision = replacement(OVERTAKEN[case], worker(), 'R')
    assert (decision.verdict, decision.effects) == (None, ())


def test_the_stack_that_a_failure_belongs_to_is_named():
    assert begin(node_view(stack=RUNNING), worker(), cannot).verdict.stack_id == RUNNING.id
