"""A thread that goes on with what it has made ready: what it costs, and who comes first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from convergence.db.scopes import HeldResource
from convergence.resources.contract import Answer, Call, InProgress
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.attempts.nested import EngineNesting
from convergence.worker.scheduler.constants import INLINE_SLICE_S
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.wiring import WorkerRuntime, wire_worker
from tests.engine.test_nested import CHILD, create, nested
from tests.harness import Crash, Harness, emptied, things

PATIENCE_S = 60.0
QUICK = PollPolicy(poll_interval_min_s=0.05)


def chain(size: int) -> dict[str, Any]:
    """Each requires the one before."""
    names = [f'r{number}' for number in range(size)]
    return {name: {'value': 'x', 'after': names[max(0, number - 1) : number]} for number, name in enumerate(names)}


def wide(size: int, value: str = 'x') -> dict[str, Any]:
    """None requires another."""
    return things([f'r{number}' for number in range(size)], value)


def in_threads(
    harness: Harness, *, threads: int = 1, max_inline_nodes: int = 4, clock: Callable[[], float] = lambda: 0.0
) -> WorkerService:
    """A worker with threads of its own, for which time stands still."""
    options = WorkerOptions('host', '1', QUICK, threads=threads, max_inline_nodes=max_inline_nodes, unattended_s=None)
    parts = (harness.ports, harness.dispatcher, harness.registry, harness, options, harness.new_id)
    nested = EngineNesting(harness, harness.reader, lambda project_id, request_id: harness.context)
    worker = wire_worker(*parts, WorkerRuntime(clock=clock), nested)
    harness.roster.register(worker.id, 'worker', 'host', '1', 1e6)
    return worker


def quiet(worker: WorkerService) -> None:
    """Until nothing runs and nothing waits there."""
    done = threading.Event()
    for _ in range(int(PATIENCE_S / 0.01)):
        load = worker.load()
        if not load['busy'] and not load['waiting']:
            return
        done.wait(0.01)
    raise AssertionError(f'still busy: {worker.load()}')


@pytest.mark.parametrize(
    ('shape', 'max_inline_nodes', 'sent'),
    [
        (chain(12), 1, 12),
        (chain(12), 4, 3),
        (chain(12), 100, 1),
        (things([f'r{number}' for number in range(40)]), 1, 40),
        # Of eight are told four, and for each somebody goes on with three of the others; then eight are left.
        (things([f'r{number}' for number in range(40)]), 4, 12),
    ],
    ids=['chain, each a message', 'chain', 'chain at once', 'flat, each a message', 'flat'],
)
def test_what_a_thread_goes_on_with_costs_no_message(engine, shape, max_inline_nodes, sent):
    harness = Harness(engine, window=8, max_inline_nodes=max_inline_nodes, together=1 if max_inline_nodes == 1 else 5)
    stack = harness.created(shape)
    assert harness.messages.sent == sent
    harness.assert_converged(stack, dict.fromkeys(shape, 'x'), 'CREATE_COMPLETE')


def test_others_are_told_of_all_but_one_of_what_becomes_ready(engine):
    harness = Harness(engine, max_inline_nodes=4)
    names = [f'r{number}' for number in range(5)]
    harness.create({'first': 'x', **{name: {'value': 'x', 'after': ['first']} for name in names}})
    harness.deliver()
    assert harness.reality.order('create') == ['first', names[0]]
    assert len(harness.messages.checks) == 4
    harness.run()


@pytest.mark.parametrize(('max_inline_nodes', 'for_what_is_in_it'), [(1, 2), (4, 0)])
def test_a_nested_stack_costs_one_message_while_a_thread_is_free(engine, max_inline_nodes, for_what_is_in_it):
    """Whoever has asked for it sees to what is in it, and whoever does the last thing in it to its resource.

    Else the things in it are told of five at a time, and so is its end.
    """
    harness = Harness(engine, max_inline_nodes=max_inline_nodes)
    files = {CHILD: nested(count=5)}
    stack = create(harness, {f'child{number}': {'type': CHILD} for number in range(2)}, files)
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    assert harness.messages.sent == 2 * (1 + for_what_is_in_it)


@pytest.mark.parametrize(
    ('took_s', 'order'),
    [(INLINE_SLICE_S, ['r0', 'other']), (INLINE_SLICE_S / 4, ['r0', 'r1', 'r2', 'other'])],
    ids=['slow', 'quick'],
)
def test_another_operation_that_waits_for_a_thread_comes_before_what_takes_its_time(harness, took_s, order):
    now = [0.0]
    worker = in_threads(harness, clock=lambda: now[0])
    first = harness.create(chain(3), name='first')
    second = harness.create({'other': 'x'}, name='second')
    begun, go_on = threading.Event(), threading.Event()

    def gate(call: Call[Any]) -> Answer | None:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        now[0] += took_s
        return None

    harness.reality.always['create', 'r0'] = gate
    one, other = harness.messages.checks.pop(0), harness.messages.checks.pop(0)
    worker.check_resource(None, *one)
    assert begun.wait(PATIENCE_S)
    worker.check_resource(None, *other)
    go_on.set()
    quiet(worker)
    assert harness.reality.order('create') == order
    assert len(harness.messages.checks) == (1 if len(order) == 2 else 0), 'who does not go on with it tells of it'
    harness.run()
    assert [harness.state(stack) for stack in (first, second)] == ['CREATE_COMPLETE'] * 2


def test_a_worker_that_was_told_to_stop_goes_on_with_nothing(harness):
    worker = in_threads(harness)
    stack = harness.create(chain(3))

    def told_to_stop(call: Call[Any]) -> Answer | None:
        worker.begin_nothing()
        return None

    harness.reality.once['create', 'r0'] = [told_to_stop]
    worker.check_resource(None, *harness.messages.checks.pop())
    quiet(worker)
    assert harness.reality.order('create') == ['r0']
    assert [harness.node(stack, 'r1')] == harness.messages.checks
    harness.run()
    harness.assert_converged(stack, dict.fromkeys(chain(3), 'x'), 'CREATE_COMPLETE')


def test_a_cancelled_operation_goes_on_with_nothing(harness):
    worker = in_threads(harness)
    stack = harness.create(chain(3))

    def cancelled(call: Call[Any]) -> Answer | None:
        worker.cancel(None, stack, harness.stack(stack).traversal_id or '')
        return None

    harness.reality.once['create', 'r0'] = [cancelled]
    worker.check_resource(None, *harness.messages.checks.pop())
    quiet(worker)
    assert harness.reality.order('create') == ['r0']
    harness.run()
    harness.assert_converged(stack, dict.fromkeys(chain(3), 'x'), 'CREATE_COMPLETE')


def test_what_takes_time_makes_room_for_what_follows(engine):
    """An action that is parked ends the row of its thread, and so nothing that it keeps back waits for it."""
    harness = Harness(engine, window=2, max_inline_nodes=4)
    harness.reality.once['create', 'r0'] = [lambda call: InProgress({'round': 1}, poll_after_s=30.0)]
    stack = harness.create(things([f'r{number}' for number in range(6)]))
    harness.run()
    assert sorted(harness.reality.order('create')) == [f'r{number}' for number in range(6)]
    harness.let_time_pass()
    harness.recover()
    assert harness.state(stack) == 'CREATE_COMPLETE'


@pytest.mark.parametrize(('shape', 'commits'), [(chain(3), 6), (wide(3), 6)], ids=['chain', 'wide'])
def test_a_worker_that_dies_before_it_goes_on_leaves_the_node_to_the_sweeper(shape, commits):
    """Nobody was told of the node, and nobody holds it, or only the dead."""
    for crash_after in range(2, commits):
        harness = Harness(None, window=1, max_inline_nodes=4)
        stack = harness.create(shape)
        harness.store.crash_after = crash_after
        with pytest.raises(Crash):
            harness.run()
        harness.restart()
        harness.recover()
        harness.assert_converged(stack, dict.fromkeys(shape, 'x'), 'CREATE_COMPLETE')


@pytest.mark.parametrize('operation', ['create', 'update', 'delete'])
def test_what_stands_behind_the_window_is_claimed_by_the_transaction_before(engine, operation):
    """One commit for each of the others, instead of two."""
    transactions = []
    for max_inline_nodes in (1, 4):
        harness = Harness(emptied(engine), window=8, max_inline_nodes=max_inline_nodes)
        stack = harness.create(wide(40))
        if operation != 'create':
            harness.run(limit=500)
        if operation == 'update':
            harness.update(stack, wide(40, 'y'))
        elif operation == 'delete':
            harness.delete(stack)
        before = harness.store.commits
        harness.run(limit=500)
        transactions.append(harness.store.commits - before)
        assert harness.state(stack) == f'{operation.upper()}_COMPLETE'
    # Eight are told of, and each goes on with three of the others; then eight are left.
    assert transactions[0] - transactions[1] == 8 * 3


@pytest.mark.parametrize('happens', ['draining', 'cancelled'])
def test_what_is_claimed_together_with_the_end_of_another_is_let_go_of_where_nothing_may_begin(happens):
    """The worker was told to stop, or the operation is cancelled, between that commit and the call."""
    harness = Harness(None, window=1)
    worker = in_threads(harness)
    stack = harness.create(wide(3))

    def told() -> None:
        if happens == 'cancelled':
            worker.cancel(None, stack, harness.stack(stack).traversal_id or '')
        else:
            worker.begin_nothing()

    harness.store.after(HeldResource, told)
    worker.check_resource(None, *harness.messages.checks.pop())
    quiet(worker)
    assert harness.reality.order('create') == ['r0']
    assert harness.row(stack, 'r1').owner is None
    harness.recover()
    harness.assert_converged(stack, dict.fromkeys(wide(3), 'x'), 'CREATE_COMPLETE')


def committed_by(harness: Harness, worker: WorkerService, resources: dict[str, Any]) -> int:
    """How many transactions the creation of things takes, of which those that are ready at once wait for one thread."""
    stack = harness.create(resources)
    commits, transact = [0], harness.store.transact
    begun, go_on = threading.Event(), threading.Event()

    def counted(*arguments: Any) -> Any:
        commits[0] += 1
        return transact(*arguments)

    def gate(call: Call[Any]) -> Answer | None:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return None

    harness.reality.always['create', 'r0'] = gate
    harness.store.transact = counted
    checks = harness.messages.checks[:]
    harness.messages.checks.clear()
    for check in checks:
        worker.check_resource(None, *check)
    assert begun.wait(PATIENCE_S)
    go_on.set()
    quiet(worker)
    harness.store.transact = transact
    harness.run()
    harness.assert_converged(stack, dict.fromkeys(resources, 'x'), 'CREATE_COMPLETE')
    return commits[0]


@pytest.mark.parametrize(('max_inline_nodes', 'commits'), [(1, 9), (4, 6), (2, 7)])
def test_what_waits_for_a_thread_is_claimed_by_the_one_that_comes_free(harness, max_inline_nodes, commits):
    """A claim for the first of each row, an end for each, which claims the next one as well; and one for the stack."""
    assert committed_by(harness, in_threads(harness, max_inline_nodes=max_inline_nodes), wide(4)) == commits


def test_what_waits_for_a_thread_is_claimed_where_nothing_becomes_ready(harness):
    """The first two are required by the third. A claim, an end for each, which claims the next one, and the stack's."""
    resources = {**wide(2), 'r2': {'value': 'x', 'after': ['r0', 'r1']}}
    assert committed_by(harness, in_threads(harness), resources) == 5


def test_what_was_taken_before_something_became_ready_others_are_told_of(harness):
    """As where a transaction is repeated in which nothing has become ready at first."""
    resources = {**wide(2), 'r2': {'value': 'x', 'after': ['r0']}}
    transact, taken = harness.store.transact, []

    def repeated(scope: Any, decide: Any, following: Any = None) -> Any:
        if following is None:
            return transact(scope, decide)
        taken.append((following.otherwise(), following.otherwise()))
        return transact(scope, decide, following)

    harness.store.transact = repeated
    assert committed_by(harness, in_threads(harness), resources) > 0
    assert taken[0][0] is not None and taken[0][0] == taken[0][1]


def test_what_was_taken_and_cannot_be_claimed_is_looked_at_by_itself(harness):
    """What the first action has come to, which takes its time, is stored in another way: the next is not forgotten."""
    worker = in_threads(harness)
    harness.reality.once['create', 'r0'] = [lambda call: InProgress({'round': 1}, poll_after_s=30.0)]
    stack = harness.create(wide(3))
    for check in (checks := harness.messages.checks[:]):
        worker.check_resource(None, *check)
    del harness.messages.checks[: len(checks)]
    quiet(worker)
    assert sorted(harness.reality.order('create')) == ['r0', 'r1', 'r2']
    harness.let_time_pass()
    harness.recover()
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_a_claim_that_cannot_be_stored_does_no_harm_to_the_result_before_it(engine):
    """The database refuses what is to be written of the next one; the first has been made, and its row says so."""
    harness = Harness(engine, max_inline_nodes=4)
    stack, transact, refused = harness.create(chain(2)), harness.store.transact, []

    def refusing(scope: Any, decide: Any, following: Any = None) -> Any:
        if following is None:
            return transact(scope, decide)
        refused.append(following)
        raise ValueError('too large')

    harness.store.transact = refusing
    harness.run()
    assert refused
    harness.assert_converged(stack, dict.fromkeys(chain(2), 'x'), 'CREATE_COMPLETE')
