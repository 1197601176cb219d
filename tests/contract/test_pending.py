"""What there is to do is asked for with one question. That it says what is found is held by every test of a look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import pytest

from convergence.core.model import Status, TraversalStatus
from convergence.db.null_ports import ALL_PENDING
from convergence.db.records import Keep, RelayTask, SweepCriteria, SweepTask, WorkerTask
from convergence.db.repositories.pending import PendingTasks
from convergence.db.repositories.wiring import ports_of
from convergence.db.statements.store import Store
from tests.contract.rows import FREE, STACK, TRAVERSAL, Backend


class Broken:
    """A store that fails in a way that nobody has thought of."""

    def reading(self) -> NoReturn:
        """Never."""
        raise RuntimeError('broken')


LOOK = SweepCriteria(0.0, 0.0, 0.0, (1.0,), 10)


def test_a_store_without_rows_leaves_nothing_to_do(engine: Any) -> None:
    tasks = ports_of(Store(engine)).pending
    assert tasks.of_sweep(LOOK) == tasks.of_worker('W', 0.0) == tasks.of_relay(0.0) == frozenset()


def test_who_holds_a_row_has_to_look_after_it_and_nobody_else(engine: Any) -> None:
    ports = ports_of(Store(engine))
    backend = Backend.of('sql', ports)
    backend.fill(resources=(replace(FREE, owner='W'),))
    backend.roster.register('W', 'worker', 'host', '1', 60.0)
    assert WorkerTask.GIVE_BACK in ports.pending.of_worker('W', 1e9)
    assert WorkerTask.GIVE_BACK not in ports.pending.of_worker('V', 1e9)
    assert SweepTask.TAKE_OVER not in ports.pending.of_sweep(LOOK)
    backend.roster.leave('W')
    assert SweepTask.TAKE_OVER in ports.pending.of_sweep(LOOK)


def test_stacks_deleted_long_ago_are_purged_where_they_are_not_kept_for_ever(engine: Any) -> None:
    store = Store(engine)
    backend = Backend.of('sql', ports_of(store))
    backend.fill(
        stack=replace(STACK, status=Status.COMPLETE, deleted_at=5.0),
        traversal=replace(TRAVERSAL, status=TraversalStatus.COMPLETE),
        nodes=(),
    )
    backend.sweeps.purge_nodes(10)
    assert SweepTask.PURGE not in PendingTasks(store).of_sweep(LOOK)
    assert SweepTask.PURGE not in PendingTasks(store, Keep(deleted_s=1e11)).of_sweep(LOOK)
    assert SweepTask.PURGE in PendingTasks(store, Keep(deleted_s=60.0)).of_sweep(LOOK)


def test_where_it_cannot_be_told_all_tasks_look_for_something_to_do(
    engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = PendingTasks(Store(engine))
    monkeypatch.setattr(tasks, '_store', Broken())
    assert tasks.of_sweep(LOOK) == ALL_PENDING.of_sweep(LOOK) == frozenset(SweepTask)
    assert tasks.of_worker('W', 0.0) == ALL_PENDING.of_worker('W', 0.0) == frozenset(WorkerTask)
    assert tasks.of_relay(None) == ALL_PENDING.of_relay(None) == frozenset(RelayTask)
    failed = [each for each in caplog.records if 'Query for pending sweep tasks failed' in each.getMessage()]
    assert len(failed) == 3
