"""Schedules objects for observation when their stack is at rest. Engines decide; observers only observe."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from convergence.core.model import DriftPolicy
from convergence.core.observation import DriftPolicies
from convergence.core.rows import Stack
from convergence.db.ports import ObservationSchedulePort, ReaderPort
from convergence.db.records import UnscheduledStack
from convergence.engine.compile.submission import Submission
from convergence.errors import ConvergenceError, DatabaseUnavailable
from convergence.template.environment import Environment, read_environment
from convergence.template.limits import Limits
from convergence.template.problems import Problems

LOG = logging.getLogger(__name__)


class ObservationScheduler:
    """Schedules observations for the objects of stacks that have reached rest.

    :param intervals: longest pause in seconds between two observations, by type; other types are not observed.
    :param limit: maximum number of stacks, and of new objects of each, at a time.
    """

    def __init__(
        self, rows: ObservationSchedulePort, reader: ReaderPort, intervals: Mapping[str, float], limit: int = 500
    ) -> None:
        self._rows = rows
        self._reader = reader
        self._intervals = intervals
        self._limit = limit

    def __call__(self) -> int:
        """Schedule the objects of all due stacks; the number of stacks and objects. One query if no observer is
        running.
        """
        if not self._intervals:
            return 0
        stacks = self._rows.unscheduled(self._limit)
        return len(stacks) + sum(self._enrol(each) for each in stacks)

    def of(self, stack: Stack) -> None:
        """Schedule the objects of one stack, even if no observer is running."""
        if stack.traversal_id is not None and stack.deleted_at is None:
            self._enrol(UnscheduledStack(stack.id, stack.traversal_id))

    def _enrol(self, found: UnscheduledStack) -> int:
        stack = self._reader.stack(found.stack_id)
        # A server that lags shows a stack as it was before its operation, with the policies of before.
        if stack is None or stack.traversal_id != found.traversal_id:
            return 0
        policies = policies_of(self._reader, stack)
        return self._rows.schedule(found, self._intervals, policies, self._limit) if policies is not None else 0


def policies_of(reader: ReaderPort, stack: Stack) -> DriftPolicies | None:
    """The policies of the root stack and of the environment. Unreadable ones are only logged.

    None: a lagging server does not show them yet.
    """
    root = stack if stack.root_id is None else reader.stack(stack.root_id)
    of_stack = root.drift_policy if root is not None else DriftPolicy.REPORT
    try:
        row = reader.template(stack.template_id) if stack.template_id is not None else None
        if row is None and stack.template_id is not None:
            return None
        said = _environment(Submission.from_content(row.content)) if row is not None else None
    except DatabaseUnavailable:
        raise
    except ConvergenceError as error:
        LOG.warning(
            'Drift policies of stack %s are unreadable; update the stack to replace them: %s',
            stack.id,
            type(error).__name__,
        )
        return DriftPolicies(of_stack, of_resource=lambda name: DriftPolicy.REPORT)
    if said is None:
        return DriftPolicies(of_stack)
    return DriftPolicies(of_stack, said.drift_policies, said.mappings.drift_policy)


def _environment(submission: Submission) -> Environment:
    return read_environment(submission.environment, Limits(), Problems())
