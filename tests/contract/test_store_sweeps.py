"""What a sweeper finds, who is alive, and who sweeps: on every store."""

import time
from dataclasses import replace

import pytest

from convergence.core.effects import (
    BeginCancel,
    CountEvent,
    EndTraversal,
    FinishNode,
    InsertResources,
    InsertStack,
    StallTraversal,
    UpdateResource,
    UpdateStack,
)
from convergence.core.model import NodeStatus, Phase, Status, TraversalStatus
from convergence.db.scopes import NewStack
from tests.contract.rows import FREE, NODES, RESOURCE, STACK, TRAVERSAL, at_once, node

OLD = -1.0
"""Everything counts as old, whatever the clocks of two statements say."""
FOR_EVER = 1e6


def numbers(found):
    """The numbers of nodes, sorted."""
    return sorted(each.number for each in found)


# --- unattended nodes -------------------------------------------------------------------------------------------


def test_ready_nodes_that_nobody_attends_to_are_found_with_their_phase(backend):
    """F016."""
    backend.fill()
    found = backend.sweeps.undispatched(OLD, 10)
    assert numbers(found) == [0, 1]
    assert {(each.stack_id, each.traversal_id, each.phase) for each in found} == {('S', 'V', Phase.UPDATE)}
    backend.write(FinishNode('V', 0, (2, 3)))
    (last,) = [each for each in backend.sweeps.undispatched(OLD, 10) if each.number == 3]
    assert last.phase is Phase.IN_SERVICE


def test_who_was_told_a_moment_ago_is_not_told_again(backend):
    """Also when it became ready only now; and what was found counts as told."""
    now = backend.look(NewStack('p')).now
    backend.fill(traversal=replace(TRAVERSAL, started_at=now))
    assert backend.sweeps.undispatched(3600.0, 10) == []
    backend.write(FinishNode('V', 0, (3,)))
    assert backend.sweeps.undispatched(3600.0, 10) == []
    assert numbers(backend.sweeps.undispatched(OLD, 10)) == [1, 3]


@pytest.mark.parametrize(
    'resource',
    [
        RESOURCE,
        replace(FREE, wake_at=4e9, traversal_id='V'),
        replace(FREE, owner='W', wake_at=1.0),
    ],
    ids=['held', 'asleep', 'held and due'],
)
def test_a_node_whose_row_is_held_or_asleep_is_attended_to(backend, resource):
    backend.fill(resources=(resource,))
    assert numbers(backend.sweeps.undispatched(OLD, 10)) == [1]


def test_a_node_whose_row_is_due_is_found(backend):
    backend.fill(resources=(replace(FREE, wake_at=1.0),))
    assert numbers(backend.sweeps.undispatched(OLD, 10)) == [0, 1]


@pytest.mark.parametrize('parked_by', ['U', None])
def test_a_node_whose_row_an_older_traversal_has_parked_is_found(backend, parked_by):
    """That row does not sleep for this one: whoever is told looks at it at once."""
    backend.fill(resources=(replace(FREE, wake_at=4e9, traversal_id=parked_by),))
    assert numbers(backend.sweeps.undispatched(OLD, 10)) == [0, 1]


@pytest.mark.parametrize('parked_by', ['U', 'V'])
def test_a_node_whose_row_is_held_is_not_found_whoever_has_parked_it(backend, parked_by):
    backend.fill(resources=(replace(FREE, owner='W', wake_at=4e9, traversal_id=parked_by),))
    assert numbers(backend.sweeps.undispatched(OLD, 10)) == [1]


@pytest.mark.parametrize('status', [each for each in TraversalStatus if each is not TraversalStatus.RUNNING])
def test_nodes_of_a_traversal_that_does_not_run_are_left_alone(backend, status):
    """F051."""
    backend.fill(traversal=replace(TRAVERSAL, status=status))
    assert backend.sweeps.undispatched(OLD, 10) == []


def test_no_more_are_found_than_were_asked_for_the_longest_ready_first(backend):
    backend.fill(nodes=tuple(node(number, resource_id=None) for number in range(6)))
    backend.fill_more(replace(TRAVERSAL, id='V2'), (node(9, resource_id=None, traversal_id='V2'),))
    assert numbers(backend.sweeps.undispatched(OLD, 4)) == [0, 1, 2, 3]
    assert numbers(backend.sweeps.undispatched(OLD, 10, window=2)) in ([4, 5, 9], [0, 1, 9])


# --- rows of the dead -------------------------------------------------------------------------------------------


def test_rows_of_workers_without_a_lease_are_orphans(backend):
    """F022, F023: not registered, or the lease has run out; by the store's clock."""
    rows = tuple(
        replace(RESOURCE, id=key, owner=owner)
        for key, owner in (('A', 'alive'), ('B', 'late'), ('C', 'unknown'), ('D', None))
    )
    backend.fill(resources=rows)
    backend.roster.register('alive', 'worker', 'host', '1', FOR_EVER)
    backend.roster.register('late', 'worker', 'host', '1', -1.0)
    found = {(row.resource_id, row.owner, row.fence) for row in backend.sweeps.expired_claims(10)}
    assert found == {('B', 'late', 7), ('C', 'unknown', 7)}
    assert len(backend.sweeps.expired_claims(1)) == 1


def test_rows_left_in_the_middle_of_a_stack_at_rest_are_found(backend):
    rows = (replace(RESOURCE, id='A', owner=None), replace(FREE, id='B'), replace(RESOURCE, id='C'))
    backend.fill(resources=rows)
    assert backend.sweeps.interrupted(10) == []
    backend.write(UpdateStack('S', 'V', {'status': Status.FAILED}))
    assert [row.resource_id for row in backend.sweeps.interrupted(10)] == ['A']


def test_long_actions_of_a_stack_at_rest_are_left_to_the_workers_for_a_while(backend):
    parked = replace(RESOURCE, id='A', owner=None, traversal_id='V')
    backend.fill(resources=(parked, replace(parked, id='B', progress=None), replace(parked, id='C', owner='W')))
    assert backend.sweeps.parked_at_rest(10) == []
    backend.write(UpdateStack('S', 'V', {'status': Status.FAILED}))
    assert [(row.resource_id, row.traversal_id) for row in backend.sweeps.parked_at_rest(10)] == [('A', 'V')]
    assert [row.resource_id for row in backend.sweeps.interrupted(10, FOR_EVER * FOR_EVER)] == ['B']
    assert {row.resource_id for row in backend.sweeps.interrupted(10, OLD)} == {'A', 'B'}


def test_rows_that_nobody_ends_at_their_deadline_are_found(backend):
    late = replace(RESOURCE, id='A', deadline=5.0)
    backend.fill(
        resources=(
            late,
            replace(late, id='B', owner=None),
            replace(late, id='C', deadline=None),
            replace(late, id='D', deadline=4e9),
        )
    )
    assert [row.resource_id for row in backend.sweeps.overdue_actions(10, 60.0)] == ['A']
    assert backend.sweeps.overdue_actions(10, 3e9) == []


def test_a_sleeping_row_to_which_something_has_happened_is_awake(backend):
    asleep = replace(FREE, wake_at=4e9, event_count=1, polled_event_count=1, traversal_id='V')
    backend.fill(resources=(asleep,), nodes=(NODES[0],))
    assert backend.sweeps.undispatched(OLD, 10) == []
    backend.write(CountEvent('R'))
    assert numbers(backend.sweeps.undispatched(OLD, 10)) == [0]
    assert backend.resource() == replace(asleep, event_count=2)


# --- traversals -------------------------------------------------------------------------------------------------


def test_a_failed_traversal_is_unsettled_while_its_stack_is_in_progress(backend):
    """F045."""
    backend.fill()
    assert backend.sweeps.unsettled(10) == []
    backend.write(EndTraversal('V', TraversalStatus.FAILED, 9.5))
    assert [(each.stack_id, each.traversal_id) for each in backend.sweeps.unsettled(10)] == [('S', 'V')]
    backend.write(UpdateStack('S', 'V', {'status': Status.FAILED}))
    assert backend.sweeps.unsettled(10) == []


def test_a_failed_traversal_that_was_superseded_needs_no_settling(backend):
    backend.fill(traversal=replace(TRAVERSAL, status=TraversalStatus.FAILED))
    backend.write(UpdateStack('S', 'V', {'traversal_id': 'V2'}))
    assert backend.sweeps.unsettled(10) == []


def test_a_running_traversal_past_its_deadline_is_overdue(backend):
    """F016, F107."""
    backend.fill()
    backend.fill_more(replace(TRAVERSAL, id='V2', deadline=1.0), ())
    backend.fill_more(replace(TRAVERSAL, id='V3', deadline=1.0, status=TraversalStatus.FAILED), ())
    assert [each.traversal_id for each in backend.sweeps.overdue(10)] == ['V2']


def test_of_a_traversal_that_is_being_cancelled_only_what_has_begun_is_looked_for(backend):
    """When nothing of it runs any more it can end; when its time is over it has to."""
    going_on = replace(FREE, status=Status.IN_PROGRESS)
    backend.fill(resources=(going_on,))
    backend.write(BeginCancel('V', 4e9))
    assert backend.reader.traversal('V').deadline == 4e9
    assert numbers(backend.sweeps.undispatched(OLD, 10)) == [0]
    assert [row.id for row in backend.reader.busy('S', 10)] == [going_on.id]
    assert (backend.sweeps.unsettled(10), backend.sweeps.overdue(10), backend.sweeps.purge_nodes(10)) == ([], [], 0)
    backend.write(UpdateResource(going_on.id, None, going_on.fence, {'status': Status.COMPLETE}))
    assert backend.sweeps.undispatched(OLD, 10) == []
    assert [each.traversal_id for each in backend.sweeps.unsettled(10)] == ['V']
    backend.write(BeginCancel('V', 1.0))  # it is not running any more
    assert backend.sweeps.overdue(10) == []
    backend.fill_more(replace(TRAVERSAL, id='V2', deadline=1.0, status=TraversalStatus.CANCELLING), ())
    assert [each.traversal_id for each in backend.sweeps.overdue(10)] == ['V2']


def test_what_is_nested_in_a_stack_that_is_being_cancelled_is_found_until_it_is_as_well(backend):
    """F098: also if nobody has told it."""
    backend.fill()
    child = replace(
        STACK, id='N', name='nested', parent_id='S', parent_resource_id=RESOURCE.id, root_id='S', traversal_id='VN'
    )
    backend.write(InsertStack(child))
    backend.fill_more(replace(TRAVERSAL, id='VN', stack_id='N', for_parent=True), ())
    assert backend.sweeps.nested_to_cancel(10) == []
    assert [each.id for each in backend.reader.nested_at_work('S')] == ['N']
    backend.write(BeginCancel('V', 4e9))
    (found,) = backend.sweeps.nested_to_cancel(10)
    assert (found.stack_id, found.traversal_id, found.resource_id) == ('N', 'VN', RESOURCE.id)
    backend.write(BeginCancel('VN', 4e9))
    assert backend.sweeps.nested_to_cancel(10) == []


def test_what_belongs_to_a_resource_whose_object_is_a_stack_is_read_in_one_look(backend):
    claimed = replace(RESOURCE, token='N', traversal_id='V')
    backend.fill(resources=(claimed,))
    (found,) = backend.reader.nesting([claimed.id])
    assert (found.row.id, found.stack.id, found.traversal.id, found.nested) == (claimed.id, 'S', 'V', None)
    backend.write(InsertStack(replace(STACK, id='N', name='nested', parent_id='S', parent_resource_id=claimed.id)))
    (found,) = backend.reader.nesting(['another', claimed.id])
    assert found.row == backend.reader.resource(claimed.id)
    assert (found.stack, found.nested) == (backend.reader.stack('S'), backend.reader.stack('N'))
    assert found.traversal == backend.reader.traversal('V')
    assert backend.reader.nesting(['another']) == []


def test_a_traversal_that_stands_still_is_found_once_and_again_when_it_moves(backend):
    backend.fill(resources=())
    (still,) = backend.sweeps.stalled(10, 60.0)
    assert (still.stack_id, still.traversal_id, still.progressed_at) == ('S', 'V', TRAVERSAL.started_at)
    assert backend.sweeps.stalled(10, FOR_EVER * FOR_EVER) == []
    backend.write(StallTraversal('V', still.progressed_at))
    assert backend.sweeps.stalled(10, 60.0) == []
    backend.write(InsertResources((replace(RESOURCE, traversal_id='V', began_at=TRAVERSAL.started_at + 1.0),)))
    (moving,) = backend.sweeps.stalled(10, 60.0)
    assert moving.stalled_at == TRAVERSAL.started_at
    backend.write(StallTraversal('V', None), UpdateStack('S', 'V', {'status': Status.COMPLETE}))
    assert backend.sweeps.stalled(10, 60.0) == []


def test_many_nodes_of_one_traversal_are_removed_some_at_a_time(backend):
    backend.fill()
    nodes = tuple(replace(NODES[0], traversal_id='V0', number=number) for number in range(1200))
    backend.fill_more(replace(TRAVERSAL, id='V0', status=TraversalStatus.SUPERSEDED, node_count=1200), nodes)
    left = []
    while left[-1:] != [0]:
        backend.sweeps.purge_nodes(10)
        left.append(len(backend.reader.nodes('V0')))
    assert left in ([200, 0], [0])
    assert backend.sweeps.purge_nodes(10) == 0


def test_nodes_of_traversals_that_are_over_are_removed(backend):
    """F051: of those that nobody settles any more; the history stays."""
    backend.fill()
    backend.fill_more(
        replace(TRAVERSAL, id='V0', status=TraversalStatus.SUPERSEDED),
        tuple(replace(each, traversal_id='V0') for each in NODES),
    )
    assert backend.sweeps.purge_nodes(10) == len(NODES)
    assert backend.sweeps.purge_nodes(10) == 0
    assert (backend.reader.nodes('V0'), len(backend.reader.nodes('V'))) == ([], len(NODES))
    backend.write(EndTraversal('V', TraversalStatus.FAILED, 9.5))
    assert backend.sweeps.purge_nodes(10) == 0
    backend.write(UpdateStack('S', 'V', {'status': Status.FAILED}))
    assert backend.sweeps.purge_nodes(10) == len(NODES)
    assert len(backend.reader.traversals('S')) == 2


# --- who is there -----------------------------------------------------------------------------------------------


def test_a_process_is_up_while_its_lease_runs(backend):
    backend.roster.register('a', 'engine', 'host', '1', FOR_EVER)
    backend.roster.register('b', 'worker', 'host', '2', -1.0)
    found = {each.id: each for each in backend.roster.services()}
    assert (found['a'].is_up, found['b'].is_up) == (True, False)
    assert (found['a'].kind, found['a'].host, found['a'].version, found['b'].version) == ('engine', 'host', '1', '2')
    assert 0 <= found['a'].age_s < 3600


def test_whoever_was_declared_dead_learns_it_with_the_next_beat(backend):
    """F021, F022."""
    backend.roster.register('a', 'worker', 'host', '1', -1.0)
    assert backend.roster.beat('a')
    backend.roster.remove_dead()
    assert not backend.roster.beat('a')
    assert not backend.roster.beat('never there')


def test_the_dead_are_remembered_while_they_hold_something(backend):
    backend.fill(resources=(replace(RESOURCE, owner='b'),))
    for key, lease_s in (('a', -1.0), ('b', -1.0), ('c', FOR_EVER)):
        backend.roster.register(key, 'worker', 'host', '1', lease_s)
    assert backend.roster.remove_dead() == 1
    assert sorted(each.id for each in backend.roster.services()) == ['b', 'c']
    assert [row.id for row in backend.roster.held_by('b')] == ['R']
    backend.write(UpdateResource('R', 'b', 7, {'owner': None}))
    assert backend.roster.remove_dead() == 1


def test_whoever_leaves_is_gone_at_once(backend):
    backend.fill(resources=(replace(RESOURCE, owner='a'),))
    backend.roster.register('a', 'worker', 'host', '1', FOR_EVER)
    assert backend.sweeps.expired_claims(10) == []
    backend.roster.leave('a')
    assert [row.resource_id for row in backend.sweeps.expired_claims(10)] == ['R']
    backend.roster.leave('a')


def test_the_clock_of_whoever_sweeps_decides_nothing(backend, monkeypatch):
    """Leases, duties and deadlines are measured by the database's clock: a process an hour ahead takes nothing."""
    backend.fill(resources=(replace(RESOURCE, owner='a'), replace(RESOURCE, id='X', owner='dead')))
    backend.roster.register('a', 'worker', 'host', '1', 60.0)
    assert backend.sweeps.take_duty('sweeper', 'a', 60.0)
    own, steady = time.time, time.monotonic
    monkeypatch.setattr(time, 'time', lambda: own() + 3600.0)
    monkeypatch.setattr(time, 'monotonic', lambda: steady() + 3600.0)
    assert [row.owner for row in backend.sweeps.expired_claims(10)] == ['dead']
    assert not backend.sweeps.take_duty('sweeper', 'b', 60.0)
    assert backend.sweeps.overdue(10) == []
    assert backend.roster.remove_dead() == 0
    assert backend.roster.beat('a')


def test_one_sweeps_at_a_time_until_its_turn_is_over(backend):
    """The election: whoever has the duty keeps it while renewing it; others get it when that stops."""
    assert backend.sweeps.take_duty('sweeper', 'a', FOR_EVER)
    assert not backend.sweeps.take_duty('sweeper', 'b', FOR_EVER)
    assert backend.sweeps.take_duty('sweeper', 'a', -1.0)
    assert backend.sweeps.take_duty('sweeper', 'b', FOR_EVER)
    assert not backend.sweeps.take_duty('sweeper', 'a', FOR_EVER)


def test_others_see_for_how_long_a_duty_is_held(backend):
    assert backend.sweeps.duty_held_s('sweeper', 'b') <= 0.0
    assert backend.sweeps.take_duty('sweeper', 'a', 60.0)
    assert 50.0 < backend.sweeps.duty_held_s('sweeper', 'b') <= 60.0
    assert backend.sweeps.duty_held_s('sweeper', 'a') <= 0.0
    assert backend.sweeps.take_duty('sweeper', 'a', -1.0)
    assert backend.sweeps.duty_held_s('sweeper', 'b') < 0.0


def test_of_many_candidates_one_is_elected(backend):
    took = at_once(*(lambda name=name: backend.sweeps.take_duty('sweeper', name, FOR_EVER) for name in 'abcdefgh'))
    assert took.count(True) == 1
    assert took.count(False) == 7


def test_a_sweep_of_an_empty_store_finds_nothing(backend):
    assert (
        backend.sweeps.undispatched(OLD, 10) == backend.sweeps.expired_claims(10) == backend.sweeps.unsettled(10) == []
    )
    assert backend.sweeps.overdue(10) == []
    assert (backend.sweeps.purge_nodes(10), backend.roster.remove_dead()) == (0, 0)


def test_a_node_that_is_done_is_not_found_whatever_its_row_says(backend):
    backend.write(InsertStack(STACK), InsertResources((FREE,)))
    backend.fill_more(TRAVERSAL, (node(0, status=NodeStatus.DONE), node(1, 1), node(2, status=NodeStatus.FAILED)))
    assert backend.sweeps.undispatched(OLD, 10) == []
