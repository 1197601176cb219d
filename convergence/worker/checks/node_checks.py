"""Check one node: begin, act, finish. Follow this file to see how a resource converges."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from convergence import logs
from convergence.concurrency import StopReason, Task, TaskKilled
from convergence.core.claim import ACTING, Claim, Step, StepDecision
from convergence.core.handoff import Handoff
from convergence.core.interrupt import NO_NODE
from convergence.core.model import Action
from convergence.core.results import End, NeedsReplacement, Parked, Postponed, Result, may_have_made
from convergence.db.records import HeldRow
from convergence.db.transaction import Committed
from convergence.dispatch import Dispatcher
from convergence.documents import Document
from convergence.errors import ConvergenceError
from convergence.worker.attempts.attempt import ClaimLost
from convergence.worker.attempts.port import NO_NESTING
from convergence.worker.attempts.runner import Runner
from convergence.worker.checks.claim_table import ClaimTable
from convergence.worker.checks.nested_batch import NestedBatch
from convergence.worker.checks.steps import Steps
from convergence.worker.checks.unsaved_results import PendingResult
from convergence.worker.in_a_row import Attendant

LOG = logging.getLogger(__name__)


def never() -> bool:
    """The default of `NodeChecks.draining`."""
    return False


class Settler(Protocol):
    """Whoever decides, on the side of the engine, what the failure of a traversal means for its stack."""

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """A node of the traversal has failed. A hint, like every message: the sweeper finds it as well."""


def nobody(claim: Claim, physical_id: str | None, perhaps_made: bool) -> None:
    """The default of who is told of results."""


class NodeChecks:
    """Checks nodes for one worker.

    :param siblings: what is claimed and begun together.
    :param later: asked to have a node cast again after some seconds.
    :param clock: seconds on the clock of this process, from any moment on.
    :param draining: whether the process was told to end: then nothing begins any more.
    :ivar holdings: what its tasks hold.
    :ivar stored: told of what is stored: under which claim, the object, and whether one may have been made.
    :ivar lost_handoff: see `convergence.worker.attempts.port.NestingPort`.
    """

    def __init__(
        self,
        steps: Steps,
        dispatcher: Dispatcher,
        runner: Runner,
        siblings: NestedBatch,
        settler: Settler,
        later: Callable[[float, str, int], None],
        clock: Callable[[], float] = time.monotonic,
        draining: Callable[[], bool] = never,
    ) -> None:
        self._steps = steps
        self._others = Attendant(dispatcher)
        self._draining = draining
        self._dispatcher = dispatcher
        self._runner = runner
        self._siblings = siblings
        self._settler = settler
        self._later = later
        self._clock = clock
        self._nests = steps.nests
        self.stored: Callable[[Claim, str | None, bool], None] = nobody
        self.lost_handoff: Callable[[Claim], Handoff | None] = NO_NESTING.lost_handoff
        self.holdings = ClaimTable(clock)

    def check(
        self,
        traversal_id: str,
        number: int,
        task: Task,
        attendant: Attendant | None = None,
        begun: StepDecision | None = None,
    ) -> None:
        """Do what there is to do for a node now. Nothing, if somebody else does it or it is done.

        :param task: what a cancel of the traversal stops. It was registered before the row is claimed, the claim reads
            whether the traversal still runs, and afterwards the task is looked at: a cancel cannot slip in between.
        :param attendant: sees to what the last step for the node makes ready; None: others are told of all of it.
        :param begun: what was decided for the node together with the end of another one, for the same task.
        """
        attendant = attendant or self._others
        if begun is None:
            if self._draining():
                self._dispatcher.cast([(traversal_id, number)])
                return
            try:
                committed = self._steps.begin(traversal_id, number)
            except ConvergenceError as error:
                LOG.warning('This worker leaves node %d to the sweeper: %s', number, error)
                return
            if committed is None:
                LOG.debug('node %d of traversal %s does not exist any more', number, traversal_id)
                return
            begun = committed.verdict
            LOG.debug('node %d: %s', number, begun.step)
            if begun.step in ACTING:
                self._dispatcher.attend(committed)  # nothing is kept back while a type is called
            else:
                attendant.attend(committed)
        if begun.step is Step.REPLACE:
            self._replace(begun.stack_id, traversal_id, number, begun.resource_id, attendant)
        elif begun.step in (Step.FAIL, Step.OVER):
            self._settler.settle(begun.stack_id, traversal_id)
        elif begun.step in ACTING and begun.claim is not None:
            self._hold(self._siblings.claimed_with(begun.claim, task, attendant), task, attendant)

    def interrupt(self, row: HeldRow, task: Task) -> None:
        """Tell the type of a row, left in the middle by a stack that is at rest, that nobody waits for it."""
        if self._draining():
            return
        claim = self._steps.interrupt(row)
        if claim is not None:
            self._hold([claim], task, self._others)

    def _hold(self, claims: Sequence[Claim], task: Task, attendant: Attendant) -> None:
        """Do what rows were claimed for, one after the other."""
        if not self.holdings.take(task, claims):
            for claim in claims:
                self._let_go(claim)
            return
        try:
            begun = self._siblings.begun(claims, task)
            for claim in claims[1:]:
                if claim.resource.id not in begun:  # as far as is known: the answer may have been lost
                    if self._let_go(claim) is End.FENCED:
                        _dispatch(self.lost_handoff(claim), attendant)
                    self.holdings.done(task, claim)
            for claim in (*claims[:1], *(each for each in claims[1:] if each.resource.id in begun)):
                result = self._act(claim, task, attendant, begun.get(claim.resource.id))
                if isinstance(result, NeedsReplacement):
                    node = claim.node
                    self._replace(claim.stack.id, node.traversal_id, node.number, claim.resource.id, attendant)
                self.holdings.done(task, claim)
        except TaskKilled:
            raise  # whoever killed it sees to the rows
        except BaseException:
            for claim in self.holdings.drop(task)[1:]:
                self._let_go(claim)
            raise
        self.holdings.drop(task)

    def _let_go(self, claim: Claim) -> End | None:
        """Nothing was called under a claim, and nothing will be. What has become of the row; None: it is not known."""
        try:
            committed = self._steps.not_begun(claim)
        except ConvergenceError as error:
            LOG.warning(
                'This worker cannot give back %s; the sweeper takes it when it misses it: %s',
                claim.resource.name,
                error,
            )
            return None
        if committed is None:
            return None
        self._dispatcher.attend(committed)
        return committed.verdict

    def holding(self) -> frozenset[tuple[str, int]]:
        """The rows that tasks work on, or have a result for: key and fence."""
        claims = [*self.holdings.claims(), *(each.claim for each in self.unsaved())]
        return frozenset((claim.resource.id, claim.resource.fence) for claim in claims)

    def unsaved(self) -> tuple[PendingResult, ...]:
        """What actions have led to and the database has not taken yet."""
        return self._steps.results.unsaved()

    def leave_behind(self, task: Task, cancelled: Container[str]) -> None:
        """A task was told to stop and did not: what it holds is taken from it, and what it writes late is refused.

        Called by whoever supervises the task, never by itself.

        :param cancelled: the traversals that nobody wants any more; what belongs to others is given back unharmed.
        """
        for place, claim in enumerate(self.holdings.give_up(task)):
            with _bound(claim):
                if place:
                    self._let_go(claim)
                else:
                    self._leave(claim, task.reason is StopReason.TIME, cancelled)

    def _leave(self, claim: Claim, late: bool, cancelled: Container[str]) -> None:
        if self._steps.results.holds(claim):
            LOG.warning('%s of %s has ended, its result waits for the database', claim.action, claim.resource.name)
            return
        LOG.warning('%s of %s does not stop and is left behind', claim.action, claim.resource.name)
        if not late and claim.traversal.id not in cancelled:
            self._steps.give_back(claim)
            return
        what = 'timed out and did not stop' if late else 'did not stop when it was told to'
        committed = self._steps.abandon(claim, f'{claim.action} {what}')
        if committed is not None:
            self._conclude(claim, committed, self._others)

    def _conclude(self, claim: Claim, committed: Committed[End], attendant: Attendant) -> None:
        attendant.attend(committed)
        if committed.verdict in (End.FAILED, End.OVER):
            self._settler.settle(claim.stack.id, claim.traversal.id)

    def _replace(self, stack_id: str, traversal_id: str, number: int, resource_id: str, attendant: Attendant) -> None:
        """Make a new row for the node, and have the node checked again."""
        committed = self._steps.replace(stack_id, traversal_id, number, resource_id)
        if committed is not None and committed.verdict is not None:
            LOG.info('resource %s is replaced by %s', resource_id, committed.verdict)
            attendant.attend(committed)

    def _act(self, claim: Claim, task: Task, attendant: Attendant, answer: Document | None) -> Result | None:
        """Call the plugin and store what came of it; None where the row was not ours any more."""
        begun = self._clock()
        with _bound(claim):
            if answer is None and (self._draining() or task.is_unwanted):  # perhaps only since the row was claimed
                self._let_go(claim)
                return None
            LOG.debug('%s %s', claim.step, claim.resource.type)
            try:
                result = self._runner.run(claim, task, answer)
            except ClaimLost as fenced:
                answered = claim.action is Action.CREATE and claim.resource.token is not None
                self._keep_track(claim, fenced.physical_id, answered)
                return None
            if isinstance(result, Parked) and result.handoff is not None:
                self._released(claim, result, result.handoff, attendant)
                return None
            end = self._finish(claim, result, claim.at + self._clock() - begun, attendant)
            LOG.info('%s of %s %s: %s', claim.step, claim.resource.type, type(result).__name__.lower(), end)
            if end is not End.FENCED:
                return result
            if self._nests(claim.resource.type):
                _dispatch(self.lost_handoff(claim), attendant)
            self._keep_track(claim, result.physical_id, may_have_made(claim, result))
            return None

    def _keep_track(self, claim: Claim, physical_id: str | None, perhaps_made: bool) -> None:
        committed = self._steps.keep_track(claim, physical_id, perhaps_made)
        if committed is not None:
            self.stored(claim, physical_id, perhaps_made)
            self._dispatcher.attend(committed)

    def _released(self, claim: Claim, result: Parked, handoff: Handoff, attendant: Attendant) -> None:
        """An engine parked the row when the nested stack started: dispatch the nodes that are ready by that."""
        LOG.info('%s parked', claim.step)
        self.stored(claim, result.physical_id, may_have_made(claim, result))
        node = claim.node
        if node.next_in_backlog is not None:
            self._dispatcher.cast([(node.traversal_id, node.next_in_backlog)])
        self._later(result.after_s, node.traversal_id, node.number)
        _dispatch(handoff, attendant)

    def _finish(self, claim: Claim, result: Result, now: float, attendant: Attendant) -> End:
        goes_on = attendant.goes_on() and not self._draining()
        committed = self._steps.finish(claim, result, now, attendant.take_waiting if goes_on else None)
        if committed is None:
            return End.FENCED
        if committed.verdict is not End.FENCED:
            self.stored(claim, result.physical_id, may_have_made(claim, result))
        self._conclude(claim, committed, attendant)
        if isinstance(result, Parked | Postponed) and claim.node.number != NO_NODE:
            self._later(result.after_s, claim.node.traversal_id, claim.node.number)
        return committed.verdict


def _dispatch(handoff: Handoff | None, attendant: Attendant) -> None:
    """Dispatch the nodes of a nested stack that are ready since an engine released the row, if it did."""
    if handoff is not None:
        attendant.attend_nested(handoff.traversal_id, handoff.nodes)


def _bound(claim: Claim) -> AbstractContextManager[None]:
    """Log lines say what they are about."""
    return logs.bind(
        request_id=claim.traversal.request_id or None,
        stack=claim.stack.name,
        traversal=claim.traversal.id,
        node=claim.resource.name,
    )
