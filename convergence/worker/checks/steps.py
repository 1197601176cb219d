"""The transactions of a worker. Each method of `Steps` is one step: rows to lock and read, and the core's decision."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from convergence import concurrency
from convergence.core.begin import begin
from convergence.core.claim import ACTING, NO_NODE, Claim, StepDecision, Worker
from convergence.core.effects import Decision
from convergence.core.finish import as_claimed, finish
from convergence.core.held import abandon, escalate, interrupt, record, release
from convergence.core.lost_commits import put_in_doubt
from convergence.core.model import BEGINNINGS
from convergence.core.orphans import Tracking, keep_track
from convergence.core.replacement import replacement
from convergence.core.results import End, Failed, NotBegun, Parked, Result
from convergence.core.views import NodeView
from convergence.db.records import HeldRow
from convergence.db.scopes import FreeNodes, HeldResource, OneNode, OneReplacement, WholeStack
from convergence.db.transaction import Committed, Following, Transactions
from convergence.errors import Conflict, ConvergenceError
from convergence.values import replace
from convergence.worker.checks.assess import Assessor, Evaluated, Heavy
from convergence.worker.checks.unsaved_results import LOST, PendingResult, UnsavedResults

LOG = logging.getLogger(__name__)

ROUNDS = 3
"""Maximum number of evaluations of a node whose inputs keep changing meanwhile."""
NOT_STORABLE = 'its result could not be stored; the log of the worker says why'
"""Status reason of a row whose result the database refuses because of its content."""


TakeWaiting: TypeAlias = Callable[[], int | None]
"""See `Steps.finish`."""


class Undecided(Conflict):
    """Another worker holds the row and may still find the object of a dropped result: the decision has to wait."""


class Steps:
    """Carries out the steps of one worker.

    :param assess: evaluates the desired properties of a node; see `convergence.worker.checks.assess`.
    :param pause: waits for some seconds.
    :ivar results: the results that are not stored yet.
    :ivar nests: returns True if the objects of a type are stacks.
    :param dropped: notified of each result that the fence refuses: its claim, and True if the database has lost it.
    """

    def __init__(
        self,
        store: Transactions,
        worker: Worker,
        assess: Assessor,
        dropped: Callable[[Claim, bool], None],
        pause: Callable[[float], None] = concurrency.sleep,
    ) -> None:
        self._store = store
        self._worker = worker
        self._assess = assess
        self.nests = worker.nests
        self.results = UnsavedResults(pause)
        self._dropped = dropped

    def begin(self, traversal_id: str, number: int) -> Committed[StepDecision] | None:
        """Decide the step for a node, and claim its row if a resource type has to be called.

        Properties that cost much are evaluated between two transactions: while a row is locked, others wait for it.

        :raises Conflict: the inputs of the node changed during each of `ROUNDS` evaluations.
        """
        evaluated: Evaluated | None = None

        def decide(view: NodeView) -> Decision[StepDecision]:
            return begin(view, self._worker, partial(self._assess, evaluated=evaluated))

        for _ in range(ROUNDS):
            try:
                return self._store.transact(OneNode(traversal_id, number, self._worker.max_input_bytes), decide)
            except Heavy as heavy:
                evaluated = self._assess.evaluate(heavy.view)
        raise Conflict(f'the inputs of node {number} of traversal {traversal_id} kept changing; it is checked again')

    def replace(self, stack_id: str, traversal_id: str, number: int, resource_id: str) -> Committed[str | None] | None:
        """Make a new row for a node.

        If that is refused, another worker or traversal has replaced or taken the row. Nothing is lost then: the other
        one dispatches the node that the row belongs to now.
        """
        return self._store.transact(
            OneReplacement(traversal_id, number, stack_id, resource_id),
            lambda view: replacement(view, self._worker, resource_id),
        )

    def finish(
        self, claim: Claim, result: Result, now: float | None = None, take_waiting: TakeWaiting | None = None
    ) -> Committed[End] | None:
        """Store the result of an action and release its row. Returns when that is stored, or refused by the fence.

        With `take_waiting` the same transaction also claims the row of a following node: one that becomes ready, the
        next one of the backlog, or the one that `take_waiting` returns. It does so if a type has to be called for that
        node and no lock is in the way; `Committed.following` is the claim.

        :param now: estimate of the time by the database's clock; None: read from the database.
        :param take_waiting: returns a ready node of the traversal that waits here. Called only if no other following
            node is known. None: the caller runs no further node.
        :raises Exception: the database answers, but refuses the result, and also the id of the object alone.
        """
        following = self._following(claim, take_waiting) if take_waiting is not None else None
        if following is not None:
            try:
                return self._finish(claim, result, now, following)
            except Exception as error:  # noqa: BLE001 - the cause may be the further claim: store without it
                LOG.debug('the next node is checked by itself: %s', error)
        try:
            return self._finish(claim, result, now)
        except Exception:
            LOG.exception(
                'Result refused by the database, storing the object alone: %s', PendingResult(claim, result.physical_id)
            )
        try:
            return self._finish(claim, Failed(NOT_STORABLE, physical_id=result.physical_id))
        except Exception:
            LOG.error(
                'Result dropped, the database refuses it; check the object and delete it if it is not needed: %s',
                PendingResult(claim, result.physical_id),
            )
            self.give_back(claim)
            raise

    def _following(self, claim: Claim, take_waiting: TakeWaiting) -> Following | None:
        node, number = claim.node, claim.node.next_in_backlog
        without_worker = {claim.traversal.in_service_number, claim.traversal.complete_number}
        if number is None and without_worker.issuperset(node.required_by):
            number = take_waiting()
            if number is None:
                return None

        def decide(view: NodeView) -> Decision[StepDecision] | None:
            decision = begin_alone(view, self._worker, self._assess)
            return decision if decision is not None and decision.verdict.step in ACTING else None

        seen = (claim.traversal, claim.stack)
        most = self._worker.max_input_bytes
        return Following(node.traversal_id, number, decide, seen, most, node.name, take_waiting)

    def _finish(
        self, claim: Claim, result: Result, now: float | None = None, following: Following | None = None
    ) -> Committed[End] | None:
        scope = _held(claim) if now is None else replace(_held(claim), assumed=as_claimed(claim, result, now))
        return self.results.store(
            claim,
            result.physical_id,
            lambda: self._store.transact(scope, lambda view: finish(view, claim, result, self._worker), following),
        )

    def not_begun(self, claim: Claim) -> Committed[End] | None:
        """Release a row under whose claim no type was called."""
        return self._store.transact(_held(claim), lambda view: finish(view, claim, NotBegun(), self._worker))

    def abandon(self, claim: Claim, reason: str) -> Committed[End] | None:
        """Fail the action of a task that does not stop. Returns when that is stored, or refused by the fence."""
        return self.results.store(
            claim,
            None,
            lambda: self._store.transact(_held(claim), lambda view: abandon(view, claim, reason, self._worker)),
        )

    def interrupt(self, row: HeldRow) -> Claim | None:
        """Claim a row whose action is unfinished although its stack is at rest; None if there is nothing to do."""
        scope = HeldResource(row.resource_id, row.traversal_id or '', NO_NODE, row.fence)
        committed = self._store.transact(scope, lambda view: interrupt(view, row.fence, self._worker))
        return committed.verdict if committed is not None else None

    def record(self, claim: Claim, known: Parked) -> bool:
        """Store facts about an object while its action runs. Return False if the claim is lost."""
        committed = self.results.store(
            claim,
            known.physical_id,
            lambda: self._store.transact(_held(claim), lambda view: record(view, claim, known)),
        )
        return committed is not None and committed.verdict

    def escalate(self, claim: Claim) -> bool:
        """Store that a repair continues as an update. Return False if the claim is lost."""
        committed = self.results.store(
            claim,
            None,
            lambda: self._store.transact(_held(claim), lambda view: escalate(view, claim, self._worker)),
        )
        return committed is not None and committed.verdict

    def is_wanted(self, claim: Claim) -> bool:
        """Return True if the traversal of a claim still runs, or if the database does not answer."""
        try:
            committed = self._store.transact(_held(claim), lambda view: Decision(view.is_under_way))
        except ConvergenceError:
            return True
        return committed is not None and committed.verdict

    def keep_track(self, claim: Claim, physical_id: str | None, perhaps_made: bool) -> Committed[Tracking] | None:
        """Track the object of a result that is discarded because the claim was lost.

        :param perhaps_made: True if an object may exist although its id is not known.
        """
        LOG.warning('Discarding result for %s: claim lost to another worker', claim.resource.name)
        if claim.action not in BEGINNINGS:
            self._doubt(claim)
        is_news = perhaps_made if physical_id is None else physical_id != claim.resource.physical_id
        if not is_news:
            return None

        def track() -> Committed[Tracking] | None:
            tracked = self._store.transact(
                WholeStack(claim.stack.id), lambda view: keep_track(view, claim, physical_id, self._worker.new_id)
            )
            if tracked is not None and tracked.verdict is Tracking.HELD:
                raise Undecided(f'{claim.resource.name} is held by another worker, which may find it')
            return tracked

        committed = self.results.store(claim, physical_id, track)
        if committed is None or committed.verdict not in {Tracking.KNOWN, Tracking.LEFT}:
            LOG.error(
                'Orphaned object, not tracked by any stack; delete it manually: %s', PendingResult(claim, physical_id)
            )
        return committed

    def _doubt(self, claim: Claim) -> None:
        """Mark the row as doubtful if the database has lost the claim and no other worker holds the row."""
        committed = self.results.store(
            claim,
            None,
            lambda: self._store.transact(WholeStack(claim.stack.id), lambda view: put_in_doubt(view, claim, LOST)),
        )
        self._dropped(claim, committed is not None and committed.verdict is Tracking.HELD)

    def give_back(self, claim: Claim) -> None:
        """Release a row in the middle of its action. The sweeper requeues its node, and a worker resumes the action."""
        fence = claim.resource.fence
        try:
            self._store.transact(
                HeldResource(claim.resource.id, fence=fence), lambda view: release(view, fence, self._worker)
            )
        except Exception:  # noqa: BLE001 - the sweeper takes over, for any reason
            LOG.warning('Claim of %s not released; the sweeper takes over the row', claim.resource.name)


def _held(claim: Claim) -> HeldResource:
    return HeldResource(claim.resource.id, claim.node.traversal_id, claim.node.number, claim.resource.fence)


def begin_alone(view: NodeView, worker: Worker, assess: Assessor) -> Decision[StepDecision] | None:
    """Decide the step for a node as part of another transaction, which must not fail with it.

    None if the decision fails; the node is then checked by itself.
    """
    try:
        return begin(view, worker, assess)
    except Exception as error:  # noqa: BLE001 - the other write must not fail with it
        LOG.debug('node %d is checked by itself: %s', view.node.number, error)
        return None


def begin_free(
    store: Transactions,
    worker: Worker,
    assess: Assessor,
    claim: Claim,
    numbers: Sequence[int],
    may_begin: Callable[[Claim], bool],
) -> Sequence[Committed[StepDecision]]:
    """Claim rows of further nodes of a traversal in one transaction that waits for no lock.

    :param claim: of a node of the traversal.
    :param may_begin: returns True for claims that the caller can use; other rows are not claimed.
    :raises DatabaseUnavailable: the database cannot be reached.
    """

    def decide(view: NodeView) -> Decision[StepDecision] | None:
        decision = begin_alone(view, worker, assess)
        claimed = decision.verdict.claim if decision is not None else None
        return decision if claimed is not None and may_begin(claimed) else None

    seen = (claim.traversal, claim.stack)
    nodes = FreeNodes(claim.node.traversal_id, tuple(numbers), seen, worker.max_input_bytes)
    return store.decide_free(nodes, decide)
