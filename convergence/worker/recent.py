"""What a worker has stored lately: it can still tell after the database has lost it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from typing_extensions import override

from convergence import concurrency
from convergence.core.claim import Claim
from convergence.core.effects import Decision, InsertEvents
from convergence.core.model import Action
from convergence.core.rows import Event
from convergence.core.views import PlanView
from convergence.db.queries.witness import LostCommits
from convergence.db.scopes import StackAlone
from convergence.db.transaction import Transactions
from convergence.errors import ConvergenceError

LOG = logging.getLogger(__name__)

MOST = 5000
"""How many results are remembered, the newest."""
SLACK_S = 60.0
"""An action may have begun so long before the time whose commits are lost."""


@dataclass(frozen=True, slots=True)
class FinishedAction:
    """One action that has come to an end.

    :param at: when its row was claimed, by the database's clock.
    :param physical_id: of its object, where there is one.
    """

    at: float
    stack_id: str
    action: Action
    name: str
    type: str
    token: str | None
    physical_id: str | None

    @override
    def __str__(self) -> str:
        return f'{self.action} of {self.name} ({self.type}, physical id {self.physical_id}, token {self.token})'


class Recent:
    """Remembers results, and names those that the database may have lost: in the log, and as events of their stacks."""

    def __init__(self, store: Transactions, new_id: Callable[[], str]) -> None:
        self._store = store
        self._new_id = new_id
        self._done: deque[FinishedAction] = deque(maxlen=MOST)

    def add(self, claim: Claim, physical_id: str | None) -> None:
        """An action has ended, and its result is stored."""
        row = claim.resource
        known = physical_id or row.physical_id
        self._done.append(
            FinishedAction(claim.at, claim.stack.id, claim.action, row.name, row.shown_type, row.token, known)
        )

    def tell(self, loss: LostCommits) -> None:
        """The database has lost what was committed in that time. Returns at once; the telling goes on."""
        since = float('-inf') if loss.since is None else loss.since - SLACK_S
        concerned = [done for done in list(self._done) if since <= done.at <= loss.until]
        if concerned:
            concurrency.start_thread('tell-loss', lambda: self._tell(loss, concerned))

    def _tell(self, loss: LostCommits, concerned: list[FinishedAction]) -> None:
        for done in concerned:
            LOG.warning('Stack %s: %s may be lost in the database, %s', done.stack_id, done, loss)
        for stack_id in dict.fromkeys(done.stack_id for done in concerned):
            of_stack = [done for done in concerned if done.stack_id == stack_id]
            try:
                self._store.transact(StackAlone(stack_id), partial(self._events, concerned=of_stack, loss=loss))
            except ConvergenceError as error:
                LOG.warning('Stack %s: that it has lost results cannot be stored: %s', stack_id, error)

    def _events(self, view: PlanView, concerned: list[FinishedAction], loss: LostCommits) -> Decision[bool]:
        stack = view.stack
        if stack is None:
            return Decision(False)
        events = tuple(
            Event(
                id=self._new_id(),
                stack_id=stack.id,
                action=stack.action,
                status=stack.status,
                reason=f'the database has lost what was committed {loss}; {done} may be part of it',
                at=view.now,
                resource_name=done.name,
                resource_type=done.type,
                physical_id=done.physical_id,
            )
            for done in concerned
        )
        return Decision(True, (InsertEvents(events),))
