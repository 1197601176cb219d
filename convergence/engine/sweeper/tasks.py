"""The tasks of the sweeper, one for each kind of unattended work."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from convergence import logs
from convergence.core.claim import Worker
from convergence.core.held import give_up, release
from convergence.db.backoff import Backoff
from convergence.db.null_ports import ALL_PENDING
from convergence.db.ports import PendingPort, RosterPort, SweepsPort
from convergence.db.records import EndedTraversal, HeldRow, SweepCriteria, SweepTask, TraversalProgress, UnneededNested
from convergence.db.scopes import HeldResource
from convergence.db.transaction import LAST, Transactions
from convergence.dispatch import Dispatcher
from convergence.engine.nesting.stops import NestedStops
from convergence.engine.sweeper.left_behind import LeftBehind
from convergence.engine.sweeper.reach import Reach
from convergence.engine.traversals.traversals import Traversals
from convergence.errors import Conflict, DatabaseUnavailable

LOG = logging.getLogger(__name__)

FoundT = TypeVar('FoundT', HeldRow, EndedTraversal, TraversalProgress, UnneededNested)


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Intervals and limits of the sweeper. Times in seconds.

    :param older_than_s: a node that is ready for longer is requeued.
    :param neglect_s: an action that exceeds its own deadline by more loses its claim.
    :param interrupt_s: time that workers have to interrupt actions of a stack at rest.
    :param stall_after_s: a traversal without a finished or started step for longer is reported.
    :param limit: maximum number of rows of one kind in one sweep.
    :param lease_s: length of a worker's lease; after a database outage workers have that time to renew it.
    :param clock: monotonic; tasks that are not due in each sweep use it.
    """

    interval_s: float = 5.0
    older_than_s: float = 5.0
    neglect_s: float = 60.0
    interrupt_s: float = 60.0
    stall_after_s: float = 300.0
    limit: int = 500
    lease_s: float = 30.0
    clock: Callable[[], float] = time.monotonic


COMPLAINT_S = 300.0
"""Seconds between repeated warnings that no worker is running."""


class SweepTasks:
    """Performs the tasks of one sweep. Each returns the number of rows handled.

    :param worker: this process, for the events that it stores.
    :param schedule: schedules observations for stacks that have reached rest; None: there are no observers.
    :param repairs: begins up to a given number of drift repairs; None: drift is never repaired.
    :param pending: knows which tasks have work.
    :param repair_pauses: see `convergence.engine.drift.requested_repairs.RepairOptions.pauses`.
    :ivar reach: records the answers of the database, and judges if expired leases mean dead workers.
    """

    def __init__(
        self,
        store: Transactions,
        sweeps: SweepsPort,
        roster: RosterPort,
        dispatcher: Dispatcher,
        traversals: Traversals,
        options: SweepOptions,
        worker: Worker,
        nesting: NestedStops,
        schedule: Callable[[], int] | None = None,
        repairs: Callable[[int], int] | None = None,
        pending: PendingPort = ALL_PENDING,
        repair_pauses: tuple[float, ...] = (),
    ) -> None:
        self._store = store
        self._sweeps = sweeps
        self._roster = roster
        self._dispatcher = dispatcher
        self._traversals = traversals
        self._options = options
        self._worker = worker
        self._nesting = nesting
        self.reach = Reach(options.lease_s)
        self._backoffs: dict[str, Backoff] = {}
        self._next_report = self._next_look = -math.inf
        self._left_behind = LeftBehind(traversals, traversals.reader, worker.new_id)
        self._next_complaint = -math.inf
        self._schedule = schedule
        self._repairs = repairs
        self._pending = pending
        self._repair_pauses = repair_pauses

    def all(self) -> int:
        """Run every task that has work once. A task that fails does not prevent the others.

        :raises DatabaseUnavailable: the database is out of reach; the next sweep continues.
        """
        tasks: dict[str, Callable[[], int]] = {
            SweepTask.TAKE_OVER: self.take_over,
            SweepTask.EXPIRE: self.expire,
            SweepTask.GIVE_UP: self.give_up_left,
            SweepTask.TIME_OUT: self.time_out,
            SweepTask.SETTLE: self.settle,
            SweepTask.STOP_NESTED: self.stop_nested,
            SweepTask.CANCEL_NESTED: self.cancel_nested,
            SweepTask.WAKE: self.wake,
            'report': self.report,
            'remove left': self.remove_left,
            SweepTask.PURGE: self.purge,
            SweepTask.FORGET: self.forget,
            SweepTask.ENROL: self.schedule,
            SweepTask.REPAIR: self.repair,
        }
        idle, attended = self._idle(), 0
        self.reach.answered()
        for name, task in tasks.items():
            # Results of one task may be work for those after it.
            if attended or name not in idle:
                attended += self._survive(name, task)
        return attended

    def _idle(self) -> frozenset[SweepTask]:
        """The tasks without work."""
        options = self._options
        look = SweepCriteria(
            options.older_than_s,
            options.neglect_s,
            options.interrupt_s,
            self._repair_pauses,
            options.limit,
            self._worker.window,
        )
        return frozenset(SweepTask) - self._pending.of_sweep(look)

    def _survive(self, name: str, task: Callable[[], int]) -> int:
        """Run one task. Its failure does not prevent the others."""
        try:
            return task()
        except DatabaseUnavailable:
            raise
        except Conflict as error:
            LOG.info('Sweep task %s postponed to the next sweep: %s', name, error)
            return 0
        except Exception:
            LOG.exception('Sweep task %s failed unexpectedly, will retry', name)
            return 0

    def _each(self, name: str, find: Callable[[int], Sequence[FoundT]], attend: Callable[[FoundT], object]) -> int:
        """Handle all rows that a query finds. The failure of one row delays no other, now or in later sweeps.

        :param find: finds at most so many, and often the same ones first.
        """
        backoff, attended = self._backoffs.setdefault(name, Backoff()), 0
        backoff.begin()
        for found in find(self._options.limit + len(backoff)):
            if backoff.is_passed_over(found):
                continue
            with logs.bind(stack=found.stack_id, traversal=found.traversal_id):
                try:
                    attend(found)
                except DatabaseUnavailable:
                    raise
                except Conflict as error:
                    LOG.info('Sweep task %s of %s postponed: %s', name, found, error)
                    backoff.failed(found)
                except Exception:
                    LOG.exception('Sweep task %s of %s failed unexpectedly, will retry', name, found)
                    backoff.failed(found)
                else:
                    backoff.succeeded(found)
                    attended += 1
        return attended

    def take_over(self) -> int:
        """Release the rows of dead workers, and notify the nodes that wait for them."""

        def take(row: HeldRow) -> None:
            LOG.warning(
                'Worker %s is dead; releasing its claim on resource %s, another worker continues', row.owner, row.name
            )
            self._release(row, lost=True)

        return self._take('take over', self._sweeps.expired_claims, take)

    def expire(self) -> int:
        """Release rows whose action exceeds its deadline, so that another worker ends it."""

        def take(row: HeldRow) -> None:
            LOG.warning(
                'Worker %s exceeds the deadline of its action on resource %s; releasing the claim', row.owner, row.name
            )
            self._release(row, lost=False)

        return self._take('expire', lambda limit: self._sweeps.overdue_actions(limit, self._options.neglect_s), take)

    def _take(self, name: str, find: Callable[[int], Sequence[HeldRow]], take: Callable[[HeldRow], None]) -> int:
        """Take claims from workers, but not before each worker had time to renew its lease after an outage.

        To find a row, or to take one, may itself last until an outage is over.
        """

        def found(limit: int) -> Sequence[HeldRow]:
            rows = find(limit)
            self.reach.answered()
            return rows if self.reach.may_judge() else ()

        def take_one(row: HeldRow) -> None:
            if self.reach.may_judge():
                take(row)
                self.reach.answered()

        return self._each(name, found, take_one)

    def _release(self, row: HeldRow, *, lost: bool) -> None:
        committed = self._store.transact(
            HeldResource(row.resource_id, fence=row.fence),
            lambda view: release(view, row.fence, self._worker, lost=lost, silent_s=row.silent_s),
        )
        if committed is not None:
            self._dispatcher.attend(committed)

    def give_up_left(self) -> int:
        """Mark rows as interrupted whose action was unfinished when their stack reached rest."""

        def say_so(row: HeldRow) -> None:
            scope = HeldResource(row.resource_id, row.traversal_id or '', fence=row.fence)
            self._store.transact(scope, lambda view: give_up(view, row.fence, self._worker))

        return self._each('give up', lambda limit: self._sweeps.interrupted(limit, self._options.interrupt_s), say_so)

    def time_out(self) -> int:
        """End operations past their deadline."""

        def end(overdue: EndedTraversal) -> None:
            LOG.warning('Operation of stack %s exceeds its deadline; failing it', overdue.stack_id)
            self._traversals.time_out(overdue.stack_id, overdue.traversal_id)

        return self._each('time out', self._sweeps.overdue, end)

    def settle(self) -> int:
        """Settle the stacks of traversals that have failed, or that can end after a cancel."""
        return self._each(
            'settle', self._sweeps.unsettled, lambda ended: self._traversals.settle(ended.stack_id, ended.traversal_id)
        )

    def stop_nested(self) -> int:
        """Stop nested stacks that work for resources which have reached rest without them, or are gone."""
        return self._each(
            'stop nested',
            self._sweeps.unneeded_nested,
            lambda found: self._nesting.cancel_unwanted(found.stack_id, found.resource_id),
        )

    def cancel_nested(self) -> int:
        """Cancel nested stacks whose parent stack is being cancelled."""
        return self._each(
            'cancel nested',
            self._sweeps.nested_to_cancel,
            lambda found: self._nesting.cancel_with(found.stack_id, found.resource_id),
        )

    def released_nested(self) -> int:
        """Make nested stacks independent that stayed when their resources went."""
        return self._each(
            'set free',
            self._sweeps.released_nested,
            lambda found: self._nesting.release(found.stack_id, found.resource_id),
        )

    def wake(self) -> int:
        """Requeue ready nodes that no worker has claimed: the message was lost, or its receiver died.

        While messages cannot be sent, workers poll for these nodes. If more nodes wait than all workers can begin, a
        node most likely waits in the broker's queue, and a second message would make it wait twice. Then it counts as
        lost only after the time that a dead worker's rows have.
        """
        if not self._dispatcher.can_send():
            return 0
        workers = [each for each in self._roster.services() if each.kind == 'worker' and each.is_up]
        options, is_full = self._options, bool(workers) and not any(each.has_room for each in workers)
        patience_s = options.lease_s if is_full else None
        nodes = self._sweeps.undispatched(options.older_than_s, options.limit, self._worker.window, patience_s)
        # All of them count as requeued now, so that an error with one does not affect the others.
        for node in nodes:
            if node.phase in LAST:
                self._survive(f'conclude {node}', partial(self._conclude, node.traversal_id, node.number))
        waiting = [node for node in nodes if node.phase not in LAST]
        if waiting and not workers:
            # Without workers, messages would only pile up in the broker. The nodes are found again when they are due.
            if self._options.clock() >= self._next_complaint:
                stacks = ', '.join(sorted({node.stack_id for node in waiting})[:5])
                LOG.warning(
                    'No worker is running; start one. %d nodes are waiting, of the stacks %s', len(waiting), stacks
                )
                self._next_complaint = self._options.clock() + COMPLAINT_S
            return len(nodes)
        if waiting:
            LOG.debug('Requeued %d ready nodes that no worker had claimed', len(waiting))
        self._dispatcher.cast((node.traversal_id, node.number) for node in waiting)
        return len(nodes)

    def _conclude(self, traversal_id: str, number: int) -> int:
        self._dispatcher.conclude([(traversal_id, number)])
        return 1

    def report(self) -> int:
        """Report stacks that stall, or make progress again. Four checks within the stall time are enough."""
        now = self._options.clock()
        if now < self._next_report:
            return 0
        after_s = self._options.stall_after_s
        self._next_report = now + after_s / 4
        return self._each(
            'report', lambda limit: self._sweeps.stalled(limit, after_s), self._traversals.stall_reports.report
        )

    def remove_left(self) -> int:
        """Delete objects that a deleted stack has left. Such a row is an error, so each is reported."""
        now = self._options.clock()
        if now < self._next_look:
            return 0
        again_s = self._options.stall_after_s
        self._next_look = now + again_s / 4
        return self.released_nested() + self._each(
            'remove left',
            lambda limit: self._sweeps.left_behind(limit, again_s),
            self._left_behind.remove,
        )

    def purge(self) -> int:
        """Purge nodes of ended operations, and rows of stacks deleted long ago."""
        limit = self._options.limit
        return self._sweeps.purge_nodes(limit) + self._sweeps.purge_stacks(limit)

    def schedule(self) -> int:
        """Schedule observations for stacks that have reached rest."""
        return self._schedule() if self._schedule is not None else 0

    def repair(self) -> int:
        """Begin drift repairs that the policy demands."""
        return self._repairs(self._options.limit) if self._repairs is not None else 0

    def forget(self) -> int:
        """Remove dead processes without claims from the roster. Not after an outage: see `_take`."""
        return self._roster.remove_dead() if self.reach.may_judge() else 0
