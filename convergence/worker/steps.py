"""The transactions of a worker: what it locks and reads, who decides, and what came of it. One method, one step."""

from __future__ import annotations

import logging
from collections.abc import Callable

from convergence import concurrency
from convergence.core.check import begin
from convergence.core.claim import Assess, Begun, Claim, Worker
from convergence.core.effects import Decision
from convergence.core.finish import End, Parked, Result, abandon, escalate, finish, record, release
from convergence.core.interrupt import NO_NODE, interrupt
from convergence.core.leftover import Track, keep_track
from convergence.core.replace import replacement
from convergence.db.scopes import HeldResource, OneNode, OneReplacement, WholeStack
from convergence.db.sweeps import HeldRow
from convergence.db.transaction import Committed, Transactions
from convergence.errors import ConvergenceError

LOG = logging.getLogger(__name__)

TRACKING_S = 90
"""For how many seconds the holder of a row is given the chance to find what was made for it."""


class Steps:
    """Carries out the steps of one worker.

    :param assess: resolves what the template wants of a row; see `convergence.worker.assess`.
    :param pause: lets some seconds pass.
    """

    def __init__(
        self, store: Transactions, worker: Worker, assess: Assess, pause: Callable[[float], None] = concurrency.sleep
    ) -> None:
        self._store = store
        self._worker = worker
        self._assess = assess
        self._pause = pause

    def begin(self, traversal_id: str, number: int) -> Committed[Begun] | None:
        """Decide what to do for a node, and claim its row where a plugin has to be called."""
        return self._store.transact(
            OneNode(traversal_id, number), lambda view: begin(view, self._worker, self._assess)
        )

    def replace(self, stack_id: str, traversal_id: str, number: int, resource_id: str) -> Committed[str | None] | None:
        """Make a new row for a node.

        Where that is refused, another worker or another traversal has moved on. Nothing is lost then: whoever did,
        casts the node that the row belongs to now.
        """
        return self._store.transact(
            OneReplacement(traversal_id, number, stack_id, resource_id),
            lambda view: replacement(view, self._worker, resource_id),
        )

    def finish(self, claim: Claim, result: Result) -> Committed[End] | None:
        """Write what an action has led to and let go of the row."""
        try:
            return self._store.transact(_held(claim), lambda view: finish(view, claim, result, self._worker))
        except Exception:
            # The result could not be stored. We do not try again ourselves, or we might do so without end.
            self.give_back(claim)
            raise

    def abandon(self, claim: Claim, reason: str) -> Committed[End] | None:
        """Take a row from a task that does not stop."""
        return self._store.transact(_held(claim), lambda view: abandon(view, claim, reason, self._worker))

    def interrupt(self, row: HeldRow) -> Claim | None:
        """Claim a row that was left in the middle when its stack came to rest; None where there is nothing to do."""
        scope = HeldResource(row.resource_id, row.traversal_id or '', NO_NODE)
        committed = self._store.transact(scope, lambda view: interrupt(view, row.fence, self._worker))
        return committed.verdict if committed is not None else None

    def record(self, claim: Claim, known: Parked) -> bool:
        """Write what has become known while an action goes on; False: the row is not held any more."""
        committed = self._store.transact(_held(claim), lambda view: record(view, claim, known))
        return committed is not None and committed.verdict

    def escalate(self, claim: Claim) -> bool:
        """Write that a repair goes on as an update; False: the row is not held any more."""
        committed = self._store.transact(_held(claim), lambda view: escalate(view, claim, self._worker))
        return committed is not None and committed.verdict

    def is_wanted(self, claim: Claim) -> bool:
        """Whether the traversal of a claim still runs; so it is assumed while the database cannot be asked."""
        try:
            committed = self._store.transact(_held(claim), lambda view: Decision(view.is_running))
        except ConvergenceError:
            return True
        return committed is not None and committed.verdict

    def keep_track(self, claim: Claim, physical_id: str | None) -> Committed[Track] | None:
        """The row is somebody else's by now and the result is dropped; what was made must not be forgotten."""
        LOG.warning('%s: somebody else holds the row by now, the result is dropped', claim.resource.name)
        if physical_id is None or physical_id == claim.resource.physical_id:
            return None
        committed = None
        for _ in range(TRACKING_S):
            try:
                committed = self._store.transact(
                    WholeStack(claim.stack.id), lambda view: keep_track(view, claim, physical_id, self._worker.new_id)
                )
            except ConvergenceError as error:
                LOG.warning('%s: that it was made cannot be stored yet: %s', physical_id, error)
            else:
                if committed is None or committed.verdict is not Track.HELD:
                    break
            self._pause(1.0)
        if committed is None or committed.verdict is not Track.KNOWN:
            LOG.error(
                '%s: %s (%s) was made for stack %s, which does not know of it; remove it by hand',
                claim.resource.name, physical_id, claim.resource.type, claim.stack.id,
            )
        return committed

    def give_back(self, claim: Claim) -> None:
        """Let go of a row in the middle of its action. The sweeper has the action resumed, here or elsewhere."""
        fence = claim.resource.fence
        try:
            self._store.transact(HeldResource(claim.resource.id), lambda view: release(view, fence))
        except Exception:  # noqa: BLE001 - whatever keeps it from being stored
            LOG.warning('%s cannot even be given back; it will be when it is missed', claim.resource.name)


def _held(claim: Claim) -> HeldResource:
    return HeldResource(claim.resource.id, claim.node.traversal_id, claim.node.number)
