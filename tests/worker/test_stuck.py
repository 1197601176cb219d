"""A plugin that does not come back: the worker goes on without it, and what it does late is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from convergence.core.model import Action, Status
from convergence.resources.contract import Answer, Call, Done
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.upkeep import Rows
from tests.harness import Harness

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
    options = WorkerOptions('host', '1', cancel_grace_s=0.05, threads=threads)
    rows = Rows(harness.store, harness.reader, harness.roster)
    worker = WorkerService(rows, harness.dispatcher, harness.registry, harness, options, harness.new_id)
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
    (traversal_id, number), = harness.messages.checks
    harness.messages.checks.clear()
    worker.check_resource(None, traversal_id, number)
    assert stuck.entered.wait(PATIENCE_S)

    harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack_id}, False)
    worker.cancel(None, stack_id, traversal_id)
    eventually(lambda: harness.reader.resources(stack_id)[0].owner is None)

    (row,) = harness.reader.resources(stack_id)
    assert (row.action, row.status) == (Action.CREATE, Status.FAILED)
    assert row.status_reason == 'CREATE did not stop when it was told to'

    # The only thread is stuck, and yet the worker works.
    other = harness.create({'s': 'x'}, 'other')
    for check in list(harness.messages.checks):
        worker.check_resource(None, *check)
    eventually(lambda: harness.state(other) == 'CREATE_COMPLETE')

    stuck.release.set()
    assert stuck.returned.wait(PATIENCE_S)
    eventually(lambda: any(row.physical_id == 'made too late' for row in harness.reader.resources(stack_id)))
