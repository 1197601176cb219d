"""Nested stacks of one stack whose nodes wait for the same thread: claimed, and begun, together.

What an engine begins for a nested stack costs a transaction of its own; that somebody holds the row, and asks for it,
need not: the rows of some are claimed in one transaction, and one call asks for all of them. Each is then seen to by
itself, as always; only what the type is told when it has its stack act is known already. Where an engine does not begin
all of them at once, the first asks for itself, which does no harm, and the others are left to whoever has a thread.
"""

from __future__ import annotations

import logging
import math
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
from convergence.resources.nested import NestedType
from convergence.resources.performing import wants_snapshot_first
from convergence.worker.attempts.attempt import Attempt, output_without_stack
from convergence.worker.attempts.factory import Attempts
from convergence.worker.attempts.port import Foretell, NestingPort
from convergence.worker.checks.assess import Assessor
from convergence.worker.checks.steps import begin_alone
from convergence.worker.in_a_row import Attendant

LOG = logging.getLogger(__name__)

PAUSE_S = 10.0
"""Seconds for which each is begun by itself after fewer than two have been begun together: an engine does not know the
operation, is slow, or does not answer; or what is wanted of them begins with something else."""

_BEGINS = frozenset({Step.CREATE, Step.UPDATE, Step.DELETE})


class NestedBatch:
    """Claims and begins nested stacks together.

    :param assess: resolves what the template wants of a row; see `convergence.worker.checks.assess`.
    :param attempts: makes attempts from claims.
    :param nested: the nested stacks that the worker has to do with.
    :param draining: whether the process is about to end: then nothing begins.
    :param clock: seconds on the clock of this process, from any moment on.
    """

    def __init__(
        self,
        store: Transactions,
        worker: Worker,
        assess: Assessor,
        attempts: Attempts,
        nested: NestingPort,
        draining: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._worker = worker
        self._assess = assess
        self._attempts = attempts
        self._nested = nested
        self._draining = draining
        self._clock = clock
        self._paused_until = -math.inf

    def claimed_with(self, claim: Claim, task: Task, attendant: Attendant) -> list[Claim]:
        """A claim, and others that are begun with it: of nodes like its own that wait where the task goes on.

        Nobody is waited for. What somebody holds is left alone, and nodes of another kind are left to others.
        """
        is_paused = self._clock() < self._paused_until
        if not self._may_begin(claim) or is_paused or self._draining() or task.is_unwanted:
            return [claim]
        # A message may come twice.
        numbers = [number for number in dict.fromkeys(attendant.take_others()) if number != claim.node.number]
        others: tuple[Claim, ...] = ()
        try:
            if numbers:
                others = self._claim(claim, numbers, attendant)
        except ConvergenceError as error:
            LOG.warning('This worker claims only %s: %s', claim.resource.name, error)
        except Exception:
            LOG.exception('This worker claims only %s', claim.resource.name)
        claimed = {each.node.number for each in others}
        attendant.leave_to_others(claim.traversal.id, [each for each in numbers if each not in claimed])
        return [claim, *others]

    def begun(self, claims: Sequence[Claim], task: Task) -> dict[str, Document]:
        """Have an engine begin, in one call, what several rows were claimed for.

        :returns: by the ids of rows what `Runner.run` is to be given. Of those of which nothing has begun, or that is
            not known, all but the first are better let go of: whatever has kept an engine from it would have them wait
            for each other here, while other threads, and other engines, have nothing to do.
        """
        if len(claims) == 1 or self._draining() or task.is_unwanted:
            return {}
        with logs.masking(frozenset().union(*map(self._attempts.secrets, claims))):
            asked = {claim.resource.id: (claim, foretell) for claim in claims for foretell in self._plain(claim, task)}
            answers = self._nested.begin_together(list(asked.values())) if asked else []
        begun = {row_id: answer for row_id, answer in zip(asked, answers, strict=True) if answer is not None}
        if len(begun) < 2:
            self._paused_until = self._clock() + PAUSE_S
        return begun

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

    def _claim(self, claim: Claim, numbers: Sequence[int], attendant: Attendant) -> tuple[Claim, ...]:
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
        for each in decided:
            attendant.attend_others(each)
        return tuple(each.verdict.claim for each in decided if each.verdict.claim is not None)


def _begins_at_once(attempt: Attempt) -> bool:
    """Whether that an engine begins it is what comes first of the action."""
    kind, claim = attempt.kind, attempt.claim
    name = claim.step.value.lower()
    if getattr(type(kind), name, None) is not getattr(NestedType, name):
        return False  # what a type does of its own comes before its stack acts
    if claim.step is Step.CREATE:
        return not (kind.implements('validate') or kind.implements('prepare'))
    if claim.step is Step.DELETE:
        is_known = attempt.physical_id is not None and attempt.progress is None
        return is_known and not wants_snapshot_first(kind, claim.resource)
    return claim.step is Step.UPDATE
