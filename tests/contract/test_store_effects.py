"""Every effect, its guard, and all or nothing: the same on every store."""

import itertools
from dataclasses import fields, replace
from typing import get_args

import pytest
from convergence_simulator.memory import effects
from convergence_simulator.rules import transition

from convergence import errors
from convergence.core.effects import (
    AppendCleanup,
    BeginCancel,
    CountEvent,
    Decision,
    DeleteResource,
    DoubtParents,
    Effect,
    EndTraversal,
    FailNode,
    FinishNode,
    InsertEvents,
    InsertResources,
    InsertStack,
    InsertTemplate,
    InsertTraversal,
    NoteInService,
    PointNode,
    PurgeTemplates,
    StallTraversal,
    UpdateResource,
    UpdateResources,
    UpdateStack,
)
from convergence.core.model import Action, Handover, Hook, NodeStatus, Phase, Status, TraversalStatus
from convergence.core.nesting import is_doubted
from convergence.core.rows import Acceptance, Retry
from convergence.db.scopes import LastNode, NewStack
from convergence.db.statements.applying import apply
from convergence.db.statements.applying.changing import BeginNode
from tests.contract.rows import DEFINITION, EVENT, FREE, NODES, OUTPUT, RESOURCE, STACK, TEMPLATE, TRAVERSAL, node

# --- who knows an effect ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'knows',
    [{*apply.UNBATCHED, *apply.BATCHED, *apply.WITH_EVENT} - {BeginNode}, effects.APPLIERS, transition._READERS],
    ids=['sql', 'memory', 'invariants'],
)
def test_every_effect_is_known(knows):
    assert set(get_args(Effect)) == set(knows)


# --- rows in, rows out ------------------------------------------------------------------------------------------


def test_every_row_comes_back_as_it_was_written(backend):
    backend.fill(resources=(RESOURCE,))
    backend.write(InsertEvents((EVENT,)))
    assert backend.reader.stack('S') == STACK
    assert backend.reader.template('T1') == TEMPLATE
    assert backend.reader.traversal('V') == TRAVERSAL
    assert tuple(backend.reader.nodes('V')) == NODES
    assert backend.reader.resources('S') == [RESOURCE]
    (event,) = backend.reader.events('S')
    assert replace(event, sequence=None) == EVENT


LONG = {
    'a megabyte': 'x' * 1_000_000,
    'four bytes a character': '\U0001f40d' * 1000,
    'characters with a meaning elsewhere': '\'"\\%:_`\n\t{}[]$' * 10,
    'nothing': '',
}


@pytest.mark.parametrize('text', LONG.values(), ids=LONG)
def test_texts_come_back_whatever_is_in_them(backend, text):
    """F026, F136."""
    written = replace(
        RESOURCE,
        status_reason=text,
        physical_id=text,
        properties={text[:100]: [text]},
        data={'x': text},
        output=replace(OUTPUT, attributes={'x': text}),
        progress={'x': text},
    )
    stack = replace(STACK, status_reason=text, tags=(text[:80],))
    backend.fill(resources=(written,), stack=stack, traversal=replace(TRAVERSAL, reason=text))
    backend.write(InsertEvents((replace(EVENT, reason=text),)))
    assert backend.resource() == written
    assert backend.reader.stack('S') == stack
    assert backend.reader.traversal('V').reason == text
    assert backend.reader.events('S')[0].reason == text


def test_names_differ_by_case_and_accent_and_may_be_long(backend):
    """Four bytes a character, too."""
    names = ['r', 'R', 'é', 'e', '\U0001f40d' * 255, ' r']
    rows = tuple(replace(FREE, id=str(index), name=name) for index, name in enumerate(names))
    backend.fill(resources=rows)
    assert {row.name for row in backend.reader.resources('S')} == set(names)
    backend.write(InsertStack(replace(STACK, id='S2', name='STACK')))


def test_events_keep_their_order(backend):
    backend.write(InsertEvents(tuple(replace(EVENT, id=f'{number}', at=1.0) for number in (3, 1, 2))))
    backend.write(InsertEvents((replace(EVENT, id='0', at=0.0),)))
    assert [event.id for event in backend.reader.events('S')] == ['3', '1', '2', '0']


def test_a_large_plan_is_stored_whole(backend):
    """Thousands of nodes and rows; the first has thousands of successors."""
    count = 3000
    nodes = (node(0, required_by=tuple(range(1, count))), *(node(number, 1) for number in range(1, count)))
    rows = tuple(replace(FREE, id=f'{number:05}', name=f'n{number}') for number in range(count))
    backend.fill(nodes=nodes, resources=rows)
    assert len(backend.reader.nodes('V')) == len(backend.reader.resources('S')) == count
    backend.write(UpdateResources(tuple(row.id for row in rows), {'template_id': 'T9'}))
    assert {row.template_id for row in backend.reader.resources('S')} == {'T9'}


# --- stacks -----------------------------------------------------------------------------------------------------


def test_a_name_is_taken_while_its_stack_lives(backend):
    """F135: in its project, until it is deleted."""
    backend.write(InsertStack(STACK))
    with pytest.raises(errors.StackExists, match='stack'):
        backend.write(InsertStack(replace(STACK, id='S2')))
    backend.write(InsertStack(replace(STACK, id='S3', project_id='other')))
    backend.write(UpdateStack('S', 'V', {'deleted_at': 9.5}))
    backend.write(InsertStack(replace(STACK, id='S4')))
    assert backend.reader.stack_named('p', 'stack').id == 'S4'
    assert backend.reader.stack('S').deleted_at == 9.5


def test_a_stack_is_changed_only_under_the_traversal_that_was_read(backend):
    """F042, F050: and only the columns named."""
    backend.write(InsertStack(STACK))
    with pytest.raises(errors.Conflict):
        backend.write(UpdateStack('S', 'V0', {'status': Status.FAILED}))
    with pytest.raises(errors.Conflict):
        backend.write(UpdateStack('S', None, {'status': Status.FAILED}))
    with pytest.raises(errors.Conflict):
        backend.write(UpdateStack('NO', 'V', {'status': Status.FAILED}))
    changes = {'status': Status.COMPLETE, 'traversal_id': 'V2', 'tags': (), 'status_reason': 'new'}
    backend.write(UpdateStack('S', 'V', changes))
    assert backend.reader.stack('S') == replace(STACK, **changes)


def test_a_stack_without_a_traversal_is_changed_only_while_it_has_none(backend):
    backend.write(InsertStack(replace(STACK, traversal_id=None)))
    with pytest.raises(errors.Conflict):
        backend.write(UpdateStack('S', 'V', {'traversal_id': 'V2'}))
    backend.write(UpdateStack('S', None, {'traversal_id': 'V2'}))
    assert backend.reader.stack('S').traversal_id == 'V2'


def test_templates_that_nobody_refers_to_are_purged(backend):
    """F141: of this stack only."""
    for key, stack in (('T0', 'S'), ('T1', 'S'), ('T2', 'S'), ('T3', 'OTHER')):
        backend.write(InsertTemplate(replace(TEMPLATE, id=key, stack_id=stack)))
    backend.write(PurgeTemplates('S', ('T1', 'T2')))
    assert [key for key in ('T0', 'T1', 'T2', 'T3') if backend.reader.template(key)] == ['T1', 'T2', 'T3']
    backend.write(PurgeTemplates('S', ()))
    assert [key for key in ('T1', 'T2', 'T3') if backend.reader.template(key)] == ['T3']


def test_the_template_that_rows_still_name_is_kept_with_the_one_that_took_its_place(backend):
    for key, alike in (('T1', None), ('T2', 'T0'), ('T0', None)):
        backend.write(InsertTemplate(replace(TEMPLATE, id=key, equivalent_template_id=alike)))
    backend.write(PurgeTemplates('S', ('T2',)))
    assert [key for key in ('T0', 'T1', 'T2') if backend.reader.template(key)] == ['T0', 'T2']
    assert backend.reader.template('T2').equivalent_template_id == 'T0'


# --- traversals -------------------------------------------------------------------------------------------------


def test_of_two_ends_of_a_traversal_the_first_counts(backend):
    """F044b: the second is no error, it just does not happen."""
    backend.fill()
    backend.write(EndTraversal('V', TraversalStatus.FAILED, 9.5, 'first', Phase.UPDATE))
    backend.write(EndTraversal('V', TraversalStatus.COMPLETE, 10.5, 'second'))
    ended = backend.reader.traversal('V')
    assert (ended.status, ended.reason, ended.finished_at, ended.failed_phase) == (
        TraversalStatus.FAILED,
        'first',
        9.5,
        Phase.UPDATE,
    )
    backend.write(EndTraversal('V', TraversalStatus.CANCELLED, 11.5, 'third', expected=TraversalStatus.FAILED))
    assert backend.reader.traversal('V').status is TraversalStatus.CANCELLED


def test_of_all_rows_of_a_stack_those_of_older_templates_are_left_over(backend):
    """Asked of the node that says that everything wanted is up, and of no other."""
    rows = [
        replace(FREE, id=f'R{name}', name=name, template_id=of) for name, of in (('a', 'T1'), ('b', 'T0'), ('c', None))
    ]
    backend.fill(resources=tuple(rows))
    backend.write(FinishNode('V', 0, (2, 3)), NoteInService('V', 9.5))
    assert backend.reader.traversal('V').in_service_at == 9.5
    for number, each in enumerate(backend.reader.nodes('V')):
        if each.phase in (Phase.IN_SERVICE, Phase.COMPLETE):
            view = backend.look(LastNode('V', number))
            assert view.leftovers == (('b', 'c') if each.phase is Phase.IN_SERVICE else ())
    backend.write(PurgeTemplates('S', ()), InsertTemplate(replace(TEMPLATE, id='T1', equivalent_template_id='T0')))
    assert backend.look(LastNode('V', 3)).leftovers == ('c',)
    changed = replace(TEMPLATE, id='T1', equivalent_template_id='T0', changed_names=('a', 'b', 'x'))
    backend.write(PurgeTemplates('S', ()), InsertTemplate(changed))
    assert backend.look(LastNode('V', 3)).leftovers == ('b', 'c')
    assert backend.reader.template('T1') == changed


# --- resources --------------------------------------------------------------------------------------------------

WRONG_GUARDS = [(None, 7), ('W', 6), ('W', 8), ('X', 7), ('', 7)]


@pytest.mark.parametrize(('owner', 'fence'), WRONG_GUARDS)
def test_a_held_row_is_written_only_by_its_owner_under_its_fence(backend, owner, fence):
    """I2, F021."""
    backend.fill(resources=(RESOURCE,))
    for effect in (UpdateResource('R', owner, fence, {'physical_id': 'x'}), DeleteResource('R', owner, fence)):
        with pytest.raises(errors.Conflict):
            backend.write(effect)
    assert backend.resource() == RESOURCE


@pytest.mark.parametrize(('owner', 'fence'), [('W', 1), (None, 0), (None, 2), ('', 1)])
def test_a_free_row_is_written_only_while_it_is_free_and_as_it_was_read(backend, owner, fence):
    """F031."""
    backend.fill()
    for effect in (UpdateResource('R', owner, fence, {'physical_id': 'x'}), DeleteResource('R', owner, fence)):
        with pytest.raises(errors.Conflict):
            backend.write(effect)
    assert backend.resource() == FREE


def test_a_row_that_is_gone_is_a_conflict(backend):
    """F037."""
    backend.fill()
    for effect in (UpdateResource('NO', None, 1, {'fence': 2}), DeleteResource('NO', None, 1)):
        with pytest.raises(errors.Conflict):
            backend.write(effect)


def test_what_is_doubted_while_it_is_under_way_stays_so(backend):
    """Whoever stores the result has not seen it. Where nothing is under way, the digest is forgotten at once."""
    backend.fill(resources=(replace(FREE, digest='d', status=Status.COMPLETE),))
    backend.write(DoubtParents('R'))
    assert backend.resource().digest is None
    backend.write(UpdateResource('R', None, FREE.fence, {'owner': 'W', 'fence': 9}))
    backend.write(DoubtParents('R'))
    assert is_doubted(backend.resource())
    backend.write(UpdateResource('R', 'W', 9, {'owner': None, 'digest': 'new', 'clearing': True}))
    assert (backend.resource().digest, backend.resource().clearing) == (None, True)
    backend.write(UpdateResource('R', None, 9, {'digest': 'new'}))
    assert backend.resource().digest == 'new'


def test_every_column_of_a_row_can_be_changed_and_others_stay(backend):
    backend.fill(resources=(RESOURCE,))
    changes = {
        'action': Action.DELETE,
        'status': Status.FAILED,
        'status_reason': 'n',
        'physical_id': None,
        'definition': replace(DEFINITION, type='New'),
        'properties': {},
        'pending': None,
        'data': {},
        'output': None,
        'digest': None,
        'requires': (),
        'replaced_by': None,
        'template_id': None,
        'owner': None,
        'fence': 8,
        'token': None,
        'progress': None,
        'wake_at': None,
        'updated_at': 1e9,
        'began_at': 2e9,
        'search_until': 3e9,
        'traversal_id': 'V9',
        'retry': Retry(3, 'quota', clean=True),
        'deadline': 4e9,
        'crash_count': 2,
        'event_count': 5,
        'polled_event_count': 4,
        'hook': Hook.PRE_UPDATE,
        'hook_traversal_id': 'V9',
        'cleared': Hook.PRE_DELETE,
        'cleared_traversal_id': 'V8',
        'nothing_made': True,
        'clearing': True,
        'repairable': True,
        'accepted': Acceptance({'p': 1}, {'p': 2}),
        'handover': Handover.RELEASED,
    }
    present = RESOURCE
    for name, value in changes.items():
        backend.write(UpdateResource('R', present.owner, present.fence, {name: value}))
        present = replace(present, **{name: value})
        assert backend.resource() == present
    assert {field.name for field in fields(present)} - set(changes) == {
        'id',
        'stack_id',
        'name',
        'type',
        'created_at',
        'replaces',
        'damaged',  # no column: what could not be read
        'revocation',  # counted by an effect of its own
    }
    backend.write(DeleteResource('R', None, 8))
    assert backend.resource() is None


# --- nodes ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=['alone', 'with an event'])
def finish(request, backend):
    """Finishes a node; with the event that tells why, which some servers store by the same statement."""
    ids = itertools.count()

    def write(*arguments, **options):
        told = [InsertEvents((replace(EVENT, id=f'E{next(ids)}'),))] if request.param else []
        before = len(backend.reader.events('S'))
        try:
            return backend.write(*told, FinishNode(*arguments, **options))
        except errors.Conflict:
            told = []
            raise
        finally:
            assert len(backend.reader.events('S')) == before + len(told)

    return write


def test_a_finished_node_counts_once_for_each_successor(backend, finish):
    """I4: the last of the predecessors makes it ready, and it is answered just then."""
    backend.fill()
    first = finish('V', 0, (2, 3), OUTPUT)
    assert (backend.node(0).status, backend.node(0).output) == (NodeStatus.DONE, OUTPUT)
    assert (backend.node(2).waiting, backend.node(2).status) == (1, NodeStatus.WAITING)
    assert (first.cast, first.last) == ((), (('V', 3),))
    second = finish('V', 1, (2,))
    assert (backend.node(2).waiting, backend.node(2).status) == (0, NodeStatus.READY)
    assert (second.cast, second.last) == ((('V', 2),), ())


@pytest.mark.parametrize('number', [2, 7])
def test_a_node_that_is_not_ready_cannot_be_finished(backend, finish, number):
    backend.fill()
    with pytest.raises(errors.Conflict):
        finish('V', number, (4,))
    assert backend.node(4).waiting == 2


def test_a_node_is_finished_once(backend, finish):
    """F017, F044b."""
    backend.fill()
    finish('V', 0, (2,))
    with pytest.raises(errors.Conflict):
        finish('V', 0, (2,))
    with pytest.raises(errors.Conflict):
        backend.write(PointNode('V', 0, 'X'))
    backend.write(FailNode('V', 0))
    assert (backend.node(0).status, backend.node(2).waiting) == (NodeStatus.DONE, 1)


def test_a_failed_node_stays_failed(backend):
    backend.fill()
    backend.write(FailNode('V', 0))
    with pytest.raises(errors.Conflict):
        backend.write(FinishNode('V', 0, (2,)))
    backend.write(FailNode('V', 2))
    assert [backend.node(number).status for number in (0, 2)] == [NodeStatus.FAILED, NodeStatus.WAITING]


def test_a_node_points_to_another_row(backend):
    backend.fill()
    backend.write(PointNode('V', 0, 'NEW'))
    assert backend.node(0).resource_id == 'NEW'
    with pytest.raises(errors.Conflict):
        backend.write(PointNode('V', 2, 'NEW'))


def test_successors_beyond_the_window_are_chained(backend, finish):
    """All become ready; so many are answered, each of which wakes the one that many places after it."""
    nodes = (node(0, required_by=tuple(range(1, 8))), *(node(number, 1) for number in range(1, 8)))
    backend.fill(nodes=nodes)
    done = finish('V', 0, tuple(range(1, 8)), window=3)
    assert done.cast == (('V', 1), ('V', 2), ('V', 3))
    assert [backend.node(number).next_in_backlog for number in range(1, 8)] == [4, 5, 6, 7, None, None, None]
    assert {backend.node(number).status for number in range(1, 8)} == {NodeStatus.READY}


def test_a_node_that_is_not_as_was_assumed_is_not_finished(backend, finish):
    """What was read when the action began counts only for as long as it is so."""
    backend.fill()
    for number, followers, behind in ((0, (2,), None), (0, (2, 3), 1)):
        with pytest.raises(errors.Conflict):
            finish('V', number, followers, next_in_backlog=behind, checked=True)
    assert [backend.node(number).waiting for number in (2, 3)] == [2, 1]
    assert finish('V', 0, (2, 3), checked=True).last == (('V', 3),)
    backend.write(EndTraversal('V', TraversalStatus.FAILED, 9.5, 'broken'))
    with pytest.raises(errors.Conflict):
        finish('V', 1, (2,), checked=True)


def test_a_node_that_nobody_requires_is_finished(backend, finish):
    backend.fill()
    assert finish('V', 1, ()).cast == ()
    assert backend.node(1).status is NodeStatus.DONE


def test_ten_thousand_successors_arrive_at_once(backend, finish):
    """F143."""
    count = 10_000
    nodes = (node(0, required_by=tuple(range(1, count))), *(node(number, 1 + number % 2) for number in range(1, count)))
    backend.fill(nodes=nodes)
    done = finish('V', 0, tuple(range(1, count)), window=20_000)
    assert len(done.cast) == count // 2 - 1
    assert sum(each.status is NodeStatus.READY for each in backend.reader.nodes('V')) == count // 2 - 1


def test_a_late_cleanup_waits_until_its_turn_comes_and_the_end_waits_for_it(backend):
    backend.fill()
    late = node(5, 1, (4,), phase=Phase.CLEANUP)
    backend.write(AppendCleanup(late, before=4))
    assert backend.node(4).waiting == 3
    assert backend.node(5) == late
    assert backend.reader.traversal('V').node_count == 6
    assert backend.write(FinishNode('V', 0, (2, 3, 5))).cast == (('V', 5),)


def test_a_late_cleanup_holds_up_a_node_that_waits_and_none_that_is_ready(backend):
    """What says that everything wanted is in service is shown those that wait."""
    backend.fill()
    backend.write(AppendCleanup(node(5, required_by=(4,), phase=Phase.CLEANUP), before=4, holds_up=3))
    assert (backend.node(3).waiting, backend.node(5).required_by) == (NODES[3].waiting + 1, (3, 4))
    backend.write(AppendCleanup(node(6, required_by=(4,), phase=Phase.CLEANUP), before=4, holds_up=0))
    assert (backend.node(0).waiting, backend.node(6).required_by) == (0, (4,))
    backend.write(AppendCleanup(node(7, 1, (4,), phase=Phase.CLEANUP), before=4))
    assert backend.look(LastNode('V', 3)).late == (7,)


def test_a_late_cleanup_comes_before_those_of_what_its_row_was_built_on_while_they_wait(backend):
    """Those that are ready may have begun."""
    cleanups = tuple(
        node(number, waiting, (9,), phase=Phase.CLEANUP, resource_id=row)
        for number, waiting, row in ((5, 2, 'A'), (6, 1, 'B'), (7, 0, 'C'), (8, 1, 'D'))
    )
    update = node(4, 1, (9,), resource_id='A')
    last = node(9, 6, phase=Phase.COMPLETE, name=None, resource_id=None)
    backend.fill(traversal=replace(TRAVERSAL, node_count=10), nodes=(*NODES[:4], update, *cleanups, last))
    late = node(10, required_by=(9,), phase=Phase.CLEANUP, resource_id='LATE')
    backend.write(AppendCleanup(late, before=9, rows_after=('C', 'B', 'A', 'NO')))
    assert [backend.node(number).waiting for number in range(4, 10)] == [1, 3, 2, 0, 1, 7]
    assert backend.node(10) == replace(late, required_by=(5, 6, 9))
    done = backend.write(FinishNode('V', 10, (5, 6, 9)))
    assert [backend.node(number).waiting for number in (5, 6, 9)] == [2, 1, 6]
    assert done.cast == ()


def test_a_cleanup_that_is_too_late_is_a_conflict(backend):
    backend.fill(nodes=(*NODES[:4], replace(NODES[4], status=NodeStatus.DONE, waiting=0)))
    with pytest.raises(errors.Conflict):
        backend.write(AppendCleanup(node(5, 1, (4,), phase=Phase.CLEANUP), before=4))
    assert backend.node(0).required_by == (2, 3)
    assert len(backend.reader.nodes('V')) == 5


def test_a_late_cleanup_whose_number_another_one_has_got_is_a_conflict(backend):
    """In a cluster the lock of the stack keeps nobody out on another server, who counts to the same number."""
    backend.fill()
    first = node(5, 1, (4,), phase=Phase.CLEANUP, resource_id='A')
    backend.write(AppendCleanup(first, before=4))
    with pytest.raises(errors.Conflict):
        backend.write(AppendCleanup(node(5, 1, (4,), phase=Phase.CLEANUP, resource_id='B'), before=4))
    assert backend.node(5) == first
    assert backend.node(4).waiting == NODES[4].waiting + 1


# --- all or nothing ---------------------------------------------------------------------------------------------

GOOD = {
    'stack': InsertStack(replace(STACK, id='S9', name='nine')),
    'change of the stack': UpdateStack('S', 'V', {'status_reason': 'changed'}),
    'template': InsertTemplate(replace(TEMPLATE, id='T9')),
    'purge': PurgeTemplates('S', ()),
    'traversal': InsertTraversal(replace(TRAVERSAL, id='V9'), (replace(NODES[0], traversal_id='V9'),)),
    'end': EndTraversal('V', TraversalStatus.FAILED, 9.5),
    'cancel': BeginCancel('V', 9.5),
    'stall': StallTraversal('V', 9.5),
    'in service': NoteInService('V', 9.5),
    'event': CountEvent('R'),
    'rows': InsertResources((replace(FREE, id='R9'),)),
    'change of a row': UpdateResource('R', None, 1, {'owner': 'W'}),
    'change of rows': UpdateResources(('R',), {'template_id': 'T9'}),
    'removal': DeleteResource('R', None, 1),
    'finished node': FinishNode('V', 0, (2, 3), OUTPUT),
    'failed node': FailNode('V', 0),
    'pointer': PointNode('V', 0, 'X'),
    'late cleanup': AppendCleanup(node(5, 1, (4,), phase=Phase.CLEANUP), before=4),
    'events': InsertEvents((EVENT,)),
}


@pytest.mark.parametrize('effect', GOOD.values(), ids=GOOD)
def test_what_came_before_a_conflict_did_not_happen(backend, effect):
    """F030, F138: each effect, followed by one whose guard does not hold."""
    backend.fill()
    before = backend.everything()
    with pytest.raises(errors.Conflict):
        backend.write(effect, UpdateResource('NO', None, 1, {'fence': 2}))
    assert backend.everything() == before
    assert (backend.reader.stack('S9'), backend.reader.template('T9'), backend.reader.traversal('V9')) == (None,) * 3
    backend.write(effect)
    after = backend.everything(), backend.reader.stack('S9'), backend.reader.template('T9'), backend.reader.nodes('V9')
    assert after != (before, None, None, [])


def test_an_error_of_the_decision_comes_through_and_leaves_nothing(backend):
    """F034."""

    class Refused(Exception):
        pass

    def refuse(view):
        raise Refused

    with pytest.raises(Refused):
        backend.store.transact(NewStack('p'), refuse)
    backend.fill()


def test_a_conflict_is_decided_again_on_what_is_there_then(backend):
    """A decision may be asked several times; each time it sees the present."""
    backend.fill()
    seen = []

    def decide(view):
        seen.append(view.now)
        fence = 1 if len(seen) > 2 else 99
        return Decision(len(seen), (UpdateResource('R', None, fence, {'status_reason': 'late'}),))

    assert backend.store.transact(NewStack('p'), decide).verdict == 3
    assert seen == sorted(seen)
    assert backend.resource().status_reason == 'late'


def test_a_decision_without_effects_writes_nothing_and_wakes(backend):
    backend.fill()
    done = backend.write(wake=[('V', 0), ('V', 1)])
    assert (done.verdict, done.cast, done.last) == ('verdict', (('V', 0), ('V', 1)), ())
    done = backend.write(FinishNode('V', 1, ()), wake=[('V', 0)])
    assert done.cast == (('V', 0),)
