"""Nested stacks of one stack that one thread starts together.

A nested stack costs a plan in an engine. Its claim and its request need not cost a transaction and a call each: one
transaction claims the rows of up to five, and one call starts all of them. Then each is finished by itself; only the
first call of its type finds the answer of the engine already there. If the engine does not start all of them, the first
one makes a call of its own, which does no harm, and the others go back to the scheduler.

Gain: 1.6 commits for each nested stack instead of 3 (docs/benchmarks.rst, "nested").
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from convergence import logs
from convergence.concurrency import Task
from convergence.core.claim import Claim, Step, StepDecision
from convergence.db.transaction import Committed
from convergence.documents import Document
from convergence.errors import ConvergenceError
from convergence.resources.nested import NestedType
from convergence.resources.performing import wants_snapshot_first
from convergence.worker.attempts.attempt import Attempt, output_without_stack
from convergence.worker.attempts.factory import Attempts
from convergence.worker.attempts.port import ExpectedOutput, NestingPort
from convergence.worker.scheduler.scheduler import Scheduler
from convergence.worker.scheduler.turn import Turn

LOG = logging.getLogger(__name__)

PAUSE_S = 10.0
"""Seconds without batches after an engine has started fewer than two stacks of one.

The engine is slow, does not answer, or the types have other work to do first: then a batch only delays other threads.
"""

ClaimFree: TypeAlias = Callable[[Claim, Sequence[int], Callable[[Claim], bool]], Sequence[Committed[StepDecision]]]
"""See `convergence.worker.checks.steps.begin_free`."""

_BEGINS = frozenset({Step.CREATE, Step.UPDATE, Step.DELETE})


class NestedBatch:
    """Claims and starts nested stacks together.

    :param claim_free: claims rows of further nodes.
    :param nests: True for a type whose objects are stacks.
    :param attempts: makes attempts from claims.
    :param nested: the nested stacks of this worker.
    :param scheduler: knows which nodes wait here.
    :param draining: True while the process drains: then nothing starts.
    :param clock: seconds on the clock of this process.
    """

    def __init__(
        self,
        claim_free: ClaimFree,
        nests: Callable[[str], bool],
        attempts: Attempts,
        nested: NestingPort,
        scheduler: Scheduler,
        draining: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._claim_free = claim_free
        self._nests = nests
        self._attempts = attempts
        self._nested = nested
        self._scheduler = scheduler
        self._draining = draining
        self._clock = clock
        self._paused_until = -math.inf

    def claimed_with(self, claim: Claim, turn: Turn) -> list[Claim]:
        """Return a claim, and the claims of other nested stacks of the same stack that wait for this thread.

        It waits for no lock: rows that are locked or claimed are left out, and so are nodes of other types.
        """
        is_paused = self._clock() < self._paused_until
        if not self._may_begin(claim) or is_paused or self._draining() or turn.task.is_unwanted:
            return [claim]
        # A message may arrive twice.
        numbers = [number for number in dict.fromkeys(self._scheduler.batch_with(turn)) if number != claim.node.number]
        claimed: list[Claim] = []
        try:
            decided = self._claim_free(claim, numbers, self._may_begin) if numbers else ()
            turn.batched += len(decided)
            for each in decided:
                self._scheduler.on_ready(each)
            claimed = [each.verdict.claim for each in decided if each.verdict.claim is not None]
        except ConvergenceError as error:
            LOG.warning(
                'Starting the nested stack of %s alone, claiming further rows failed; nothing needs doing: %s',
                claim.resource.name,
                error,
            )
        except Exception:
            LOG.exception(
                'Starting the nested stack of %s alone, claiming further rows failed; report this error',
                claim.resource.name,
            )
        taken = {each.node.number for each in claimed}
        self._scheduler.give_back(claim.traversal.id, [each for each in numbers if each not in taken])
        return [claim, *claimed]

    def begin_together(self, claims: Sequence[Claim], task: Task) -> dict[str, Document]:
        """Have an engine start, in one call, the nested stacks of several claims.

        :returns: by id of the row, the answer of the engine for `Runner.run`. A row without an answer should be
            released, unless it is the first: the engine is slow or away, and other threads and engines have nothing to
            do.
        """
        if len(claims) == 1 or self._draining() or task.is_unwanted:
            return {}
        with logs.masking(frozenset().union(*map(self._attempts.secrets, claims))):
            asked = {
                claim.resource.id: (claim, expected_output)
                for claim in claims
                for expected_output in self._plain(claim, task)
            }
            answers = self._nested.begin_together(list(asked.values())) if asked else []
        begun = {row_id: answer for row_id, answer in zip(asked, answers, strict=True) if answer is not None}
        if len(begun) < 2:
            self._paused_until = self._clock() + PAUSE_S
        return begun

    def _plain(self, claim: Claim, task: Task) -> tuple[ExpectedOutput, ...]:
        """Return the expected output of a resource (one item) if its nested stack is the first step of its action; else
        an empty tuple.
        """
        try:
            attempt = self._attempts.of(claim, task)
            return (partial(output_without_stack, attempt),) if _begins_at_once(attempt) else ()
        except Exception as error:  # noqa: BLE001 - `Runner.run` meets the same error, and stores it
            LOG.debug('%s is started alone: %s', claim.resource.name, type(error).__name__)
            return ()

    def _may_begin(self, claim: Claim) -> bool:
        return claim.step in _BEGINS and self._nests(claim.resource.type)


def _begins_at_once(attempt: Attempt) -> bool:
    """Return True if the start of the nested stack is the first step of the action."""
    kind, claim = attempt.kind, attempt.claim
    name = claim.step.value.lower()
    if getattr(type(kind), name, None) is not getattr(NestedType, name):
        return False  # a type with a method of its own may do other work first
    if claim.step is Step.CREATE:
        return not (kind.implements('validate') or kind.implements('prepare'))
    if claim.step is Step.DELETE:
        is_known = attempt.physical_id is not None and attempt.progress is None
        return is_known and not wants_snapshot_first(kind, claim.resource)
    return claim.step is Step.UPDATE
