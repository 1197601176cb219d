"""Signals and hooks, on every store: what is seen, what is written, and that holders are left alone."""

from dataclasses import replace

from convergence.core.effects import ClearHook, CountEvent, DeleteResource, InsertSignal, RevokeAddresses, UpdateStack
from convergence.core.model import Hook, NodeStatus
from convergence.core.rows import ReceivedSignal
from convergence.db.scopes import SignalledResource
from tests.contract.rows import FREE, NODES, RESOURCE, STACK, TRAVERSAL

OLD = -1e6
PAUSED = replace(FREE, hook=Hook.PRE_UPDATE, hook_traversal_id='V')


def signal(number, resource_id='R', details=None):
    return ReceivedSignal(f'I{number}', 'S', resource_id, 8.5, details)


def test_a_signal_sees_the_row_and_what_is_built_on_it_and_is_not_done(backend):
    """Node 2 requires node 0 and waits; node 3 is no resource's."""
    rows = (RESOURCE, replace(FREE, id='Q', name='q'), replace(FREE, id='Z', name='z'))
    backend.fill(resources=rows)
    view = backend.look(SignalledResource('S', 'R'))
    assert (view.stack, view.traversal, view.resource) == (STACK, TRAVERSAL, RESOURCE)
    assert (view.dependents, view.ready) == (('Z',), (('V', 0, 'R'),))
    done = replace(NODES[2], status=NodeStatus.DONE, waiting=0)
    backend.fill_more(
        replace(TRAVERSAL, id='V2'),
        tuple(
            replace(each, traversal_id='V2')
            for each in (replace(NODES[0], status=NodeStatus.DONE), NODES[1], done, NODES[3], NODES[4])
        ),
    )
    backend.write(UpdateStack('S', 'V', {'traversal_id': 'V2'}))
    view = backend.look(SignalledResource('S', 'R'))
    assert (view.dependents, view.ready) == ((), ())


def test_a_row_that_is_gone_can_be_looked_at(backend):
    backend.fill()
    assert backend.look(SignalledResource('S', 'NO')).resource is None
    assert backend.look(SignalledResource('NO', 'R')) is None


def test_signals_keep_their_order_and_change_nothing_of_a_held_row(backend):
    backend.fill(resources=(RESOURCE, replace(FREE, id='Z', name='z')))
    for number, details in enumerate((None, {'a': [1]}, 'text')):
        backend.write(InsertSignal(signal(number, details=details)), CountEvent('R'))
    backend.write(InsertSignal(signal(9, 'Z')))
    assert backend.resource() == replace(RESOURCE, event_count=RESOURCE.event_count + 3)
    found = backend.reader.signals(['R', 'Z', 'NO'])
    assert [(name, each.id, each.details) for name, each in found] == [
        ('r', 'I0', None),
        ('r', 'I1', {'a': [1]}),
        ('r', 'I2', 'text'),
        ('z', 'I9', None),
    ]
    assert [each.id for _, each in backend.reader.signals(['Z'])] == ['I9']


def test_what_a_row_has_received_is_counted_without_being_read(backend):
    backend.fill(resources=(RESOURCE, replace(FREE, id='Z', name='z')))
    assert backend.look(SignalledResource('S', 'R')).received_bytes == 0
    backend.write(InsertSignal(signal(1)), InsertSignal(signal(2, 'Z', 'x' * 100)))
    assert backend.look(SignalledResource('S', 'R')).received_bytes == 0
    assert backend.look(SignalledResource('S', 'Z')).received_bytes >= 100
    assert backend.reader.has_signal('R', 'I1')
    assert not backend.reader.has_signal('R', 'I2')


def test_revoking_writes_its_mark_and_nothing_else(backend):
    backend.fill(resources=(RESOURCE,))
    backend.write(RevokeAddresses('R', 'by chance'))
    assert backend.resource() == replace(RESOURCE, revocation='by chance')


def test_signals_go_with_their_row(backend):
    backend.fill(resources=(FREE, replace(FREE, id='Z', name='z')))
    backend.write(InsertSignal(signal(1)), InsertSignal(signal(2, 'Z')))
    backend.write(DeleteResource('R', None, FREE.fence))
    assert [each.id for _, each in backend.reader.signals(['R', 'Z'])] == ['I2']


def test_a_hook_is_cleared_without_touching_whoever_holds_the_row(backend):
    backend.fill(resources=(RESOURCE,))
    backend.write(ClearHook('R', Hook.POST_UPDATE, 'V'))
    assert backend.resource() == replace(RESOURCE, cleared=Hook.POST_UPDATE, cleared_traversal_id='V')
    backend.write(ClearHook('NO', Hook.POST_UPDATE, 'V'))


def test_a_paused_row_needs_nobody_until_its_hook_is_cleared_or_another_traversal_comes(backend):
    backend.fill(resources=(PAUSED,), nodes=(NODES[0],))
    assert backend.sweeps.undispatched(OLD, 10) == []
    if backend.kind != 'memory':  # nobody counts there
        assert backend.reader.frontier_counts('V').parked == 1
    assert [node.hook for node in backend.reader.frontier('V', 10)] == [Hook.PRE_UPDATE]
    backend.write(ClearHook('R', Hook.PRE_DELETE, 'V'))
    assert backend.sweeps.undispatched(OLD, 10) == []
    backend.write(ClearHook('R', Hook.PRE_UPDATE, 'V0'))
    assert backend.sweeps.undispatched(OLD, 10) == []
    backend.write(ClearHook('R', Hook.PRE_UPDATE, 'V'))
    assert [each.number for each in backend.sweeps.undispatched(OLD, 10)] == [0]
    assert [node.hook for node in backend.reader.frontier('V', 10)] == [None]


def test_a_pause_for_an_older_traversal_holds_nobody_back(backend):
    backend.fill(resources=(replace(PAUSED, hook_traversal_id='V0'),), nodes=(NODES[0],))
    assert [each.number for each in backend.sweeps.undispatched(OLD, 10)] == [0]
