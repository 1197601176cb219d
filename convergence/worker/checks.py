"""Check one node: begin, act, finish. Follow this file to see how a resource converges."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from convergence import logs
from convergence.concurrency import Task
from convergence.core.check import ACTING, Assess, Begun, Claim, Step, Worker, begin, replacement
from convergence.core.effects import Decision
from convergence.core.finish import End, Parked, Result, Unsuitable, escalate, finish, record, release
from convergence.core.leftover import keep_track
from convergence.db.scopes import HeldResource, OneNode, OneReplacement, WholeStack
from convergence.db.transaction import Transactions
from convergence.dispatch import Dispatcher
from convergence.errors import ConvergenceError
from convergence.resources.registry import Registry
from convergence.worker.runner import Fenced, Pace, Runner, Surroundings, wait

LOG = logging.getLogger(__name__)


class Settler(Protocol):
    """Whoever decides, on the side of the engine, what the failure of a traversal means for its stack."""

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """A node of the traversal has failed. A hint, like every message: the sweeper finds it as well."""


class Checks:
    """Checks nodes for one worker.

    :param assess: resolves what the template wants of a row; see `convergence.worker.assess`.
    :param later: asked to have a node cast again after some seconds.
    :param draining: whether the process is about to end.
    """

    def __init__(
        self,
        store: Transactions,
        dispatcher: Dispatcher,
        registry: Registry,
        worker: Worker,
        pace: Pace,
        *,
        wait: Callable[[Task, float], bool] = wait,
        assess: Assess,
        settler: Settler,
        later: Callable[[float, str, int], None],
        draining: Callable[[], bool],
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._worker = worker
        self._assess = assess
        self._settler = settler
        self._later = later
        self._runner = Runner(registry, pace, Surroundings(self._record, self._escalate, draining, self._is_wanted, wait))

    def check(self, traversal_id: str, number: int, task: Task) -> None:
        """Do what there is to do for a node now. Nothing, if somebody else does it or it is done.

        :param task: what a cancel of the traversal stops; it was registered before the row is claimed, and the claim
            reads whether the traversal still runs, so a cancel cannot slip in between the two.
        """
        begun = self._begin(traversal_id, number)
        if begun is None:
            return
        if begun.step is Step.REPLACE:
            self._replace(begun.stack_id, traversal_id, number, begun.resource_id)
        elif begun.step is Step.FAIL:
            self._settler.settle(begun.stack_id, traversal_id)
        elif begun.step in ACTING and begun.claim is not None:
            claim = begun.claim
            if isinstance(self._act(claim, task), Unsuitable):
                self._replace(claim.stack.id, traversal_id, number, claim.resource.id)

    def _begin(self, traversal_id: str, number: int) -> Begun | None:
        committed = self._store.transact(
            OneNode(traversal_id, number), lambda view: begin(view, self._worker, self._assess)
        )
        if committed is None:
            LOG.debug('node %d of traversal %s does not exist any more', number, traversal_id)
            return None
        self._dispatcher.attend(committed)
        LOG.debug('node %d: %s', number, committed.verdict.step)
        return committed.verdict

    def _replace(self, stack_id: str, traversal_id: str, number: int, resource_id: str) -> None:
        """Make a new row for the node, and have the node checked again.

        Where that is refused, another worker or another traversal has moved on. Nothing is lost then: whoever did,
        casts the node that the row belongs to now.
        """
        committed = self._store.transact(
            OneReplacement(traversal_id, number, stack_id, resource_id),
            lambda view: replacement(view, self._worker, resource_id),
        )
        if committed is not None and committed.verdict is not None:
            LOG.info('resource %s is replaced by %s', resource_id, committed.verdict)
            self._dispatcher.attend(committed)

    def _act(self, claim: Claim, task: Task) -> Result | None:
        """Call the plugin and store what came of it; None where the row was not ours any more."""
        with logs.bind(stack=claim.stack.name, traversal=claim.traversal.id, node=claim.resource.name):
            LOG.info('%s %s', claim.step, claim.resource.type)
            try:
                result = self._runner.run(claim, task)
            except Fenced as fenced:
                self._keep_track(claim, fenced.physical_id)
                return None
            end = self._finish(claim, result)
            LOG.info('%s %s: %s', claim.step, type(result).__name__.lower(), end)
            if end is not End.FENCED:
                return result
            self._keep_track(claim, result.physical_id)
            return None

    def _keep_track(self, claim: Claim, physical_id: str | None) -> None:
        """The row is somebody else's by now and the result is dropped; what was made must not be forgotten."""
        LOG.warning('%s: somebody else holds the row by now, the result is dropped', claim.resource.name)
        if physical_id is None or physical_id == claim.resource.physical_id:
            return
        committed = self._store.transact(
            WholeStack(claim.stack.id), lambda view: keep_track(view, claim, physical_id, self._worker.new_id)
        )
        if committed is None or not committed.verdict:
            LOG.error('%s: %s was made for a stack that is gone; remove it', claim.resource.name, physical_id)

    def _finish(self, claim: Claim, result: Result) -> End:
        scope = HeldResource(claim.resource.id, claim.node.traversal_id, claim.node.number)
        try:
            committed = self._store.transact(scope, lambda view: finish(view, claim, result, self._worker))
        except Exception:
            self._give_back(claim)
            raise
        if committed is None:
            return End.FENCED
        self._dispatcher.attend(committed)
        if committed.verdict is End.FAILED:
            self._settler.settle(claim.stack.id, claim.traversal.id)
        elif isinstance(result, Parked):
            self._later(result.after_s, claim.node.traversal_id, claim.node.number)
        return committed.verdict

    def _give_back(self, claim: Claim) -> None:
        """The result could not be stored. The sweeper has the action resumed; not we, or we might try without end."""
        fence = claim.resource.fence
        try:
            self._store.transact(HeldResource(claim.resource.id), lambda view: release(view, fence))
        except Exception:  # noqa: BLE001 - whatever keeps it from being stored
            LOG.warning('%s cannot even be given back; it will be when it is missed', claim.resource.name)

    def _is_wanted(self, claim: Claim) -> bool:
        """Whether the traversal of a claim still runs; so it is assumed while the database cannot be asked."""
        scope = HeldResource(claim.resource.id, claim.node.traversal_id, claim.node.number)
        try:
            committed = self._store.transact(scope, lambda view: Decision(view.is_running))
        except ConvergenceError:
            return True
        return committed is not None and committed.verdict

    def _record(self, claim: Claim, known: Parked) -> bool:
        scope = HeldResource(claim.resource.id, claim.node.traversal_id, claim.node.number)
        committed = self._store.transact(scope, lambda view: record(view, claim, known))
        return committed is not None and committed.verdict

    def _escalate(self, claim: Claim) -> bool:
        scope = HeldResource(claim.resource.id, claim.node.traversal_id, claim.node.number)
        committed = self._store.transact(scope, lambda view: escalate(view, claim, self._worker))
        return committed is not None and committed.verdict
