"""What is to be told of a stack is written down beside the event that it is about, in the same transaction.

So nothing is told that did not happen, and nothing that happened is forgotten, whoever dies when. Only events of stacks
as a whole are told: those of resources, which come by the thousand, write nothing here and ask nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import Select, bindparam, func, insert, or_, select
from sqlalchemy.engine import Connection

from convergence.core.effects import Effect, InsertEvents, InsertTraversal
from convergence.db.schema.models import CREDENTIALS, OUTBOX, STACK, TEMPLATE, WEBHOOK
from convergence.notices import NoticeKind


class Audience(StrEnum):
    """Who may want to be told of stacks, as the installation is configured.

    * NOBODY: nobody can; nothing is asked or written.
    * WEBHOOKS: whoever has a webhook. Each transaction that stores an event of a stack asks whether there is one.
    * EVERYBODY: notifications go to a message bus, whatever webhooks there are.
    """

    NOBODY = 'NOBODY'
    WEBHOOKS = 'WEBHOOKS'
    EVERYBODY = 'EVERYBODY'


ROOT_ID = func.coalesce(STACK.c.root_id, STACK.c.id)
_USER = select(CREDENTIALS.c.user_id).where(CREDENTIALS.c.id == STACK.c.credentials_id).scalar_subquery()
_STACK: Select[Any] = (
    select(
        ROOT_ID.label('root_id'),
        STACK.c.project_id,
        STACK.c.name.label('stack_name'),
        STACK.c.created_at,
        STACK.c.updated_at,
        STACK.c.tags,
        _USER.label('user_id'),
        TEMPLATE.c.summary,
    )
    .select_from(STACK.outerjoin(TEMPLATE, TEMPLATE.c.id == STACK.c.template_id))
    .where(STACK.c.id == bindparam('stack'))
)
_HAS_WEBHOOK = (
    select(WEBHOOK.c.id)
    .where(WEBHOOK.c.project_id == STACK.c.project_id, or_(WEBHOOK.c.stack_id.is_(None), WEBHOOK.c.stack_id == ROOT_ID))
    .exists()
)
_WANTED = {Audience.EVERYBODY: _STACK, Audience.WEBHOOKS: _STACK.where(_HAS_WEBHOOK)}


def write_down(connection: Connection, decided: Sequence[Effect], audience: Audience) -> None:
    """Write down what is to be told of the events of stacks among some effects, which have been carried out."""
    if audience is Audience.NOBODY:
        return
    stored = [effect.events for effect in decided if isinstance(effect, InsertEvents)]
    events = [event for some in stored for event in some if event.resource_name is None]
    begun = {effect.traversal.stack_id for effect in decided if isinstance(effect, InsertTraversal)}
    for event in events:
        stack = connection.execute(_WANTED[audience], {'stack': event.stack_id}).first()
        if stack is None:
            continue
        told = {
            'event_id': event.id,
            'kind': NoticeKind.of(event.status, begins=event.stack_id in begun),
            **{name: getattr(event, name) for name in ('stack_id', 'action', 'status', 'reason', 'at')},
            'fanned': False,
        }
        values = dict(stack._mapping)
        summary = values.pop('summary')
        described = summary.get('description') if isinstance(summary, Mapping) else None
        connection.execute(insert(OUTBOX), {**values, **told, 'description': described})
