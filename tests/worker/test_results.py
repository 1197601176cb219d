"""A result that is known is kept until it is stored or refused, however long the database is away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from convergence.core.claim import Worker
from convergence.core.held import release
from convergence.core.model import Status
from convergence.db.schema.models import RESOURCE
from convergence.db.scopes import HeldResource, WholeStack
from convergence.errors import Conflict, DatabaseUnavailable
from convergence.resources.contract import Answer, Call, Done, FinalFailure, InProgress, TransientFailure
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.wiring import WorkerRuntime, wire_worker
from tests.harness import Harness

TEN_MINUTES_S = 600.0
PATIENCE_S = 60.0
PATIENT = PollPolicy(poll_interval_min_s=0.0, poll_interval_max_s=0.0, park_after_s=1000.0, transient_attempts=1)


class Outage:
    """A database that is away for a time that passes only while somebody waits for it.

    :ivar left_s: for how many seconds it still is. Only threads of the worker notice.
    """

    def __init__(self, harness: Harness, error: type[Exception] = DatabaseUnavailable) -> None:
        self.left_s = 0.0
        self.refused = 0
        self._error = error
        self._transact = harness.store.transact
        self._test = threading.get_ident()
        harness.store.transact = self._guarded  # type: ignore[method-assign]

    def _guarded(self, scope: Any, decide: Any, following: Any = None) -> Any:
        if self.left_s > 0 and threading.get_ident() != self._test:
            self.refused += 1
            raise self._error('The database cannot be reached: refused')
        return self._transact(scope, decide, following)

    def pause(self, duration_s: float) -> None:
        """Let time pass."""
        self.left_s -= duration_s

    def begin(self, answer: Answer | Exception | None, duration_s: float = TEN_MINUTES_S) -> Callable[[Call[Any]], Any]:
        """What a resource type does: while it does it the database goes away."""

        def behaviour(call: Call[Any]) -> Answer | None:
            self.left_s = duration_s
            if isinstance(answer, Exception):
                raise answer
            return answer

        return behaviour


def a_worker(harness: Harness, pause: Callable[[float], None], *, threads: int = 1) -> WorkerService:
    """A worker with threads of its own, and hardly any patience with those that do not stop."""
    options = WorkerOptions('host', '1', PATIENT, threads=threads, cancel_grace_s=0.05, unattended_s=None)
    worker = wire_worker(
        harness.ports,
        harness.dispatcher,
        harness.registry,
        harness,
        options,
        harness.new_id,
        WorkerRuntime(pause=pause),
    )
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


def idle(worker: WorkerService) -> bool:
    """Whether it has nothing to do."""
    return not worker.load()['busy'] and not worker._parts.checks.unsaved()


@pytest.mark.parametrize('error', [DatabaseUnavailable, Conflict])
def test_a_database_that_is_away_for_ten_minutes_costs_ten_minutes(harness: Harness, error: type[Exception]) -> None:
    outage = Outage(harness, error)
    worker = a_worker(harness, outage.pause)
    made: list[str] = []

    def create(call: Call[Any]) -> Answer:
        made.append(harness.reality.make(call))
        outage.left_s = TEN_MINUTES_S
        return Done(made[0])

    harness.reality.once['create', 'r'] = [create]
    stack_id = harness.create({'r': 'x'})
    worker.check_resource(None, *harness.messages.checks.pop())
    eventually(lambda: idle(worker) and outage.left_s <= 0)
    assert outage.refused > 100
    harness.run()
    harness.assert_converged(stack_id, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.row(stack_id, 'r').physical_id == made[0]
    assert harness.reality.order('create') == ['r']
    assert harness.reality.order('find') == [], 'it never had to be looked for'


@pytest.mark.parametrize(
    ('answer', 'status'),
    [
        (FinalFailure('broken', physical_id='made'), Status.FAILED),
        (InProgress({'job': 1}, 'made'), Status.COMPLETE),
        (InProgress({'job': 1}, 'made', poll_after_s=5000.0), Status.IN_PROGRESS),
    ],
    ids=['failed', 'under way', 'parked'],
)
def test_an_id_is_kept_whatever_comes_of_the_action(
    harness: Harness, answer: Answer | Exception, status: Status
) -> None:
    """Also in the middle of the action: it goes on when its object is known to the row."""
    outage = Outage(harness)
    worker = a_worker(harness, outage.pause)
    options = worker._parts.checks._runner._poll_policy
    worker._parts.checks._runner._poll_policy = PollPolicy(0.0, 10_000.0, options.park_after_s, 1)
    harness.reality.once['create', 'r'] = [outage.begin(answer)]
    harness.reality.once['poll', 'r'] = [lambda call: Done('made')]
    harness.reality.objects['made'] = {'name': 'r', 'value': 'x', 'stack': ''}
    stack_id = harness.create({'r': 'x'})
    worker.check_resource(None, *harness.messages.checks.pop())
    eventually(lambda: idle(worker) and outage.left_s <= 0)
    row = harness.row(stack_id, 'r')
    assert (row.physical_id, row.status, row.owner) == ('made', status, None)
    assert harness.reality.order('create') == ['r']


def test_that_a_repair_becomes_an_update_is_kept_too(harness: Harness) -> None:
    outage = Outage(harness)
    worker = a_worker(harness, outage.pause)
    stack_id = harness.created({'r': 'x'})
    harness.reality.once['update', 'r'] = [lambda call: (_ for _ in ()).throw(FinalFailure('no'))]
    harness.update(stack_id, {'r': 'y'})
    harness.run()
    assert harness.row(stack_id, 'r').status is Status.FAILED
    harness.reality.once['observe', 'r'] = [outage.begin(None)]
    harness.update(stack_id, {'r': 'z'})
    worker.check_resource(None, *harness.messages.checks.pop())
    eventually(lambda: idle(worker) and outage.left_s <= 0)
    harness.run()
    harness.assert_converged(stack_id, {'r': 'z'}, 'UPDATE_COMPLETE')
    assert harness.reality.order('create') == ['r']


def test_what_failed_for_the_moment_waits_for_the_database_too(harness: Harness) -> None:
    outage = Outage(harness)
    worker = a_worker(harness, outage.pause)
    worker._parts.checks._runner._poll_policy = PollPolicy(10.0, 10.0, 0.0, 3)
    harness.reality.once['create', 'r'] = [outage.begin(TransientFailure('busy'))]
    stack_id = harness.create({'r': 'x'})
    worker.check_resource(None, *harness.messages.checks.pop())
    eventually(lambda: idle(worker) and outage.left_s <= 0)
    harness.recover()
    harness.assert_converged(stack_id, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.order('find') == []


class Held:
    """A pause that lasts until the test ends it."""

    def __init__(self) -> None:
        self.entered, self.over = threading.Event(), threading.Event()

    def __call__(self, duration_s: float) -> None:
        """Wait."""
        self.entered.set()
        self.over.wait(PATIENCE_S)


@pytest.fixture
def held() -> Iterator[Held]:
    """Let go at the end of the test."""
    pause = Held()
    yield pause
    pause.over.set()


@pytest.fixture
def waiting(harness: Harness, held: Held) -> Iterator[tuple[Outage, WorkerService, str]]:
    """A worker whose one thread has made something and waits for the database.

    The database comes back in the end: a thread that tries again for ever, without a pause, would slow down all the
    tests that this process runs after this one.
    """
    outage = Outage(harness)
    worker = a_worker(harness, held)
    harness.reality.once['create', 'r'] = [outage.begin(Done('made'))]
    harness.reality.objects['made'] = {'name': 'r', 'value': 'x', 'stack': ''}
    stack_id = harness.create({'r': 'x'})
    worker.check_resource(None, *harness.messages.checks.pop())
    assert held.entered.wait(PATIENCE_S)
    yield outage, worker, stack_id
    outage.left_s = 0.0
    held.over.set()
    eventually(lambda: not worker._parts.checks.unsaved())


def test_a_worker_that_is_told_to_stop_waits_for_its_results(
    harness: Harness, held: Held, waiting: tuple[Outage, WorkerService, str]
) -> None:
    outage, worker, stack_id = waiting
    worker.begin_to_stop(PATIENCE_S)
    assert not worker.wait(0.0)
    outage.left_s = 0.0
    held.over.set()
    assert worker.wait(PATIENCE_S)
    harness.run()
    harness.assert_converged(stack_id, {'r': 'x'}, 'CREATE_COMPLETE')


def test_a_worker_that_has_to_end_says_which_objects_nobody_knows_of(
    harness: Harness, waiting: tuple[Outage, WorkerService, str], caplog: pytest.LogCaptureFixture
) -> None:
    """And waits for it although the thread that holds the result was given up by then."""
    _, worker, stack_id = waiting
    worker.begin_to_stop(0.05)
    eventually(lambda: worker.load()['busy'] == 0)
    caplog.clear()
    assert not worker.wait(0.1)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    token = harness.row(stack_id, 'r').token
    found = f'CREATE of r in stack {stack_id}: type Test::Thing, token {token}, physical id made'
    assert said == [f'Stopping with an unsaved result; check the object and delete it if it is not needed: {found}']


def test_a_result_outlasts_the_lease_of_its_worker_where_nobody_has_taken_the_row(
    harness: Harness, held: Held, waiting: tuple[Outage, WorkerService, str]
) -> None:
    outage, worker, stack_id = waiting
    worker.give_up()
    eventually(lambda: len(worker._threads.left_behind) == 1)
    assert worker.unhealthy_reason() == ''
    assert worker.load()['stuck'] == 0
    outage.left_s = 0.0
    for _ in range(3):
        worker.reconcile()
    assert harness.row(stack_id, 'r').owner == worker.id, 'it is no row that nothing works on'
    held.over.set()
    eventually(lambda: not worker._threads.left_behind)
    harness.run()
    harness.assert_converged(stack_id, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.order('create') == ['r']


def test_what_was_made_is_known_although_others_have_taken_the_row_meanwhile(
    harness: Harness, held: Held, waiting: tuple[Outage, WorkerService, str]
) -> None:
    """The result is refused, its object is not forgotten."""
    outage, worker, stack_id = waiting
    row = harness.row(stack_id, 'r')
    worker.give_up()
    harness.store.transact(
        HeldResource(row.id), lambda view: release(view, row.fence, Worker('sweeper', harness.new_id), lost=True)
    )
    outage.left_s = 0.0
    held.over.set()
    eventually(lambda: idle(worker))
    assert [each.physical_id for each in harness.rows(stack_id)] == ['made']
    harness.recover()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    assert harness.reality.names() == ['r']


def test_what_others_have_to_be_told_of_is_kept_for_as_long_as_the_database_is_away(
    harness: Harness, held: Held, waiting: tuple[Outage, WorkerService, str]
) -> None:
    """After the result was refused the database goes away again."""
    outage, worker, stack_id = waiting
    row = harness.row(stack_id, 'r')
    harness.store.transact(
        HeldResource(row.id), lambda view: release(view, row.fence, Worker('sweeper', harness.new_id), lost=True)
    )
    refusals: list[int] = []

    def away() -> None:
        refusals.append(1)
        if len(refusals) < 300:
            harness.store.before(WholeStack, away)
        raise DatabaseUnavailable('The database cannot be reached: refused')

    harness.store.before(WholeStack, away)
    outage.left_s = 0.0
    held.over.set()
    eventually(lambda: idle(worker))
    assert len(refusals) == 300
    assert [each.physical_id for each in harness.rows(stack_id)] == ['made']


def test_what_was_made_waits_for_as_long_as_another_worker_holds_its_row(
    harness: Harness, held: Held, waiting: tuple[Outage, WorkerService, str], caplog: pytest.LogCaptureFixture
) -> None:
    """That one may find it: until then it is neither forgotten nor anybody's to remove by hand."""
    outage, worker, stack_id = waiting
    row = harness.row(stack_id, 'r')
    owned = RESOURCE.update().where(RESOURCE.c.id == row.id)
    looks: list[int] = []

    def write(**columns: Any) -> None:
        with harness.store.writing() as connection:
            connection.execute(owned.values(**columns))
            connection.commit()

    def look() -> None:
        looks.append(1)
        if len(looks) < 300:
            harness.store.before(WholeStack, look)
        else:
            write(owner=None, fence=row.fence + 2)

    write(owner='another worker', fence=row.fence + 1)
    harness.store.before(WholeStack, look)
    outage.left_s = 0.0
    held.over.set()
    eventually(lambda: idle(worker))
    assert [each.physical_id for each in harness.rows(stack_id)] == ['made']
    assert 'r is held by another worker, which may find it' in caplog.text
    assert 'by hand' not in caplog.text


def test_what_is_stuck_is_given_up_although_the_database_is_away_just_then(harness: Harness) -> None:
    """All of it: the first that cannot be stored does not keep the others waiting, and each is stored in the end."""
    outage, go_on = Outage(harness), threading.Event()
    inside = threading.Barrier(3)

    def stuck(call: Call[Any]) -> Answer:
        inside.wait(PATIENCE_S)
        go_on.wait(PATIENCE_S)
        return Done('too late')

    harness.reality.once |= {('create', 'r'): [stuck], ('create', 's'): [stuck]}
    worker = a_worker(harness, outage.pause, threads=2)
    stack_id = harness.create({'r': 'x', 's': 'x'})
    for check in list(harness.messages.checks):
        worker.check_resource(None, *check)
    inside.wait(PATIENCE_S)
    harness.cancel(stack_id, rollback=False)
    outage.left_s = TEN_MINUTES_S
    worker.cancel(None, *harness.messages.cancels.pop())
    eventually(lambda: all(row.owner is None for row in harness.rows(stack_id)))
    assert outage.left_s <= 0
    assert {row.status_reason for row in harness.rows(stack_id)} == {'CREATE did not stop when it was cancelled'}
    go_on.set()
    eventually(lambda: idle(worker))


def test_a_result_that_the_database_refuses_for_what_is_in_it_leaves_its_object_known(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is wrong with it: it is not tried for ever, and the row knows the object."""
    worker = a_worker(harness, lambda duration_s: None)
    transact = harness.store.transact

    def refusing(scope: Any, decide: Any, following: Any = None) -> Any:
        def decided(view: Any) -> Any:
            decision = decide(view)
            if any('surprise' in str(effect) for effect in decision.effects):
                raise ValueError('out of range')
            return decision

        return transact(scope, decided, following)

    harness.store.transact = refusing  # type: ignore[method-assign]
    harness.reality.once['create', 'r'] = [lambda call: Done('made', data={'key': 'surprise'})]
    harness.reality.objects['made'] = {'name': 'r', 'value': 'x', 'stack': ''}
    stack_id = harness.create({'r': 'x'})
    worker.check_resource(None, *harness.messages.checks.pop())
    eventually(lambda: idle(worker))
    row = harness.row(stack_id, 'r')
    assert (row.physical_id, row.status, row.owner) == ('made', Status.FAILED, None)
    assert 'could not be stored' in row.status_reason
    assert 'physical id made' in caplog.text
