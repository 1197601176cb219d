"""The observer: observes due objects, one batch at a time."""

from __future__ import annotations

import logging
import random
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from convergence.concurrency import Group, Pool, Task, ThreadEvent, start_thread
from convergence.core.model import DriftPolicy
from convergence.core.observation import (
    Leased,
    ObservationResult,
    ObservationSource,
    ObservationUpdate,
    ObservedState,
    news_of,
    pause_s,
)
from convergence.db.ports import ObservationLeasesPort
from convergence.errors import ConvergenceError
from convergence.observer.budget import CallBudget
from convergence.observer.observation_task import ObservationTask

LOG = logging.getLogger(__name__)

GRACE_S = 1.0
"""Seconds that an observation past its timeout has to end by itself. Short: the batch waits for it."""
ALONE_S = 0.05
"""Seconds that one thread has for a whole batch before others join it. Several threads slow quick observations down."""
QUIET_TURNS = 10
"""Number of empty turns in a row after which the observer asks the database when the next object is due."""
LONGEST_REST = 3
"""Maximum rest of an idle observer, as a multiple of `Pacing.idle_s`. A requested observation waits this long."""
SPREAD = 0.1
"""Maximum jitter of a pause, as a fraction of it. Objects observed in one batch are thus due at other times."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """The rate of observations. Times in seconds.

    :param intervals: longest pause between two observations of an object, by type; other types are not observed.
    :param batch: maximum number of objects leased together.
    :param threads: maximum number of objects observed at the same time.
    :param timeout_s: timeout of one observation. The lease of a batch lasts somewhat more than twice as long.
    :param idle_s: pause after a turn that found no due object.
    :param vary: returns a random number between 0 and 1, for the jitter of pauses.
    """

    intervals: Mapping[str, float]
    batch: int = 100
    threads: int = 8
    timeout_s: float = 30.0
    idle_s: float = 1.0
    vary: Callable[[], float] = random.random

    @property
    def lease_s(self) -> float:
        """Duration of the lease of a batch. When an observer dies, its objects are due again after this time."""
        return 2 * self.timeout_s + 5 * GRACE_S

    @property
    def rest_s(self) -> float:
        """The longest pause of an idle observer. An object that an engine schedules meanwhile may be due after the
        shortest interval.
        """
        return max(self.idle_s, min([LONGEST_REST * self.idle_s, *self.intervals.values()]))


@dataclass(slots=True)
class _Batch:
    """A leased batch: objects that no thread observes yet, objects under observation, and results."""

    waiting: deque[Leased]
    running: dict[Task, Leased] = field(default_factory=dict)
    results: list[tuple[Leased, ObservationResult]] = field(default_factory=list)


class Observer:
    """Leases due objects, observes them and stores the results.

    :param new_id: makes a unique id; each lease gets one.
    :param drifted: called with the id of a stack that has an object to repair. A hint: it may be lost.
    :ivar pacing: the rate of observations.
    :param new_group: makes the group of threads that observes one batch; None: a group of `Pacing.threads` threads.
    """

    def __init__(
        self,
        rows: ObservationLeasesPort,
        task: ObservationTask,
        pacing: Pacing,
        budget: CallBudget,
        new_id: Callable[[], str],
        drifted: Callable[[str], object] | None = None,
        new_group: Callable[[], Group] | None = None,
    ) -> None:
        self._rows = rows
        self._task = task
        self.pacing = pacing
        self._budget = budget
        self._new_id = new_id
        self._drifted = drifted
        self._new_group = new_group or partial(Group, 'observer', Pool(pacing.threads, 'observer'))
        self._stopping = ThreadEvent()
        self._awake = ThreadEvent()
        self._ended = ThreadEvent()
        self._busy = 0
        self._quiet_turns = 0

    @property
    def busy(self) -> int:
        """Number of objects that the observer has leased."""
        return self._busy

    def start(self) -> None:
        """Start the thread of the observer."""
        start_thread('observer', self._run)

    def stop(self, timeout_s: float) -> bool:
        """Begin no further turn and wait for the present one; return False if it did not end in time."""
        self._stopping.set()
        self._awake.set()
        return self._ended.wait(timeout_s)

    def hurry(self) -> None:
        """Begin the next turn at once: an object has become due."""
        self._awake.set()

    def turn(self) -> int:
        """Observe one batch of due objects; return the number of objects that were due.

        :raises ConvergenceError: the database cannot be reached, or rows kept changing. The leased objects are due
            again when their lease ends.
        """
        holder = self._new_id()
        leased = self._rows.lease(holder, self.pacing.batch, self.pacing.lease_s)
        if not leased:
            return 0
        self._busy = len(leased)
        try:
            results, unobserved = self._observe(self._affordable(holder, leased))
            self._rows.write(holder, self._updates(results))
            if self._drifted is not None and (stack_id := _to_repair(results)) is not None:
                self._drifted(stack_id)
            self._rows.put_off(holder, unobserved, self.pacing.idle_s)
        finally:
            self._busy = 0
        return len(leased)

    def round(self) -> float:
        """Take a turn, unless the observer is idle and no object is due; return the seconds until the next round.

        :raises ConvergenceError: see `turn`.
        """
        if self._quiet_turns >= QUIET_TURNS:
            due_in_s = self._rows.due_in_s()
            if due_in_s is None or due_in_s > 0.0:
                rest_s = self.pacing.rest_s
                return rest_s if due_in_s is None else min(rest_s, max(self.pacing.idle_s, due_in_s))
        if self.turn():
            self._quiet_turns = 0
            return 0.0
        self._quiet_turns += 1
        return self.pacing.idle_s

    def _affordable(self, holder: str, leased: Sequence[Leased]) -> list[Leased]:
        """Return the objects for which the budget has a call left. The others become due when it has."""
        now: list[Leased] = []
        later: dict[tuple[str, str], list[str]] = defaultdict(list)
        for each in leased:
            key = (each.row.type, each.stack.project_id)
            if self._budget.take(key):
                now.append(each)
            else:
                later[key].append(each.row.id)
        for keys in later.values():
            self._rows.put_off(holder, keys, self._budget.pause_s(len(keys)))
        return now

    def _observe(self, leased: Sequence[Leased]) -> tuple[list[tuple[Leased, ObservationResult]], list[str]]:
        """Observe objects, several at a time; return the results, and the rows that no thread has reached."""
        batch, group = _Batch(deque(leased)), self._new_group()
        group.spawn(self._work, batch)
        if group.wait(ALONE_S):
            for _ in range(min(self.pacing.threads, len(leased)) - 1):
                group.spawn(self._work, batch)
            group.wait(self.pacing.timeout_s)
        unobserved = [each.row.id for each in batch.waiting]
        batch.waiting.clear()
        if group.wait(self.pacing.timeout_s):
            group.stop(GRACE_S)
            group.wait(GRACE_S)
        stuck = [each for task in list(batch.running) if (each := batch.running.pop(task, None)) is not None]
        reason = f'its type has not answered in {self.pacing.timeout_s:g} s'
        results = [*batch.results, *((each, ObservationResult(ObservedState.UNKNOWN, reason=reason)) for each in stuck)]
        for each in stuck:
            LOG.warning(
                'Observation of %s of stack %s timed out, retrying later: %s', each.row.name, each.stack.name, reason
            )
        return results, unobserved

    def _work(self, task: Task, batch: _Batch) -> None:
        while not task.cancelled.is_set() and not self._stopping.is_set():
            try:
                each = batch.waiting.popleft()
            except IndexError:
                return
            batch.running[task] = each
            result = self._task.run(each, task)
            if batch.running.pop(task, None) is not None:
                batch.results.append((each, result))

    def _updates(self, results: Sequence[tuple[Leased, ObservationResult]]) -> list[ObservationUpdate]:
        """Return the rows to store. The pauses of one batch differ from those of other batches."""
        share = 1.0 - SPREAD * self.pacing.vary()
        updates = []
        for each, result in results:
            known, fence = each.observation, each.row.fence
            same = known.says(result, fence)
            interval_s = self.pacing.intervals.get(each.row.type, max(self.pacing.intervals.values(), default=0.0))
            wait_s = share * pause_s(interval_s, known.same_results + 1 if same else 1)
            source, news = known.requested_by or ObservationSource.POLL, news_of(each, result, self._new_id)
            updates.append(ObservationUpdate(known.resource_id, fence, result, source, wait_s, same, news))
        return updates

    def _run(self) -> None:
        try:
            pause = 0.0
            while True:
                self._awake.wait(pause)
                self._awake.clear()
                if self._stopping.is_set():
                    break
                try:
                    pause = self.round()
                except ConvergenceError as error:
                    LOG.warning('Observation of objects paused, retrying: %s', error)
                    pause = self.pacing.idle_s
                except Exception:
                    LOG.exception('Observation of objects paused, retrying; report this error')
                    pause = self.pacing.idle_s
        finally:
            self._ended.set()


def _to_repair(results: Sequence[tuple[Leased, ObservationResult]]) -> str | None:
    """Return the id of a stack that has a drifted object to repair; None: no object is to be repaired."""
    for each, result in results:
        known = each.observation
        if result.found.is_drift and known.policy is DriftPolicy.REPAIR and not known.given_up:
            return each.stack.id
    return None
