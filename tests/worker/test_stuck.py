"""A plugin that does not come back: the worker goes on without it, and what it does late is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from convergence import errors
from convergence.core.model import Action, Status
from convergence.db.scopes import OneNode, WholeStack
from convergence.resources.contract import Answer, Call, Done, InProgress
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.upkeep.maintenance import IDLE_ROUNDS
from convergence.worker.wiring import WorkerRuntime, wire_worker
from tests.harness import Harness
from tests.inline_groups import InlineGroups

PATIENCE_S = 60.0


class Stuck:
    """A call that returns only when the test says so."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.returned = threading.Event()

    def __call__(self, call: Call[Any]) -> Answer | None:
        """Be stuck."""
        self.entered.set()
        self.release.wait(PATIENCE_S)
        self.returned.set()
        return Done('made too late')


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    """A stuck call that is let go at the end of the test."""
    call = Stuck()
    yield call
    call.release.set()


def threaded_worker(harness: Harness, *, threads: int) -> WorkerService:
    """A worker with threads of its own and hardly any patience with those that do not stop."""
    options = WorkerOptions('host', '1', cancel_grace_s=0.05, unattended_s=None, threads=threads)
    worker = wire_worker(harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id)
    harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
    return worker


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something has come true."""
    waiting = threading.Event()
    for _ in range(int(PATIENCE_S / 0.01)):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError('it never came true')


def test_a_stuck_plugin_is_left_behind_and_its_late_result_is_kept_as_a_leftover(
    harness: Harness, stuck: Stuck
) -> None:
    harness.reality.once['create', 'r'] = [stuck]
    worker = threaded_worker(harness, threads=1)
    stack_id = harness.create({'r': 'x'})
    ((traversal_id, number),) = harness.messages.checks
    harness.messages.checks.clear()
    worker.check_resource(None, traversal_id, number)
    assert stuck.entered.wait(PATIENCE_S)

    harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack_id}, False, now=True)
    worker.cancel(None, stack_id, traversal_id)
    eventually(lambda: harness.reader.resources(stack_id)[0].owner is None)

    (row,) = harness.reader.resources(stack_id)
    assert (row.action, row.status) == (Action.CREATE, Status.FAILED)
    assert row.status_reason == 'CREATE did not stop when it was cancelled'

    # The only thread is stuck, and yet the worker works.
    other = harness.create({'s': 'x'}, 'other')
    for check in list(harness.messages.checks):
        worker.check_resource(None, *check)
    eventually(lambda: harness.state(other) == 'CREATE_COMPLETE')

    stuck.release.set()
    assert stuck.returned.wait(PATIENCE_S)
    eventually(lambda: any(row.physical_id == 'made too late' for row in harness.reader.resources(stack_id)))


def test_what_a_stuck_call_has_made_is_kept_track_of_although_the_database_is_away_just_then(
    harness: Harness, stuck: Stuck
) -> None:
    """It is the only one who knows: it tries again for a while."""
    harness.reality.once['create', 'r'] = [stuck]
    worker = threaded_worker(harness, threads=1)
    stack_id = harness.create({'r': 'x'})
    worker.check_resource(None, *harness.messages.checks.pop())
    assert stuck.entered.wait(PATIENCE_S)
    harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack_id}, False, now=True)
    worker.cancel(None, *harness.messages.cancels[-1])
    eventually(lambda: harness.reader.resources(stack_id)[0].owner is None)

    def away() -> None:
        raise errors.DatabaseUnavailable('The database cannot be reached: refused')

    harness.store.before(WholeStack, away)
    stuck.release.set()
    eventually(lambda: any(row.physical_id == 'made too late' for row in harness.reader.resources(stack_id)))


def test_a_task_that_is_given_up_while_it_claims_gives_the_row_back(harness: Harness) -> None:
    """The lease is lost while the database takes its time: nobody else would see to a row that is claimed after that."""
    claiming, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        claiming.set()
        assert go_on.wait(PATIENCE_S)

    worker = threaded_worker(harness, threads=1)
    stack_id = harness.create({'r': 'x'})
    harness.store.before(OneNode, slowly)
    worker.check_resource(None, *harness.messages.checks.pop())
    assert claiming.wait(PATIENCE_S)
    worker.give_up()
    eventually(lambda: len(worker._threads.left_behind) == 1)
    assert worker.unhealthy_reason() == '', 'a thread that waits for the database is not stuck in a call'
    assert worker.load()['stuck'] == 0
    go_on.set()
    eventually(lambda: not worker._threads.left_behind)

    assert harness.row(stack_id, 'r').owner is None
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x'}, 'CREATE_COMPLETE')


def test_an_action_that_takes_longer_than_it_may_fails_although_it_does_not_come_back(
    harness: Harness, stuck: Stuck
) -> None:
    """F114: the limit stands in the template; the worker notices it although the call does not."""
    harness.reality.once['create', 'r'] = [stuck]
    worker = threaded_worker(harness, threads=1)
    limit = {'convergence': {'time_limits': {'create': 0.05}}}
    stack_id = harness.create({'r': {'value': 'x', 'metadata': limit}})
    worker.check_resource(None, *harness.messages.checks.pop())
    assert stuck.entered.wait(PATIENCE_S)

    def ended() -> bool:
        worker.reconcile()
        return harness.state(stack_id) == 'CREATE_FAILED'

    eventually(ended)
    assert harness.stack(stack_id).status_reason == (
        'Resource CREATE failed: resources.r: CREATE timed out and did not stop'
    )


def test_what_goes_on_after_a_failure_elsewhere_is_stopped_when_the_time_of_its_traversal_is_over(
    harness: Harness, stuck: Stuck
) -> None:
    """F076: until then it may come to its end; the row is not held for ever."""

    def fail(call: Call[Any]) -> Answer | None:
        assert stuck.entered.wait(PATIENCE_S)
        raise RuntimeError('broken')

    harness.reality.once['create', 'r'] = [stuck]
    harness.reality.once['create', 'bad'] = [fail]
    worker = threaded_worker(harness, threads=2)
    stack_id = harness.create({'r': 'x', 'bad': 'x'})
    for check in list(harness.messages.checks):
        worker.check_resource(None, *check)
    assert stuck.entered.wait(PATIENCE_S)
    eventually(lambda: harness.state(stack_id) == 'CREATE_FAILED')

    worker.reconcile()
    assert harness.row(stack_id, 'r').owner == worker.id
    assert not any(task.cancelled.is_set() for task in worker._parts.checks.claims._held)
    harness.expire(harness.stack(stack_id).traversal_id)

    worker.reconcile()
    eventually(lambda: harness.row(stack_id, 'r').owner is None)
    assert harness.row(stack_id, 'r').status is Status.FAILED
    assert harness.row(stack_id, 'r').status_reason == (
        'CREATE did not stop when it was cancelled (after bad had failed)'
    )


def test_a_check_that_finds_no_free_thread_goes_to_another_worker(harness: Harness, stuck: Stuck) -> None:
    """One worker whose threads are all stuck does not sit on what the broker gives it."""
    harness.reality.once['create', 'r'] = [stuck]
    worker = threaded_worker(harness, threads=1)
    harness.create({'r': 'x'})
    ((traversal_id, number),) = harness.messages.checks
    worker.check_resource(None, *harness.messages.checks.pop())
    assert stuck.entered.wait(PATIENCE_S)
    waiting, late = (traversal_id, number + 1), (traversal_id, number + 2)
    worker.check_resource(None, *waiting)
    eventually(worker._parts.queue.is_jammed)
    worker.check_resource(None, *late)
    assert harness.messages.checks == [late], 'it is handed on at once'
    worker.reconcile()
    assert harness.messages.checks == [late, waiting], 'what has waited for a thread is handed on too'
    assert worker.load() == {'threads': 1, 'busy': 1, 'waiting': 0, 'stuck': 0}


def test_a_worker_keeps_its_checks_while_all_others_are_as_busy(harness: Harness, stuck: Stuck) -> None:
    """Handed round among workers that have no thread free either, each check costs a message more with every round."""
    harness.reality.once['create', 'r'] = [stuck]
    worker = threaded_worker(harness, threads=1)
    harness.create({'r': 'x'})
    ((traversal_id, number),) = harness.messages.checks
    worker.check_resource(None, *harness.messages.checks.pop())
    assert stuck.entered.wait(PATIENCE_S)
    worker.check_resource(None, traversal_id, number + 1)
    eventually(worker._parts.queue.is_jammed)
    for other in harness.workers:
        harness.roster.beat(other.id, {'threads': 1, 'busy': 1, 'waiting': 3, 'stuck': 0})
    worker.reconcile()
    worker.check_resource(None, traversal_id, number + 2)
    assert (harness.messages.checks, worker.load()['waiting']) == ([], 2)
    harness.roster.beat(harness.workers[0].id, {'threads': 1, 'busy': 0, 'waiting': 0, 'stuck': 0})
    worker.reconcile()
    assert harness.messages.checks == [(traversal_id, number + 1), (traversal_id, number + 2)], 'now one has room'


def test_a_worker_with_too_many_stuck_threads_says_so(harness: Harness, stuck: Stuck) -> None:
    harness.reality.once['create', 'r'] = [stuck]
    worker = threaded_worker(harness, threads=1)
    stack_id = harness.create({'r': 'x'})
    ((traversal_id, number),) = harness.messages.checks
    worker.check_resource(None, traversal_id, number)
    assert stuck.entered.wait(PATIENCE_S)
    assert worker.unhealthy_reason() == ''
    harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack_id}, False, now=True)
    worker.cancel(None, stack_id, traversal_id)
    eventually(lambda: worker.load()['stuck'] == 1)
    assert worker.unhealthy_reason() == '1 threads are stuck in calls of resource types that do not end'


def test_a_worker_takes_what_nobody_was_told_of_for_long(harness: Harness) -> None:
    """The broker is away, or no engine is left: the rows are still there."""
    options = WorkerOptions('host', '1', unattended_s=-1.0)
    worker = wire_worker(harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id)
    harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
    harness.messages.lost = True
    stack_id = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})

    def done() -> bool:
        worker.reconcile()
        return harness.state(stack_id) == 'CREATE_COMPLETE'

    eventually(done)
    assert harness.messages.checks == []


def test_a_worker_that_hears_nothing_works_although_others_believe_it_was_told(harness: Harness) -> None:
    """F015: all messages vanish on their way and nobody notices. Each sweep counts the nodes as told of."""
    options = WorkerOptions('host', '1', unattended_s=0.9)
    worker = wire_worker(harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id)
    harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
    harness.messages.lost = True
    stack_id = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})

    def done() -> bool:
        worker.reconcile()
        harness.sweeps.undispatched(0.25, 100)  # the sweep of an engine
        return harness.state(stack_id) == 'CREATE_COMPLETE'

    eventually(done)


def test_a_worker_with_nothing_to_do_asks_with_every_second_round_and_never_leaves_out_two(harness: Harness) -> None:
    options = WorkerOptions('host', '1', unattended_s=-1.0)
    timing = WorkerRuntime(threads=lambda threads, left: InlineGroups())
    worker = wire_worker(harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id, timing)
    harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
    asked: list[int] = []
    ask = harness.ports.pending.of_worker
    harness.ports.pending.of_worker = lambda *given: asked.append(1) or ask(*given)  # type: ignore[method-assign]

    def rounds(number: int) -> str:
        """In which of some rounds it asks."""
        found = ''
        for _ in range(number):
            asked.clear()
            worker.reconcile()
            found += '-x'[len(asked)]
        return found

    assert rounds(IDLE_ROUNDS + 6) == 'x' * IDLE_ROUNDS + '-x-x-x'
    harness.messages.lost = True
    stack_id = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})
    # What was left is found with the second round. Having found something it asks with each, for as long as at first.
    assert rounds(2) == '-x'
    assert harness.row(stack_id, 'a').status is Status.COMPLETE
    assert rounds(1) == 'x'
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    assert rounds(IDLE_ROUNDS + 4) == 'x' * IDLE_ROUNDS + '-x-x'
    worker.check_resource(None, 'of no traversal', 0)
    assert rounds(IDLE_ROUNDS + 2) == 'x' * IDLE_ROUNDS + '-x'


def test_what_a_stack_at_rest_has_left_under_way_is_interrupted_once(harness: Harness) -> None:
    """F102, F106: the stack was cancelled without a rollback while an action was parked; its type is told."""
    told: list[str] = []
    thing = harness.registry.get('Test::Thing')
    original = type(thing).cancel

    def cancel(self: Any, call: Call[Any], action: Action, progress: Any) -> None:
        told.append(f'{action} {call.name} {dict(progress)}')

    type(thing).cancel = cancel  # type: ignore[method-assign]
    try:
        harness.reality.once['create', 'r'] = [lambda call: InProgress({'round': 1}, poll_after_s=30.0)]
        worker = wire_worker(
            harness.ports, harness.dispatcher, harness.registry, harness, WorkerOptions('host', '1'), harness.new_id
        )
        harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
        stack_id = harness.create({'r': 'x'})
        harness.deliver()
        harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack_id}, False, now=True)
        eventually(lambda: bool(worker.reconcile() or told))
        eventually(lambda: harness.row(stack_id, 'r').status is Status.FAILED)
        worker.reconcile()
        eventually(lambda: worker.load()['busy'] == 0)
    finally:
        type(thing).cancel = original  # type: ignore[method-assign]
    assert told == ["CREATE r {'round': 1}"]
    assert harness.row(stack_id, 'r').status_reason == 'CREATE cancelled'


def test_a_maintenance_task_that_fails_keeps_no_other_from_being_done(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    options = WorkerOptions('host', '1', unattended_s=-1.0)
    worker = wire_worker(harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id)

    def broken() -> None:
        raise RuntimeError('broken')

    worker._parts.maintenance.stop_overdue = broken  # type: ignore[method-assign]
    worker.journal.check = broken  # type: ignore[method-assign]
    harness.messages.lost = True
    stack_id = harness.create({'a': 'x'})
    worker.reconcile()
    eventually(lambda: harness.row(stack_id, 'a').status is Status.COMPLETE)
    assert 'Heartbeat task broken failed' in caplog.text
