"""The outbox: from stored notifications to deliveries for webhooks and messages for a bus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, delete, insert, or_, select, update
from sqlalchemy.engine import Connection

from convergence.db.schema.columns import UNREADABLE, asked_at
from convergence.db.schema.models import DELIVERY, OUTBOX, WEBHOOK
from convergence.db.schema.row_columns import columns
from convergence.db.statements.store import Store
from convergence.notices import StackNotice

_COLUMNS = columns(OUTBOX, StackNotice)
_NEXT = select(*_COLUMNS).order_by(OUTBOX.c.sequence).limit(bindparam('limit'))
TO_FAN_OUT = _NEXT.where(OUTBOX.c.fanned_out.is_(False))
"""Notifications without deliveries yet."""
FOR_BUS = _NEXT.where(OUTBOX.c.fanned_out.is_(True))
"""Notifications that wait for the message bus."""


class Outbox:
    """Reads stored notifications in their order, and removes those that were sent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def fan_out(self, limit: int, *, to_bus: bool) -> int:
        """Insert a delivery for each webhook of the next notifications; return the number of notifications.

        The step is atomic: of two concurrent callers one finds nothing left.

        :param to_bus: True to keep the notifications for a message bus.
        """

        def fan(connection: Connection) -> int:
            notices = [_notice(row) for row in connection.execute(TO_FAN_OUT.with_for_update(), {'limit': limit})]
            if not notices:
                return 0
            these = OUTBOX.c.sequence.in_([each.sequence for each in notices])
            connection.execute(
                update(OUTBOX).where(these).values(fanned_out=True) if to_bus else delete(OUTBOX).where(these)
            )
            for notice in notices:
                wanted = [
                    {'webhook_id': webhook_id, 'content': notice.cloud_event(), 'created_at': notice.at}
                    for webhook_id in connection.execute(_webhooks_of(notice)).scalars()
                ]
                if wanted:
                    connection.execute(insert(DELIVERY), wanted)
            return len(notices)

        return self._store.write(fan, self.fan_out)

    def for_bus(self, limit: int) -> list[StackNotice]:
        """Return the notifications that wait for the message bus, the oldest first."""
        with self._store.reading() as connection:
            return [_notice(row) for row in connection.execute(FOR_BUS, {'limit': limit})]

    def told(self, notices: Sequence[StackNotice]) -> None:
        """The message bus has them."""
        these = delete(OUTBOX).where(OUTBOX.c.sequence.in_([each.sequence for each in notices]))
        self._store.write(lambda connection: connection.execute(these).rowcount, self.told)

    def give_up(self, older_than_s: float) -> int:
        """Remove what the message bus has not taken for long; how much that was."""
        old = delete(OUTBOX).where(OUTBOX.c.fanned_out.is_(True), OUTBOX.c.at < asked_at() - older_than_s)
        return self._store.write(lambda connection: connection.execute(old).rowcount, self.give_up)


def _notice(row: Any) -> StackNotice:
    return StackNotice(*(None if value is UNREADABLE else value for value in row))  # type: ignore[arg-type]


def _webhooks_of(notice: StackNotice) -> Select[tuple[str]]:
    mine = or_(WEBHOOK.c.stack_id.is_(None), WEBHOOK.c.stack_id == notice.root_id)
    return select(WEBHOOK.c.id).where(WEBHOOK.c.project_id == notice.project_id, mine).order_by(WEBHOOK.c.id)
