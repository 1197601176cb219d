"""Many threads on the same rows: exactly one wins, nothing is lost, nobody waits for ever."""

import threading
from dataclasses import replace

import pytest

from convergence.core.claim import Step
from convergence.core.effects import (
    Decision,
    FinishNode,
    InsertStack,
    InsertTemplate,
    RequireRoom,
    UpdateResource,
    UpdateStack,
)
from convergence.core.model import NodeStatus, Phase, Status
from convergence.db.scopes import HeldResource, NewStack, OneNode, StackAlone, WholeStack
from convergence.errors import RequestLimitExceeded, StackExists
from tests.contract.rows import FREE, RESOURCE, STACK, TEMPLATE, at_once, node


def size_of_tree(backend) -> int:
    """How many resources the goals of the root stack and of the stacks nested in it have."""
    stacks = [
        backend.reader.stack(stack_id)
        for stack_id in ('S', *(f'N{number}' for number in (*range(8), *range(100, 102))))
    ]
    return sum(stack.resource_count for stack in stacks if stack is not None)


def test_of_ten_simultaneous_creates_of_a_name_one_wins(backend):
    """F135: and the others leave nothing."""

    def create(number):
        stack, template = replace(STACK, id=f'S{number}'), replace(TEMPLATE, id=f'T{number}', stack_id=f'S{number}')
        return lambda: backend.write(InsertStack(stack), InsertTemplate(template))

    results = at_once(*(create(number) for number in range(10)))
    refused = [result for result in results if isinstance(result, StackExists)]
    assert len(refused) == 9, results
    stored = [number for number in range(10) if backend.reader.stack(f'S{number}')]
    assert stored == [number for number in range(10) if backend.reader.template(f'T{number}')]
    assert len(stored) == 1


@pytest.mark.parametrize('most', [1, 3])
def test_of_creates_at_the_same_moment_no_more_are_let_through_than_a_project_may_have(backend, most):
    """Each counts what the others have stored, in a project that nobody has used before, and in one that is known."""

    def create(project, number):
        def decide(view):
            if view.stack_count >= most:
                return Decision(False)
            name = f'{project}-{number}'
            return Decision(True, (InsertStack(replace(STACK, id=name, name=name, project_id=project)),))

        return lambda: backend.store.transact(NewStack(project), decide).verdict

    for project in ('new', 'other'):
        results = at_once(*(create(project, number) for number in range(8)))
        assert sorted(results) == [False] * (8 - most) + [True] * most
        assert at_once(*(create(project, number) for number in range(8, 12))) == [False] * 4


NESTED = replace(STACK, parent_id='S', root_id='S', nested_depth=1, resource_count=3)


def planned(backend, number, most, *, together=None, counted=None):
    """Stores a nested stack with three resources, in a tree that has at most so many.

    :param together: waits for the others when everything is locked and read, and nothing written.
    :param counted: how many the tree was known to have when it was looked at for the first time.
    """
    seen = [counted]

    def decide(view):
        if together is not None and number not in together.come:
            together.come.add(number)
            together.wait(60)
        room = RequireRoom('S', 3, most, seen.pop() if seen else None)
        return Decision('planned', (InsertStack(replace(NESTED, id=f'N{number}', name=f'n{number}')), room))

    return lambda: backend.store.transact(NewStack('p', f'R{number}'), decide).verdict


@pytest.mark.parametrize(('kept', 'counted'), [(0, None), (2, None), (2, 8)])
def test_of_stacks_that_are_planned_at_the_same_moment_no_more_are_let_through_than_a_tree_may_have(
    backend, kept, counted
):
    """F125: each counted those that were stored before it, and none of those that were about to be."""
    backend.write(InsertStack(replace(STACK, resource_count=2)))
    for number in range(100, 100 + kept):
        planned(backend, number, 14)()
    together = None
    if backend.kind in ('postgresql', 'mariadb'):
        together = threading.Barrier(8)
        together.come = set()
    results = at_once(*(planned(backend, number, 14, together=together, counted=counted) for number in range(8)))
    refused = [each for each in results if isinstance(each, RequestLimitExceeded)]
    told = 'the tree of stacks would have 17, and the limit is 14 ([limits] max_resources_per_stack).'
    assert [str(each) for each in refused] == [f'Maximum resources per stack exceeded: {told}'] * (4 + kept)
    assert results.count('planned') == 4 - kept
    assert size_of_tree(backend) == 14


def test_what_has_become_less_makes_room_and_what_is_taken_back_needs_none(backend):
    backend.write(InsertStack(replace(STACK, resource_count=2)))
    for number in range(4):
        planned(backend, number, 14)()
    with pytest.raises(RequestLimitExceeded):
        planned(backend, 4, 14)()
    assert backend.reader.stack('N4') is None
    backend.write(UpdateStack('N0', 'V', {'resource_count': 0}))
    planned(backend, 4, 14)()
    backend.write(UpdateStack('N0', 'V', {'resource_count': 3}), RequireRoom('S', 3))
    assert size_of_tree(backend) == 17
    with pytest.raises(RequestLimitExceeded, match='would have 18, and the limit is 17'):
        backend.write(UpdateStack('N1', 'V', {'resource_count': 4}), RequireRoom('S', 1, 17))
    backend.write(UpdateStack('N1', 'V', {'deleted_at': 9.0}))
    planned(backend, 5, 17)()


def test_stacks_that_come_to_another_tree_are_counted_there(backend):
    """A stack that outlives its resource takes what is nested in it along."""
    backend.write(InsertStack(replace(STACK, resource_count=2)))
    backend.write(InsertStack(replace(NESTED, id='N', name='n')), RequireRoom('S', 3, 14))
    below = replace(NESTED, parent_id='N', nested_depth=2, resource_count=5)
    backend.write(InsertStack(replace(below, id='B', name='b')), RequireRoom('S', 5, 14))
    backend.write(UpdateStack('N', 'V', {'root_id': None, 'nested_depth': 0}))
    backend.write(UpdateStack('N', 'V', {'resource_count': 4}), RequireRoom('N', 1, 10))
    backend.write(UpdateStack('B', 'V', {'root_id': 'N', 'nested_depth': 1}))
    with pytest.raises(RequestLimitExceeded, match='would have 11, and the limit is 10'):
        backend.write(UpdateStack('N', 'V', {'resource_count': 6}), RequireRoom('N', 2, 10))
    backend.write(UpdateStack('N', 'V', {'resource_count': 5}), RequireRoom('N', 1, 10))
    planned(backend, 1, 5)()


@pytest.mark.parametrize('count', [2, 7, 16])
def test_of_many_predecessors_the_last_one_makes_the_node_ready(backend, count):
    """F043: and only the last one, whoever that is."""
    nodes = (*(node(number, resource_id=None, required_by=(count,)) for number in range(count)), node(count, count))
    backend.fill(nodes=nodes)
    results = at_once(
        *(lambda number=number: backend.write(FinishNode('V', number, (count,))) for number in range(count))
    )
    assert sorted(result.cast for result in results) == [*[()] * (count - 1), (('V', count),)]
    assert (backend.node(count).status, backend.node(count).waiting) == (NodeStatus.READY, 0)


def test_many_predecessors_of_many_nodes_lose_no_arrival_and_do_not_lock_each_other_out(backend):
    """F043, F143: crossing edges, each transaction touching several successors, in any order."""
    width = 8
    below = tuple(range(width, 2 * width))
    nodes = (
        *(node(number, resource_id=None, required_by=below) for number in range(width)),
        *(node(number, width) for number in below),
    )
    backend.fill(nodes=nodes)
    results = at_once(
        *(lambda number=number: backend.write(FinishNode('V', number, below[::-1])) for number in range(width))
    )
    assert sorted(address for result in results for address in result.cast) == [('V', number) for number in below]
    assert {backend.node(number).waiting for number in below} == {0}


def test_a_node_is_finished_by_one_of_those_who_try(backend):
    """F017: the others see that it is done, and stop."""
    backend.fill(nodes=(node(0, required_by=(1,)), node(1, 2)))

    def finish(view):
        if view.node.status is not NodeStatus.READY:
            return Decision(False)
        return Decision(True, (FinishNode('V', 0, (1,)),))

    results = at_once(*([lambda: backend.store.transact(OneNode('V', 0), finish)] * 8))
    assert [result.verdict for result in results].count(True) == 1
    assert backend.node(1).waiting == 1


def test_a_row_is_claimed_by_one_of_those_who_try(backend):
    """I1, F031."""
    backend.fill()

    def claim(name):
        def decide(view):
            if view.resource.owner is not None:
                return Decision(None)
            fence = view.resource.fence
            return Decision(name, (UpdateResource('R', None, fence, {'owner': name, 'fence': fence + 1}),))

        return lambda: backend.store.transact(OneNode('V', 0), decide)

    results = at_once(*(claim(f'W{number}') for number in range(8)))
    winners = [result.verdict for result in results if result.verdict]
    assert winners == [backend.resource().owner]
    assert backend.resource().fence == 2


def test_of_simultaneous_plans_each_takes_over_from_the_one_before(backend):
    """F042: a line of succession, nobody is skipped and nobody has two heirs."""
    backend.fill()

    def plan(number):
        def decide(view):
            before = view.stack.traversal_id
            return Decision(before, (UpdateStack('S', before, {'traversal_id': f'V{number}'}),))

        return lambda: backend.store.transact(WholeStack('S'), decide)

    results = at_once(*(plan(number) for number in range(8)))
    last = backend.reader.stack('S').traversal_id
    assert sorted([*(result.verdict for result in results), last]) == ['V', *(f'V{number}' for number in range(8))]


@pytest.mark.parametrize('rounds', [5])
def test_whoever_lets_go_sees_who_came_or_is_seen(backend, rounds):
    """F001, F010: a worker ends while another finds its row held: either it sees the free row, or it is woken."""
    for number in range(rounds):
        traversal = f'V{number}'
        new = replace(node(0), traversal_id=traversal)
        if number == 0:
            backend.fill(resources=(RESOURCE,))
        else:
            held = {'owner': 'W', 'fence': 7 + number}
            backend.write(UpdateResource('R', None, 6 + number, held))
        backend.fill_more(replace(backend.reader.traversal('V'), id=traversal), (new,))

        def supersede(view, traversal=traversal):
            return Decision(None, (UpdateStack('S', view.stack.traversal_id, {'traversal_id': traversal}),))

        def look(view):
            return Decision(Step.WAIT if view.resource.owner else Step.CREATE)

        def let_go(view):
            released = UpdateResource('R', 'W', view.resource.fence, {'owner': None})
            return Decision(view.waiting, (released,), view.waiting)

        def plan_and_look(traversal=traversal, supersede=supersede):
            backend.store.transact(WholeStack('S'), supersede)
            return backend.store.transact(OneNode(traversal, 0), look).verdict

        looked, ended = at_once(plan_and_look, lambda: backend.store.transact(HeldResource('R', 'V', 0), let_go))
        assert looked is Step.CREATE or ended.cast == ((traversal, 0),), (looked, ended)


def test_readers_and_writers_of_different_stacks_do_not_wait_for_each_other(backend):
    """Ten stacks at once, each with its own transactions of every kind."""
    names = [f'S{number}' for number in range(10)]

    def life(name):
        def run():
            stack = replace(STACK, id=name, name=name, traversal_id=None)
            backend.write(InsertStack(stack))
            for number in range(5):
                present = f'V{number}'
                backend.store.transact(
                    WholeStack(name),
                    lambda view, present=present: Decision(
                        None, (UpdateStack(name, view.stack.traversal_id, {'traversal_id': present}),)
                    ),
                )
            done = backend.store.transact(
                StackAlone(name),
                lambda view: Decision(
                    view.stack.traversal_id, (UpdateStack(name, view.stack.traversal_id, {'status': Status.COMPLETE}),)
                ),
            )
            return done.verdict

        return run

    assert at_once(*(life(name) for name in names)) == ['V4'] * 10
    assert {backend.reader.stack(name).status for name in names} == {Status.COMPLETE}


def test_a_cleanup_and_a_choice_of_the_same_row_follow_each_other(backend):
    """F028: whoever comes second sees what the first one did."""
    cleanup = replace(node(5, resource_id='R'), phase=Phase.CLEANUP)
    backend.fill(nodes=(node(0), cleanup), resources=(replace(FREE, fence=0),))

    def take(name):
        def decide(view):
            if view.resource is None or view.resource.owner is not None:
                return Decision(None)
            fence = view.resource.fence
            return Decision(name, (UpdateResource('R', None, fence, {'owner': name, 'fence': fence + 1}),))

        return decide

    results = at_once(
        lambda: backend.store.transact(OneNode('V', 0), take('update')),
        lambda: backend.store.transact(OneNode('V', 5), take('cleanup')),
    )
    assert sorted(result.verdict is None for result in results) == [False, True]
    assert backend.look(NewStack('p')) is not None
