"""The transactions of a worker: what it locks and reads, who decides, and what came of it. One method, one step."""

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
"""Why an action has failed whose result the database refuses for what is in it."""


TakeWaiting: TypeAlias = Callable[[], int | None]
"""See `Steps.finish`."""


class Undecided(Conflict):
    """Another worker holds the row and may still find the object of a lost result: the decision has to wait."""


class Steps:
    """Carries out the steps of one worker.

    :param assess: resolves what the template wants of a row; see `convergence.worker.checks.assess`.
    :param pause: lets some seconds pass.
    :ivar results: what is known and not stored yet.
    :ivar nests: whether the objects of a type are stacks.
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
        """Decide what to do for a node, and claim its row where a plugin has to be called.

        What costs much to evaluate is evaluated between two transactions: while a row is locked everybody else waits.

        :raises Conflict: what there is to evaluate kept changing.
        """
        evaluated: Evaluated | None = None

        def decide(view: NodeView) -> Decision[StepDecision]:
            return begin(view, self._worker, partial(self._assess, evaluated=evaluated))

        for _ in range(ROUNDS):
            try:
                return self._store.transact(OneNode(traversal_id, number, self._worker.max_input_bytes), decide)
            except Heavy as heavy:
                evaluated = self._assess.evaluate(heavy.view)
        raise Conflict(f'what node {number} of traversal {traversal_id} wants kept changing; it is looked at again')

    def replace(self, stack_id: str, traversal_id: str, number: int, resource_id: str) -> Committed[str | None] | None:
        """Make a new row for a node.

        Where that is refused, another worker or another traversal has moved on. Nothing is lost then: it dispatches
        the node that the row belongs to now.
        """
        return self._store.transact(
            OneReplacement(traversal_id, number, stack_id, resource_id),
            lambda view: replacement(view, self._worker, resource_id),
        )

    def finish(
        self, claim: Claim, result: Result, now: float | None = None, take_waiting: TakeWaiting | None = None
    ) -> Committed[End] | None:
        """Write what an action has led to and let go of the row; returns when that is stored, or refused by the fence.

        :param now: estimate of the time by the database's clock; None: read from the database.
        :param take_waiting: gives a node of the traversal that was ready all along, if the caller goes on with one; it
            is asked where no other is known. The row of that, of the node behind the window or of one that becomes
            ready is claimed in the same transaction, if a type has to be called for it and no lock is in the way.
            `Committed.following` is its claim then.
        :raises Exception: neither the result nor its object alone can be stored, although the database is there.
        """
        following = self._following(claim, take_waiting) if take_waiting is not None else None
        if following is not None:
            try:
                return self._finish(claim, result, now, following)
            except Exception as error:  # noqa: BLE001 - perhaps it is the claim that cannot be stored: without it, then
                LOG.debug('Storing the result without claiming the next node: %s', error)
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
        """Let go of a row under whose claim nothing was called."""
        return self._store.transact(_held(claim), lambda view: finish(view, claim, NotBegun(), self._worker))

    def abandon(self, claim: Claim, reason: str) -> Committed[End] | None:
        """Take a row from a task that does not stop; returns when that is stored, or refused by the fence."""
        return self.results.store(
            claim,
            None,
            lambda: self._store.transact(_held(claim), lambda view: abandon(view, claim, reason, self._worker)),
        )

    def interrupt(self, row: HeldRow) -> Claim | None:
        """Claim a row that was left in the middle when its stack came to rest; None where there is nothing to do."""
        scope = HeldResource(row.resource_id, row.traversal_id or '', NO_NODE, row.fence)
        committed = self._store.transact(scope, lambda view: interrupt(view, row.fence, self._worker))
        return committed.verdict if committed is not None else None

    def record(self, claim: Claim, known: Parked) -> bool:
        """Write what has become known while an action goes on; False: the row is not held any more."""
        committed = self.results.store(
            claim,
            known.physical_id,
            lambda: self._store.transact(_held(claim), lambda view: record(view, claim, known)),
        )
        return committed is not None and committed.verdict

    def escalate(self, claim: Claim) -> bool:
        """Write that a repair goes on as an update; False: the row is not held any more."""
        committed = self.results.store(
            claim,
            None,
            lambda: self._store.transact(_held(claim), lambda view: escalate(view, claim, self._worker)),
        )
        return committed is not None and committed.verdict

    def is_wanted(self, claim: Claim) -> bool:
        """Return True if the traversal of a claim still runs, also while the database is away."""
        try:
            committed = self._store.transact(_held(claim), lambda view: Decision(view.is_under_way))
        except ConvergenceError:
            return True
        return committed is not None and committed.verdict

    def keep_track(self, claim: Claim, physical_id: str | None, perhaps_made: bool) -> Committed[Tracking] | None:
        """Keep track of the object of a result that is dropped because the claim was lost.

        :param perhaps_made: whether there may be an object also where it has no id.
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
        """Let go of a row in the middle of its action. The sweeper has the action resumed, here or elsewhere."""
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

    None where it is looked at by itself.
    """
    try:
        return begin(view, worker, assess)
    except Exception as error:  # noqa: BLE001 - the other write must not fail with it
        LOG.debug('Node %d not begun in this transaction, it gets one of its own: %s', view.node.number, error)
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
    :param may_begin: True for claims that are wanted; the row of any other node is left alone.
    :raises DatabaseUnavailable: the database cannot be reached.
    """

    def decide(view: NodeView) -> Decision[StepDecision] | None:
        decision = begin_alone(view, worker, assess)
        claimed = decision.verdict.claim if decision is not None else None
        return decision if claimed is not None and may_begin(claimed) else None

    seen = (claim.traversal, claim.stack)
    nodes = FreeNodes(claim.node.traversal_id, tuple(numbers), seen, worker.max_input_bytes)
    return store.decide_free(nodes, decide)
