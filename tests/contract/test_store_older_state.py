"""A database that answers from an older state than the one that a message speaks of. Real SQL throughout."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from convergence import concurrency
from convergence.core.effects import Decision
from convergence.db.connections.database import GALERA
from convergence.db.repositories.roster import Roster
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.scopes import HeldResource, WholeStack
from convergence.db.statements.store import Store
from convergence.engine.sweeper.tasks import SweepOptions, SweepTasks
from convergence.errors import Conflict
from tests.harness import Harness

TWO = {'a': 'x', 'b': {'value': 'x', 'after': ['a']}}
LOOKS = {
    'the row of a node': 'SELECT sync_point.resource_id',
    'the stack of a traversal': 'SELECT traversal.stack_id',
}
"""The locking reads with which a step begins, by a part that no other statement has."""


@contextmanager
def older(engine: Any, part: str, times: int | None = None) -> Iterator[list[str]]:
    """Each statement with this part (or the first ones) finds nothing, as if what it looks for was not replicated yet.

    The statements after it, in the same transaction, see everything.
    """
    seen: list[str] = []

    def look(connection: Any, cursor: Any, text: str, parameters: Any, context: Any, many: bool) -> tuple[str, Any]:
        if part in text and (times is None or len(seen) < times):
            seen.append(text)
            text = text.replace('WHERE', 'WHERE 1 = 0 AND', 1)
        return text, parameters

    event.listen(engine, 'before_cursor_execute', look, retval=True)
    try:
        yield seen
    finally:
        event.remove(engine, 'before_cursor_execute', look)


def test_an_object_is_deleted_although_its_row_is_not_seen_at_first(engine: Any) -> None:
    """Not seen is not gone: a delete must not end while objects and rows stay."""
    harness = Harness(engine)
    stack = harness.created(TWO)
    harness.delete(stack)
    with older(engine, LOOKS['the row of a node']) as seen:
        harness.run()
    assert len(seen) >= 2
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_what_a_replacement_has_left_is_removed_although_its_row_is_not_seen_at_first(engine: Any) -> None:
    harness = Harness(engine)
    stack = harness.created({'a': {'value': 'x', 'key': '1'}})
    harness.update(stack, {'a': {'value': 'x', 'key': '2'}})
    with older(engine, LOOKS['the row of a node']):
        harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'UPDATE_COMPLETE')


def test_a_stack_is_created_although_the_rows_of_its_nodes_are_not_seen_at_first(engine: Any) -> None:
    harness = Harness(engine)
    stack = harness.create(TWO)
    with older(engine, LOOKS['the row of a node']):
        harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'CREATE_COMPLETE')


def test_a_last_node_is_not_finished_without_the_lock_on_its_stack(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The stack was not seen when it was to be locked; the transaction is begun again."""
    harness = Harness(engine)
    harness.store._patience_s = 0.0
    stack = harness.create({'a': 'x'})
    with caplog.at_level('INFO'), older(engine, LOOKS['the stack of a traversal']) as seen:
        harness.run()
    assert seen
    assert 'was not there when it was to be locked' in caplog.text
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    harness.recover()
    harness.assert_converged(stack, {'a': 'x'}, 'CREATE_COMPLETE')


def test_nothing_is_decided_by_a_row_that_is_older_than_its_holder_knows_it(engine: Any) -> None:
    """Else a worker would take its own claim for somebody else's, and drop the result."""
    harness = Harness(engine)
    stack = harness.created({'a': 'x'})
    row = harness.row(stack, 'a')
    harness.store._patience_s = 0.0
    decided: list[object] = []

    def decide(view: Any) -> Decision[str]:
        decided.append(view)
        return Decision('decided')

    known = harness.store.transact(HeldResource(row.id, fence=row.fence), decide)
    assert known is not None
    with pytest.raises(Conflict, match='older than its holder'):
        harness.store.transact(HeldResource(row.id, fence=row.fence + 1), decide)
    assert len(decided) == 1


def test_a_result_is_stored_although_its_row_is_not_seen_at_first(engine: Any) -> None:
    """The row of a replacement is new, and so is the claim of whoever makes its object."""
    harness = Harness(engine)
    stack = harness.created({'a': 'x'})
    row = harness.row(stack, 'a')
    seen: list[Any] = []

    def look(view: Any) -> Decision[None]:
        seen.append(view.resource)
        return Decision(None)

    with older(engine, 'WHERE resource.id', times=1) as looks:
        harness.store.transact(HeldResource(row.id, fence=row.fence), look)
    assert len(looks) == 1
    assert [each.id for each in seen] == [row.id]


def test_a_plan_writes_the_rows_that_it_locks_where_a_lock_ends_at_its_server(engine: Any) -> None:
    """In a Galera cluster only what both write keeps a claim on another server from passing a plan unseen."""
    harness = Harness(engine)
    stack = harness.created(TWO)
    written: list[str] = []

    def note(connection: Any, cursor: Any, text: str, *rest: Any) -> None:
        if text.startswith(('UPDATE stack SET lock_count', 'UPDATE resource SET lock_count')):
            written.append(text.split()[1])

    event.listen(engine, 'before_cursor_execute', note)
    try:
        harness.store.transact(WholeStack(stack), lambda view: Decision(None))
        assert written == []
        engine.dispose()
        event.listen(engine, 'connect', _as_in_a_cluster)
        harness.store.transact(WholeStack(stack), lambda view: Decision(None))
        assert written == ['stack', 'resource']
    finally:
        event.remove(engine, 'before_cursor_execute', note)
        if event.contains(engine, 'connect', _as_in_a_cluster):
            event.remove(engine, 'connect', _as_in_a_cluster)
        engine.dispose()


def _as_in_a_cluster(connection: Any, record: Any) -> None:
    record.info[GALERA] = True


# --- conflicts ------------------------------------------------------------------------------------------------


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What would be waited, in seconds; nothing is."""
    made: list[float] = []
    monkeypatch.setattr(concurrency, 'sleep', made.append)
    return made


class Conflicts:
    """The first commits are refused, as by a cluster that certifies them."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, commit: Any, by: object, verdict: object) -> None:
        if self.left:
            self.left -= 1
            raise Conflict('another transaction was in the way')
        commit()


def test_the_time_ends_repetitions_not_their_number(engine: Any, pauses: list[float]) -> None:
    """Forty conflicts in a row are nothing unusual for the plan of a busy stack on several servers of a cluster."""
    harness = Harness(engine)
    stack = harness.created({'a': 'x'})
    store = Store(engine, around_commit=Conflicts(40))
    seen = store.transact(WholeStack(stack), lambda view: Decision('planned'))
    assert seen is not None
    assert Sweeps(store).take_duty('sweeper', 'E', 5.0)
    assert len(pauses) == 40
    assert sum(pauses) < 30.0


def test_a_conflict_that_remains_ends_after_the_time_that_is_given(engine: Any, pauses: list[float]) -> None:
    store = Store(engine, around_commit=Conflicts(100_000), patience_s=30.0)
    with pytest.raises(Conflict, match='can be repeated'):
        Sweeps(store).take_duty('sweeper', 'E', 5.0)
    assert 30.0 <= sum(pauses) < 31.0


REPEATED = {
    'take duty': lambda store: Sweeps(store).take_duty('sweeper', 'E', 5.0),
    'undispatched': lambda store: Sweeps(store).undispatched(-1.0, 10),
    'beat': lambda store: Roster(store).beat('W'),
    'register': lambda store: Roster(store).register('W', 'worker', 'host', '1', 60.0),
    'leave': lambda store: Roster(store).leave('W'),
    'remove dead': lambda store: Roster(store).remove_dead(),
}


@pytest.mark.parametrize('write', REPEATED.values(), ids=REPEATED)
def test_what_a_sweep_or_a_beat_writes_is_repeated_after_a_conflict(
    engine: Any, pauses: list[float], write: Any, caplog: pytest.LogCaptureFixture
) -> None:
    Roster(Store(engine)).register('W', 'worker', 'host', '1', 60.0)
    conflicts = Conflicts(2)
    write(Store(engine, around_commit=conflicts))
    assert conflicts.left == 0
    assert [record for record in caplog.records if record.levelname in ('WARNING', 'ERROR')] == []


def test_a_process_is_registered_once_although_two_messages_say_so_at_once(server_engine: Any) -> None:
    """Both find no row; the one that comes second must not fail with the words of a driver."""
    ready, ended = concurrency.ThreadEvent(), concurrency.ThreadEvent()
    first = Roster(Store(server_engine))
    problems: list[BaseException] = []

    def second() -> None:
        try:
            ready.set()
            Roster(Store(server_engine)).register('W', 'api', 'host', '2', 60.0)
        except BaseException as error:  # noqa: BLE001 - told to the test
            problems.append(error)
        finally:
            ended.set()

    def between(commit: Any, by: object, verdict: object) -> None:
        concurrency.start_thread('second', second)
        assert ready.wait(30.0)
        assert not ended.wait(0.3)  # it waits for the row that is not committed yet
        commit()

    first._store._around_commit = between
    first.register('W', 'api', 'host', '1', 60.0)
    assert ended.wait(60.0)
    assert problems == []
    assert [(service.id, service.version) for service in Roster(Store(server_engine)).services()] == [('W', '2')]


def test_a_conflict_that_remains_is_no_error_of_a_sweep(
    engine: Any, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """The next sweep does it; nobody has to look at a traceback."""
    harness = Harness(engine)
    stack = harness.create({'a': 'x'})
    harness.messages.checks.clear()
    harness.store._around_commit = Conflicts(100_000)
    harness.store._clock = map(float, itertools.count()).__next__
    with caplog.at_level('INFO'):
        for task in ('wake', 'purge', 'forget'):
            tasks = _tasks(harness)
            assert tasks._survive(task, getattr(tasks, task)) == 0
    assert {record.levelname for record in caplog.records} <= {'INFO', 'DEBUG'}
    assert 'Sweep task wake postponed to the next sweep' in caplog.text
    harness.store._around_commit = None
    harness.recover()
    harness.assert_converged(stack, {'a': 'x'}, 'CREATE_COMPLETE')


def _tasks(harness: Harness) -> SweepTasks:
    return harness.sweep_tasks(SweepOptions(older_than_s=-1.0))
