"""What a worker has made ready while none of its threads is free: who is told of it, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import override

from convergence.concurrency import Task
from convergence.db.transaction import Committed
from convergence.resources.contract import Answer, Call
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.scheduler.constants import BUFFER_S
from convergence.worker.scheduler.local_queue import LocalQueue
from convergence.worker.scheduler.scheduler import Scheduler
from convergence.worker.scheduler.thread_groups import ThreadGroups
from convergence.worker.scheduler.turn import Turn
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.wiring import WorkerRuntime, wire_worker
from tests.harness import Harness
from tests.worker.test_inline_chain import PATIENCE_S, quiet


def tree(sides: str = 'lr') -> dict[str, Any]:
    """Four require the first, and some require each of them."""
    children = {f'c{number}': {'value': 'x', 'after': ['root']} for number in range(4)}
    below = {f'{child}{side}': {'value': 'x', 'after': [child]} for child in children for side in sides}
    return {'root': 'x', **children, **below}


class Moments:
    """What is to be done in a moment, and by whom it is told to wait."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def soon(self, delay_s: float, call: Callable[[], object]) -> None:
        self.calls.append(call)

    def pass_(self) -> None:
        """All of them are over."""
        calls, self.calls = self.calls, []
        for call in calls:
            call()


def a_worker(harness: Harness, moments: Moments, *, threads: int, max_inline_nodes: int = 100) -> WorkerService:
    """One with threads of its own."""
    options = WorkerOptions(
        'host',
        '1',
        PollPolicy(poll_interval_min_s=0.05),
        threads=threads,
        max_inline_nodes=max_inline_nodes,
        unattended_s=None,
    )
    timing = WorkerRuntime(call_later=moments.soon, clock=lambda: 0.0)
    worker = wire_worker(harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id, timing)
    harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
    return worker


def begin(harness: Harness, worker: WorkerService, sides: str = 'lr') -> str:
    """Have a `tree` made, of which the worker is told; its id."""
    stack_id = harness.create(tree(sides))
    for check in harness.messages.checks:
        worker.check_resource(None, *check)
    harness.messages.checks.clear()
    harness.messages.sent = 0
    return stack_id


class Gate:
    """Where a creation stops until it is let go on."""

    def __init__(self, harness: Harness, name: str) -> None:
        self._reached, self._open = threading.Event(), threading.Event()
        harness.reality.always['create', name] = self._stop

    def _stop(self, call: Call[Any]) -> Answer | None:
        self._reached.set()
        assert self._open.wait(PATIENCE_S)
        return None

    def reached(self) -> None:
        """Wait until something stands there."""
        assert self._reached.wait(PATIENCE_S)

    def open(self) -> None:
        """Let it go on."""
        self._open.set()


def test_what_the_threads_here_come_to_by_themselves_costs_no_message(harness):
    worker = a_worker(harness, Moments(), threads=1)
    stack_id = begin(harness, worker)
    quiet(worker)
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    assert harness.messages.sent == 0


def test_others_are_told_after_a_moment_in_one_message(harness):
    moments = Moments()
    worker = a_worker(harness, moments, threads=1)
    gate = Gate(harness, 'c0')
    begin(harness, worker)
    gate.reached()
    assert harness.messages.sent == 0
    moments.pass_()
    assert (harness.messages.sent, len(harness.messages.checks)) == (1, 3)
    gate.open()
    quiet(worker)
    harness.run()
    assert harness.reality.order('create')[:2] == ['root', 'c0']


class FullThreads(ThreadGroups):
    """None is free."""

    @override
    def has_room_for(self, traversal_id: str) -> bool:
        return False


def test_a_lost_call_at_the_end_of_the_buffer_time_does_not_keep_nodes_for_ever(harness):
    """The timers were full: the next node after that time starts a new one."""
    now, moments = [0.0], Moments()
    queue = LocalQueue(FullThreads(1, lambda task: None), harness.dispatcher, lambda check, task: None)
    scheduler = Scheduler(lambda turn: None, harness.dispatcher, queue, 16, moments.soon, lambda: now[0])
    turn = Turn('V', 0, Task('t'), 0.0, 0)

    def ready(number: int) -> None:
        scheduler.on_ready(Committed(None, cast=(('V', number),)), turn)

    ready(1)
    moments.calls.clear()
    ready(2)
    assert moments.calls == []
    now[0] += BUFFER_S
    ready(3)
    moments.pass_()
    assert harness.messages.checks == [('V', 1), ('V', 2), ('V', 3)]
    assert harness.messages.sent == 1


def test_others_are_told_at_once_while_a_thread_is_free_here(harness):
    worker = a_worker(harness, Moments(), threads=2)
    gate = Gate(harness, 'c0')
    begin(harness, worker)
    gate.reached()
    assert harness.messages.sent == 3
    gate.open()
    quiet(worker)
    harness.run()


def test_others_are_told_when_enough_has_come_together(harness):
    """`[engine] max_batch_nodes`: five, here."""
    worker = a_worker(harness, Moments(), threads=1)
    gate = Gate(harness, 'c0l')
    begin(harness, worker, 'lmr')
    gate.reached()
    assert (harness.messages.sent, len(harness.messages.checks)) == (1, 5)
    gate.open()
    quiet(worker)
    harness.run()


@pytest.mark.parametrize('stops', [False, True], ids=['its turn is over', 'the worker is told to stop'])
def test_a_thread_that_comes_free_leaves_nothing_unsaid(harness, stops):
    worker = a_worker(harness, Moments(), threads=1, max_inline_nodes=100 if stops else 2)
    gate = Gate(harness, 'c0')
    stack_id = begin(harness, worker, 'l')
    gate.reached()
    if stops:
        worker.begin_nothing()
    gate.open()
    quiet(worker)
    if stops:
        worker.begin_to_stop(PATIENCE_S)
    assert len(harness.messages.checks) >= 3
    harness.run()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
