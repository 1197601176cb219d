"""What a decision gets to see: every scope, on every store."""

from dataclasses import replace

import pytest

from convergence.core.effects import InsertStack, InsertTemplate, InsertTraversal, PointNode, RequireRoom, UpdateStack
from convergence.core.handoff import Handoff
from convergence.core.model import Handover, NodeStatus, Phase
from convergence.db.scopes import (
    HeldResource,
    LastNode,
    NewStack,
    OneNode,
    OneReplacement,
    SeveralStacks,
    StackAlone,
    WholeStack,
)
from tests.contract.rows import DEFINITION, FREE, NODES, OUTPUT, RESOURCE, STACK, TEMPLATE, TRAVERSAL, node


def test_a_new_stack_sees_how_many_its_project_has(backend):
    """Live ones of its own project."""
    backend.write(InsertStack(STACK))
    backend.write(InsertStack(replace(STACK, id='S2', name='two')))
    backend.write(InsertStack(replace(STACK, id='S3', project_id='other')))
    backend.write(UpdateStack('S2', 'V', {'deleted_at': 1.5}))
    view = backend.look(NewStack('p'))
    assert (view.stack, view.stack_count) == (None, 1)
    assert view.now > 1e9


def test_a_nested_stack_sees_for_which_row_it_is_and_what_is_known_of_its_tree(backend):
    """The memory store looks for neither: then it is as if somebody had a webhook, and nobody had counted."""
    backend.fill(resources=(RESOURCE,))
    scope = NewStack('p', 'R', Handoff('R', ('V', 0)))
    view = backend.look(scope)
    assert (view.parent, view.around.node, view.around.stack) == (RESOURCE, NODES[0], STACK)
    assert (view.tree_count, view.has_webhook) == (None, backend.kind == 'memory')
    backend.write(UpdateStack('S', 'V', {'resource_count': 4}), RequireRoom('S', 3))
    assert backend.look(scope).tree_count == (None if backend.kind == 'memory' else 4)


def test_several_nested_stacks_are_seen_as_each_is_seen_by_itself(backend):
    """Of which one is stored and has rows, one is about to be stored, and two are not what they are taken for."""
    nested = replace(STACK, id='N1', name='nested', traversal_id='W', parent_id='S', parent_resource_id='R1')
    parents = tuple(replace(RESOURCE, id=f'R{number}', name=f'r{number}', token=f'N{number}') for number in range(4))
    inside = tuple(replace(FREE, id=key, stack_id='N1') for key in 'BA')
    nodes = tuple(replace(NODES[0], number=number, resource_id=f'R{number}') for number in range(4))
    backend.fill(resources=(*parents, *inside), nodes=nodes)
    backend.write(InsertStack(nested), InsertTraversal(replace(TRAVERSAL, id='W', stack_id='N1'), ()))
    whole, new = WholeStack('N1', 'R1', Handoff('R1', ('V', 1)), 2), NewStack('p', 'R0', Handoff('R0', ('V', 0)))
    stored_by_now, held_for_another = (
        NewStack('p', 'R1', Handoff('R1', ('V', 1))),
        NewStack('p', 'R3', Handoff('R3', ('V', 2))),
    )
    gone = WholeStack('N2', 'R2', Handoff('R2', ('V', 2)), 2)
    several = backend.look(SeveralStacks((whole, new, held_for_another, gone)))
    alone = backend.look(whole), backend.look(new)

    def timeless(view):
        return replace(view, now=0.0, around=replace(view.around, now=0.0))

    assert [view and timeless(view) for view in several] == [*map(timeless, alone), None, None]
    assert [row.id for row in several[0].resources] == ['A', 'B']
    assert backend.look(SeveralStacks((stored_by_now, new)))[0] is None


def test_a_whole_stack_is_all_of_its_rows_and_nothing_of_others(backend):
    others = replace(FREE, id='X', stack_id='OTHER')
    rows = tuple(replace(FREE, id=key) for key in 'CAB')
    backend.fill(resources=(*rows, others))
    view = backend.look(WholeStack('S'))
    assert (view.stack, view.traversal) == (STACK, TRAVERSAL)
    assert view.resources == tuple(sorted(rows, key=lambda row: row.id))


def test_a_stack_alone_has_its_traversal_and_no_rows(backend):
    backend.fill()
    view = backend.look(StackAlone('S'))
    assert (view.stack, view.traversal, view.resources) == (STACK, TRAVERSAL, ())


def test_a_stack_may_have_no_traversal(backend):
    backend.write(InsertStack(replace(STACK, traversal_id=None)))
    for scope in (StackAlone('S'), WholeStack('S')):
        assert backend.look(scope).traversal is None


def test_a_node_comes_with_its_row_its_traversal_its_stack_and_its_inputs(backend):
    """Inputs are the outputs of what it requires, as far as that is done."""
    done = replace(NODES[0], status=NodeStatus.DONE, output=OUTPUT)
    rows = (FREE, replace(FREE, id='Z', name='z'))
    backend.fill(nodes=(done, *NODES[1:]), resources=rows)
    view = backend.look(OneNode('V', 2))
    assert (view.node, view.traversal, view.stack, view.resource) == (NODES[2], TRAVERSAL, STACK, rows[1])
    assert view.inputs == {'r': OUTPUT}
    assert view.may_start


def test_a_node_without_a_row_is_seen_without_one(backend):
    backend.fill()
    assert backend.look(OneNode('V', 1)).resource is None
    assert backend.look(OneNode('V', 0)).resource == FREE


def test_a_cleanup_node_knows_whether_its_row_is_in_service(backend):
    """F054: the row of an update node is; what that node has been pointed away from is not."""
    cleanups = (
        node(5, phase=Phase.CLEANUP, resource_id='R'),
        node(6, phase=Phase.CLEANUP, resource_id='Q'),
        node(7, phase=Phase.CLEANUP, resource_id='OLD'),
    )
    rows = tuple(replace(FREE, id=key) for key in ('R', 'Q', 'OLD'))
    backend.fill(nodes=(*NODES, *cleanups), resources=rows)
    assert [backend.look(OneNode('V', number)).chosen_id for number in (5, 6, 7)] == ['R', 'Q', None]
    backend.write(PointNode('V', 0, 'OLD'))
    assert [backend.look(OneNode('V', number)).chosen_id for number in (5, 6, 7)] == [None, 'Q', 'OLD']


def test_a_node_of_a_superseded_traversal_is_seen_as_such(backend):
    backend.fill(stack=replace(STACK, traversal_id='V2'))
    view = backend.look(OneNode('V', 0))
    assert not view.is_current
    assert not view.may_start


def test_a_replacement_sees_the_row_that_was_decided_upon_and_only_that(backend):
    """F007."""
    backend.fill(resources=(FREE, replace(FREE, id='OTHER')))
    view = backend.look(OneReplacement('V', 0, 'S', 'R'))
    assert (view.node, view.resource, view.stack, view.traversal) == (NODES[0], FREE, STACK, TRAVERSAL)
    assert backend.look(OneReplacement('V', 0, 'S', 'OTHER')).resource is None
    backend.write(PointNode('V', 0, 'OTHER'))
    assert backend.look(OneReplacement('V', 0, 'S', 'R')).resource is None


def test_a_replacement_knows_whether_its_row_will_be_cleaned_up(backend):
    backend.fill(nodes=(*NODES, node(5, phase=Phase.CLEANUP)), resources=(FREE, replace(FREE, id='Q', name='q')))
    assert backend.look(OneReplacement('V', 0, 'S', 'R')).has_cleanup
    assert not backend.look(OneReplacement('V', 1, 'S', 'Q')).has_cleanup


def test_a_last_node_needs_no_row(backend):
    backend.fill()
    view = backend.look(LastNode('V', 4))
    assert (view.node, view.resource, view.stack) == (NODES[4], None, STACK)


def test_a_held_row_comes_with_the_node_that_it_is_held_for(backend):
    backend.fill(resources=(RESOURCE,))
    view = backend.look(HeldResource('R', 'V', 0))
    assert (view.resource, view.node, view.traversal, view.stack, view.waiting) == (
        RESOURCE,
        NODES[0],
        TRAVERSAL,
        STACK,
        (),
    )
    assert view.is_running


def test_a_held_row_of_a_superseded_traversal_tells_who_waits_for_it_now(backend):
    """F001, F009: nodes of the current traversal for this row that are ready; update or cleanup."""
    current = tuple(
        replace(each, traversal_id='V2')
        for each in (
            node(0),
            node(1, 1),
            node(2, resource_id='Q'),
            node(3, phase=Phase.CLEANUP),
            node(4, status=NodeStatus.DONE),
        )
    )
    backend.fill(stack=replace(STACK, traversal_id='V2'), resources=(RESOURCE,))
    backend.fill_more(replace(TRAVERSAL, id='V2'), current)
    view = backend.look(HeldResource('R', 'V', 0))
    assert view.waiting == (('V2', 0), ('V2', 3))
    assert not view.is_current


def test_a_row_that_is_to_take_from_others_sees_them_and_they_tell_it_when_they_are_free(backend):
    """Rows of its name, in its stack, whoever holds them; of any other row none are read."""
    mine = replace(FREE, handover=Handover.RELEASED)
    rival = replace(RESOURCE, id='R2', handover=Handover.DEPRIVED)
    others = (replace(FREE, id='B', name='b'), replace(FREE, id='X', stack_id='OTHER'))
    current = (node(0), node(1, phase=Phase.CLEANUP, status=NodeStatus.WAITING, resource_id='R2'), node(2))
    nodes = tuple(replace(each, traversal_id='V2') for each in current)
    backend.fill(stack=replace(STACK, traversal_id='V2'), resources=(mine, rival, *others))
    backend.fill_more(replace(TRAVERSAL, id='V2'), nodes)
    assert backend.look(OneNode('V2', 0)).rivals == (rival,)
    assert backend.look(OneNode('V2', 1)).rivals == ()
    assert backend.look(HeldResource('R2', 'V', 0)).waiting == (('V2', 0), ('V2', 2))


def test_a_held_row_may_be_looked_at_for_no_node_in_particular(backend):
    """A sweeper takes it over: whoever waits for it in the current traversal is woken."""
    backend.fill(resources=(RESOURCE,))
    view = backend.look(HeldResource('R'))
    assert (view.resource, view.node, view.traversal, view.stack) == (RESOURCE, None, None, STACK)
    assert view.waiting == (('V', 0),)


def test_a_held_row_whose_node_is_gone_is_still_seen(backend):
    """F001: the old traversal has been swept away."""
    backend.fill(stack=replace(STACK, traversal_id='V2'), nodes=NODES[1:], resources=(RESOURCE,))
    view = backend.look(HeldResource('R', 'V', 0))
    assert (view.resource, view.node, view.traversal) == (RESOURCE, None, TRAVERSAL)


def test_a_held_row_that_is_gone_is_nothing(backend):
    """F037."""
    backend.fill(resources=())
    assert backend.look(HeldResource('R', 'V', 0)).resource is None


@pytest.mark.parametrize(
    'scope',
    [
        WholeStack('NO'),
        StackAlone('NO'),
        OneNode('NO', 0),
        OneNode('V', 99),
        LastNode('NO', 0),
        OneReplacement('NO', 0, 'S', 'R'),
    ],
    ids=str,
)
def test_what_is_not_there_is_nothing(backend, scope):
    backend.fill()
    assert backend.look(scope) is None


def test_many_inputs_are_all_seen(backend):
    """More than a database takes in one list."""
    count = 1200
    outputs = tuple(
        node(number, status=NodeStatus.DONE, name=f'n{number}', output=replace(OUTPUT, resource_id=str(number)))
        for number in range(count)
    )
    last = node(count, name='last', definition=DEFINITION, requires=tuple(range(count)))
    backend.fill(nodes=(*outputs, last))
    inputs = backend.look(OneNode('V', count)).inputs
    assert {name: output.resource_id for name, output in inputs.items()} == {
        f'n{number}': str(number) for number in range(count)
    }


def test_the_clock_moves_on_inside_a_transaction(backend):
    """Two looks never go backwards; the clock is the database's own."""
    backend.write(InsertStack(STACK), InsertTemplate(TEMPLATE))
    times = [backend.look(StackAlone('S')).now for _ in range(3)]
    assert times == sorted(times)
