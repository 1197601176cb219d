"""Retries failed repairs: the cause may be gone by now, and no user has caused it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from convergence import errors
from convergence.core.model import Definition, DriftPolicy, Status
from convergence.core.observation import DriftPolicies, repair_pause_s
from convergence.core.rows import Resource
from convergence.core.views import PlanView
from convergence.db.backoff import Backoff
from convergence.db.ports import ObservationsPort, ReaderPort
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.drift.observation_schedule import policies_of
from convergence.engine.drift.requested_repairs import RepairOptions, cause_of, repair_of
from convergence.engine.traversals.traversals import Overtaken, Traversals
from convergence.resources.registry import Registry

LOG = logging.getLogger(__name__)


class FailedRepairs:
    """Retries repairs, after growing pauses, on stacks whose last operation was the failed repair."""

    def __init__(
        self,
        rows: ObservationsPort,
        reader: ReaderPort,
        compiler: TemplateCompiler,
        traversals: Traversals,
        types: Registry,
        options: RepairOptions,
    ) -> None:
        self._rows = rows
        self._reader = reader
        self._compiler = compiler
        self._traversals = traversals
        self._types = types
        self._options = options
        self._pauses = options.pauses
        self._backoff = Backoff()

    def __call__(self, limit: int) -> int:
        """Begin the repairs that can begin now; the number of stacks. An error in one stack delays no other.

        :raises DatabaseUnavailable: nothing can begin now.
        """
        begun = 0
        self._backoff.begin()
        for stack_id in self._rows.failed_repairs(self._pauses, limit + len(self._backoff)):
            if self._backoff.is_passed_over(stack_id):
                continue
            try:
                self._again(stack_id)
            except errors.DatabaseUnavailable:
                raise
            except errors.ConvergenceError as error:
                LOG.info('Retry of the failed repair of stack %s postponed: %s', stack_id, error)
                self._backoff.failed(stack_id)
            else:
                self._backoff.succeeded(stack_id)
                begun += 1
        return begun

    def _again(self, stack_id: str) -> None:
        """Begin the next repair of a stack.

        :raises Overtaken: it is not as it was found any more, or is not to be repaired by now.
        """
        stack = self._reader.stack(stack_id)
        failed = self._reader.traversal(stack.traversal_id or '') if stack is not None else None
        if stack is None or failed is None or not 0 < failed.repair_attempt <= len(self._pauses):
            raise Overtaken(f'stack {stack_id} has moved on')
        attempt = failed.repair_attempt + 1
        cause = cause_of(failed.cause, attempt, self._options.repair_attempts)
        drifted = [
            each.row
            for each in self._rows.known([stack.id], drifted=True)
            if each.observation.policy is DriftPolicy.REPAIR and not each.observation.given_up
        ]
        policies = policies_of(self._reader, stack)
        broken: dict[str, Resource] = {}

        def may(view: PlanView) -> None:
            # Not before: a server that lags would not show all that has failed.
            broken.clear()
            broken.update((row.id, row) for row in view.resources if row.status is not Status.COMPLETE)
            if policies is None or not self._may(policies, request.goal.definitions, broken.values()):
                raise Overtaken(f'the policy for the failed resources of stack {stack.name} no longer demands repairs')

        request = repair_of(self._compiler, stack, [row.name for row in drifted], cause, attempt=attempt, also=may)
        LOG.info('Retrying the failed repair of stack %s: %s', stack.name, cause)
        self._traversals.start(stack, request)
        pause_s = repair_pause_s(self._options.repair_pause_s, attempt)
        concerned = {**broken, **{row.id: row for row in drifted}}
        self._rows.repair_begun([(row, pause_s) for row in concerned.values()])

    def _may(self, policies: DriftPolicies, wanted: Mapping[str, Definition], broken: Iterable[Resource]) -> bool:
        """Return True if the present policy demands repairs for all failed resources, or for resources they were made
        from.
        """
        mended = {name for name, each in wanted.items() if self._is_mended(policies, name, each.type)}
        return bool(mended) and all(_made_of(wanted, row.name) & mended for row in broken if row.name in wanted)

    def _is_mended(self, policies: DriftPolicies, name: str, type_: str) -> bool:
        if self._types.nests(type_):
            return DriftPolicy.REPAIR in (policies.of(name, type_), *policies.of_types.values())
        return policies.of(name, type_) is DriftPolicy.REPAIR


def _made_of(wanted: Mapping[str, Definition], name: str) -> set[str]:
    """A resource, and all that it requires, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each in wanted and each not in found:
            found.add(each)
            waiting += wanted[each].requires
    return found
