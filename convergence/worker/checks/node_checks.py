"""Check one node: begin, act, finish. Follow this file to see how a resource converges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from convergence import logs
from convergence.concurrency import StopReason, Task, TaskKilled
from convergence.core.claim import ACTING, NO_NODE, Claim, Step
from convergence.core.handoff import Handoff
from convergence.core.model import Action
from convergence.core.results import End, NeedsReplacement, Parked, Postponed, Result, may_have_made
from convergence.db.records import HeldRow
from convergence.db.transaction import Committed
from convergence.dispatch import Dispatcher
from convergence.documents import Document
from convergence.errors import ConvergenceError
from convergence.worker.attempts.attempt import ClaimLost
from convergence.worker.attempts.runner import Runner
from convergence.worker.checks.claim_table import ClaimTable
from convergence.worker.checks.nested_batch import NestedBatch
from convergence.worker.checks.steps import Steps
from convergence.worker.checks.unsaved_results import PendingResult
from convergence.worker.scheduler.scheduler import Scheduler
from convergence.worker.scheduler.turn import Turn

LOG = logging.getLogger(__name__)


class Settler(Protocol):
    """Decides in an engine what the failure of a traversal means for its stack."""

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """Fail the stack or roll it back, because a node of the traversal has failed.

        The call is a hint: if it is lost, the sweeper settles the stack.
        """


@dataclass(frozen=True, slots=True)
class CheckPorts:
    """The functions of the rest of the process that the check of a node needs.

    :param settler: engines.
    :param retry_later: dispatches a node after some seconds: ``retry_later(seconds, traversal_id, number)``.
    :param stored: notified of each stored result: claim, id of the object, and True if an object may have been made.
    :param lost_handoff: see `convergence.worker.attempts.port.NestingPort`.
    :param draining: True while the process drains: then no action starts.
    :param clock: seconds on the clock of this process.
    """

    settler: Settler
    retry_later: Callable[[float, str, int], None]
    stored: Callable[[Claim, str | None, bool], None]
    lost_handoff: Callable[[Claim], Handoff | None]
    draining: Callable[[], bool]
    clock: Callable[[], float]


class NodeChecks:
    """Checks nodes for one worker.

    :param scheduler: decides who runs the nodes that become ready.
    :param dispatcher: sends nodes to other workers.
    :param nested_batch: claims and starts nested stacks together.
    :param claims: the claims of each task.
    """

    def __init__(
        self,
        steps: Steps,
        runner: Runner,
        nested_batch: NestedBatch,
        scheduler: Scheduler,
        dispatcher: Dispatcher,
        claims: ClaimTable,
        ports: CheckPorts,
    ) -> None:
        self._steps = steps
        self._runner = runner
        self._nested_batch = nested_batch
        self._scheduler = scheduler
        self._dispatcher = dispatcher
        self.claims = claims
        self._ports = ports

    def check(self, turn: Turn) -> None:
        """Do the next step for a node. Does nothing if another worker does it, or if the node is done.

        A cancel of the traversal stops the task of the turn. The task was registered before the row is claimed, the
        claim reads if the traversal still runs, and afterwards the task is checked: so no cancel is missed.
        """
        traversal_id, number, begun = turn.traversal_id, turn.node, turn.claimed
        if begun is None:
            if self._ports.draining():
                self._dispatcher.cast([(traversal_id, number)])
                return
            try:
                committed = self._steps.begin(traversal_id, number)
            except ConvergenceError as error:
                LOG.warning('Node %d not started, the sweeper requeues it: %s', number, error)
                return
            if committed is None:
                LOG.debug('Ignoring node %d of traversal %s, it does not exist any more', number, traversal_id)
                return
            begun = committed.verdict
            LOG.debug('node %d: %s', number, begun.step)
            # While this thread calls a type it runs no other node, so it keeps none for itself.
            self._scheduler.on_ready(committed, None if begun.step in ACTING else turn)
        if begun.step is Step.REPLACE:
            self._replace(begun.stack_id, traversal_id, number, begun.resource_id, turn)
        elif begun.step in (Step.FAIL, Step.OVER):
            self._ports.settler.settle(begun.stack_id, traversal_id)
        elif begun.step in ACTING and begun.claim is not None:
            self._hold(self._nested_batch.claimed_with(begun.claim, turn), turn.task, turn)

    def interrupt(self, row: HeldRow, task: Task) -> None:
        """Call `cancel` of the type for an unfinished action in a stack that is at rest."""
        if self._ports.draining():
            return
        claim = self._steps.interrupt(row)
        if claim is not None:
            self._hold([claim], task, None)

    def _hold(self, claims: Sequence[Claim], task: Task, turn: Turn | None) -> None:
        """Run the steps of claims, one after the other."""
        if not self.claims.take(task, claims):
            for claim in claims:
                self._release(claim)
            return
        try:
            begun = self._nested_batch.begin_together(claims, task)
            for claim in claims[1:]:
                if claim.resource.id not in begun:  # as far as is known: the answer may have been lost
                    if self._release(claim) is End.FENCED:
                        self._scheduler.on_nested_ready(self._ports.lost_handoff(claim), turn)
                    self.claims.done(task, claim)
            for claim in (*claims[:1], *(each for each in claims[1:] if each.resource.id in begun)):
                result = self._act(claim, task, turn, begun.get(claim.resource.id))
                if isinstance(result, NeedsReplacement):
                    node = claim.node
                    self._replace(claim.stack.id, node.traversal_id, node.number, claim.resource.id, turn)
                self.claims.done(task, claim)
        except TaskKilled:
            raise  # the supervisor that killed it releases the rows
        except BaseException:
            for claim in self.claims.drop(task)[1:]:
                self._release(claim)
            raise
        self.claims.drop(task)

    def _release(self, claim: Claim) -> End | None:
        """Release a claim under which no type was called. Return the state of the row; None if it is not known."""
        try:
            committed = self._steps.not_begun(claim)
        except ConvergenceError as error:
            LOG.warning(
                'Claim of %s not released, the sweeper takes over the row: %s',
                claim.resource.name,
                error,
            )
            return None
        if committed is None:
            return None
        self._scheduler.on_ready(committed)
        return committed.verdict

    def holding(self) -> frozenset[tuple[str, int]]:
        """Key and fence of the rows that tasks work on, or whose result is not stored yet."""
        claims = [*self.claims.claims(), *(each.claim for each in self.unsaved())]
        return frozenset((claim.resource.id, claim.resource.fence) for claim in claims)

    def unsaved(self) -> tuple[PendingResult, ...]:
        """The results of actions that are not stored yet."""
        return self._steps.results.unsaved()

    def leave_behind(self, task: Task, cancelled: Container[str]) -> None:
        """Give up a task that does not stop: its claims end, and the fences refuse its late writes.

        The supervisor of the task calls this, never the task itself.

        :param cancelled: cancelled traversals. Rows of other traversals are given back in the middle of their action.
        """
        for place, claim in enumerate(self.claims.give_up(task)):
            with _bound(claim):
                if place:
                    self._release(claim)
                else:
                    self._leave(claim, task.reason is StopReason.TIME, cancelled)

    def _leave(self, claim: Claim, late: bool, cancelled: Container[str]) -> None:
        if self._steps.results.holds(claim):
            LOG.warning(
                '%s of %s ended after its thread was given up; retrying to store its result until the database is back',
                claim.action,
                claim.resource.name,
            )
            return
        LOG.warning(
            '%s of %s does not stop; giving up its thread, late results are refused', claim.action, claim.resource.name
        )
        if not late and claim.traversal.id not in cancelled:
            self._steps.give_back(claim)
            return
        what = 'timed out and did not stop' if late else 'did not stop when it was cancelled'
        committed = self._steps.abandon(claim, f'{claim.action} {what}')
        if committed is not None:
            self._conclude(claim, committed, None)

    def _conclude(self, claim: Claim, committed: Committed[End], turn: Turn | None) -> None:
        self._scheduler.on_ready(committed, turn)
        if committed.verdict in (End.FAILED, End.OVER):
            self._ports.settler.settle(claim.stack.id, claim.traversal.id)

    def _replace(self, stack_id: str, traversal_id: str, number: int, resource_id: str, turn: Turn | None) -> None:
        """Make a new row for the node, and have the node checked again."""
        committed = self._steps.replace(stack_id, traversal_id, number, resource_id)
        if committed is not None and committed.verdict is not None:
            LOG.info('Resource row %s replaced by the new row %s', resource_id, committed.verdict)
            self._scheduler.on_ready(committed, turn)

    def _act(self, claim: Claim, task: Task, turn: Turn | None, answer: Document | None) -> Result | None:
        """Call the resource type and store the result; None if the claim is lost."""
        begun = self._ports.clock()
        with _bound(claim):
            if answer is None and (
                self._ports.draining() or task.is_unwanted
            ):  # the process may have begun to drain after the row was claimed
                self._release(claim)
                return None
            LOG.debug('Starting %s of %s (%s)', claim.step, claim.resource.name, claim.resource.type)
            try:
                result = self._runner.run(claim, task, answer)
            except ClaimLost as fenced:
                answered = claim.action is Action.CREATE and claim.resource.token is not None
                self._keep_track(claim, fenced.physical_id, answered)
                return None
            if isinstance(result, Parked) and result.handoff is not None:
                self._released(claim, result, result.handoff, turn)
                return None
            end = self._finish(claim, result, claim.at + self._ports.clock() - begun, turn)
            LOG.info(
                'Ended %s of %s (%s): result %s, claim %s',
                claim.step,
                claim.resource.name,
                claim.resource.type,
                type(result).__name__,
                end,
            )
            if end is not End.FENCED:
                return result
            if self._steps.nests(claim.resource.type):
                self._scheduler.on_nested_ready(self._ports.lost_handoff(claim), turn)
            self._keep_track(claim, result.physical_id, may_have_made(claim, result))
            return None

    def _keep_track(self, claim: Claim, physical_id: str | None, perhaps_made: bool) -> None:
        committed = self._steps.keep_track(claim, physical_id, perhaps_made)
        if committed is not None:
            self._ports.stored(claim, physical_id, perhaps_made)
            self._scheduler.on_ready(committed)

    def _released(self, claim: Claim, result: Parked, handoff: Handoff, turn: Turn | None) -> None:
        """An engine parked the row when the nested stack started: dispatch the nodes that are ready by that."""
        LOG.info('%s of %s parked until its nested stack ends', claim.step, claim.resource.name)
        self._ports.stored(claim, result.physical_id, may_have_made(claim, result))
        node = claim.node
        if node.next_in_backlog is not None:
            self._dispatcher.cast([(node.traversal_id, node.next_in_backlog)])
        self._ports.retry_later(result.after_s, node.traversal_id, node.number)
        self._scheduler.on_nested_ready(handoff, turn)

    def _finish(self, claim: Claim, result: Result, now: float, turn: Turn | None) -> End:
        continues = turn is not None and self._scheduler.may_continue(turn) and not self._ports.draining()
        take = partial(self._scheduler.next_node, turn) if continues and turn is not None else None
        committed = self._steps.finish(claim, result, now, take)
        if committed is None:
            return End.FENCED
        if committed.verdict is not End.FENCED:
            self._ports.stored(claim, result.physical_id, may_have_made(claim, result))
        self._conclude(claim, committed, turn)
        if isinstance(result, Parked | Postponed) and claim.node.number != NO_NODE:
            self._ports.retry_later(result.after_s, claim.node.traversal_id, claim.node.number)
        return committed.verdict


def _bound(claim: Claim) -> AbstractContextManager[None]:
    """Add request, stack, traversal and resource of a claim to log lines."""
    return logs.bind(
        request_id=claim.traversal.request_id or None,
        stack=claim.stack.name,
        traversal=claim.traversal.id,
        node=claim.resource.name,
    )
