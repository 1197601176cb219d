"""A worker that was told to stop: it begins nothing more, by whatever way it comes, and ends when nothing runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from convergence.concurrency import Task
from convergence.core.model import Status
from convergence.core.rows import SnapshotItem
from convergence.db.scopes import OneNode
from convergence.resources.contract import Answer, Call, InProgress, TransientFailure
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.scheduler.constants import MAX_REDELIVERIES
from convergence.worker.scheduler.thread_groups import Check, ThreadGroups
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.wiring import wire_worker
from tests.harness import Harness, things

PATIENCE_S = 60.0
QUICK = PollPolicy(poll_interval_min_s=0.05)


class Gate:
    """Creations that wait until the test lets them through.

    :ivar begun: the names of those that began, in order.
    """

    def __init__(self, harness: Harness) -> None:
        self._reality = harness.reality
        self._open = threading.Event()
        self._changed = threading.Condition()
        self.begun: list[str] = []

    def __call__(self, call: Call[Any]) -> Answer | None:
        """One creation."""
        with self._changed:
            self.begun.append(call.name)
            self._changed.notify_all()
        assert self._open.wait(PATIENCE_S)
        return None

    def wait_for(self, count: int) -> None:
        """Until so many have begun."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, PATIENCE_S)

    def open(self) -> None:
        """Let them through, and all that follow."""
        self._open.set()


@pytest.fixture
def gate(harness: Harness) -> Iterator[Gate]:
    """A gate before the creation of every resource that `tests` name: see `backlog`."""
    gate = Gate(harness)
    yield gate
    gate.open()


def a_worker(harness: Harness, *, threads: int = 2, pace: PollPolicy = QUICK) -> WorkerService:
    """A worker with threads of its own, which looks for work of which nobody told it."""
    options = WorkerOptions('host', '1', pace, threads=threads, unattended_s=-1.0)
    worker = wire_worker(harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id)
    harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
    return worker


def backlog(harness: Harness, gate: Gate, count: int = 6) -> str:
    """A stack of resources that are ready and were told of; its id."""
    names = [f'r{number}' for number in range(count)]
    for name in names:
        harness.reality.always['create', name] = gate
    return harness.create(things(names))


def test_a_worker_with_a_backlog_ends_what_runs_and_begins_nothing_more(harness: Harness, gate: Gate) -> None:
    worker = a_worker(harness)
    stack_id = backlog(harness, gate)
    told = list(harness.messages.checks)
    harness.messages.checks.clear()
    for check in told:
        worker.check_resource(None, *check)
    gate.wait_for(2)

    worker.begin_nothing()
    running = list(gate.begun)
    worker.begin_to_stop(PATIENCE_S)
    assert len(harness.messages.checks) == 4, 'what had not begun is handed on'
    for check in told:
        worker.check_resource(None, *check)
    for _ in range(5):  # more than it takes to find that no message comes any more
        worker.reconcile()
    gate.open()
    assert worker.wait(PATIENCE_S)
    for _ in range(5):
        worker.reconcile()
    assert worker.load()['busy'] == worker.load()['waiting'] == 0
    assert gate.begun == running
    assert harness.roster.held_by(worker.id) == []

    worker.leave()
    harness.run()
    harness.recover()
    harness.assert_converged(stack_id, {f'r{number}': 'x' for number in range(6)}, 'CREATE_COMPLETE')
    assert sorted(gate.begun) == [f'r{number}' for number in range(6)], 'each was made once'


def by_message(harness: Harness, worker: WorkerService) -> None:
    for check in list(harness.messages.checks):
        worker.check_resource(None, *check)


def by_own_hands(harness: Harness, worker: WorkerService) -> None:
    for check in list(harness.messages.checks):
        assert not worker.run_locally(*check)


def by_maintenance(harness: Harness, worker: WorkerService) -> None:
    for _ in range(5):
        worker.reconcile()


def by_timers(harness: Harness, worker: WorkerService) -> None:
    for check in list(harness.messages.checks):
        worker._parts.timers.after(-1.0, lambda check=check: harness.dispatcher.cast([check]))
    worker._parts.timers._call_due()
    by_message(harness, worker)


def by_maintenance_that_had_begun(harness: Harness, worker: WorkerService) -> None:
    """It has looked for work before the worker was told to stop, and takes what it has found after that."""
    for check in list(harness.messages.checks):
        assert not worker._parts.queue.put([Check(*check, MAX_REDELIVERIES)])


WAYS = (by_message, by_own_hands, by_maintenance, by_timers, by_maintenance_that_had_begun)


@pytest.mark.parametrize('leaving', [False, True], ids=['told to stop', 'stopping'])
@pytest.mark.parametrize('way', WAYS)
def test_nothing_begins_by_whatever_way_it_comes(
    harness: Harness, way: Callable[[Harness, WorkerService], None], leaving: bool
) -> None:
    worker = a_worker(harness)
    stack_id = harness.create(things(['a', 'b']))
    worker.begin_nothing()
    if leaving:
        worker.begin_to_stop(0.0)
    way(harness, worker)
    assert worker.wait(PATIENCE_S)
    assert harness.reality.journal == []
    worker.begin_to_stop(0.0)
    worker.leave()
    harness.run()
    harness.assert_converged(stack_id, {'a': 'x', 'b': 'x'}, 'CREATE_COMPLETE')


def test_nobody_is_told_that_an_action_is_not_wanted_by_a_worker_that_was_told_to_stop(harness: Harness) -> None:
    """That is a call of a resource type, too; another worker makes it."""
    harness.reality.once['create', 'r'] = [lambda call: InProgress({'round': 1}, poll_after_s=30.0)]
    stack_id = harness.create({'r': 'x'})
    harness.deliver()
    worker = a_worker(harness)
    harness.cancel(stack_id, rollback=False)
    worker.begin_nothing()
    by_maintenance(harness, worker)
    assert worker.wait(PATIENCE_S)
    assert harness.reality.calls['cancel', 'r'] == 0


def test_nothing_kept_for_a_snapshot_is_deleted_by_a_worker_that_was_told_to_stop(harness: Harness) -> None:
    worker = a_worker(harness)
    item = SnapshotItem('N', 'R', 'S', 'r', 'Test::Kept', 'p', {}, {}, {'copy': 'N/r'})
    task = Task('t')
    worker.begin_nothing()
    worker._parts.snapshot_removal._delete(item, task)
    assert harness.reality.calls['delete_snapshot', 'r'] == 0


def test_a_row_that_is_claimed_while_the_worker_is_told_to_stop_waits_for_another_one(harness: Harness) -> None:
    """Nothing was called: whoever comes next may begin at once, for nothing can have been made."""
    worker = a_worker(harness)
    stack_id = harness.create({'r': 'x'})
    harness.store.after(OneNode, worker.begin_nothing)
    worker.check_resource(None, *harness.messages.checks.pop())
    assert worker.wait(PATIENCE_S)
    assert harness.reality.journal == []
    row = harness.row(stack_id, 'r')
    assert (row.owner, row.status, row.search_until) == (None, Status.IN_PROGRESS, None)

    worker.begin_to_stop(0.0)
    harness.run()
    harness.assert_converged(stack_id, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.order('create') == ['r']
    assert harness.reality.order('find') == [], 'there is nothing to look for'


def test_a_check_whose_thread_starts_after_the_worker_was_told_to_stop_does_not_begin(harness: Harness) -> None:
    """It had left the queue by then."""
    worker = a_worker(harness)
    harness.create({'r': 'x'})
    check = harness.messages.checks.pop()
    worker._parts.queue._draining.set()  # the threads look only at this
    worker.check_resource(None, *check)
    assert worker.wait(PATIENCE_S)
    assert harness.reality.journal == []
    assert harness.messages.checks == [check]


def test_a_call_that_failed_for_the_moment_is_repeated_by_another_worker(harness: Harness) -> None:
    worker = a_worker(harness, pace=PollPolicy(poll_interval_min_s=PATIENCE_S, park_after_s=10 * PATIENCE_S))
    stack_id = harness.create({'r': 'x'})
    failing = threading.Event()

    def busy(call: Call[Any]) -> Answer | None:
        failing.set()
        raise TransientFailure('busy')

    harness.reality.once['create', 'r'] = [busy]
    worker.check_resource(None, *harness.messages.checks.pop())
    assert failing.wait(PATIENCE_S)
    worker.begin_to_stop(PATIENCE_S)
    assert worker.wait(PATIENCE_S)
    assert harness.reality.calls['create', 'r'] == 1
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.order('find') == []


def test_what_ends_while_the_worker_stops_hands_on_what_became_ready_by_it(harness: Harness, gate: Gate) -> None:
    worker = a_worker(harness)
    harness.reality.always['create', 'a'] = gate
    stack_id = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})
    worker.check_resource(None, *harness.messages.checks.pop())
    gate.wait_for(1)
    worker.begin_to_stop(PATIENCE_S)
    gate.open()
    assert worker.wait(PATIENCE_S)
    assert harness.messages.checks == [harness.node(stack_id, 'b')]
    assert harness.reality.order('create') == ['a']


# --- threads ------------------------------------------------------------------------------------------------------


def test_what_was_seen_to_be_idle_after_the_end_was_told_stays_so() -> None:
    """Many tasks that bring others, while the groups are closed: once nothing runs, nothing ever will."""
    groups = ThreadGroups(4, lambda task: None)
    ran: list[int] = []

    def work(number: int) -> Callable[[Task], object]:
        def run(task: Task) -> None:
            ran.append(number)
            for each in (1, 2):
                groups.submit(Check(f'V{each}', number), work(number + each))

        return run

    for number in range(8):
        groups.submit(Check('V', number), work(number))
    while len(ran) < 200:
        threading.Event().wait(0.001)
    groups.close()
    ends = threading.Event()
    for _ in range(int(PATIENCE_S / 0.001)):
        if not groups.occupancy().busy:
            break
        ends.wait(0.001)
    seen = len(ran)
    ends.wait(0.2)
    assert (len(ran), groups.occupancy().busy, groups.occupancy().waiting) == (seen, 0, 0)
    assert not groups.submit(Check('V', 0), work(0))


class Turns:
    """Tasks that run until they are let go, each by the name of its traversal."""

    def __init__(self, threads: int) -> None:
        self.now = 0.0
        self.groups = ThreadGroups(threads, lambda task: None, lambda: self.now)
        self._let = threading.Event()
        self._changed = threading.Condition()
        self._running: list[str] = []
        self._ends: dict[str, int] = {}
        self._is_over = False

    def let_all_go(self) -> None:
        """Nothing more begins, and what runs ends. Nothing is left behind for tests that come later."""
        self.groups.close()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self.assert_running()

    def submit(self, name: str, count: int = 1, project: str = '', *, ahead: bool = False) -> None:
        """So many checks of a traversal."""
        for number in range(count):
            self.groups.submit(Check(name, number, project=project, ahead=ahead), lambda task: self._run(name))

    def _run(self, name: str) -> None:
        with self._changed:
            self._running.append(name)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._is_over or self._ends.get(name, 0) > 0, PATIENCE_S)
            self._ends[name] = self._ends.get(name, 0) - 1
            self._running.remove(name)
            self._changed.notify_all()

    def end(self, name: str, count: int = 1) -> None:
        """Let some tasks of a traversal come to their end."""
        with self._changed:
            self._ends[name] = self._ends.get(name, 0) + count
            self._changed.notify_all()

    def assert_waiting(self, count: int) -> str:
        """So many come to wait, while as many run as there are threads; the name of one that runs."""
        for _ in range(int(PATIENCE_S / 0.01)):
            with self._changed:
                now = self.groups.occupancy()
                if now.waiting == count and len(self._running) == now.threads:
                    return self._running[0]
            threading.Event().wait(0.01)
        raise AssertionError(self.groups.occupancy())

    def assert_running(self, *names: str) -> None:
        """Exactly these come to run."""
        with self._changed:
            assert self._changed.wait_for(lambda: sorted(self._running) == sorted(names), PATIENCE_S), self._running
        for _ in range(int(PATIENCE_S / 0.01)):  # a task is over a moment after it was let go
            if self.groups.occupancy().busy == len(names):
                return
            threading.Event().wait(0.01)
        raise AssertionError(self.groups.occupancy())


def test_what_goes_ahead_gets_the_next_thread_and_no_more_than_that() -> None:
    """A nested stack that has just begun goes ahead of stacks that wait as it does, and not of other projects."""
    turns = Turns(1)
    turns.submit('running', project='p')
    turns.assert_running('running')
    turns.submit('waiting', project='p')
    turns.submit('nested', 2, 'p', ahead=True)
    turns.end('running')
    turns.assert_running('nested')
    turns.end('nested')
    turns.assert_running('waiting')
    turns.end('waiting')
    turns.assert_running('nested')
    turns.let_all_go()


def test_a_thread_that_comes_free_goes_to_the_project_that_has_the_fewest() -> None:
    """However many stacks another one has: a small stack begins with the next thread, and gets half of them."""
    turns = Turns(4)
    for number in range(50):
        turns.submit(f'A{number:02}', 4, 'giant')
    turns.submit('B', 3, 'small')
    turns.assert_running('A00', 'A00', 'A00', 'A00')
    turns.end('A00', 2)
    turns.assert_running('A00', 'A00', 'B', 'B')
    turns.end('A00')
    turns.assert_running('A00', 'A01', 'B', 'B')
    turns.end('B', 2)
    turns.assert_running('A00', 'A01', 'A02', 'B')
    turns.let_all_go()


@pytest.mark.parametrize('ahead', [False, True])
def test_who_comes_next_is_found_without_a_look_at_all_that_waits(monkeypatch: pytest.MonkeyPatch, ahead: bool) -> None:
    """Of a tree of thousands of stacks hundreds wait at a time: to look at all of them took a twentieth of a worker."""
    looked: list[str] = []
    threads_of = ThreadGroups._threads_of
    monkeypatch.setattr(ThreadGroups, '_threads_of', lambda self, key: (looked.append(key), threads_of(self, key))[1])
    turns = Turns(4)
    for number in range(200):
        turns.submit(f'A{number:03}', 2, 'p', ahead=ahead)
    runs = turns.assert_waiting(396)
    looked.clear()
    for waiting in range(395, 375, -1):
        turns.end(runs)
        runs = turns.assert_waiting(waiting)
    assert len(looked) <= 20 * 5
    assert turns.groups.waiting_ahead() == (376 if ahead else 0)
    turns.let_all_go()
    assert turns.groups.waiting_ahead() == turns.groups.occupancy().waiting == 0


def test_a_thread_that_comes_free_goes_to_the_stack_that_has_the_fewest() -> None:
    turns = Turns(3)
    turns.submit('A', 9)
    turns.submit('B', 3)
    turns.submit('C', 1)
    turns.assert_running('A', 'A', 'A')
    turns.end('A')
    turns.assert_running('A', 'A', 'B')
    turns.end('A')
    turns.assert_running('A', 'B', 'C')
    turns.end('C')
    turns.assert_running('A', 'A', 'B')
    turns.let_all_go()


def test_a_stack_in_whose_calls_all_threads_are_stuck_does_not_stop_the_others() -> None:
    """Each gets one thread beyond those that there are, and there is an end to that, too."""
    turns = Turns(2)
    turns.submit('A', 5)
    turns.assert_running('A', 'A')
    turns.submit('B', 2)
    assert turns.groups.occupancy().waiting == 5, 'they may come to their end at any moment'
    turns.now = 3.0
    assert not turns.groups.has_room_for('A')
    assert turns.groups.has_room_for('C')
    turns.groups.begin()
    turns.assert_running('A', 'A', 'B')
    turns.end('B')
    turns.assert_running('A', 'A', 'B')
    turns.submit('C')
    turns.assert_running('A', 'A', 'B', 'C')
    turns.submit('D')
    assert not turns.groups.has_room_for('E')
    turns.end('C')
    turns.assert_running('A', 'A', 'B', 'D')
    turns.let_all_go()


def test_a_stack_is_made_while_all_threads_of_the_only_worker_are_stuck_in_calls_of_another(
    harness: Harness, gate: Gate
) -> None:
    worker = a_worker(harness)
    backlog(harness, gate)
    for check in list(harness.messages.checks):
        worker.check_resource(None, *check)
    harness.messages.checks.clear()
    gate.wait_for(2)
    other = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}}, 'other')

    def made() -> bool:
        for check in list(harness.messages.checks):
            harness.messages.checks.remove(check)
            worker.check_resource(None, *check)
        worker.reconcile()
        return harness.state(other) == 'CREATE_COMPLETE'

    waiting = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        if made():
            break
        waiting.wait(0.05)
    assert harness.state(other) == 'CREATE_COMPLETE'
    assert len(gate.begun) == 2
