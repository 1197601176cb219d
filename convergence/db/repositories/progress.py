"""Operations whose progress is due for a notification, at growing intervals."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, bindparam, func, select, update

from convergence.core.model import UNDER_WAY
from convergence.db.repositories.reads.nested import CURRENT_IN_PROGRESS
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import STACK, TRAVERSAL
from convergence.db.statements.store import Store

GROWTH = 10.0
"""The pause is a tenth of the time so far, if that is longer than the interval: so a day has some sixty of them."""

_LAST_TOLD = func.coalesce(TRAVERSAL.c.progress_notified_at, TRAVERSAL.c.started_at)
_PAUSE = database_now() - _LAST_TOLD
_IS_DUE = and_(bindparam('interval_s') <= _PAUSE, (_LAST_TOLD - TRAVERSAL.c.started_at) / GROWTH <= _PAUSE)
UNTOLD_PROGRESS = (
    select(TRAVERSAL.c.stack_id, TRAVERSAL.c.id, TRAVERSAL.c.stalled_at)
    .join(STACK, CURRENT_IN_PROGRESS)
    .where(TRAVERSAL.c.swept.is_(False), TRAVERSAL.c.status.in_(UNDER_WAY), STACK.c.parent_id.is_(None), _IS_DUE)
    .order_by(_LAST_TOLD)
    .limit(bindparam('limit'))
)
_TAKE = (
    update(TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('traversal'), _IS_DUE)
    .values(progress_notified_at=database_now())
)


@dataclass(frozen=True, slots=True)
class Underway:
    """The current operation of a stack.

    :param stalled_at: since when it is reported to make no progress; None: it does.
    """

    stack_id: str
    traversal_id: str
    stalled_at: float | None


class UntoldProgress:
    """Finds operations whose last progress notification is some time ago; each is handed to one caller."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def take_due(self, interval_s: float, limit: int) -> list[Underway]:
        """Return operations that are due, and mark their progress as notified. A root stack stands for its nested
        stacks.
        """
        with self._store.reading() as connection:
            asked = {'interval_s': interval_s, 'limit': limit}
            found = [Underway(*row) for row in connection.execute(UNTOLD_PROGRESS, asked)]

        def take(traversal_id: str) -> bool:
            mine = {'traversal': traversal_id, 'interval_s': interval_s}
            return self._store.write(lambda connection: connection.execute(_TAKE, mine).rowcount == 1, self.take_due)

        return [each for each in found if take(each.traversal_id)]
