"""The outbox stores a notification beside its event, in the same transaction.

So every notification has its event and no notification is lost in a crash. Events of whole stacks and drift events of
resources cause notifications; other events of resources, which come by the thousand, cost no statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import Select, bindparam, func, insert, or_, select
from sqlalchemy.engine import Connection

from convergence.core.effects import Effect, InsertEvents, InsertTraversal
from convergence.core.model import Action, Json, Status
from convergence.core.observation import ObservedState
from convergence.core.rows import Event
from convergence.core.scaling import Scaling
from convergence.db.schema.models import CREDENTIALS, OUTBOX, RESOURCE, STACK, TEMPLATE, TRAVERSAL, WEBHOOK
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.statements.prepared.statement import PreparedStatement
from convergence.notices import NoticeKind, NoticeSubject
from convergence.values import replace


class Audience(StrEnum):
    """Recipients of notifications, as configured.

    * NONE: no recipients; nothing is read or written.
    * WEBHOOKS: webhooks only. A transaction with a stack event checks for webhooks, unless it has read that none exist.
    * ALL: a message bus, besides webhooks.
    """

    NONE = 'NONE'
    WEBHOOKS = 'WEBHOOKS'
    ALL = 'ALL'


ROOT_ID = func.coalesce(STACK.c.root_id, STACK.c.id)
_USER = select(CREDENTIALS.c.user_id).where(CREDENTIALS.c.id == STACK.c.credentials_id).scalar_subquery()
_STACK: Select[Any] = (
    select(
        ROOT_ID.label('root_id'),
        STACK.c.id.label('stack_id'),
        STACK.c.project_id,
        STACK.c.name.label('stack_name'),
        STACK.c.created_at,
        STACK.c.updated_at,
        STACK.c.tags,
        _USER.label('user_id'),
        STACK.c.action,
        STACK.c.status,
        STACK.c.status_reason.label('reason'),
        TEMPLATE.c.summary,
        TRAVERSAL.c.scaling,
    )
    .select_from(
        STACK.outerjoin(TEMPLATE, TEMPLATE.c.id == STACK.c.template_id).outerjoin(
            TRAVERSAL, TRAVERSAL.c.id == STACK.c.traversal_id
        )
    )
    .where(STACK.c.id == bindparam('stack'))
)
HAS_WEBHOOK = (
    select(WEBHOOK.c.id)
    .where(WEBHOOK.c.project_id == STACK.c.project_id, or_(WEBHOOK.c.stack_id.is_(None), WEBHOOK.c.stack_id == ROOT_ID))
    .exists()
)
"""The condition that a webhook covers a stack. It is the same for all stacks of a tree."""
_MEMBERS = select(func.count()).where(
    RESOURCE.c.stack_id == bindparam('stack'),
    RESOURCE.c.status == Status.COMPLETE,
    RESOURCE.c.action.not_in((Action.INIT, Action.DELETE)),
    RESOURCE.c.replaced_by.is_(None),
)
_WANTED = {
    Audience.ALL: PreparedStatement(_STACK),
    Audience.WEBHOOKS: PreparedStatement(_STACK.where(HAS_WEBHOOK)),
}
_COLUMNS = tuple(_STACK.selected_columns.keys())


def narrowed(audience: Audience, *, has_webhook: bool) -> Audience:
    """Return the recipients for the stacks of a tree.

    :param has_webhook: True if a webhook covers them, or if this is unknown.
    """
    return Audience.NONE if audience is Audience.WEBHOOKS and not has_webhook else audience


def needs_notification(decided: Sequence[Effect], audience: Audience) -> bool:
    """Return True if some effects cause a notification."""
    if audience is Audience.NONE:
        return False
    stored = [effect for effect in decided if isinstance(effect, InsertEvents)]
    is_apart = any(effect.is_drift or effect.suppressed is not None for effect in stored)
    return is_apart or any(event.resource_name is None for effect in stored for event in effect.events)


def write_outbox(batch: StatementBatch, decided: Sequence[Effect], audience: Audience) -> None:
    """Store the notifications for the stack events among some effects.

    :param batch: contains these effects, sent or not.
    """
    if not needs_notification(decided, audience):
        return
    stored = [effect for effect in decided if isinstance(effect, InsertEvents)]
    begun = {effect.traversal.stack_id for effect in decided if isinstance(effect, InsertTraversal)}
    for effect in stored:
        for event in effect.events:
            if event.resource_name is None:
                kind = NoticeKind.of(event.status, begins=event.stack_id in begun)
                _store_stack_notification(batch, event, kind, effect.details, audience)
            elif effect.is_drift:
                _store_drift_notification(batch, event, effect.details or {}, audience)
            elif effect.suppressed is not None:
                _store_scaling_notification(batch, event, NoticeKind.SUPPRESSED, effect.suppressed, audience)


def _store_stack_notification(
    batch: StatementBatch, event: Event, kind: NoticeKind, details: Mapping[str, Json] | None, audience: Audience
) -> None:
    stack = _payload_of(batch, event.stack_id, audience)
    if stack is None:
        return
    said = {name: getattr(event, name) for name in ('action', 'status', 'reason')}
    _insert(batch.connection, stack, event, {**said, 'kind': kind, 'about': NoticeSubject.STACK, 'details': details})
    if isinstance(stack['scaling'], Scaling) and kind is not NoticeKind.PROGRESS:
        _store_scaling_notification(batch, event, kind, stack['scaling'], audience)


def _store_scaling_notification(
    batch: StatementBatch, event: Event, kind: NoticeKind, scaling: Scaling, audience: Audience
) -> None:
    """Store a notification about a scaled group; its payload is about the stack of the group."""
    stack = _payload_of(batch, scaling.stack_id, audience)
    if stack is None:
        return
    capacity, message = scaling.before, scaling.message
    if kind is NoticeKind.END:
        capacity, message = scaling.after, f'The group {scaling.group} has {scaling.after} members'
    if kind is NoticeKind.ERROR:
        capacity, message = batch.connection.execute(_MEMBERS, {'stack': event.stack_id}).scalar_one(), event.reason
    details = {
        'adjustment': scaling.amount,
        'adjustment_type': scaling.type,
        'capacity': capacity,
        'groupname': scaling.group,
        'message': message,
    }
    content = {'kind': kind, 'about': NoticeSubject.AUTOSCALING, 'details': details}
    # Of an id of its own: receivers pass over what they have seen.
    _insert(batch.connection, stack, replace(event, id=str(uuid5(NAMESPACE_OID, f'autoscaling {event.id}'))), content)


def _store_drift_notification(
    batch: StatementBatch, event: Event, found: Mapping[str, Json], audience: Audience
) -> None:
    """Store a notification that an object drifted, or is healthy again; with the stack's state."""
    stack = _payload_of(batch, event.stack_id, audience)
    if stack is None:
        return
    details = {
        'resource_name': event.resource_name,
        'resource_type': event.resource_type,
        'physical_resource_id': event.physical_id,
        'message': event.reason,
        **found,
    }
    kind = NoticeKind.END if found.get('drift_state') == ObservedState.HEALTHY else NoticeKind.START
    _insert(batch.connection, stack, event, {'kind': kind, 'about': NoticeSubject.DRIFT, 'details': details})


def _payload_of(batch: StatementBatch, stack_id: str, audience: Audience) -> dict[str, Any] | None:
    """Return the payload of a stack after all earlier writes; None if no recipient exists."""
    (rows,) = batch.read(_WANTED[audience].call({'stack': stack_id}))
    return dict(zip(_COLUMNS, rows[0], strict=True)) if rows else None


def _insert(connection: Connection, stack: Mapping[str, Any], event: Event, content: Mapping[str, Any]) -> None:
    values = dict(stack)
    summary, _ = values.pop('summary'), values.pop('scaling')
    described = summary.get('description') if isinstance(summary, Mapping) else None
    row = {**values, 'event_id': event.id, 'at': event.at, 'description': described, 'fanned_out': False, **content}
    connection.execute(insert(OUTBOX), row)
