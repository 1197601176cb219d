"""What a sweeper does, one task for each kind of thing that somebody may have left undone."""

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
from convergence.core.held import release
from convergence.core.interrupt import give_up
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
    """How often and how much. Times in seconds.

    :param older_than_s: how long a node may be ready before it is cast again.
    :param neglect_s: how long an action may go on after its own deadline before its row is taken from its worker.
    :param interrupt_s: how long workers are given to interrupt what a stack at rest has left in progress.
    :param stall_after_s: how long no step of a traversal may begin or end before that is reported.
    :param limit: most rows of one kind in one sweep.
    :param lease_s: how long the lease of a worker lasts; after an outage of the database workers have that time.
    :param clock: any that goes forward: what need not be done in each sweep is done when enough of it has passed.
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
"""How often it is said again that there is nobody to do the work."""


def nothing() -> int:
    """The default of what has objects observed."""
    return 0


def nothing_of(limit: int) -> int:
    """The default of what begins repairs."""
    return 0


class SweepTasks:
    """Carries out the tasks of one sweep. Each answers how many things were attended to.

    :param worker: this process, for the events that it stores.
    :param enrolment: has the objects observed of stacks that have come to rest.
    :param repairs: begins at most so many repairs of what observers have found changed.
    :param pending: tells which tasks have something to do.
    :param repair_pauses: see `convergence.engine.drift.requested_repairs.RepairOptions.pauses`.
    :ivar reach: is told when the database answers, and tells whether workers may be taken for dead.
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
        enrolment: Callable[[], int] = nothing,
        repairs: Callable[[int], int] = nothing_of,
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
        self.schedule = enrolment
        self._repairs = repairs
        self._pending = pending
        self._repair_pauses = repair_pauses

    def all(self) -> int:
        """Every task once that has something to do. One that fails keeps none of the others from being done.

        :raises DatabaseUnavailable: the database cannot be reached; what is left is for the next sweep.
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
            # What one of them has done may be something for those that come after it.
            if attended or name not in idle:
                attended += self._survive(name, task)
        return attended

    def _idle(self) -> frozenset[SweepTask]:
        """The tasks that have nothing to do."""
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
        """One task that fails must not keep the others from being done."""
        try:
            return task()
        except DatabaseUnavailable:
            raise
        except Conflict as error:
            LOG.info('The sweeper leaves the task %s for the next sweep: %s', name, error)
            return 0
        except Exception:
            LOG.exception('The sweeper has failed in its task %s', name)
            return 0

    def _each(self, name: str, find: Callable[[int], Sequence[FoundT]], attend: Callable[[FoundT], object]) -> int:
        """Attend to all that is found. One that fails must keep none of the others from it, now or in later sweeps.

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
                    LOG.info('The sweeper leaves the task %s of %s for later: %s', name, found, error)
                    backoff.failed(found)
                except Exception:
                    LOG.exception('The sweeper leaves the task %s of %s for later', name, found)
                    backoff.failed(found)
                else:
                    backoff.succeeded(found)
                    attended += 1
        return attended

    def take_over(self) -> int:
        """Rows of dead workers become free, and whoever waits for them is woken."""

        def take(row: HeldRow) -> None:
            LOG.warning('Worker %s is gone, resource %s is taken from it', row.owner, row.name)
            self._release(row, lost=True)

        return self._take('take over', self._sweeps.expired_claims, take)

    def expire(self) -> int:
        """Rows whose action should have ended long ago become free, so that another worker puts an end to it."""

        def take(row: HeldRow) -> None:
            LOG.warning('Worker %s does not end resource %s, which is past its deadline', row.owner, row.name)
            self._release(row, lost=False)

        return self._take('expire', lambda limit: self._sweeps.overdue_actions(limit, self._options.neglect_s), take)

    def _take(self, name: str, find: Callable[[int], Sequence[HeldRow]], take: Callable[[HeldRow], None]) -> int:
        """Take rows from workers. Not after an outage, before each worker had the time of a lease to renew its own.

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
        """Rows that were left in the middle when their stack came to rest say so."""

        def say_so(row: HeldRow) -> None:
            scope = HeldResource(row.resource_id, row.traversal_id or '', fence=row.fence)
            self._store.transact(scope, lambda view: give_up(view, row.fence, self._worker))

        return self._each('give up', lambda limit: self._sweeps.interrupted(limit, self._options.interrupt_s), say_so)

    def time_out(self) -> int:
        """Operations past their deadline end."""

        def end(overdue: EndedTraversal) -> None:
            LOG.warning('The operation is past its deadline')
            self._traversals.time_out(overdue.stack_id, overdue.traversal_id)

        return self._each('time out', self._sweeps.overdue, end)

    def settle(self) -> int:
        """Traversals that have failed, or can end now that they were cancelled, and whose stacks do not know yet."""
        return self._each(
            'settle', self._sweeps.unsettled, lambda ended: self._traversals.settle(ended.stack_id, ended.traversal_id)
        )

    def stop_nested(self) -> int:
        """What nested stacks do on behalf of resources that have come to rest without them, or are gone."""
        return self._each(
            'stop nested',
            self._sweeps.unneeded_nested,
            lambda found: self._nesting.cancel_unwanted(found.stack_id, found.resource_id),
        )

    def cancel_nested(self) -> int:
        """Nested stacks that have not been told that a stack around them is being cancelled."""
        return self._each(
            'cancel nested',
            self._sweeps.nested_to_cancel,
            lambda found: self._nesting.cancel_with(found.stack_id, found.resource_id),
        )

    def released_nested(self) -> int:
        """Nested stacks that stayed when their resources went, as was asked for: they are in no other any more."""
        return self._each(
            'set free',
            self._sweeps.released_nested,
            lambda found: self._nesting.release(found.stack_id, found.resource_id),
        )

    def wake(self) -> int:
        """Ready nodes that nobody claimed: their message was lost, or whoever had it died.

        While messages cannot be sent the nodes are left to the workers, who look for what nobody was told of.
        Where more waits for every worker than it can begin, a node most likely waits there: told of once more, it would
        wait twice. Then it is missed only after as long as what a dead worker had.
        """
        if not self._dispatcher.can_send():
            return 0
        workers = [each for each in self._roster.services() if each.kind == 'worker' and each.is_up]
        options, is_full = self._options, bool(workers) and not any(each.has_room for each in workers)
        patience_s = options.lease_s if is_full else None
        nodes = self._sweeps.undispatched(options.older_than_s, options.limit, self._worker.window, patience_s)
        # All of them count as told now: whatever happens with one, the others must be.
        for node in nodes:
            if node.phase in LAST:
                self._survive(f'conclude {node}', partial(self._conclude, node.traversal_id, node.number))
        waiting = [node for node in nodes if node.phase not in LAST]
        if waiting and not workers:
            # Messages to nobody would only pile up in the broker. The nodes are found again when they are due again.
            if self._options.clock() >= self._next_complaint:
                stacks = ', '.join(sorted({node.stack_id for node in waiting})[:5])
                LOG.warning('No worker is running; %d nodes wait for one, of the stacks %s', len(waiting), stacks)
                self._next_complaint = self._options.clock() + COMPLAINT_S
            return len(nodes)
        if waiting:
            LOG.debug('%d nodes were ready and unattended', len(waiting))
        self._dispatcher.cast((node.traversal_id, node.number) for node in waiting)
        return len(nodes)

    def _conclude(self, traversal_id: str, number: int) -> int:
        self._dispatcher.conclude([(traversal_id, number)])
        return 1

    def report(self) -> int:
        """Stacks that make no progress, or make some again. Four looks in the time that counts are enough."""
        now = self._options.clock()
        if now < self._next_report:
            return 0
        after_s = self._options.stall_after_s
        self._next_report = now + after_s / 4
        return self._each(
            'report', lambda limit: self._sweeps.stalled(limit, after_s), self._traversals.stall_reports.report
        )

    def remove_left(self) -> int:
        """Objects that a deleted stack has left: no row of one should be there, so each is an error that is told."""
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
        """Nodes of operations that are over, and what is left of stacks deleted long ago."""
        limit = self._options.limit
        return self._sweeps.purge_nodes(limit) + self._sweeps.purge_stacks(limit)

    def repair(self) -> int:
        """Objects that have changed outside of their stacks, where they are to be put right."""
        return self._repairs(self._options.limit)

    def forget(self) -> int:
        """Processes that are gone and hold nothing any more. Not after an outage: see `_take`."""
        return self._roster.remove_dead() if self.reach.may_judge() else 0
