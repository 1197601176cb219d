"""What the end of a nested stack means for its resource: the same as what a worker would write that looks, or nothing."""

from dataclasses import replace

import pytest

from convergence.core.claim import Claim, Step, Worker
from convergence.core.complete import conclude
from convergence.core.effects import DeleteResource, FinishNode, InsertEvents, TellParent, UpdateResource
from convergence.core.finish import finish
from convergence.core.model import PERFORMED, Action, Handover, Hook, NodeStatus, Output, Phase, Status, TraversalStatus
from convergence.core.results import Succeeded
from convergence.core.rows import Node, Retry
from convergence.core.upwards import finish_around, progress_towards
from convergence.core.views import FinishView
from tests.core.build import (
    CLEANUP,
    DEFINITION,
    MADE,
    NODE,
    NOW,
    PENDING,
    RUNNING,
    STACK,
    TRAVERSAL,
    ids,
    node_view,
)

CHILD = replace(STACK, id='child', parent_id='S', parent_resource_id='R', root_id='S', nested_depth=1)
CHILDS = replace(TRAVERSAL, id='C1', stack_id='child', for_parent=True)
TOLD = Output('R', 'child', shown={'show': None})
ACTIONS = (Action.CREATE, Action.UPDATE, Action.DELETE, Action.SUSPEND, Action.RESUME)


def waiting(action):
    """A row that waits for the end of what its stack does."""
    told = TOLD.document() if action in (Action.CREATE, Action.UPDATE) else None
    progress = {'traversal': 'C1', 'step': 0, **progress_towards('V1', action, told)}
    pending = PENDING if told is not None else None
    state = {'action': action, 'status': Status.IN_PROGRESS, 'traversal_id': 'V1', 'deadline': NOW + 60}
    return replace(MADE, token='child', physical_id='child', progress=progress, pending=pending, **state)


def around(action, **changes):
    """That row with what belongs to it."""
    node = CLEANUP if action in (Action.DELETE, Action.SUSPEND) else NODE
    traversal = replace(TRAVERSAL, action=action) if action in PERFORMED else TRAVERSAL
    return replace(FinishView(NOW, waiting(action), node, traversal, RUNNING), **changes)


def ended(view):
    return finish_around(view, CHILD, CHILDS, Worker('', ids()))


@pytest.mark.parametrize('action', ACTIONS)
def test_it_is_what_a_worker_would_write_that_is_told_and_looks(action):
    view = around(action)
    row = view.resource
    claim = Claim(Step.RESUME, action, row, view.node, RUNNING, view.traversal, pending=row.pending, at=NOW)
    output = TOLD if action in (Action.CREATE, Action.UPDATE) else None
    looked = finish(view, claim, Succeeded(output, 'child', row.data), Worker('', ids()))
    assert ended(view) == looked
    kind = DeleteResource if action is Action.DELETE else UpdateResource
    assert [type(effect) for effect in looked.effects] == [kind, InsertEvents, FinishNode]


OTHER = replace(TRAVERSAL, id='V2')
DOUBTS = {
    'gone': lambda view: replace(view, resource=None),
    'no node waits for it': lambda view: replace(view, node=None),
    'somebody holds it': lambda view: replace(view, resource=replace(view.resource, owner='W')),
    'it is at rest': lambda view: replace(view, resource=replace(view.resource, status=Status.FAILED)),
    'it has another stack': lambda view: replace(view, resource=replace(view.resource, token='another')),
    'it has waited long enough': lambda view: replace(view, resource=replace(view.resource, deadline=NOW)),
    'it gives way': lambda view: replace(view, resource=replace(view.resource, handover=Handover.DEPRIVED)),
    'a call is to be repeated': lambda view: replace(view, resource=replace(view.resource, retry=Retry(1, 'x'))),
    'the row cannot be read': lambda view: replace(view, resource=replace(view.resource, damaged=('pending',))),
    'the node cannot be read': lambda view: replace(view, node=replace(view.node, damaged=('definition',))),
    'it takes over objects': lambda view: replace(view, resource=replace(view.resource, data={'adopted': {}})),
    'it was begun for another operation': lambda view: replace(
        view, resource=replace(view.resource, traversal_id='V0', progress={**view.resource.progress, 'for': 'V0'})
    ),
    'another operation has taken it up': lambda view: replace(view, resource=replace(view.resource, traversal_id='V0')),
    'it waits for something else': lambda view: replace(
        view, resource=replace(view.resource, progress={**view.resource.progress, 'traversal': 'C0'})
    ),
    'somebody has to look': lambda view: replace(
        view, resource=replace(view.resource, progress={'traversal': 'C1', 'step': 0})
    ),
    'the node is done': lambda view: replace(view, node=replace(view.node, status=NodeStatus.DONE)),
    'the node works on another row': lambda view: replace(view, node=replace(view.node, resource_id='R2')),
    'another operation is current': lambda view: replace(view, stack=replace(RUNNING, traversal_id='V2')),
    'the operation has failed': lambda view: replace(view, traversal=replace(TRAVERSAL, status=TraversalStatus.FAILED)),
    'the operation is being cancelled': lambda view: replace(
        view, traversal=replace(TRAVERSAL, status=TraversalStatus.CANCELLING)
    ),
}


@pytest.mark.parametrize('action', ACTIONS)
@pytest.mark.parametrize('doubt', DOUBTS.values(), ids=DOUBTS)
def test_where_anything_else_is_so_somebody_looks(doubt, action):
    assert ended(doubt(around(action))) is None


@pytest.mark.parametrize('action', [Action.CREATE, Action.UPDATE, Action.DELETE])
def test_what_is_wanted_and_what_is_left_over_have_nodes_of_their_own(action):
    view = around(action)
    other = Phase.CLEANUP if view.node.phase is Phase.UPDATE else Phase.UPDATE
    assert ended(replace(view, node=replace(view.node, phase=other))) is None


def test_what_is_resumed_for_an_update_is_not_up_to_date_by_that():
    assert ended(around(Action.RESUME, traversal=TRAVERSAL)) is None


@pytest.mark.parametrize('action', [Action.CHECK, Action.SNAPSHOT, Action.ADOPT])
def test_somebody_looks_after_what_has_to_be_read_or_kept(action):
    assert progress_towards('V1', action, TOLD.document()) == {}
    assert progress_towards('V1', Action.CREATE, None) == {}


def test_a_hook_pauses_it_as_ever():
    hooked = replace(DEFINITION, hooks=frozenset({Hook.POST_CREATE}))
    view = around(
        Action.CREATE, node=replace(NODE, definition=hooked), traversal=replace(TRAVERSAL, action=Action.CREATE)
    )
    decision = ended(view)
    assert not any(isinstance(effect, FinishNode) for effect in decision.effects)
    assert decision.effects[0].changes['hook'] is Hook.POST_CREATE


def test_the_end_of_the_stack_and_of_its_resource_are_one_step():
    last = Node('C1', 9, Phase.COMPLETE, NodeStatus.READY)
    stack = replace(CHILD, action=Action.UPDATE, status=Status.IN_PROGRESS, traversal_id='C1')
    view = replace(node_view(last, None, stack=stack, traversal=CHILDS), around=around(Action.UPDATE))
    decision = conclude(view, ids())
    assert [effect.traversal_id for effect in decision.effects if isinstance(effect, FinishNode)] == ['C1', 'V1']
    assert not any(isinstance(effect, TellParent) for effect in decision.effects)
    doubtful = replace(view, around=around(Action.UPDATE, node=None))
    assert any(isinstance(effect, TellParent) for effect in conclude(doubtful, ids()).effects)
