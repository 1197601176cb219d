"""The graph: an update half from the template, a cleanup half from the rows, an end."""

import itertools
from dataclasses import replace

from convergence.core import graph
from convergence.core.graph import COMPLETE, IN_SERVICE, cleanup_key, update_key
from convergence.core.model import Phase
from tests.core.build import definitions, row


def edges(built):
    """Every edge of a graph as text: what comes later, what has to be done first."""
    return sorted(f'{name(key)} after {name(required)}' for key in built.in_order() for required in built.requires(key))


def name(key):
    """A node as text."""
    return f'{key.phase.value.lower()} {key.subject}'.strip()


def whole(wanted, *rows, chosen=()):
    """The graph of a traversal, closed."""
    built = graph.build(wanted, rows, chosen)
    graph.close(built)
    return built


def test_updates_follow_the_template():
    assert edges(graph.build(definitions(a='', b='a', c='ab'), ())) == [
        'update b after update a',
        'update c after update a',
        'update c after update b',
    ]


def test_cleanups_follow_the_rows_reversed_and_come_after_the_update_of_their_name():
    built = graph.build(definitions(a=''), [row('A1'), row('B1', '', 'A1'), row('C1', '', 'B1')])
    assert edges(built) == [
        'cleanup A1 after cleanup B1',
        'cleanup A1 after update a',
        'cleanup B1 after cleanup C1',
    ]


def test_a_row_of_which_something_is_required_that_is_gone_is_cleaned_up_all_the_same():
    assert edges(graph.build({}, [row('A1', '', 'GONE', 'A1')])) == []


def test_inverted_dependencies_make_no_circle():
    """F059."""
    built = whole(definitions(a='', b='a'), row('A1', '', 'B1'), row('B1'))
    order = [name(key) for key in built.in_order()]
    assert order.index('update a') < order.index('update b') < order.index('cleanup B1')
    assert order.index('cleanup A1') < order.index('cleanup B1')


def test_a_chosen_row_gets_no_cleanup_node_where_nothing_can_be_left_over():
    rows = [row('A1'), row('B1', '', 'A1')]
    assert edges(graph.build(definitions(a='', b='a'), rows, {'A1', 'B1'})) == ['update b after update a']


def test_what_goes_comes_before_the_chosen_rows_it_was_built_on_should_they_be_replaced():
    """However far below: each waits until everything wanted is in service. Rows that others keep using need no node."""
    rows = [row('A1'), row('B1', '', 'A1'), row('C1', '', 'B1'), row('D1', '', 'A1'), row('X1', '', 'C1')]
    built = graph.build(definitions(a='', b='a', c='b', d='a'), rows, {'A1', 'B1', 'C1', 'D1'})
    assert [each for each in edges(built) if each.startswith('cleanup')] == [
        'cleanup A1 after cleanup B1',
        'cleanup A1 after in_service',
        'cleanup A1 after update d',
        'cleanup B1 after cleanup C1',
        'cleanup B1 after in_service',
        'cleanup C1 after cleanup X1',
        'cleanup C1 after in_service',
    ]


def test_what_stops_using_a_row_may_be_replaced_before_it():
    """Then nobody knows, when that is replaced too, that the other comes first."""
    rows = [row('A1', '', 'B1'), row('B1')]
    built = graph.build(definitions(a='', b='a'), rows, {'A1', 'B1'})
    assert edges(built) == ['cleanup B1 after in_service', 'cleanup B1 after update a', 'update b after update a']


def test_a_leftover_goes_after_the_update_of_what_was_built_on_it():
    built = graph.build(definitions(a='', b='a'), [row('A1'), row('A2'), row('B1', '', 'A1')], {'A2', 'B1'})
    assert edges(built) == ['cleanup A1 after update a', 'cleanup A1 after update b', 'update b after update a']


def test_the_end_comes_after_everything():
    built = whole(definitions(a='', b='a', c=''), row('A1'), row('X1'), row('Y1', '', 'X1'))
    assert set(built.requires(IN_SERVICE)) == {update_key('b'), update_key('c')}
    assert set(built.requires(COMPLETE)) == {IN_SERVICE, cleanup_key('A1'), cleanup_key('X1')}
    assert built.in_order()[-1] == COMPLETE


def test_an_empty_traversal_has_an_end_too():
    built = whole({})
    assert [key.phase for key in built.in_order()] == [Phase.IN_SERVICE, Phase.COMPLETE]


def test_several_rows_of_a_name_are_all_cleaned_up_after_its_update():
    """F054."""
    built = graph.build(definitions(c=''), [row('C1'), row('C2'), row('C3')])
    assert edges(built) == [f'cleanup C{number} after update c' for number in (1, 2, 3)]


def test_the_graph_does_not_depend_on_the_order_of_the_rows():
    """F061."""
    rows = [row('A1'), row('B1', '', 'A1'), row('B2', '', 'A1'), row('X1', '', 'B1')]
    wanted = definitions(a='', b='a', c='b')
    graphs = {tuple(edges(whole(wanted, *order))) for order in itertools.permutations(rows)}
    assert len(graphs) == 1


def test_what_is_finished_has_no_nodes_and_nobody_waits_for_it():
    a, b = row('A1'), row('B1', '', 'A1')
    built = graph.build(definitions(a='', b='a', c='b'), [a, b], {'A1', 'B1'}, finished={'a': a})
    assert edges(built) == ['update c after update b']
    assert built.required_by(update_key('b')) == [update_key('c')]
    # Foreseen to be replaced while somebody leaves it: not where there is nothing to do for it.
    left = graph.build(definitions(a='', b=''), [a, b], {'A1', 'B1'}, finished={'a': a})
    assert edges(left) == []
    assert len(left) == 1


def test_what_is_in_the_way_of_nobody_goes_when_nothing_is_built_on_it():
    """Another row has its name, and there is nothing to do for that: so what uses the old one goes over first."""
    old, new, used = row('A1'), row('A2'), row('B1', '', 'A1')
    built = graph.build(definitions(a='', b='a'), [old, new, used], {'A2', 'B1'}, {'A1'}, finished={'a': new})
    assert edges(built) == ['cleanup A1 after update b']


def test_what_is_in_the_way_goes_before_another_one_of_its_name():
    """Unless what is left over and built on it waits for that. What stays in use has to bear that there is none."""
    left, used = row('A1'), row('B1', '', 'A1')
    wanted = definitions(a='', b='a')
    assert edges(graph.build(wanted, [left], first={'A1'})) == ['update a after cleanup A1', 'update b after update a']
    assert 'update a after cleanup A1' in edges(graph.build(wanted, [left, used], {'B1'}, {'A1'}))
    waits = edges(graph.build(wanted, [left, used, row('B2')], {'B2'}, {'A1'}))
    assert {'cleanup A1 after cleanup B1', 'cleanup A1 after update a', 'cleanup B1 after update b'} <= {*waits}


def test_names_come_after_all_that_they_require():
    wanted = definitions(d='bc', c='a', b='a', a='', e='')
    assert list(graph.requirements_first(wanted)) == ['a', 'c', 'b', 'd', 'e']
    long = {f'r{number}': replace(wanted['a'], requires=(f'r{number + 1}',)) for number in range(3000)}
    long['r3000'] = wanted['a']
    assert [*graph.requirements_first(long)] == [*reversed(long)]
