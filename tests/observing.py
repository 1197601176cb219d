"""An observer beside a harness: it looks when a test says so."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.observation import Observation, ObservationSource
from convergence.core.rows import Stack
from convergence.credentials.model import Credentials
from convergence.engine.drift.observation_schedule import ObservationScheduler
from convergence.observer.budget import CallBudget
from convergence.observer.observation_task import ObservationTask
from convergence.observer.observer import Observer, Pacing
from convergence.resources.invocation import CallAccess
from tests.harness import Harness

EVERY_S = 80.0


class Observing:
    """Enrols what a harness has made, and looks at it.

    :param intervals: by type; None: of all types that look.
    :ivar acts_for: the stacks whose credentials were asked for.
    :ivar told_engines: the stacks of which engines were told that there is something to put right.
    """

    def __init__(
        self,
        harness: Harness,
        *,
        intervals: Mapping[str, float] | None = None,
        calls_per_minute: int | None = None,
        timeout_s: float = 30.0,
        batch: int = 100,
        idle_s: float = 1.0,
    ) -> None:
        self.harness, ports = harness, harness.ports
        self.rows, self.acts_for, self.told_engines = ports.observations, [], []
        every = harness.registry.observed_every_s(EVERY_S, {}) if intervals is None else dict(intervals)
        self.now = 0.0
        self.budget = CallBudget(calls_per_minute, lambda: self.now)
        access = CallAccess(ports.reader.signals, ports.software, self._credentials)
        pacing = Pacing(every, batch=batch, threads=2, timeout_s=timeout_s, idle_s=idle_s, vary=lambda: 0.0)
        task = ObservationTask(harness.registry, access)
        self.observer = Observer(self.rows, task, pacing, self.budget, harness.new_id, self.told_engines.append)
        self._enrolment = ObservationScheduler(self.rows, harness.reader, dict.fromkeys(every, 0.0), 100)
        harness.roster.register('observer', 'observer', 'host', '1', 1e6)

    def _credentials(self, stack_id: str) -> Credentials:
        self.acts_for.append(stack_id)
        raise AssertionError('nobody needs any here')

    def enrol_stack(self, stack: Stack) -> None:
        """What engines do when somebody asks for a look."""
        self._enrolment.of(stack)

    def schedule(self) -> int:
        """What engines do when a stack rests."""
        return self._enrolment()

    def look(self, *stack_ids: str) -> int:
        """Look at everything that is observed of some stacks, or at what is due; how much that was."""
        self.schedule()
        if stack_ids:
            self.rows.request(stack_ids, ObservationSource.REQUEST)
        looked = 0
        while turn := self.observer.turn():
            looked += turn
        return looked

    def known(self, stack_id: str) -> dict[str, Observation]:
        """What is known of a stack's objects, by resource name."""
        return {each.row.name: each.observation for each in self.rows.known([stack_id])}
