"""Start, settle and stop traversals. Every operation on a stack passes through here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from convergence import errors, logs
from convergence.core.effects import Decision
from convergence.core.failure import (
    Cancelled,
    Outcome,
    cancel_patiently,
    cancel_stack,
    end_cancel,
    fail_stack,
    outcome,
    timed_out,
)
from convergence.core.model import UNDER_WAY, Action, Goal, Status, TraversalStatus
from convergence.core.nesting import joined
from convergence.core.request import Planned, Planner, Request
from convergence.core.rows import Stack, Template, Traversal
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.db.scopes import Scope, SeveralStacks, StackAlone, WholeStack
from convergence.db.transaction import LAST, Transactions
from convergence.dispatch import Dispatcher
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.notifications.stall_reports import NAMED, StallReports, names_waited_for
from convergence.engine.reads.formats import moment
from convergence.engine.traversals.start import TraversalStart
from convergence.rpc.shares import on_behalf_of
from convergence.values import replace

LOG = logging.getLogger(__name__)

ROUNDS = 5
"""Maximum number of attempts to prepare an operation while other operations change the stack."""
REMEMBERED = 20
"""How many traversals of a stack, the newest, may have work that still runs when one of them is late."""


class Overtaken(errors.ConvergenceError):
    """The stack has changed since the operation was prepared: prepare it again."""


class Traversals:
    """Plans traversals and ends them early.

    :ivar stall_reports: reports traversals that make no progress.
    """

    def __init__(
        self,
        store: Transactions,
        reader: ReaderPort,
        compiler: TemplateCompiler,
        dispatcher: Dispatcher,
        planner: Planner,
    ) -> None:
        self._store = store
        self._reader = self.reader = reader
        self._compiler = compiler
        self._dispatcher = dispatcher
        self._planner = planner
        self._new_id = planner.new_id
        self.stall_reports = StallReports(store, reader, planner.new_id)

    # --- starting ---------------------------------------------------------------------------------------------

    def start(self, stack: Stack, request: Request, parent_resource_id: str | None = None) -> Planned:
        """Give a stack a new traversal; see `TraversalStart.of` and `begin`."""
        return self.begin(TraversalStart.of(stack, request, parent_resource_id))

    def begin(self, start: TraversalStart) -> Planned:
        """Plan a traversal, and dispatch its ready nodes.

        :raises EntityNotFound: the stack is gone.
        :raises StackExists: a new stack has the name of a living stack of the project.
        :raises ConvergenceError: from the request's guard.
        """
        start = self._named(start)
        planned = self._accept(start)
        self._announce(start, planned)
        return planned

    def begin_together(self, starts: Sequence[TraversalStart]) -> list[Planned | None]:
        """Begin traversals of several stacks that are nested in one parent stack, in one transaction.

        :param starts: the row of each, whose object the stack is, is claimed; see `SeveralStacks`.
        :returns: None for each that did not begin; beginning it alone reports the reason.
        """
        starts = [self._named(start) for start in starts]

        def decide(views: Sequence[PlanView | None]) -> Decision[tuple[Planned | None, ...]]:
            return joined([self._decided(start, view) for start, view in zip(starts, views, strict=True)])

        try:
            committed = self._store.transact(SeveralStacks(tuple(start.scope for start in starts)), decide)
        except errors.ConvergenceError as error:
            LOG.debug('Planning %d nested stacks one by one: %s (%s)', len(starts), error, error.__cause__)
            return [None] * len(starts)
        assert committed is not None
        begun: list[Planned | None] = []
        for start, planned in zip(starts, committed.verdict, strict=True):
            # The answer to the commit may have been lost: then it is there, and could not be planned once more.
            begun.append(planned or self._stored(start))
            if begun[-1] is not None:
                self._announce(start, begun[-1])
        return begun

    def _named(self, start: TraversalStart) -> TraversalStart:
        if start.request.traversal_id:
            return start
        return replace(start, request=replace(start.request, traversal_id=self._new_id()))

    def _stored(self, start: TraversalStart) -> Planned | None:
        """The stored plan, if one of the plans is stored."""
        plans = start.plans
        return start.stored(self._reader.traversal(plans[0].traversal.id)) if plans else None

    def _decided(self, start: TraversalStart, view: PlanView | None) -> Decision[Planned] | None:
        if view is None:
            return None
        try:
            return start.decide(view, self._planner)
        except errors.ConvergenceError:
            return None

    def _accept(self, start: TraversalStart) -> Planned:
        """Store a plan. If the answer to a commit was lost, the next attempt may be refused because of the stored plan;
        that is no refusal.
        """
        scope: Scope[PlanView] = start.scope
        try:
            committed = self._store.transact(scope, lambda view: start.decide(view, self._planner))
        except errors.DatabaseUnavailable:
            raise
        except Exception:
            stored = self._stored(start)
            if stored is None:
                raise
            return stored
        if committed is None:
            raise errors.EntityNotFound('Stack', start.stack.name)
        return committed.verdict

    def _announce(self, start: TraversalStart, planned: Planned) -> None:
        """Dispatch ready nodes, unless the caller dispatches those that need a worker; see `Handoff`."""
        stack, traversal, handoff = start.stack, planned.traversal, start.handoff
        by_caller = handoff is not None and handoff.caller_dispatches and planned.releases(handoff)
        with logs.bind(stack=stack.name, traversal=traversal.id), on_behalf_of(stack.project_id):
            LOG.info(
                '%s of stack %s planned: %d nodes, %d of them unchanged',
                traversal.action,
                stack.name,
                traversal.node_count,
                traversal.unchanged,
            )
            if traversal.for_parent and not by_caller:
                self._dispatcher.cast_together(traversal.id, planned.checks)
            elif not by_caller:
                self._dispatcher.cast((traversal.id, number) for number in planned.checks)
            self._dispatcher.conclude((traversal.id, node.number) for node in planned.ready if node.phase in LAST)
            if traversal.cancels and planned.is_busy:
                self._stop_workers(stack.id, planned.superseded)

    def decide(self, scope: Scope[PlanView], decide: Callable[[PlanView], Decision[Any]]) -> None:
        """Commit a decision about a stack that needs no traversal. Has no effect if the stack is gone."""
        self._store.transact(scope, decide)

    # --- ending early -----------------------------------------------------------------------------------------

    def settle(self, stack_id: str, traversal_id: str) -> Outcome:
        """Fail the stack of a failed traversal, or plan its rollback. Has no effect if that is done already.

        One that is being cancelled ends, if nothing of it runs any more.
        """
        for _ in range(ROUNDS):
            stack, traversal = self._reader.stack(stack_id), self._reader.traversal(traversal_id)
            if stack is None or traversal is None:
                return Outcome.NOTHING
            if traversal.status is TraversalStatus.CANCELLING:
                self._end_cancel(stack)
                return Outcome.NOTHING
            wanted = outcome(stack, traversal)
            try:
                if wanted is Outcome.ROLL_BACK:
                    # Without a failed node the deadline has passed: stop the actions that still run.
                    self.roll_back(stack, traversal, cancels=traversal.failed_phase is None)
                elif wanted is Outcome.FAIL:
                    self._fail(stack)
            except Overtaken:
                continue
            except errors.UserError as error:
                LOG.warning('Rollback of stack %s is impossible; failing the stack: %s', stack.name, error)
                self._fail(stack, str(error))
                return Outcome.FAIL
            return wanted
        return Outcome.NOTHING

    def _fail(self, stack: Stack, no_way_back: str = '') -> None:
        committed = self._store.transact(StackAlone(stack.id), lambda view: fail_stack(view, self._new_id, no_way_back))
        if committed is not None and committed.verdict is Outcome.FAIL:
            LOG.info('Stack %s failed', stack.name)
            self._dispatcher.attend(committed)

    def roll_back(self, stack: Stack, failed: Traversal, *, request_id: str = '', cancels: bool = False) -> Planned:
        """Plan a traversal back to the last good template, or to nothing if there is none.

        :param failed: the traversal to be rolled back; it must still be the current one.
        :param cancels: stop running actions instead of waiting for them.
        :raises Overtaken: it is not, or the stack has another last good template by now.
        """
        template_id = stack.last_good_template_id
        row, goal = None, Goal()
        if template_id is not None:
            row, goal = self._last_good(stack, template_id, failed)

        def guard(view: PlanView) -> None:
            now = view.stack
            same = now is not None and now.traversal_id == failed.id and now.last_good_template_id == template_id
            if not same or now is None or now.status is not Status.IN_PROGRESS:
                raise Overtaken(f'stack {stack.name} has moved on')

        operation = Request(
            Action.ROLLBACK,
            goal,
            guard,
            template=row,
            request_id=request_id or failed.request_id,
            cancels=cancels,
            retains=failed.action is Action.ADOPT,
            observes=failed.observes,
            cause=failed.reason if failed.status is TraversalStatus.FAILED else f'{failed.action} cancelled',
        )
        try:
            return self.start(stack, operation)
        except errors.EntityNotFound:
            # It was there a moment ago: a server of the database that lags behind does not show it yet.
            raise Overtaken(f'stack {stack.name} is not seen any more') from None

    def _last_good(self, stack: Stack, template_id: str, failed: Traversal) -> tuple[Template, Goal]:
        try:
            row, compiled = self._compiler.stored(stack, template_id)
        except errors.EntityNotFound:
            now = self._reader.stack(stack.id)
            if now is None or now.traversal_id != failed.id or now.last_good_template_id != template_id:
                raise Overtaken(f'stack {stack.name} has moved on') from None
            raise
        return row, compiled.goal

    def time_out(self, stack_id: str, traversal_id: str) -> None:
        """End a traversal past its deadline: it fails, its workers are stopped, its stack is settled."""

        def decide(view: PlanView) -> Decision[bool]:
            traversal = view.traversal
            if traversal is None or traversal.id != traversal_id or traversal.deadline > view.now:
                return Decision(False)
            if traversal.status is TraversalStatus.CANCELLING:
                return Decision(True, cancel_stack(view, self._new_id).effects)
            return Decision(True, (timed_out(traversal, view.now, waited_for),))

        waited_for = names_waited_for(self._reader.frontier(traversal_id, NAMED + 1))
        committed = self._store.transact(StackAlone(stack_id), decide)
        if committed is not None and committed.verdict:
            self._stop_workers(stack_id, traversal_id)
            self._dispatcher.attend(committed)
            self.settle(stack_id, traversal_id)

    def cancel(self, stack: Stack, guard: Callable[[PlanView], None], patience_s: float = 0.0) -> None:
        """Stop the running traversal without a rollback.

        :param patience_s: seconds that running actions have to finish, here and in all nested stacks; nothing else
            begins meanwhile. 0: they are stopped now.
        """

        def may_stop(view: PlanView) -> bool:
            guard(view)
            return True

        if patience_s > 0:
            whole = WholeStack(stack.id, counted=stack.resource_count)
            self._wind_down(whole, may_stop, lambda view: view.now + patience_s)
        else:
            self.stop(StackAlone(stack.id), may_stop)

    def cancel_with(self, around: Traversal, nested_id: str, resource_id: str) -> None:
        """Cancel a nested stack's operation that belongs to a parent traversal which is being cancelled."""

        def may_stop(view: PlanView) -> bool:
            return view.traversal is not None and view.traversal.for_parent

        self._wind_down(WholeStack(nested_id, resource_id), may_stop, lambda view: around.deadline)

    def _wind_down(
        self, scope: WholeStack, may_stop: Callable[[PlanView], bool], until: Callable[[PlanView], float]
    ) -> None:
        def decide(view: PlanView) -> Decision[Cancelled]:
            if not may_stop(view):
                return Decision(Cancelled())
            return cancel_patiently(view, self._new_id, until(view), lambda at: str(moment(at)))

        committed = self._store.transact(scope, decide)
        if committed is None or not committed.verdict.traversal_id:
            return
        if committed.verdict.deadline is None:
            self._stop_workers(scope.stack_id, committed.verdict.traversal_id)
            self._dispatcher.attend(committed)
            return
        LOG.info('Cancelling the operation of stack %s: running actions may finish, no new ones begin', scope.stack_id)
        cancelled = self._reader.traversal(committed.verdict.traversal_id)
        if cancelled is None or cancelled.status is not TraversalStatus.CANCELLING:
            return
        for nested in self._reader.nested_at_work(scope.stack_id):
            self.cancel_with(cancelled, nested.id, nested.parent_resource_id or '')

    def _end_cancel(self, stack: Stack) -> None:
        if self._reader.busy(stack.id, 1):
            return
        committed = self._store.transact(
            WholeStack(stack.id, counted=stack.resource_count), lambda view: end_cancel(view, self._new_id)
        )
        if committed is not None and committed.verdict is not None:
            LOG.info('Cancelled operation of stack %s has ended: none of its actions runs any more', stack.name)
            self._dispatcher.attend(committed)

    def stop(self, scope: StackAlone, may_stop: Callable[[PlanView], bool]) -> str | None:
        """Stop the running traversal without a rollback, if `may_stop` agrees; the id of the stopped traversal."""
        tried: list[str | None] = []

        def decide(view: PlanView) -> Decision[str | None]:
            traversal = view.traversal
            if traversal is not None and traversal.id in tried and traversal.status is TraversalStatus.CANCELLED:
                return Decision(traversal.id)  # the answer to the commit was lost
            nothing: Decision[str | None] = Decision(None)
            decision = cancel_stack(view, self._new_id) if may_stop(view) else nothing
            tried.append(decision.verdict)
            return decision

        committed = self._store.transact(scope, decide)
        stopped = committed.verdict if committed is not None else None
        if committed is not None and stopped is not None:
            self._stop_workers(scope.stack_id, stopped)
            self._dispatcher.attend(committed)
        return stopped

    def _stop_workers(self, stack_id: str, ended: str | None) -> None:
        """Make workers stop actions of all traversals of the stack but the running one.

        Includes older traversals: one that failed or was superseded has no deadline any more, and its actions may be
        those for which the last traversal waited until its own deadline.

        :param ended: a traversal that has just ended, in case a lagging database server does not show that yet.
        """
        for each in self._reader.traversals(stack_id, newest=REMEMBERED):
            if each.id == ended or each.status not in (*UNDER_WAY, TraversalStatus.COMPLETE):
                self._dispatcher.cancel(stack_id, each.id)
