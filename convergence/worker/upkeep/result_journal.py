"""The journal of recent results, from which a worker repairs rows after the database has lost commits."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from typing_extensions import override

from convergence.core import lost_commits
from convergence.core.claim import Claim
from convergence.core.effects import Decision, InsertEvents
from convergence.core.model import BEGINNINGS, Action
from convergence.core.orphans import Tracking
from convergence.core.rows import Event, Resource, Traversal
from convergence.core.views import PlanView
from convergence.db.repositories.witness import LostCommits
from convergence.db.scopes import StackAlone, WholeStack
from convergence.db.transaction import Transactions
from convergence.dispatch import Dispatcher
from convergence.errors import ConvergenceError
from convergence.values import replace
from convergence.worker.checks.unsaved_results import LAGS_AT_MOST_S, LOST

LOG = logging.getLogger(__name__)

MOST_ACTIONS = 2000
"""Maximum number of results in the journal; the newest stay."""
SLACK_S = 60.0
"""Seconds before a loss in which a result also counts as possibly lost: clocks differ, and commits take their time."""
MOST_LOSSES = 10
"""Maximum number of losses that are remembered; the newest stay."""
NEWEST_READ = 3
"""Maximum number of the newest results that one check reads until it finds a row: rows may have been removed."""


SURE_AFTER = 5
"""Number of successive checks that find the newest result, after which it is not checked again.

Each check follows a heartbeat. A later loss of that result also loses several heartbeats, which
`convergence.db.repositories.witness` detects.
"""


@dataclass(frozen=True, slots=True)
class FinishedAction:
    """One action that has ended.

    :param claim: the claim under which it ran.
    :param physical_id: the id of its object, if there is one.
    :param perhaps_made: True if it is a creation that may have made an object, with or without an id.
    :param is_dropped: True if its result was refused because the claim was lost.
    :param ended: seconds on the clock of this process when it ended.
    """

    claim: Claim
    physical_id: str | None
    perhaps_made: bool = False
    is_dropped: bool = False
    ended: float = 0.0

    @property
    def at(self) -> float:
        """When its row was claimed, by the database's clock."""
        return self.claim.at

    @property
    def stack_id(self) -> str:
        """The stack of its resource."""
        return self.claim.stack.id

    @override
    def __str__(self) -> str:
        row = self.claim.resource
        return (
            f'{self.claim.action} of {row.name} ({row.shown_type}, physical id {self.physical_id}, token {row.token})'
        )


@dataclass(slots=True)
class LostAction:
    """An action that the database may have lost.

    :ivar reason: text for events and status.
    :ivar is_reported: True if an event of its stack reports the loss.
    :ivar is_certain: True if its row was seen in an older state, and is not repaired yet.
    """

    done: FinishedAction
    reason: str
    is_reported: bool = False
    is_certain: bool = False


def _from(loss: LostCommits) -> float:
    """The earliest claim time of actions whose results may be lost."""
    return float('-inf') if loss.since is None else loss.since - SLACK_S


def _reason(loss: LostCommits, done: FinishedAction) -> str:
    return f'the database has lost commits {loss}; {done} may be among them'


def _rivals(done: FinishedAction) -> list[FinishedAction]:
    """The creations of rival rows whose objects this action also changed: their own workers may be dead."""
    return [
        FinishedAction(
            replace(done.claim, action=Action.CREATE, resource=rival, rivals=()),
            rival.physical_id,
            True,
            ended=done.ended,
        )
        for rival in done.claim.rivals
    ]


class ResultJournal:
    """Remembers results. Reports results that the database may have lost, by log and events, and repairs their rows.

    :param row: reads the row of a resource by its id; None if there is none.
    :param traversal: reads a traversal by its id; None if there is none.
    :param clock: seconds on the monotonic clock of this process.
    """

    def __init__(
        self,
        store: Transactions,
        dispatcher: Dispatcher,
        new_id: Callable[[], str],
        row: Callable[[str], Resource | None],
        traversal: Callable[[str], Traversal | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._new_id = new_id
        self._row = row
        self._traversal = traversal
        self._clock = clock
        self._done: deque[FinishedAction] = deque(maxlen=MOST_ACTIONS)
        self._lost: deque[LostAction] = deque()
        self._older_since: float | None = None
        self._looked_for: Claim | None = None
        self._seen = 0
        self._losses: deque[LostCommits] = deque(maxlen=MOST_LOSSES)

    def add(self, claim: Claim, physical_id: str | None, perhaps_made: bool) -> None:
        """Add an action whose result is stored, or whose object is at least tracked; see `FinishedAction`."""
        known = physical_id or claim.resource.physical_id
        self._done.append(FinishedAction(claim, known, perhaps_made, ended=self._clock()))

    def add_loss(self, loss: LostCommits) -> None:
        """Note that the database has lost the commits of a time span. Logged at once; `mend` does the rest."""
        for done in self._in_question(loss):
            LOG.warning(
                'Stack %s: result of %s may be lost in the database, its row is repaired: %s', done.stack_id, done, loss
            )
            self._lost.append(LostAction(done, _reason(loss, done), is_certain=done.is_dropped))
            self._lost.extend(LostAction(rival, _reason(loss, rival)) for rival in _rivals(done))
        self._losses.append(loss)

    def _in_question(self, loss: LostCommits) -> list[FinishedAction]:
        """Return the results that ended within a loss.

        Durations decide and not times: the clock of the present server may differ from that of the one before. An
        action may have been claimed long before the loss, but none was after it.
        """
        lasted_s = math.inf if loss.since is None else loss.until - loss.since
        since = self._clock() - lasted_s - SLACK_S
        return [done for done in list(self._done) if done.ended >= since and done.at <= loss.until]

    def dropped(self, claim: Claim, is_certain: bool) -> None:
        """Note an action whose result was refused because the claim was lost.

        A worker that took the row over after a newer claim resumes the action. But if the database has lost the claim,
        the other worker does not know about the action: then the row is marked as doubtful as soon as it is at rest.

        :param is_certain: True if the database is known to have lost the claim. Otherwise a loss may be detected later.
        """
        done = FinishedAction(claim, claim.resource.physical_id, is_dropped=True, ended=self._clock())
        loss = next((each for each in self._losses if _from(each) <= done.at <= each.until), None)
        if is_certain or loss is not None:
            reason = _reason(loss, done) if loss else LOST
            self._lost.append(LostAction(done, reason, is_reported=True, is_certain=True))
            self._lost.extend(LostAction(rival, reason, is_reported=True) for rival in _rivals(done))
        else:
            self._done.append(done)

    def check(self) -> None:
        """Check that the database still has the newest results. Call it with each heartbeat.

        Only this check detects a loss that is shorter than the time between two heartbeats. A lagging server also shows
        an older state, but not for longer than `LAGS_AT_MOST_S`.

        :raises DatabaseUnavailable: the database cannot be reached.
        """
        newest = list(islice(reversed(list(self._done)), NEWEST_READ))
        newest_claim = newest[0].claim if newest else None
        if newest_claim != self._looked_for:
            self._looked_for, self._seen = newest_claim, 0
        if self._seen == SURE_AFTER:
            return
        older = self._older(newest)
        if older is None:
            self._older_since = None
            self._seen += 1
            return
        self._seen = 0
        if self._older_since is None:
            self._older_since = self._clock()
        elif self._clock() - self._older_since >= LAGS_AT_MOST_S:
            self._older_since = None
            loss = LostCommits(older.at, older.at + self._clock() - older.ended)
            LOG.error(
                'Commits of this process lost by the database %s, as after a fail-over; their rows are repaired', loss
            )
            self.add_loss(loss)

    def _older(self, newest: Sequence[FinishedAction]) -> FinishedAction | None:
        """Return a result that the database does not contain, although it should.

        The row of the newest result that still has one decides. Where all rows are gone the traversals decide: a stack
        keeps its traversals when it is deleted, so a traversal that does not exist was lost with the rows. A deletion
        proves nothing: `purge_deleted` may have removed its traversal.
        """
        for done in newest:
            row = self._row(done.claim.resource.id)
            if row is not None:
                return done if row.fence < done.claim.resource.fence else None
        for done in newest:
            if done.claim.action is not Action.DELETE and self._traversal(done.claim.traversal.id) is None:
                return done
        return None

    @property
    def is_mending(self) -> bool:
        """True if a lost result has still to be reported or repaired."""
        return bool(self._lost)

    def mend(self) -> None:
        """Store events about lost results in their stacks, and repair the rows from the journal.

        A repair that fails now is retried at the next call.
        """
        left = [self._lost.popleft() for _ in range(len(self._lost))]
        for stack_id in dict.fromkeys(each.done.stack_id for each in left if not each.is_reported):
            self._report(stack_id, [each for each in left if each.done.stack_id == stack_id])
        for each in left:
            try:
                is_mended = self._mend(each)
            except ConvergenceError as error:
                LOG.warning('Stack %s: row of %s not repaired yet, retrying: %s', each.done.stack_id, each.done, error)
                is_mended = False
            except Exception:
                LOG.exception('Stack %s: repairing the row of %s failed, retrying', each.done.stack_id, each.done)
                is_mended = False
            if not is_mended:
                self._lost.append(each)

    def _mend(self, lost_action: LostAction) -> bool:
        done = lost_action.done
        if self._traversal(done.claim.traversal.id) is None:
            lost_action.is_certain = True  # the whole traversal is lost, and with it every result
        committed = self._store.transact(WholeStack(done.stack_id), partial(self._decide, lost_action=lost_action))
        if committed is None or committed.verdict is Tracking.LOST:
            if done.claim.action is not Action.DELETE and done.physical_id is not None:
                LOG.error(
                    'Stack %s does not exist any more; check the object and delete it if it is not needed: %s',
                    done.stack_id,
                    done,
                )
            return True
        self._dispatcher.attend(committed)
        lost_action.is_certain = committed.verdict is Tracking.HELD
        return not lost_action.is_certain

    def _decide(self, view: PlanView, lost_action: LostAction) -> Decision[Tracking]:
        done = lost_action.done
        if done.claim.action in BEGINNINGS or lost_commits.is_unknown(view, done.claim, done.physical_id):
            return lost_commits.known_again(view, done.claim, done.physical_id, done.perhaps_made, self._new_id)
        return lost_commits.put_in_doubt(view, done.claim, lost_action.reason, lost_action.is_certain)

    def _report(self, stack_id: str, lost_of_stack: list[LostAction]) -> None:
        try:
            self._store.transact(StackAlone(stack_id), partial(self._events, lost_of_stack=lost_of_stack))
        except ConvergenceError as error:
            LOG.warning('Stack %s: event about lost results not stored yet, retrying: %s', stack_id, error)
        else:
            for each in lost_of_stack:
                each.is_reported = True

    def _events(self, view: PlanView, lost_of_stack: list[LostAction]) -> Decision[bool]:
        stack = view.stack
        if stack is None:
            return Decision(False)
        events = tuple(
            Event(
                id=self._new_id(),
                stack_id=stack.id,
                action=stack.action,
                status=stack.status,
                reason=each.reason,
                at=view.now,
                resource_name=each.done.claim.resource.name,
                resource_type=each.done.claim.resource.shown_type,
                physical_id=each.done.physical_id,
            )
            for each in lost_of_stack
            if not each.is_reported
        )
        return Decision(True, (InsertEvents(events),))
