"""Webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.engine import Connection

from convergence.db.schema.columns import UNREADABLE, asked_at, database_now
from convergence.db.schema.models import DELIVERY, OUTBOX, STACK, WEBHOOK
from convergence.db.schema.row_columns import columns
from convergence.db.statements.loading.plans import lock_project
from convergence.db.statements.store import Store
from convergence.notices import pause_s

MOST_REASON = 500
"""Characters stored of the reason for which a delivery failed."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address that receives the events of a project's stacks. The representation shows no secret.

    :param stack_id: limits it to a stack with all that is nested in it; None: every stack of the project.
    :param content: `url` and `key`; None: unreadable.
    :param host: host and port of the address; many webhooks may share it.
    :param attempts: number of attempts that failed since the last delivery.
    :param delivered_at: time of the last delivery, and `created_at`: seconds since the epoch.
    :param reason: reason of the last failure; empty after a success.
    :param given_up: number of events that were dropped undelivered.
    """

    id: str
    project_id: str
    stack_id: str | None
    name: str
    content: Mapping[str, Any] | None = field(repr=False)
    host: str
    created_at: float = 0.0
    attempts: int = 0
    delivered_at: float | None = None
    reason: str = ''
    given_up: int = 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event that waits for delivery to a webhook.

    :param content: the CloudEvent; None: unreadable.
    """

    sequence: int
    content: Mapping[str, Any] | None = field(repr=False)


_COLUMNS = columns(WEBHOOK, Webhook)
_DELIVERY_COLUMNS = columns(DELIVERY, Delivery)
_HAS_DELIVERY = select(DELIVERY.c.sequence).where(DELIVERY.c.webhook_id == WEBHOOK.c.id).exists()
_IS_OVER = and_(
    select(STACK.c.id).where(STACK.c.id == WEBHOOK.c.stack_id, STACK.c.deleted_at.is_not(None)).exists(),
    ~_HAS_DELIVERY,
    ~select(OUTBOX.c.sequence).where(OUTBOX.c.root_id == WEBHOOK.c.stack_id).exists(),
)
"""Its stack was deleted, and the event of the deletion was delivered."""
_IS_FREE = or_(WEBHOOK.c.next_attempt_at.is_(None), WEBHOOK.c.next_attempt_at <= asked_at())
TO_BE_TOLD = (
    select(*_COLUMNS)
    .where(_IS_FREE, _HAS_DELIVERY)
    .order_by(func.coalesce(WEBHOOK.c.next_attempt_at, 0.0), WEBHOOK.c.id)
    .limit(bindparam('limit'))
)


class WebhookRows:
    """Keeps webhooks, hands each out to one sender at a time, and remembers how that went."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- for their owners -------------------------------------------------------------------------------------

    def add(self, webhook: Webhook, most: int) -> Webhook | None:
        """Store a webhook and return it with its time; None if the project has `most` already.

        Webhooks of deleted stacks do not count: they are removed here once the event of the deletion was delivered.
        """

        def write(connection: Connection) -> Webhook | None:
            lock_project(connection, webhook.project_id)
            connection.execute(delete(WEBHOOK).where(WEBHOOK.c.project_id == webhook.project_id, _IS_OVER))
            count = select(func.count()).where(WEBHOOK.c.project_id == webhook.project_id)
            if connection.execute(count).scalar_one() >= most:
                return None
            values = {each.name: getattr(webhook, each.name) for each in _COLUMNS}
            now = connection.execute(select(database_now())).scalar_one()
            connection.execute(insert(WEBHOOK), {**values, 'created_at': now})
            return _webhook(connection.execute(_one(webhook.project_id, webhook.id)).one())

        return self._store.write(write, self.add)

    def of_project(self, project_id: str, stack_id: str | None = None) -> list[Webhook]:
        """The webhooks of a project, or of one of its stacks, oldest first."""
        mine = select(*_COLUMNS).where(WEBHOOK.c.project_id == project_id)
        if stack_id is not None:
            mine = mine.where(WEBHOOK.c.stack_id == stack_id)
        with self._store.reading() as connection:
            found = connection.execute(mine.order_by(WEBHOOK.c.created_at, WEBHOOK.c.id))
            return [_webhook(row) for row in found]

    def telling(self, project_id: str, stack_id: str | None) -> set[str]:
        """Return the names and ids of a project's webhooks that cover a stack; None: a stack to be created."""
        every = [each for each in self.of_project(project_id) if each.stack_id in (None, stack_id)]
        return {name for each in every for name in (each.id, each.name) if name}

    def one(self, project_id: str, webhook_id: str) -> Webhook | None:
        """One webhook."""
        with self._store.reading() as connection:
            row = connection.execute(_one(project_id, webhook_id)).first()
        return _webhook(row) if row is not None else None

    def waiting(self, webhook_id: str) -> int:
        """Return the number of events that wait for delivery to a webhook."""
        with self._store.reading() as connection:
            return int(connection.execute(select(func.count()).where(DELIVERY.c.webhook_id == webhook_id)).scalar_one())

    def remove(self, project_id: str, webhook_id: str) -> bool:
        """Remove a webhook and all that waits for it; False: the project has no such."""
        mine = and_(WEBHOOK.c.project_id == project_id, WEBHOOK.c.id == webhook_id)

        def write(connection: Connection) -> bool:
            gone = connection.execute(delete(WEBHOOK).where(mine)).rowcount == 1
            if gone:
                connection.execute(delete(DELIVERY).where(DELIVERY.c.webhook_id == webhook_id))
            return gone

        return self._store.write(write, self.remove)

    # --- for senders ------------------------------------------------------------------------------------------

    def due(self, limit: int) -> list[Webhook]:
        """Return webhooks with waiting events that no relay serves now: new ones, then the longest waiting."""
        with self._store.reading() as connection:
            return [_webhook(row) for row in connection.execute(TO_BE_TOLD, {'limit': limit})]

    def take(self, webhook_id: str, for_s: float) -> bool:
        """Take a webhook for `for_s` seconds; return False if another relay has it."""
        taking = (
            update(WEBHOOK).where(WEBHOOK.c.id == webhook_id, _IS_FREE).values(next_attempt_at=database_now() + for_s)
        )
        return self._store.write(lambda connection: connection.execute(taking).rowcount == 1, self.take)

    def release(self, webhook_id: str) -> None:
        """Make the remaining events of a webhook due at once, behind webhooks that have waited for longer."""
        self._set(webhook_id, next_attempt_at=database_now())

    def next_delivery(self, webhook_id: str) -> Delivery | None:
        """The oldest event that waits for a webhook."""
        mine = select(*_DELIVERY_COLUMNS).where(DELIVERY.c.webhook_id == webhook_id)
        with self._store.reading() as connection:
            row = connection.execute(mine.order_by(DELIVERY.c.sequence).limit(1)).first()
        return Delivery(*_readable(row)) if row is not None else None

    def delivered(self, webhook_id: str, sequence: int) -> None:
        """Record a delivery."""
        values = {'delivered_at': database_now(), 'attempts': 0, 'reason': ''}

        def write(connection: Connection) -> None:
            connection.execute(delete(DELIVERY).where(DELIVERY.c.sequence == sequence))
            connection.execute(update(WEBHOOK).where(WEBHOOK.c.id == webhook_id).values(**values))

        self._store.write(write, self.delivered)

    def failed(self, webhook: Webhook, attempts: int, reason: str, give_up_after_s: float) -> int:
        """Record a failed delivery: the webhook pauses, and events that are too old are dropped; return their
        number."""
        old = and_(DELIVERY.c.webhook_id == webhook.id, DELIVERY.c.created_at < asked_at() - give_up_after_s)

        def write(connection: Connection) -> int:
            lost = connection.execute(delete(DELIVERY).where(old)).rowcount
            values = {
                'attempts': attempts,
                'next_attempt_at': database_now() + pause_s(attempts),
                'reason': reason[:MOST_REASON],
                'given_up': WEBHOOK.c.given_up + lost,
            }
            connection.execute(update(WEBHOOK).where(WEBHOOK.c.id == webhook.id).values(**values))
            return lost

        return self._store.write(write, self.failed)

    def _set(self, webhook_id: str, **values: Any) -> None:
        statement = update(WEBHOOK).where(WEBHOOK.c.id == webhook_id).values(**values)
        self._store.write(lambda connection: connection.execute(statement).rowcount, WebhookRows._set)


def _one(project_id: str, webhook_id: str) -> Select[Any]:
    return select(*_COLUMNS).where(WEBHOOK.c.project_id == project_id, WEBHOOK.c.id == webhook_id)


def _webhook(row: Any) -> Webhook:
    return Webhook(*_readable(row))


def _readable(row: Any) -> list[Any]:
    return [None if value is UNREADABLE else value for value in row]
