"""Pending tasks: one query finds the tasks that have work, before each task runs its own query.

An idle installation has many tasks and no work. One statement counts the rows that each task would find, and only tasks
with rows run. The counted query is the task's own query with the task's parameters, so both find the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal_column, select

from convergence.core.model import DISPATCH_WINDOW
from convergence.db.records import EVERYTHING, Keep, RelayTask, SweepCriteria, SweepTask, WorkerTask
from convergence.db.repositories.observations.repairs import TO_REPAIR, failed_repairs
from convergence.db.repositories.observations.scheduling import UNENROLLED
from convergence.db.repositories.outbox import FOR_BUS, TO_FAN_OUT
from convergence.db.repositories.progress import UNTOLD_PROGRESS
from convergence.db.repositories.purges import TO_BE_PURGED
from convergence.db.repositories.reads.nested import CANCELLED_AROUND, UNWANTED_NESTED
from convergence.db.repositories.roster import DEAD, HELD_BY
from convergence.db.repositories.snapshots import EMPTY_SNAPSHOTS, UNWANTED_ITEMS
from convergence.db.repositories.sweeps import (
    NEGLECTED,
    ORPHANED,
    OVER,
    OVERDUE,
    TO_BE_GIVEN_UP,
    TO_BE_TOLD,
    UNATTENDED,
    UNSETTLED,
)
from convergence.db.repositories.webhooks import TO_BE_TOLD as WEBHOOKS_TO_BE_TOLD
from convergence.db.statements.store import Store
from convergence.errors import DatabaseUnavailable

LOG = logging.getLogger(__name__)

NEVER_S = 1e12
"""Age that nothing reaches: seconds."""


class PendingTasks:
    """Tells for which tasks there is something to do; see `convergence.db.ports.PendingPort`.

    :param keep: how much of the past is kept.
    """

    def __init__(self, store: Store, keep: Keep = EVERYTHING) -> None:
        self._store = store
        self._deleted_s = NEVER_S if keep.deleted_s is None else keep.deleted_s

    def of_sweep(self, look: SweepCriteria) -> frozenset[SweepTask]:
        """Return the sweeper tasks that have work."""
        asked = {
            'older_than_s': look.older_than_s,
            'patience_s': look.older_than_s,
            'slack_s': look.slack_s,
            'rested_s': look.rested_s,
            'deleted_s': self._deleted_s,
            'limit': look.limit,
            'window': look.window,
        }
        return frozenset(map(SweepTask, self._found(_of_sweep(look.repair_pauses), asked)))

    def of_worker(self, worker_id: str, older_than_s: float, window: int = DISPATCH_WINDOW) -> frozenset[WorkerTask]:
        """Return the maintenance tasks of a worker that have work.

        :param older_than_s: seconds since the node became ready.
        """
        ages = {'older_than_s': older_than_s, 'patience_s': older_than_s}
        asked = {'worker': worker_id, **ages, 'limit': 1, 'window': window}
        return frozenset(map(WorkerTask, self._found(_OF_WORKER, asked)))

    def of_relay(self, progress_s: float | None) -> frozenset[RelayTask]:
        """Return the relay tasks that have work.

        :param progress_s: seconds between progress notifications of an operation; None: none are sent.
        """
        asked = {'interval_s': NEVER_S if progress_s is None else progress_s, 'limit': 1}
        return frozenset(map(RelayTask, self._found(_OF_RELAY, asked)))

    def _found(self, question: Select[*tuple[Any, ...]], asked: Mapping[str, Any]) -> list[str]:
        try:
            with self._store.reading() as connection:
                return [name for name, number in connection.execute(question, asked).mappings().one().items() if number]
        except DatabaseUnavailable:
            raise
        except Exception:
            # A failure of this query must not keep the tasks from their work.
            LOG.exception(
                'Query for pending sweep tasks failed, each task runs its own query in this sweep; report this error'
            )
            return list(question.selected_columns.keys())


def _number(*statements: Select[Any]) -> ColumnElement[int]:
    """How many rows some statements find in all."""
    one: ColumnElement[int] = literal_column('1')
    numbers = [
        select(func.count())
        .select_from(statement.with_only_columns(one, maintain_column_froms=True).subquery())
        .scalar_subquery()
        for statement in statements
    ]
    return sum(numbers[1:], numbers[0])


@cache
def _of_sweep(pauses: tuple[float, ...]) -> Select[*tuple[Any, ...]]:
    tasks = {
        SweepTask.TAKE_OVER: (ORPHANED,),
        SweepTask.EXPIRE: (NEGLECTED,),
        SweepTask.GIVE_UP: (TO_BE_GIVEN_UP,),
        SweepTask.TIME_OUT: (OVERDUE,),
        SweepTask.SETTLE: (UNSETTLED,),
        SweepTask.STOP_NESTED: (UNWANTED_NESTED,),
        SweepTask.CANCEL_NESTED: (CANCELLED_AROUND,),
        SweepTask.WAKE: (UNATTENDED,),
        SweepTask.PURGE: (OVER, TO_BE_PURGED),
        SweepTask.FORGET: (DEAD,),
        SweepTask.ENROL: (UNENROLLED,),
        SweepTask.REPAIR: (TO_REPAIR, failed_repairs(pauses)) if pauses else (TO_REPAIR,),
    }
    return select(*(_number(*statements).label(task.value) for task, statements in tasks.items()))


_OF_WORKER = select(
    _number(HELD_BY).label(WorkerTask.GIVE_BACK.value),
    _number(TO_BE_TOLD).label(WorkerTask.INTERRUPT.value),
    _number(UNATTENDED).label(WorkerTask.HELP_OUT.value),
    _number(UNWANTED_ITEMS, EMPTY_SNAPSHOTS).label(WorkerTask.REMOVE_SNAPSHOTS.value),
)
_OF_RELAY = select(
    _number(UNTOLD_PROGRESS).label(RelayTask.REPORT_PROGRESS.value),
    _number(TO_FAN_OUT).label(RelayTask.FAN_OUT.value),
    _number(FOR_BUS).label(RelayTask.TELL_BUS.value),
    _number(WEBHOOKS_TO_BE_TOLD).label(RelayTask.TELL_WEBHOOKS.value),
)
