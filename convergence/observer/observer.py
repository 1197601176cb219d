"""Looks at objects whose turn it is, a batch at a time."""

from __future__ import annotations

import logging
import random
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from convergence.concurrency import Group, Pool, Task, ThreadEvent, start_thread
from convergence.core.model import DriftPolicy
from convergence.core.observation import Comparison, Leased, LookOutcome, LookSource, ObservedState, news_of, pause_s
from convergence.db.ports import ObservationLeasesPort
from convergence.errors import ConvergenceError
from convergence.observer.budget import CallBudget
from convergence.observer.looking import Looking

LOG = logging.getLogger(__name__)

GRACE_S = 1.0
"""What a look that has taken too long is given to end by itself."""
ALONE_S = 0.05
"""What one thread is given to look at a whole batch: where looks are quick, several of them only hinder each other."""
QUIET_TURNS = 10
"""After so many turns in a row in which nothing was due it is only asked when something will be."""
LONGEST_REST = 3
"""So many times the usual pause it rests then at most: so long waits what somebody asks for meanwhile."""
SPREAD = 0.1
"""By what part of a pause objects are told apart that were looked at together."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """How often, and how much. Times in seconds.

    :param intervals: the longest pause between two looks, by type; others are not looked at.
    :param batch: objects that are leased together.
    :param threads: objects that are looked at together.
    :param timeout_s: after which a look counts as stuck. A batch is leased for somewhat more than twice that.
    :param idle_s: pause before it is asked again whether anything is due, when nothing was.
    """

    intervals: Mapping[str, float]
    batch: int = 100
    threads: int = 8
    timeout_s: float = 30.0
    idle_s: float = 1.0

    @property
    def lease_s(self) -> float:
        """For how long a batch is leased: what becomes due by itself when an observer dies."""
        return 2 * self.timeout_s + 5 * GRACE_S

    @property
    def rest_s(self) -> float:
        """The longest such pause, once nothing was due for a while. What engines enrol meanwhile may be due after the
        shortest interval.
        """
        return max(self.idle_s, min([LONGEST_REST * self.idle_s, *self.intervals.values()]))


def nobody(stack_id: str) -> None:
    """The default of who is told of what drifted."""


@dataclass(slots=True)
class _Batch:
    """A batch in hand: what nobody looks at yet, who looks at what, and what was seen."""

    waiting: deque[Leased]
    looking: dict[Task, Leased] = field(default_factory=dict)
    seen: list[tuple[Leased, Comparison]] = field(default_factory=list)


class Observer:
    """Leases, looks, writes down.

    :param new_id: makes an id that was never used before: one for each lease.
    :param vary: a number between 0 and 1, another one each time.
    :param drifted: is told, with the id of a stack, that there is something to put right. A hint: it may be lost.
    :ivar new_group: makes what the looks of one batch are tasks of.
    """

    def __init__(
        self,
        rows: ObservationLeasesPort,
        looking: Looking,
        pacing: Pacing,
        budget: CallBudget,
        new_id: Callable[[], str],
        vary: Callable[[], float] = random.random,
        drifted: Callable[[str], object] = nobody,
    ) -> None:
        self._rows = rows
        self._looking = looking
        self._pacing = pacing
        self._budget = budget
        self._new_id = new_id
        self._vary = vary
        self._drifted = drifted
        self.new_group: Callable[[], Group] = partial(Group, 'observer', Pool(pacing.threads, 'observer'))
        self._stopping = ThreadEvent()
        self._awake = ThreadEvent()
        self._ended = ThreadEvent()
        self._busy = 0
        self._quiet_turns = 0

    @property
    def busy(self) -> int:
        """How many objects are in hand."""
        return self._busy

    def start(self) -> None:
        """Begin, in a thread of its own."""
        start_thread('observer', self._run)

    def stop(self, timeout_s: float) -> bool:
        """Begin nothing more, and wait for what is in hand; whether it ended in time."""
        self._stopping.set()
        self._awake.set()
        return self._ended.wait(timeout_s)

    def hurry(self) -> None:
        """Something is due now: do not wait until it is time to ask."""
        self._awake.set()

    def turn(self) -> int:
        """Look at a batch of what is due; how much was due.

        :raises ConvergenceError: the database cannot be reached, or rows kept changing. What was leased is due again
            when its lease is over.
        """
        holder = self._new_id()
        leased = self._rows.lease(holder, self._pacing.batch, self._pacing.lease_s)
        if not leased:
            return 0
        self._busy = len(leased)
        try:
            affordable = self._affordable(holder, leased)
            seen, left = self._look_at(affordable)
            self._rows.write(holder, self._looks(seen))
            if (stack_id := _to_repair(seen)) is not None:
                self._drifted(stack_id)
            self._rows.put_off(holder, left, self._pacing.idle_s)
        finally:
            self._busy = 0
        return len(leased)

    def round(self) -> float:
        """Take a turn, unless nothing is due and nothing was for a while; after how many seconds the next may begin.

        :raises ConvergenceError: see `turn`.
        """
        if self._quiet_turns >= QUIET_TURNS:
            due_in_s = self._rows.due_in_s()
            if due_in_s is None or due_in_s > 0.0:
                rest_s = self._pacing.rest_s
                return rest_s if due_in_s is None else min(rest_s, max(self._pacing.idle_s, due_in_s))
        if self.turn():
            self._quiet_turns = 0
            return 0.0
        self._quiet_turns += 1
        return self._pacing.idle_s

    def _affordable(self, holder: str, leased: Sequence[Leased]) -> list[Leased]:
        """What the budget allows to look at now; the rest waits until there is more."""
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

    def _look_at(self, leased: Sequence[Leased]) -> tuple[list[tuple[Leased, Comparison]], list[str]]:
        """Look at objects, some at a time: what was seen, and the rows at which nobody has come to look."""
        batch, group = _Batch(deque(leased)), self.new_group()
        group.spawn(self._work, batch)
        if group.wait(ALONE_S):
            for _ in range(min(self._pacing.threads, len(leased)) - 1):
                group.spawn(self._work, batch)
            group.wait(self._pacing.timeout_s)
        left = list(batch.waiting)
        batch.waiting.clear()
        if group.wait(self._pacing.timeout_s):
            group.stop(GRACE_S)
            group.wait(GRACE_S)
        stuck = [each for task in list(batch.looking) if (each := batch.looking.pop(task, None)) is not None]
        reason = f'its type has not answered in {self._pacing.timeout_s:g} s'
        seen = [*batch.seen, *((each, Comparison(ObservedState.UNKNOWN, reason=reason)) for each in stuck)]
        for each in stuck:
            LOG.warning('This observer leaves %s of stack %s: %s', each.row.name, each.stack.name, reason)
        return seen, [each.row.id for each in left]

    def _work(self, task: Task, batch: _Batch) -> None:
        while not task.cancelled.is_set() and not self._stopping.is_set():
            try:
                each = batch.waiting.popleft()
            except IndexError:
                return
            batch.looking[task] = each
            sight = self._looking.look(each, task)
            if batch.looking.pop(task, None) is not None:
                batch.seen.append((each, sight))

    def _looks(self, seen: Sequence[tuple[Leased, Comparison]]) -> list[LookOutcome]:
        """What is to be written: the pauses of what was looked at together differ from those of other batches."""
        share = 1.0 - SPREAD * self._vary()
        looks = []
        for each, sight in seen:
            known, fence = each.observation, each.row.fence
            same = known.says(sight, fence)
            interval_s = self._pacing.intervals.get(each.row.type, max(self._pacing.intervals.values(), default=0.0))
            wait_s = share * pause_s(interval_s, known.same_results + 1 if same else 1)
            source, news = known.requested_by or LookSource.POLL, news_of(each, sight, self._new_id)
            looks.append(LookOutcome(known.resource_id, fence, sight, source, wait_s, same, news))
        return looks

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
                    LOG.warning('Nothing is observed for now: %s', error)
                    pause = self._pacing.idle_s
                except Exception:
                    LOG.exception('Nothing is observed for now')
                    pause = self._pacing.idle_s
        finally:
            self._ended.set()


def _to_repair(seen: Sequence[tuple[Leased, Comparison]]) -> str | None:
    """The stack of one of the objects that are to be put right."""
    for each, sight in seen:
        known = each.observation
        if sight.found.is_drift and known.policy is DriftPolicy.REPAIR and not known.given_up:
            return each.stack.id
    return None
