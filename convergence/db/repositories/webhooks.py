"""Webhooks, and what is to be delivered to each."""

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
"""Characters that are kept of why a webhook could not be told."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address at which somebody wants to be told of the stacks of a project. The representation shows no secret.

    :param stack_id: of this stack alone, with all that is nested in it; None: of every stack of the project.
    :param content: `url` and `key`; None: it cannot be read.
    :param host: of the address, with its port; many webhooks may have the same.
    :param attempts: how many have failed in a row since somebody was told last.
    :param delivered_at: when somebody was told last, and `created_at`: seconds since the epoch.
    :param reason: why the last attempt failed; empty where it did not.
    :param given_up: how many events it was never told of.
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
    """An event that a webhook is to be told of.

    :param content: the CloudEvent; None: it cannot be read.
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
"""Its stack was deleted, and it has been told so."""
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
        """Keep a webhook; it, with its time, or None where the project has `most` already.

        Those of deleted stacks do not count: they go here, once they have been told of that.
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
        """The names and ids of the webhooks of a project that tell of a stack; None: of one to come."""
        every = [each for each in self.of_project(project_id) if each.stack_id in (None, stack_id)]
        return {name for each in every for name in (each.id, each.name) if name}

    def one(self, project_id: str, webhook_id: str) -> Webhook | None:
        """One webhook."""
        with self._store.reading() as connection:
            row = connection.execute(_one(project_id, webhook_id)).first()
        return _webhook(row) if row is not None else None

    def waiting(self, webhook_id: str) -> int:
        """How many events wait to be told to a webhook."""
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
        """Webhooks for which something waits and that nobody tells just now: new ones, then who has waited longest."""
        with self._store.reading() as connection:
            return [_webhook(row) for row in connection.execute(TO_BE_TOLD, {'limit': limit})]

    def take(self, webhook_id: str, for_s: float) -> bool:
        """Become the one who tells a webhook, for `for_s` seconds; False: somebody else is."""
        taking = (
            update(WEBHOOK).where(WEBHOOK.c.id == webhook_id, _IS_FREE).values(next_attempt_at=database_now() + for_s)
        )
        return self._store.write(lambda connection: connection.execute(taking).rowcount == 1, self.take)

    def release(self, webhook_id: str) -> None:
        """Whatever still waits for a webhook may be told at once, after those that have waited for longer."""
        self._set(webhook_id, next_attempt_at=database_now())

    def next_delivery(self, webhook_id: str) -> Delivery | None:
        """The oldest event that waits for a webhook."""
        mine = select(*_DELIVERY_COLUMNS).where(DELIVERY.c.webhook_id == webhook_id)
        with self._store.reading() as connection:
            row = connection.execute(mine.order_by(DELIVERY.c.sequence).limit(1)).first()
        return Delivery(*_readable(row)) if row is not None else None

    def delivered(self, webhook_id: str, sequence: int) -> None:
        """A webhook was told."""
        values = {'delivered_at': database_now(), 'attempts': 0, 'reason': ''}

        def write(connection: Connection) -> None:
            connection.execute(delete(DELIVERY).where(DELIVERY.c.sequence == sequence))
            connection.execute(update(WEBHOOK).where(WEBHOOK.c.id == webhook_id).values(**values))

        self._store.write(write, self.delivered)

    def failed(self, webhook: Webhook, attempts: int, reason: str, give_up_after_s: float) -> int:
        """A webhook could not be told: it is left alone for a while. How many events are given up that are too old."""
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
