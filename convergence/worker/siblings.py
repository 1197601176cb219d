"""Nested stacks of one stack whose nodes wait for the same thread: claimed, and begun, together.

What an engine begins for a nested stack costs a transaction of its own; that somebody holds the row, and asks for it,
need not: the rows of some are claimed in one transaction, and one call asks for all of them. Each is then seen to by
itself, as always; only what the type is told when it has its stack act is known already. Where anything is otherwise
than it mostly is, each asks for itself: to ask once more does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from convergence import logs
from convergence.concurrency import Task
from convergence.core.claim import Claim, Step, StepDecision, Worker
from convergence.core.effects import Decision
from convergence.core.views import NodeView
from convergence.db.scopes import FreeNodes
from convergence.db.transaction import Transactions
from convergence.documents import Document
from convergence.errors import ConvergenceError
from convergence.resources.performing import wants_snapshot_first
from convergence.worker.assess import Assessor
from convergence.worker.attempt import Attempt, output_without_stack
from convergence.worker.attempts import Attempts
from convergence.worker.in_a_row import Attendant
from convergence.worker.port import Foretell, NestingPort
from convergence.worker.steps import begin_alone

LOG = logging.getLogger(__name__)

_BEGINS = frozenset({Step.CREATE, Step.UPDATE, Step.DELETE})


class Siblings:
    """Claims and begins nested stacks together.

    :param assess: resolves what the template wants of a row; see `convergence.worker.assess`.
    :param attempts: makes attempts from claims.
    :param nested: the nested stacks that the worker has to do with.
    :param draining: whether the process is about to end: then nothing begins.
    """

    def __init__(
        self,
        store: Transactions,
        worker: Worker,
        assess: Assessor,
        attempts: Attempts,
        nested: NestingPort,
        draining: Callable[[], bool],
    ) -> None:
        self._store = store
        self._worker = worker
        self._assess = assess
        self._attempts = attempts
        self._nested = nested
        self._draining = draining

    def claimed_with(self, claim: Claim, task: Task, attendant: Attendant) -> list[Claim]:
        """A claim, and others that are begun with it: of nodes like its own that wait where the task goes on.

        Nobody is waited for. What somebody holds is left alone, and nodes of another kind are left to others.
        """
        if not self._may_begin(claim) or self._draining() or task.is_unwanted:
            return [claim]
        numbers = attendant.take_others()
        others: tuple[Claim, ...] = ()
        if numbers:
            try:
                others = self._claim(claim, numbers)
            except ConvergenceError as error:
                LOG.warning('This worker claims only %s: %s', claim.resource.name, error)
            claimed = {each.node.number for each in others}
            attendant.leave_to_others(claim.traversal.id, [each for each in numbers if each not in claimed])
        return [claim, *others]

    def begun(self, claims: Sequence[Claim], task: Task) -> list[Document | None]:
        """Have an engine begin, in one call, what several rows were claimed for.

        :returns: for each claim what `Runner.run` is to be given. None where nothing has begun by that.
        """
        if len(claims) == 1 or self._draining() or task.is_unwanted:
            return [None for _ in claims]
        with logs.concealing(frozenset().union(*map(self._attempts.secrets, claims))):
            asked = {claim.resource.id: (claim, foretell) for claim in claims for foretell in self._plain(claim, task)}
            answers = self._nested.begin_together(list(asked.values())) if asked else []
        begun = dict(zip(asked, answers, strict=True))
        return [begun.get(claim.resource.id) for claim in claims]

    def _plain(self, claim: Claim, task: Task) -> tuple[Foretell, ...]:
        """What a resource tells in the end, if an engine may begin at once what its row was claimed for."""
        try:
            attempt = self._attempts.of(claim, task)
            return (partial(output_without_stack, attempt),) if _begins_at_once(attempt) else ()
        except Exception as error:  # noqa: BLE001 - `Runner.run` comes to the same, and answers it
            LOG.debug('%s is not begun with others: %s', claim.resource.name, type(error).__name__)
            return ()

    def _may_begin(self, claim: Claim) -> bool:
        return claim.step in _BEGINS and self._worker.nests(claim.resource.type)

    def _claim(self, claim: Claim, numbers: Sequence[int]) -> tuple[Claim, ...]:
        """Claim rows of other nodes of the traversal, as far as they may begin.

        :raises DatabaseUnavailable: the database cannot be reached.
        """

        def decide(view: NodeView) -> Decision[StepDecision] | None:
            decision = begin_alone(view, self._worker, self._assess)
            claimed = decision.verdict.claim if decision is not None else None
            return decision if claimed is not None and self._may_begin(claimed) else None

        seen = (claim.traversal, claim.stack)
        nodes = FreeNodes(claim.node.traversal_id, tuple(numbers), seen, self._worker.max_input_bytes)
        decided = self._store.decide_free(nodes, decide)
        return tuple(each.verdict.claim for each in decided if each.verdict.claim is not None)


def _begins_at_once(attempt: Attempt) -> bool:
    """Whether that an engine begins it is what comes first of the action."""
    kind, claim = attempt.kind, attempt.claim
    if claim.step is Step.CREATE:
        return not (kind.validates() or kind.prepares())
    if claim.step is Step.DELETE:
        is_known = attempt.physical_id is not None and attempt.progress is None
        return is_known and not wants_snapshot_first(kind, claim.resource)
    return claim.step is Step.UPDATE
