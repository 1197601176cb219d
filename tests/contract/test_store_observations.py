"""What every store does with observations: who looks at what, and what becomes of what was seen."""

import time
from dataclasses import replace

import pytest
from sqlalchemy import event, select, update

from convergence.core.effects import (
    DeleteResource,
    EndTraversal,
    InsertResources,
    InsertStack,
    InsertTraversal,
    UpdateResource,
    UpdateStack,
)
from convergence.core.model import Action, DriftPolicy, Status, TraversalStatus
from convergence.core.observation import (
    DriftPolicies,
    DriftSummary,
    ObservationResult,
    ObservationSource,
    ObservationUpdate,
    ObservedState,
)
from convergence.core.rows import Event
from convergence.db.records import UnscheduledStack, WatchTarget
from convergence.db.repositories.observations import scheduling
from convergence.db.repositories.wiring import ports_of
from convergence.db.schema.models import RESOURCE as RESOURCES
from convergence.db.statements.store import Store
from tests.contract.rows import FREE, RESOURCE, STACK, TRAVERSAL, Backend, at_once

REST = replace(STACK, status=Status.COMPLETE)
OVER = replace(TRAVERSAL, status=TraversalStatus.COMPLETE)
SOON = {'Type': 0.0}
NOTHING_SAID = DriftPolicies()
REPAIR = DriftPolicies(DriftPolicy.REPAIR)
SECOND = replace(FREE, id='R2', name='r2')
DIFFERS = ObservationResult(ObservedState.DIFFERS, ('p',), {'p': 2}, 'p changed')


@pytest.fixture
def rows(backend):
    """A stack at rest with two objects, and an observer that is alive."""
    backend.fill(stack=REST, traversal=OVER, resources=(FREE, SECOND))
    backend.roster.register('O', 'observer', 'host', '1', 60.0)
    return backend


def schedule(backend, intervals=SOON, limit=10, policies=NOTHING_SAID):
    """Enrol what is to be; how many objects."""
    rows = backend.observations
    return sum(rows.schedule(each, intervals, policies, limit) for each in rows.unscheduled(10))


def give_policy(backend, policy, stack_id='S', traversal_id='V'):
    """A stack gets a drift policy, whichever it has."""
    backend.write(UpdateStack(stack_id, traversal_id, {'drift_policy': policy}))


def look(leased, result=DIFFERS, pause_s=1000.0, **changes):
    """What somebody has seen of what he has leased."""
    known = leased.observation
    made = ObservationUpdate(
        known.resource_id,
        leased.row.fence,
        result,
        ObservationSource.POLL,
        pause_s,
        known.says(result, leased.row.fence),
    )
    return replace(made, **changes)


def known(backend):
    """What is known, by row."""
    return {each.row.id: each.observation for each in backend.observations.known(['S'])}


def test_objects_of_stacks_at_rest_are_enrolled_once_while_somebody_observes(rows):
    rows.roster.leave('O')
    assert rows.observations.unscheduled(10) == []
    rows.roster.register('O', 'observer', 'host', '1', 60.0)
    assert rows.observations.unscheduled(10) == [UnscheduledStack('S', 'V')]
    assert schedule(rows, {'Other': 1.0}) == 0
    assert rows.observations.unscheduled(10) == []
    assert known(rows) == {}


def test_of_many_objects_some_are_enrolled_at_a_time(rows):
    assert [schedule(rows, limit=1) for _ in range(4)] == [1, 1, 0, 0]
    assert set(known(rows)) == {'R', 'R2'}
    assert {each.found for each in known(rows).values()} == {ObservedState.UNKNOWN}


def test_what_was_never_made_or_was_replaced_is_not_observed(backend):
    never = replace(FREE, id='I', action=Action.INIT)
    nothing = replace(FREE, id='N', physical_id=None)
    old = replace(FREE, id='X', replaced_by='R')
    backend.fill(stack=REST, traversal=OVER, resources=(FREE, never, nothing, old))
    backend.roster.register('O', 'observer', 'host', '1', 60.0)
    assert schedule(backend) == 1


def test_a_stack_at_work_is_enrolled_when_it_rests(backend):
    backend.fill()
    backend.roster.register('O', 'observer', 'host', '1', 60.0)
    assert backend.observations.unscheduled(10) == []


MADE_LATER = replace(FREE, id='R3', name='r3', physical_id='later')
REPLACES_R = replace(FREE, id='R3', physical_id='later', replaces='R')


def test_what_is_enrolled_before_its_operation_is_seen_to_be_over_is_enrolled_again(backend):
    """Somebody asks for a look in the middle, or is told of the end by a server that others lag behind."""
    backend.fill()
    backend.roster.register('O', 'observer', 'host', '1', 60.0)
    assert backend.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10) == 1
    backend.write(InsertResources((MADE_LATER,)), EndTraversal('V', TraversalStatus.COMPLETE, 9.5))
    assert backend.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10) == 1, (
        'the stack does not say so yet'
    )
    backend.write(UpdateStack('S', 'V', {'status': Status.COMPLETE}))
    assert backend.observations.unscheduled(10) == [UnscheduledStack('S', 'V')]
    assert schedule(backend) == 0
    assert set(known(backend)) == {'R', 'R3'}
    assert backend.observations.unscheduled(10) == []


def test_what_is_known_of_an_object_is_kept_until_another_one_has_taken_its_place(rows):
    """Whoever enrols in the middle of a repair must not forget how often it was tried."""
    schedule(rows)
    rows.observations.repair_begun([(FREE, 0.0)])
    repair = replace(TRAVERSAL, id='V2')
    rows.write(
        InsertTraversal(repair, ()),
        UpdateStack('S', 'V', {'traversal_id': 'V2', 'status': Status.IN_PROGRESS}),
        UpdateResource('R', None, FREE.fence, {'replaced_by': 'R3'}),
    )
    for traversal_id in ('V', 'V2'):
        assert rows.observations.schedule(UnscheduledStack('S', traversal_id), SOON, NOTHING_SAID, 10) == 0
    assert known(rows)['R'].repairs == 1
    rows.write(
        InsertResources((REPLACES_R,)),
        EndTraversal('V2', TraversalStatus.COMPLETE, 9.5),
        UpdateStack('S', 'V2', {'status': Status.COMPLETE}),
    )
    assert schedule(rows) == 1
    assert {key: each.repairs for key, each in known(rows).items()} == {'R2': 0, 'R3': 1}


def test_what_somebody_else_enrols_meanwhile_is_not_taken_for_one_without_a_row(server_engine):
    """In a cluster nobody waits for a lock that another server has given, and each statement may see more than the last."""
    rows = Backend.of('sql', ports_of(Store(server_engine)))
    unmade = replace(SECOND, physical_id=None)
    rows.fill(stack=REST, traversal=OVER, resources=(FREE, unmade))
    rows.roster.register('O', 'observer', 'host', '1', 60.0)
    questions = []

    def look(connection, cursor, text, *rest):
        if (
            text.startswith('SELECT')
            and 'observation.' in text
            and not any(each in text for each in ('FOR UPDATE', 'count('))
        ):
            questions.append(text)
            if len(questions) == 2:
                with server_engine.begin() as other:
                    other.execute(update(RESOURCES).where(RESOURCES.c.id == 'R2').values(physical_id='phys'))
                    scheduling._insert(other, 'S', {row(other): DriftPolicy.REPORT}, SOON, {})

    def row(connection):
        needed = [RESOURCES.c[name] for name in ('id', 'name', 'type', 'fence')]
        return connection.execute(select(*needed).where(RESOURCES.c.id == 'R2')).one()

    event.listen(server_engine, 'before_cursor_execute', look)
    try:
        assert schedule(rows) == 1
    finally:
        event.remove(server_engine, 'before_cursor_execute', look)
    assert len(questions) == 2
    assert set(known(rows)) == {'R', 'R2'}


def test_each_object_is_handed_to_one_observer_until_its_lease_is_over(rows):
    schedule(rows)
    first = rows.observations.lease('A', 1, 1000.0)
    second = rows.observations.lease('B', 10, 0.0)
    assert {each.row.id for each in (*first, *second)} == {'R', 'R2'}
    assert (first[0].row.properties, first[0].row.data, first[0].row.type) == ({'p': 1}, {'secret': 'x'}, 'Type')
    assert first[0].stack == REST
    again = rows.observations.lease('C', 10, 1000.0)
    assert [each.row.id for each in again] == [second[0].row.id], 'the lease of B is over'
    assert rows.observations.write('B', [look(second[0])]) == 0, 'and what it brings late is not taken'
    assert rows.observations.write('C', [look(again[0])]) == 1


def test_it_is_told_when_the_next_object_is_due(rows):
    assert rows.observations.due_in_s() is None
    schedule(rows)
    assert rows.observations.due_in_s() <= 0.0
    leased = rows.observations.lease('o', 10, 60.0)
    assert 50.0 < rows.observations.due_in_s() <= 60.0
    rows.observations.put_off('o', [leased[0].row.id], 30.0)
    assert 20.0 < rows.observations.due_in_s() <= 30.0


def test_ten_who_lease_at_once_never_get_the_same(rows):
    schedule(rows)
    held = at_once(*(lambda name=str(each): rows.observations.lease(name, 1, 1000.0) for each in range(4)))
    assert sorted(each.row.id for leased in held for each in leased) == ['R', 'R2']


def test_what_was_seen_is_kept_and_counted_while_it_stays_so(rows):
    schedule(rows)
    leased = rows.observations.lease('A', 10, 1000.0)
    assert rows.observations.write('A', [look(each, pause_s=0.0) for each in leased]) == 2
    seen = known(rows)['R']
    assert (seen.found, seen.names, seen.live, seen.reason) == (ObservedState.DIFFERS, ('p',), {'p': 2}, 'p changed')
    assert (seen.same_results, seen.fence, seen.holder, seen.source) == (1, FREE.fence, None, ObservationSource.POLL)
    assert seen.since == seen.observed_at
    leased = rows.observations.lease('B', 10, 1000.0)
    assert rows.observations.write('B', [look(each) for each in leased]) == 2
    again = known(rows)['R']
    assert (again.same_results, again.since, again.found) == (2, seen.since, ObservedState.DIFFERS)
    assert again.observed_at >= seen.observed_at
    assert rows.observations.lease('C', 10, 1000.0) == []


def test_what_was_seen_of_a_row_that_was_claimed_since_is_not_taken_and_not_shown(rows):
    schedule(rows)
    leased = {each.row.id: each for each in rows.observations.lease('A', 10, 1000.0)}
    rows.write(UpdateResource('R', None, FREE.fence, {'fence': 9}))
    assert rows.observations.write('A', [look(each) for each in leased.values()]) == 1
    assert {key: each.found for key, each in known(rows).items()} == {
        'R': ObservedState.UNKNOWN,
        'R2': ObservedState.DIFFERS,
    }
    rows.write(UpdateResource('R2', None, FREE.fence, {'fence': 9}))
    forgotten = known(rows)['R2']
    assert (forgotten.found, forgotten.names, forgotten.live, forgotten.observed_at) == (
        ObservedState.UNKNOWN,
        (),
        {},
        None,
    )


@pytest.mark.parametrize(
    'changes',
    [{'status': Status.IN_PROGRESS}, {'status': Status.FAILED}, {'action': Action.SUSPEND}, {'owner': 'W'}],
)
def test_what_cannot_be_compared_now_is_not_handed_out(rows, changes):
    schedule(rows)
    rows.write(UpdateResource('R', None, FREE.fence, changes))
    assert [each.row.id for each in rows.observations.lease('A', 10, 1000.0)] == ['R2']


def test_nothing_is_handed_out_of_a_stack_at_work(rows):
    schedule(rows)
    rows.write(UpdateStack('S', 'V', {'status': Status.IN_PROGRESS}))
    assert rows.observations.lease('A', 10, 1000.0) == []


def test_an_observation_goes_with_its_row(rows):
    schedule(rows)
    rows.write(DeleteResource('R', None, FREE.fence))
    assert set(known(rows)) == {'R2'}
    assert [each.row.id for each in rows.observations.lease('A', 10, 0.0)] == ['R2']
    rows.write(DeleteResource('R2', None, FREE.fence))
    rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10)
    assert rows.observations.lease('A', 10, 0.0) == []


def another_moment():
    """Let the clocks of databases move, which count milliseconds: who asks in the moment in which a look begins is looked
    at once more.
    """
    time.sleep(0.003)


def test_who_asks_is_told_of_a_look_that_began_later(rows):
    schedule(rows)
    before = rows.observations.lease('A', 10, 1000.0)
    asked_at = rows.observations.request(['S'], ObservationSource.REQUEST, ['R'])
    assert rows.observations.lease('B', 10, 1000.0) == [], 'somebody looks already'
    assert rows.observations.write('A', [look(each) for each in before]) == 2
    assert known(rows)['R'].observed_at <= asked_at
    another_moment()
    (again,) = rows.observations.lease('B', 10, 1000.0)
    assert (again.row.id, again.observation.requested_by) == ('R', ObservationSource.REQUEST)
    assert rows.observations.write('B', [look(again, source=ObservationSource.REQUEST)]) == 1
    seen = known(rows)['R']
    assert seen.observed_at >= asked_at
    assert (seen.source, seen.requested_at, seen.requested_by) == (ObservationSource.REQUEST, None, None)
    assert rows.observations.lease('C', 10, 1000.0) == []


def test_a_stack_that_is_asked_about_is_looked_at_as_a_whole(rows):
    schedule(rows, {'Type': 1e9})
    assert rows.observations.lease('A', 10, 1000.0) == [] or rows.kind == 'memory'
    rows.observations.request(['S'], ObservationSource.REQUEST)
    assert {each.row.id for each in rows.observations.lease('B', 10, 1000.0)} == {'R', 'R2'} or rows.kind == 'memory'


def test_what_was_asked_for_while_the_stack_was_busy_is_due_when_it_rests(rows):
    schedule(rows)
    see(rows, pause_s=1e6)
    rows.write(UpdateStack('S', 'V', {'status': Status.IN_PROGRESS}))
    rows.observations.request(['S'], ObservationSource.NOTIFICATION, ['R'])
    another_moment()
    assert rows.observations.lease('A', 10, 1000.0) == [], 'nobody can look now'
    rows.write(UpdateStack('S', 'V', {'status': Status.COMPLETE}))
    assert rows.observations.lease('B', 10, 1000.0) == [], 'it was put off'
    rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10)
    assert [each.row.id for each in rows.observations.lease('C', 10, 1000.0)] == ['R']


def test_what_is_observed_is_to_be_watched_and_is_known_by_its_physical_id(rows):
    assert rows.watched.objects(['Type']) == {}
    schedule(rows)
    assert {name: sorted(ids) for name, ids in rows.watched.objects(['Type', 'Other']).items()} == {
        'Type': [FREE.physical_id, SECOND.physical_id]
    }
    assert rows.watched.objects([]) == rows.watched.objects(['Other']) == {}
    rows.write(UpdateResource('R', None, FREE.fence, {'physical_id': 'of R', 'status': Status.IN_PROGRESS}))
    assert rows.watched.targets_of('Type', ['of R', 'of nobody']) == [WatchTarget('R', 'S', True)]
    assert rows.watched.targets_of('Type', [SECOND.physical_id]) == [WatchTarget('R2', 'S', False)]
    assert rows.watched.targets_of('Other', ['of R']) == rows.watched.targets_of('Type', []) == []


def test_what_nobody_could_look_at_is_put_off(rows):
    schedule(rows)
    leased = rows.observations.lease('A', 10, 1000.0)
    rows.observations.put_off('A', ['R'], 0.0)
    rows.observations.put_off('B', ['R2'], 0.0)
    assert [each.row.id for each in rows.observations.lease('C', 10, 1000.0)] == ['R']
    assert rows.observations.write('A', [look(each) for each in leased]) == 1


def test_an_object_that_failed_to_be_made_is_no_concern(backend):
    backend.fill(stack=REST, traversal=OVER, resources=(RESOURCE,))
    backend.roster.register('O', 'observer', 'host', '1', 60.0)
    assert schedule(backend) == 0


def test_what_is_known_is_counted_and_shown_with_its_rows(rows):
    observations = rows.observations
    assert observations.summary('S') == DriftSummary()
    schedule(rows)
    assert observations.summary('S') == DriftSummary(observed=2)
    first, second = observations.lease('A', 10, 1000.0)
    observations.write('A', [look(first), look(second, ObservationResult(ObservedState.HEALTHY))])
    summary = observations.summary('S')
    assert (summary.observed, summary.seen, summary.drifted) == (2, 2, 1)
    seen = known(rows)[first.row.id]
    assert (summary.since, summary.observed_at) == (seen.since, max(each.observed_at for each in known(rows).values()))
    (drifted,) = observations.known(['S'], drifted=True)
    assert (drifted.row.name, drifted.row.properties) == (first.row.name, {'p': 1})
    assert [each.row.name for each in observations.known(['S', 'T'])] == ['r', 'r2']
    assert [each.row.name for each in observations.known(['S'], limit=1)] == ['r']
    rows.write(UpdateResource(first.row.id, None, FREE.fence, {'fence': 9}))
    later = observations.summary('S')
    assert (later.observed, later.seen, later.drifted, later.since) == (2, 1, 0, None)
    assert observations.known(['S'], drifted=True) == []


def test_who_asks_for_what_was_due_while_the_stack_was_at_work_need_not_wait_for_the_end_of_a_lease(rows):
    """A demo once waited for a minute: its objects had been due in the middle of an update."""
    schedule(rows)
    rows.write(UpdateStack('S', 'V', {'status': Status.IN_PROGRESS}))
    assert rows.observations.lease('A', 10, 1000.0) == []
    rows.write(UpdateStack('S', 'V', {'status': Status.COMPLETE}))
    another_moment()
    assert rows.observations.lease('A', 10, 1000.0) == [], 'for a while nobody is told'
    rows.observations.request(['S'], ObservationSource.REQUEST)
    another_moment()
    leased = rows.observations.lease('B', 10, 1000.0)
    assert {each.row.id for each in leased} == {'R', 'R2'}
    rows.observations.request(['S'], ObservationSource.REQUEST)
    assert rows.observations.lease('C', 10, 1000.0) == [], 'somebody looks already'


def test_who_waits_for_looks_knows_how_many_are_left(rows):
    schedule(rows)
    assert rows.observations.waiting(['S']) == 0
    rows.observations.request(['S'], ObservationSource.REQUEST)
    assert rows.observations.waiting(['S', 'T']) == 2
    another_moment()
    leased = rows.observations.lease('A', 1, 1000.0)
    rows.observations.write('A', [look(each) for each in leased])
    assert rows.observations.waiting(['S']) == 1
    rows.write(UpdateStack('S', 'V', {'status': Status.IN_PROGRESS}))
    assert rows.observations.waiting(['S']) == 0, 'nobody can look now'


def see(rows, result=DIFFERS, pause_s=0.0):
    """Somebody looks at everything that is due, and is to look again at once, or after a pause."""
    leased = rows.observations.lease('A', 10, 1000.0)
    rows.observations.write('A', [look(each, result, pause_s=pause_s) for each in leased])


def to_repair(rows):
    return sorted((each.root_id, each.known.row.name) for each in rows.observations.to_repair(10))


def test_what_is_ignored_is_not_observed_and_policies_can_change(rows):
    ignored = DriftPolicies(of_resource=lambda name: DriftPolicy.IGNORE if name == 'r' else None)
    assert schedule(rows, policies=ignored) == 1
    assert set(known(rows)) == {'R2'}
    give_policy(rows, DriftPolicy.REPORT)
    assert schedule(rows, policies=DriftPolicies(of_types={'Type': DriftPolicy.REPAIR})) == 1
    assert {key: each.policy for key, each in known(rows).items()} == dict.fromkeys(('R', 'R2'), DriftPolicy.REPAIR)
    give_policy(rows, DriftPolicy.IGNORE)
    assert schedule(rows, policies=DriftPolicies(DriftPolicy.IGNORE)) == 0
    assert known(rows) == {}


NESTED = replace(REST, id='N', name='nested', traversal_id='W', root_id='S', parent_id='S')


@pytest.fixture
def tree(rows):
    """Another stack is nested in the stack at rest; somebody has seen that all objects of both are to be repaired."""
    rows.write(
        InsertStack(NESTED),
        InsertTraversal(replace(OVER, id='W', stack_id='N'), ()),
        InsertResources((replace(FREE, id='R3', stack_id='N', name='r3'),)),
    )
    give_policy(rows, DriftPolicy.REPAIR)
    # In any order: where what is nested comes first, it comes again after the stack at the top has told it its policy.
    assert sum(schedule(rows, policies=REPAIR) for _ in range(2)) == 3
    assert rows.observations.unscheduled(10) == []
    see(rows)
    assert to_repair(rows) == [('S', 'r'), ('S', 'r2'), ('S', 'r3')]
    return rows


@pytest.mark.parametrize(
    ('since', 'left'),
    [
        (UpdateResource('R', None, FREE.fence, {'owner': 'W'}), ['r2', 'r3']),
        (UpdateResource('R', None, FREE.fence, {'status': Status.FAILED}), ['r2', 'r3']),
        (UpdateStack('N', 'W', {'status': Status.IN_PROGRESS}), ['r', 'r2']),
        (UpdateStack('S', 'V', {'status': Status.FAILED}), []),
    ],
    ids=['somebody has the row', 'the row has failed', 'what it is in is at work', 'the stack at the top has failed'],
)
def test_nothing_is_repaired_that_is_at_work_or_has_failed_or_is_in_what_does(tree, since, left):
    tree.write(since)
    assert [name for _, name in to_repair(tree)] == left


def test_what_is_nested_is_enrolled_by_the_policy_that_an_update_has_given_whoever_was_slow_or_died(tree):
    rows = tree
    slow = UnscheduledStack('N', 'W')
    give_policy(rows, DriftPolicy.REPORT)  # and whoever has done that dies
    assert to_repair(rows) == [], 'until the stack itself is enrolled nobody knows what holds for what is nested'
    assert [each.stack_id for each in rows.observations.unscheduled(10)] == ['S']
    assert rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, REPAIR, 10) == 0
    assert [each.stack_id for each in rows.observations.unscheduled(10)] == ['S'], 'it was read before it changed'
    assert rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10) == 0
    assert rows.observations.schedule(slow, SOON, REPAIR, 10) == 0
    assert [each.stack_id for each in rows.observations.unscheduled(10)] == ['N'], 'and so was this'
    assert schedule(rows) == 0
    assert rows.observations.unscheduled(10) == []
    assert to_repair(rows) == []
    nested = rows.observations.known(['N'])
    assert {each.observation.policy for each in nested} == {DriftPolicy.REPORT}


def test_only_what_drifted_is_repaired_and_only_where_that_is_the_policy(rows):
    schedule(rows)
    see(rows)
    assert to_repair(rows) == []
    give_policy(rows, DriftPolicy.REPAIR)
    schedule(rows, policies=REPAIR)
    assert to_repair(rows) == [('S', 'r'), ('S', 'r2')]
    rows.write(UpdateResource('R', None, FREE.fence, {'fence': 9}))
    assert to_repair(rows) == [('S', 'r2')], 'R was claimed since'
    rows.write(UpdateStack('S', 'V', {'status': Status.FAILED}))
    assert to_repair(rows) == []
    rows.write(UpdateStack('S', 'V', {'status': Status.COMPLETE, 'action': Action.SUSPEND}))
    assert to_repair(rows) == []


def give_up(rows, key):
    """As two engines at once."""
    row = replace(RESOURCE, id=key)
    for event_id in (f'{key} first', f'{key} second'):
        told = Event.of_resource(event_id, row, row.action, row.status, 'Repair given up', at=0.0)
        rows.observations.give_up({key: told})


def test_after_a_repair_the_next_waits_until_it_is_given_up_or_tried_again(rows):
    give_policy(rows, DriftPolicy.REPAIR)
    schedule(rows, policies=REPAIR)
    see(rows)
    rows.observations.repair_begun([(FREE, 1000.0), (SECOND, 0.0)])
    assert to_repair(rows) == [('S', 'r2')]
    assert {key: each.repairs for key, each in known(rows).items()} == {'R': 1, 'R2': 1}
    give_up(rows, 'R2')
    assert to_repair(rows) == []
    assert known(rows)['R2'].given_up
    (told,) = rows.reader.events('S')
    assert (told.id, told.at > 0) == ('R2 first', True)
    give_policy(rows, DriftPolicy.REPAIR)
    schedule(rows, policies=REPAIR)
    assert to_repair(rows) == [('S', 'r'), ('S', 'r2')]


@pytest.mark.parametrize(
    ('attempt', 'pauses', 'status', 'ended', 'found'),
    [
        (1, [10.0, 1000.0], Status.FAILED, TraversalStatus.FAILED, ['S']),
        (2, [10.0, 1000.0], Status.FAILED, TraversalStatus.FAILED, []),
        (3, [10.0, 10.0], Status.FAILED, TraversalStatus.FAILED, []),
        (0, [10.0], Status.FAILED, TraversalStatus.FAILED, []),
        (1, [10.0], Status.IN_PROGRESS, TraversalStatus.FAILED, []),
        (1, [10.0], Status.FAILED, TraversalStatus.CANCELLED, []),
    ],
    ids=['due', 'pauses', 'was the last', 'asked for by a user', 'busy', 'cancelled'],
)
def test_a_stack_that_a_repair_has_failed_is_found_after_its_pause(backend, attempt, pauses, status, ended, found):
    over = replace(TRAVERSAL, status=ended, repair_attempt=attempt, finished_at=time.time() - 100.0)
    backend.fill(stack=replace(STACK, status=status), traversal=over)
    assert backend.observations.failed_repairs(pauses, 10) == found
    give_policy(backend, DriftPolicy.REPORT)
    backend.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10)
    begins_anew = attempt > 0 and status is Status.FAILED and ended is TraversalStatus.FAILED
    assert backend.observations.failed_repairs([10.0], 10) == (['S'] if begins_anew else [])


def test_a_deleted_stack_is_neither_enrolled_nor_repaired_again(backend):
    gone = replace(STACK, status=Status.FAILED, deleted_at=time.time() - 50.0)
    over = replace(TRAVERSAL, status=TraversalStatus.FAILED, repair_attempt=1, finished_at=time.time() - 100.0)
    backend.fill(stack=gone, traversal=over)
    backend.roster.register('O', 'observer', 'host', '1', 60.0)
    assert backend.observations.unscheduled(10) == []
    assert backend.observations.failed_repairs([10.0], 10) == []


def test_an_object_that_stays_well_has_its_earlier_repairs_forgotten(rows):
    give_policy(rows, DriftPolicy.REPAIR)
    schedule(rows, policies=REPAIR)
    rows.observations.repair_begun([(FREE, 0.0)])
    give_up(rows, 'R')
    told = []
    for _ in range(4):
        see(rows, ObservationResult(ObservedState.HEALTHY))
        told.append((known(rows)['R'].repairs, known(rows)['R'].given_up))
    assert told == [(1, True), (1, True), (0, False), (0, False)]


def test_what_is_put_off_waits_no_shorter_than_after_its_last_repair(rows):
    give_policy(rows, DriftPolicy.REPAIR)
    schedule(rows, policies=REPAIR)
    see(rows)
    rows.observations.repair_begun([(FREE, 1000.0), (SECOND, 0.0)])
    rows.observations.repair_put_off(['R', 'R2'], 0.0)
    assert to_repair(rows) == [('S', 'r2')]


def test_an_object_that_is_made_again_keeps_the_count_of_repairs(rows):
    give_policy(rows, DriftPolicy.REPAIR)
    schedule(rows, policies=REPAIR)
    rows.observations.repair_begun([(FREE, 0.0)])
    rows.write(DeleteResource('R', None, FREE.fence), InsertResources((replace(FREE, id='R3', replaces='R'),)))
    see(rows)  # an observer may come first
    rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, REPAIR, 10)
    assert {key: each.repairs for key, each in known(rows).items()} == {'R2': 0, 'R3': 1}
    rows.observations.repair_begun([(FREE, 0.0)])  # the engine comes late: the repair is over
    assert {key: each.repairs for key, each in known(rows).items()} == {'R2': 0, 'R3': 2}


def test_a_replacement_that_was_replaced_itself_before_anybody_looked_passes_the_count_on(rows):
    """Its creation was interrupted, or has failed: its row was gone before the stack came to rest."""
    schedule(rows)
    rows.observations.repair_begun([(FREE, 0.0)])
    again = replace(FREE, id='R4', replaces='R3')
    rows.write(DeleteResource('R', None, FREE.fence), InsertResources((again,)))
    rows.observations.repair_begun([(FREE, 0.0)])
    assert rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10) == 1
    assert {key: each.repairs for key, each in known(rows).items()} == {'R2': 0, 'R4': 2}
    rows.observations.repair_begun([(FREE, 0.0)])
    assert known(rows)['R4'].repairs == 3


def test_what_a_failed_repair_has_left_without_an_object_is_counted_on_by_the_next(rows):
    schedule(rows)
    rows.observations.repair_begun([(FREE, 0.0)])
    broken = replace(FREE, id='R3', replaces='R', physical_id=None, status=Status.FAILED)
    rows.write(
        UpdateResource('R', None, FREE.fence, {'replaced_by': 'R3'}),
        InsertResources((broken,)),
        UpdateStack('S', 'V', {'status': Status.FAILED}),
    )
    assert rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10) == 0
    rows.observations.repair_begun([(FREE, 0.0), (broken, 0.0)])  # of both rows of the name: it is one repair
    rows.write(
        DeleteResource('R', None, FREE.fence),
        DeleteResource('R3', None, FREE.fence),
        InsertResources((replace(FREE, id='R4', replaces='R3'),)),
        UpdateStack('S', 'V', {'status': Status.COMPLETE}),
    )
    assert rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10) == 1
    assert {key: each.repairs for key, each in known(rows).items()} == {'R2': 0, 'R4': 2}
    rows.write(DeleteResource('R4', None, FREE.fence))
    rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10)
    rows.write(InsertResources((FREE,)))
    rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 10)
    assert known(rows)['R'].repairs == 0, 'the stack was complete without it'


def test_the_count_of_what_is_enrolled_only_the_next_time_is_not_forgotten(rows):
    schedule(rows)
    rows.observations.repair_begun([(FREE, 0.0), (SECOND, 0.0)])
    replacements = (replace(FREE, id='R3', replaces='R'), replace(SECOND, id='R4', replaces='R2'))
    rows.write(*(DeleteResource(key, None, FREE.fence) for key in ('R', 'R2')), InsertResources(replacements))
    new = [rows.observations.schedule(UnscheduledStack('S', 'V'), SOON, NOTHING_SAID, 1) for _ in range(3)]
    assert new == [1, 1, 0]
    assert {key: each.repairs for key, each in known(rows).items()} == {'R3': 1, 'R4': 1}


def test_what_could_not_be_begun_comes_after_the_others_and_what_has_a_new_policy_waits_for_it(rows):
    give_policy(rows, DriftPolicy.REPAIR)
    schedule(rows, policies=REPAIR)
    see(rows)
    rows.observations.repair_put_off(['R'], 1000.0)
    assert to_repair(rows) == [('S', 'r2')]
    assert {each.repairs for each in known(rows).values()} == {0}
    give_policy(rows, DriftPolicy.REPAIR)
    assert to_repair(rows) == [], 'nobody has looked what its policy is now'
