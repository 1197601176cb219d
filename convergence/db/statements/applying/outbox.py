"""What is to be told of a stack is written down beside the event that it is about, in the same transaction.

So nothing is told that did not happen, and nothing that happened is forgotten, whoever dies when. Told are events of
stacks as a whole, and those of resources that changed outside of their stacks: the others, which come by the thousand,
write nothing here and ask nothing.
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
    """Who may want to be told of stacks, as the installation is configured.

    * NOBODY: nobody can; nothing is asked or written.
    * WEBHOOKS: whoever has a webhook. Each transaction that stores an event of a stack asks whether there is one,
      unless it has seen with what it has read that there is none.
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
"""Return True if anybody has a webhook for a stack. It is the same for all stacks of a tree."""
_MEMBERS = select(func.count()).where(
    RESOURCE.c.stack_id == bindparam('stack'),
    RESOURCE.c.status == Status.COMPLETE,
    RESOURCE.c.action.not_in((Action.INIT, Action.DELETE)),
    RESOURCE.c.replaced_by.is_(None),
)
_WANTED = {
    Audience.EVERYBODY: PreparedStatement(_STACK),
    Audience.WEBHOOKS: PreparedStatement(_STACK.where(HAS_WEBHOOK)),
}
_COLUMNS = tuple(_STACK.selected_columns.keys())


def hearing(audience: Audience, *, has_webhook: bool) -> Audience:
    """Who may want to be told of the stacks of a tree.

    :param has_webhook: True if anybody has a webhook for them, or whether that is not known.
    """
    return Audience.NOBODY if audience is Audience.WEBHOOKS and not has_webhook else audience


def needs_notification(decided: Sequence[Effect], audience: Audience) -> bool:
    """Return True if there is anything among some effects that somebody may want to be told of."""
    if audience is Audience.NOBODY:
        return False
    stored = [effect for effect in decided if isinstance(effect, InsertEvents)]
    is_apart = any(effect.is_drift or effect.suppressed is not None for effect in stored)
    return is_apart or any(event.resource_name is None for effect in stored for event in effect.events)


def write_outbox(batch: StatementBatch, decided: Sequence[Effect], audience: Audience) -> None:
    """Write down what is to be told of the events of stacks among some effects.

    :param writes: these effects are part of it, or carried out.
    """
    if not needs_notification(decided, audience):
        return
    stored = [effect for effect in decided if isinstance(effect, InsertEvents)]
    begun = {effect.traversal.stack_id for effect in decided if isinstance(effect, InsertTraversal)}
    for effect in stored:
        for event in effect.events:
            if event.resource_name is None:
                kind = NoticeKind.of(event.status, begins=event.stack_id in begun)
                _tell_of_stack(batch, event, kind, effect.details, audience)
            elif effect.is_drift:
                _tell_of_drift(batch, event, effect.details or {}, audience)
            elif effect.suppressed is not None:
                _tell_of_scaling(batch, event, NoticeKind.SUPPRESSED, effect.suppressed, audience)


def _tell_of_stack(
    batch: StatementBatch, event: Event, kind: NoticeKind, details: Mapping[str, Json] | None, audience: Audience
) -> None:
    stack = _wanted(batch, event.stack_id, audience)
    if stack is None:
        return
    said = {name: getattr(event, name) for name in ('action', 'status', 'reason')}
    _insert(batch.connection, stack, event, {**said, 'kind': kind, 'about': NoticeSubject.STACK, 'details': details})
    if isinstance(stack['scaling'], Scaling) and kind is not NoticeKind.PROGRESS:
        _tell_of_scaling(batch, event, kind, stack['scaling'], audience)


def _tell_of_scaling(
    batch: StatementBatch, event: Event, kind: NoticeKind, scaling: Scaling, audience: Audience
) -> None:
    """Tell of a group that gets other members; the payload is about the stack that the group is in."""
    stack = _wanted(batch, scaling.stack_id, audience)
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
    told = {'kind': kind, 'about': NoticeSubject.AUTOSCALING, 'details': details}
    # Of an id of its own: receivers pass over what they have seen.
    _insert(batch.connection, stack, replace(event, id=str(uuid5(NAMESPACE_OID, f'autoscaling {event.id}'))), told)


def _tell_of_drift(batch: StatementBatch, event: Event, found: Mapping[str, Json], audience: Audience) -> None:
    """Tell of an object that changed outside of its stack, or is as it was made again; with the stack's state."""
    stack = _wanted(batch, event.stack_id, audience)
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


def _wanted(batch: StatementBatch, stack_id: str, audience: Audience) -> dict[str, Any] | None:
    """What is told of a stack, as it is after all that was written; None where nobody wants to know."""
    (rows,) = batch.read(_WANTED[audience].call({'stack': stack_id}))
    return dict(zip(_COLUMNS, rows[0], strict=True)) if rows else None


def _insert(connection: Connection, stack: Mapping[str, Any], event: Event, told: Mapping[str, Any]) -> None:
    values = dict(stack)
    summary, _ = values.pop('summary'), values.pop('scaling')
    described = summary.get('description') if isinstance(summary, Mapping) else None
    row = {**values, 'event_id': event.id, 'at': event.at, 'description': described, 'fanned_out': False, **told}
    connection.execute(insert(OUTBOX), row)
