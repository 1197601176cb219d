"""What every store does with snapshots, and with failures that a traversal goes on after."""

from dataclasses import replace

import pytest

from convergence.core.effects import (
    MAX_LISTED,
    DeleteSnapshots,
    EndTraversal,
    InsertSnapshot,
    KeepItem,
    NoteFailure,
    UpdateResource,
)
from convergence.core.model import Action, Status, TraversalStatus
from convergence.core.rows import Snapshot, SnapshotItem
from tests.contract.rows import FREE

SNAPSHOT = Snapshot('V', 'S', None, Status.IN_PROGRESS, '', 1.5, {'template': {'a': [1]}, 'resources': {}})
OTHER = Snapshot('X', 'T', 'of another stack', Status.COMPLETE, 'done', 2.5)
ITEM = SnapshotItem('V', 'R', 'S', 'r', 'Type', 'phys', {'p': [1]}, {'d': 1})


def snapshots(backend):
    """The snapshots as they are stored, by id."""
    return {each.id: each for stack in 'ST' for each in backend.snapshots.of_stack(stack)}


def items(backend):
    """What is kept for the snapshot."""
    return backend.snapshots.items('V')


def test_snapshots_and_what_is_kept_come_back_as_they_were_written(backend):
    backend.fill()
    backend.write(InsertSnapshot(SNAPSHOT), InsertSnapshot(OTHER), KeepItem(ITEM))
    assert snapshots(backend) == {'V': SNAPSHOT, 'X': OTHER}
    assert items(backend) == [ITEM]
    backend.write(KeepItem(replace(ITEM, kept={'image': 'i'})))
    assert items(backend) == [replace(ITEM, kept={'image': 'i'})]


@pytest.mark.parametrize('status', [TraversalStatus.COMPLETE, TraversalStatus.SUPERSEDED, TraversalStatus.CANCELLED])
def test_a_snapshot_ends_with_its_traversal_once(backend, status):
    backend.fill()
    backend.write(InsertSnapshot(SNAPSHOT), InsertSnapshot(OTHER))
    backend.write(EndTraversal('V', status, 9.0, 'why'))
    backend.write(EndTraversal('V', TraversalStatus.FAILED, 9.5, 'too late'))
    ended = Status.COMPLETE if status is TraversalStatus.COMPLETE else Status.FAILED
    assert snapshots(backend) == {'V': replace(SNAPSHOT, status=ended, status_reason='why'), 'X': OTHER}


def test_one_snapshot_is_deleted_or_all_of_a_stack(backend):
    backend.fill()
    second = replace(SNAPSHOT, id='W')
    backend.write(InsertSnapshot(SNAPSHOT), InsertSnapshot(second), InsertSnapshot(OTHER))
    backend.write(DeleteSnapshots('S', 'W'))
    assert {key for key, each in snapshots(backend).items() if each.deleting} == {'W'}
    backend.write(DeleteSnapshots('S', 'X'))
    backend.write(DeleteSnapshots('S', keeping=('V', 'W')))
    assert {key for key, each in snapshots(backend).items() if each.deleting} == {'W'}
    backend.write(DeleteSnapshots('S'))
    assert {key for key, each in snapshots(backend).items() if each.deleting} == {'V', 'W'}


def test_failures_that_a_traversal_goes_on_after_add_up_to_a_bound(backend):
    backend.fill()
    backend.write(NoteFailure('V', 'a', 'first'))
    backend.write(NoteFailure('V', 'b', 'second'))
    traversal = backend.reader.traversal('V')
    assert (traversal.reason, traversal.failed_name) == ('first; second', 'a')
    assert traversal.status is TraversalStatus.RUNNING
    backend.write(NoteFailure('V', 'c', 'x' * (MAX_LISTED + 1)))
    backend.write(NoteFailure('V', 'd', 'not any more'))
    assert 'not any more' not in backend.reader.traversal('V').reason
    backend.write(EndTraversal('V', TraversalStatus.CANCELLED, 9.0, 'stopped'))
    backend.write(NoteFailure('V', 'e', 'late'))
    assert backend.reader.traversal('V').reason == 'stopped'


# --- only of databases -------------------------------------------------------------------------------------------


@pytest.fixture
def rows(backend):
    """A snapshot that is being deleted, for which something is kept."""
    backend.fill()
    backend.write(InsertSnapshot(replace(SNAPSHOT, status=Status.COMPLETE, deleting=True)), KeepItem(ITEM))
    return backend


def test_what_nobody_wants_is_handed_out_once_and_then_forgotten(rows):
    kept = rows.snapshots
    assert kept.remove_empty() == 0
    assert kept.take_unwanted(10) == [ITEM]
    assert kept.take_unwanted(10) == []
    kept.not_yet(ITEM, 'in use')
    assert (kept.one('V').status, kept.one('V').status_reason) == (Status.FAILED, 'in use')
    kept.forget(ITEM)
    assert kept.remove_empty() == 1
    assert (kept.one('V'), kept.count('S')) == (None, 0)


def test_while_a_worker_may_add_to_it_nothing_is_deleted(rows):
    kept = rows.snapshots
    busy = {'action': Action.SNAPSHOT, 'status': Status.IN_PROGRESS}
    rows.write(UpdateResource(FREE.id, FREE.owner, FREE.fence, busy))
    assert kept.take_unwanted(10) == []
    assert kept.remove_empty() == 0
    rows.write(UpdateResource(FREE.id, FREE.owner, FREE.fence, {'status': Status.COMPLETE}))
    assert kept.take_unwanted(10) == [ITEM]


def test_what_is_wanted_is_left_alone(rows):
    rows.write(InsertSnapshot(OTHER), KeepItem(replace(ITEM, snapshot_id='X')))
    kept = rows.snapshots
    assert [item.snapshot_id for item in kept.take_unwanted(10)] == ['V']
    assert kept.remove_empty() == 0
