"""Carry out the effects of a decision: one function per effect."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from sqlalchemy import Delete, Double, and_, bindparam, case, delete, func, insert, not_, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.core.model import NodeStatus, Status, TraversalStatus
from convergence.core.nesting import DOUBTED
from convergence.core.rows import Event, Node, Resource, Stack, Template, Traversal
from convergence.credentials.model import CredentialsStatus
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import (
    CREDENTIALS,
    EVENT,
    RESOURCE,
    SIGNAL,
    SNAPSHOT,
    SNAPSHOT_ITEM,
    STACK,
    SYNC_POINT,
    TEMPLATE,
    TRAVERSAL,
)
from convergence.db.statements.arriving import finish
from convergence.db.statements.changing import (
    BeginNode,
    change_row,
    new,
    remove_row,
    store_event,
    takes_more_at_once,
    update_by_id,
)
from convergence.db.statements.hot import FewRows, Hot, HotList, among
from convergence.db.statements.hot_rows import HotRows
from convergence.db.statements.late_nodes import append_cleanup
from convergence.db.statements.locking import by_key
from convergence.db.statements.row_columns import chunks
from convergence.db.statements.together import Writes, expect_one
from convergence.db.statements.trees import recount, take_room
from convergence.db.transaction import Ready
from convergence.errors import ActionInProgress, StackExists

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@cache
def _field_names(kind: Hashable) -> tuple[str, ...]:
    every = fields(cast('type[DataclassInstance]', kind))
    return tuple(field.name for field in every if field.metadata.get('stored', True))


def _values(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _field_names(cast('Hashable', type(row)))}


def _columns(kind: type, rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The values of all rows of a kind, for each column."""
    return {name: list(map(attrgetter(name), rows)) for name in _field_names(kind)}


_THIS_NODE = and_(SYNC_POINT.c.traversal_id == bindparam('traversal'), SYNC_POINT.c.number == bindparam('node'))
_IS_READY = and_(_THIS_NODE, SYNC_POINT.c.status == NodeStatus.READY)
# Both nodes at the end of a traversal in one statement; the later one waits for nothing but the earlier.
FINISH_BOTH = Hot(
    by_key(update(SYNC_POINT), SYNC_POINT)
    .where(
        SYNC_POINT.c.traversal_id == bindparam('traversal'),
        or_(
            and_(SYNC_POINT.c.number == bindparam('node'), SYNC_POINT.c.status == NodeStatus.READY),
            and_(
                SYNC_POINT.c.number == bindparam('last'),
                SYNC_POINT.c.status == NodeStatus.WAITING,
                SYNC_POINT.c.waiting == 1,
            ),
        ),
    )
    .values(status=NodeStatus.DONE, waiting=0, finished_at=database_now())
)


def _purge_all_but(length: int) -> Delete:
    # Rows may still name what a kept one is alike to. Without DISTINCT MySQL would not read the table it deletes from.
    kept = among(TEMPLATE.c.id, 'keep', length)
    alike = select(TEMPLATE.c.alike_id).where(kept, TEMPLATE.c.alike_id.is_not(None)).distinct().subquery()
    return delete(TEMPLATE).where(
        TEMPLATE.c.stack_id == bindparam('stack'), not_(kept), TEMPLATE.c.id.not_in(select(alike.c.alike_id))
    )


PURGE_TEMPLATES = HotList('keep', _purge_all_but)
FAIL_NODE = by_key(update(SYNC_POINT), SYNC_POINT).where(_IS_READY).values(status=NodeStatus.FAILED)
POINT_NODE = by_key(update(SYNC_POINT), SYNC_POINT).where(_IS_READY).values(resource_id=bindparam('new_resource'))
TELL = Hot(by_key(update(SYNC_POINT), SYNC_POINT).where(_IS_READY).values(notified_at=database_now()))
END_TRAVERSAL = Hot(
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'), TRAVERSAL.c.status == bindparam('expected'))
    .values(
        status=bindparam('new_status'),
        finished_at=bindparam('new_finished_at'),
        reason=bindparam('new_reason'),
        failed_phase=bindparam('new_failed_phase'),
        failed_name=bindparam('new_failed_name'),
        in_service_at=func.coalesce(bindparam('in_service', type_=Double), TRAVERSAL.c.in_service_at),
    )
)
# The snapshot that a traversal was to take ends with it.
END_SNAPSHOT = (
    by_key(update(SNAPSHOT), SNAPSHOT)
    .where(SNAPSHOT.c.id == bindparam('key'))
    .values(status=bindparam('new_status'), status_reason=bindparam('new_reason'))
)
BEGIN_CANCEL = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'), TRAVERSAL.c.status == TraversalStatus.RUNNING)
    .values(status=TraversalStatus.CANCELLING, deadline=bindparam('until'))
)
# The order of the columns matters: MariaDB sees what it has just assigned.
NOTE_FAILURE = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'), TRAVERSAL.c.status == TraversalStatus.RUNNING)
    .ordered_values(
        (
            TRAVERSAL.c.reason,
            case(
                (TRAVERSAL.c.reason == '', bindparam('said')),
                (func.length(TRAVERSAL.c.reason) > effects.MAX_LISTED, TRAVERSAL.c.reason),
                else_=TRAVERSAL.c.reason + '; ' + bindparam('said'),
            ),
        ),
        (TRAVERSAL.c.failed_name, func.coalesce(TRAVERSAL.c.failed_name, bindparam('name'))),
    )
)
STALL_TRAVERSAL = (
    by_key(update(TRAVERSAL), TRAVERSAL).where(TRAVERSAL.c.id == bindparam('key')).values(stalled_at=bindparam('since'))
)
NOTE_IN_SERVICE = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id == bindparam('key'))
    .values(in_service_at=bindparam('noted_at'))
)
# Whoever enrols what the stack at the top has left tells all that is nested in it, if its policy is another.
ENROL_AGAIN = (
    by_key(update(TRAVERSAL), TRAVERSAL)
    .where(TRAVERSAL.c.id.in_(bindparam('keys', expanding=True)))
    .values(enrolled=False)
)
CLEAR_HOOK = (
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(cleared=bindparam('hook_cleared'), cleared_traversal_id=bindparam('traversal'))
)
REVOKE_ADDRESSES = (
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(revocation=bindparam('revoked_by'))
)
COUNT_EVENT = Hot(
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(event_count=RESOURCE.c.event_count + 1)
)
DOUBT = (
    by_key(update(RESOURCE), RESOURCE)
    .where(RESOURCE.c.id == bindparam('key'))
    .values(digest=case((or_(RESOURCE.c.owner.is_not(None), RESOURCE.c.status == Status.IN_PROGRESS), DOUBTED)))
)
PARENT_OF = (
    select(STACK.c.parent_resource_id)
    .join(RESOURCE, RESOURCE.c.stack_id == STACK.c.id)
    .where(RESOURCE.c.id == bindparam('key'))
)
# Nodes of the stack's current traversal, whoever has parked the row.
WAITING_FOR = Hot(
    select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.number, SYNC_POINT.c.phase)
    .join(STACK, STACK.c.traversal_id == SYNC_POINT.c.traversal_id)
    .join(RESOURCE, and_(RESOURCE.c.stack_id == STACK.c.id, RESOURCE.c.id == SYNC_POINT.c.resource_id))
    .where(RESOURCE.c.id == bindparam('key'), SYNC_POINT.c.status == NodeStatus.READY)
    .order_by(SYNC_POINT.c.number)
)
INSERT_STACK = Hot(insert(STACK), (*_field_names(Stack), 'live_name'))
# They can look whether the statement before has found its row: that of the stack, of which these are.
INSERT_TEMPLATE = FewRows(TEMPLATE, _field_names(Template))
INSERT_TRAVERSAL = FewRows(TRAVERSAL, _field_names(Traversal))
_OF_NODE = (*_field_names(Node), 'notified_at')
INSERT_NODES = HotRows(SYNC_POINT, _OF_NODE, tuple(name for name in _OF_NODE if name != 'traversal_id'))
INSERT_ROWS = HotRows(RESOURCE, _field_names(Resource), ('id', 'name', 'type'))
# Whoever removes credentials locks their row first and looks for references afterwards.
REFER_TO_CREDENTIALS = (
    update(CREDENTIALS)
    .where(CREDENTIALS.c.id == bindparam('key'), CREDENTIALS.c.status == CredentialsStatus.MADE)
    .values(stack_id=func.coalesce(CREDENTIALS.c.stack_id, bindparam('of_stack')))
)


def _insert_stack(writes: Writes, effect: effects.InsertStack, ready: Ready, told: Event | None) -> None:
    stack = effect.stack
    # What is there may be the name, or the id of a nested stack, which is known before it.
    refusal = StackExists(f'The Stack ({stack.name}) already exists.')
    writes.add(INSERT_STACK.call({**_values(stack), 'live_name': stack.name}), refusal=refusal)
    _refer_to_credentials(writes, stack.credentials_id, stack.id)


def _update_stack(writes: Writes, effect: effects.UpdateStack, ready: Ready, told: Event | None) -> None:
    changes: dict[str, object] = {**effect.changes}
    if changes.get('deleted_at') is not None:
        changes['live_name'] = None
    if 'drift_policy' in changes:
        changes['policy_told'] = False
    if changes.get('root_id') is not None:
        writes.send()
        recount(writes.connection, str(changes['root_id']))
    statement = _update_stack_of(frozenset(changes), effect.traversal_id is None)
    values = {**new(changes), 'key': effect.stack_id}
    if effect.traversal_id is not None:
        values['present'] = effect.traversal_id
    writes.add_one(statement.call(values), f'stack {effect.stack_id}')
    if 'drift_policy' in changes:
        writes.send()
        writes.connection.execute(ENROL_AGAIN, {'keys': [effect.traversal_id]})
    _refer_to_credentials(writes, effect.changes.get('credentials_id'), effect.stack_id)


def _refer_to_credentials(writes: Writes, credentials_id: str | None, stack_id: str) -> None:
    """A stack gets credentials, unless somebody has begun to remove them because no stack had them for long."""
    if credentials_id is None:
        return
    writes.send()
    referred = writes.connection.execute(REFER_TO_CREDENTIALS, {'key': credentials_id, 'of_stack': stack_id})
    if referred.rowcount != 1:
        raise ActionInProgress('The request has taken so long that its credentials are being removed; repeat it.')


@cache
def _update_stack_of(names: frozenset[str], is_first: bool) -> Hot:
    present = STACK.c.traversal_id.is_(None) if is_first else STACK.c.traversal_id == bindparam('present')
    return Hot(update_by_id(STACK, names).where(present))


def _require_room(writes: Writes, effect: effects.RequireRoom, ready: Ready, told: Event | None) -> None:
    take_room(writes, effect)


def _insert_template(writes: Writes, effect: effects.InsertTemplate, ready: Ready, told: Event | None) -> None:
    writes.add(INSERT_TEMPLATE.call([_values(effect.template)]))


def _purge_templates(writes: Writes, effect: effects.PurgeTemplates, ready: Ready, told: Event | None) -> None:
    writes.add(PURGE_TEMPLATES.call({'stack': effect.stack_id, 'keep': effect.keep or ('',)}))


def _insert_traversal(writes: Writes, effect: effects.InsertTraversal, ready: Ready, told: Event | None) -> None:
    writes.add(INSERT_TRAVERSAL.call([_values(effect.traversal)]))
    now = effect.traversal.started_at
    behind = {node.next_in_backlog for node in effect.nodes}

    def notified_at(node: Node) -> float | None:
        return now if node.status is NodeStatus.READY and node.number not in behind else None

    columns = _columns(Node, effect.nodes)
    columns['notified_at'] = [notified_at(node) for node in effect.nodes]
    INSERT_NODES.add(writes, columns)


def _end_traversal(writes: Writes, effect: effects.EndTraversal, ready: Ready, told: Event | None) -> None:
    end = END_TRAVERSAL.call(
        {
            'key': effect.traversal_id,
            'expected': effect.expected,
            'new_status': effect.status,
            'new_finished_at': effect.at,
            'new_reason': effect.reason,
            'new_failed_phase': effect.failed_phase,
            'new_failed_name': effect.failed_name,
            'in_service': effect.in_service_at,
        }
    )
    if not effect.took_snapshot:
        writes.add(end)
    elif writes.write(end) == 1:
        status = Status.COMPLETE if effect.status is TraversalStatus.COMPLETE else Status.FAILED
        writes.connection.execute(
            END_SNAPSHOT, {'key': effect.traversal_id, 'new_status': status, 'new_reason': effect.reason}
        )


def _begin_cancel(connection: Connection, effect: effects.BeginCancel) -> None:
    connection.execute(BEGIN_CANCEL, {'key': effect.traversal_id, 'until': effect.deadline})


def _note_failure(connection: Connection, effect: effects.NoteFailure) -> None:
    connection.execute(NOTE_FAILURE, {'key': effect.traversal_id, 'said': effect.said, 'name': effect.name})


def _note_in_service(connection: Connection, effect: effects.NoteInService) -> None:
    connection.execute(NOTE_IN_SERVICE, {'key': effect.traversal_id, 'noted_at': effect.at})


def _stall_traversal(connection: Connection, effect: effects.StallTraversal) -> None:
    connection.execute(STALL_TRAVERSAL, {'key': effect.traversal_id, 'since': effect.since})


def _tell_parent(writes: Writes, effect: effects.TellParent, ready: Ready, told: Event | None) -> None:
    key = {'key': effect.resource_id}
    writes.add(COUNT_EVENT.call(key))
    writes.read_in_the_end(WAITING_FOR.call(key), lambda rows: ready.extend((row[0], row[1], row[2]) for row in rows))


def _doubt_parents(connection: Connection, effect: effects.DoubtParents) -> None:
    resource_id: str | None = effect.resource_id
    while resource_id is not None:
        connection.execute(DOUBT, {'key': resource_id})
        resource_id = connection.execute(PARENT_OF, {'key': resource_id}).scalar()


def _insert_signal(connection: Connection, effect: effects.InsertSignal) -> None:
    connection.execute(insert(SIGNAL), _unnumbered(effect.signal))


def _clear_hook(connection: Connection, effect: effects.ClearHook) -> None:
    cleared = {'key': effect.resource_id, 'hook_cleared': effect.hook, 'traversal': effect.traversal_id}
    connection.execute(CLEAR_HOOK, cleared)


def _revoke_addresses(connection: Connection, effect: effects.RevokeAddresses) -> None:
    connection.execute(REVOKE_ADDRESSES, {'key': effect.resource_id, 'revoked_by': effect.revocation})


def _insert_resources(writes: Writes, effect: effects.InsertResources, ready: Ready, told: Event | None) -> None:
    INSERT_ROWS.add(writes, _columns(Resource, effect.resources))


def _update_resources(connection: Connection, effect: effects.UpdateResources) -> None:
    for some in chunks(effect.resource_ids, 1000):
        connection.execute(by_key(update(RESOURCE), RESOURCE).where(RESOURCE.c.id.in_(some)).values(**effect.changes))


def _finish_node(writes: Writes, effect: effects.FinishNode, ready: Ready, told: Event | None) -> None:
    if effect.last is None:
        finish(writes, effect, ready, told)
        return
    key = {'traversal': effect.traversal_id, 'node': effect.number}
    what = f'nodes {effect.number} and {effect.last} of {effect.traversal_id}'
    writes.add_one(FINISH_BOTH.call({**key, 'last': effect.last}), what, wanted=2)


def _fail_node(connection: Connection, effect: effects.FailNode) -> None:
    connection.execute(FAIL_NODE, {'traversal': effect.traversal_id, 'node': effect.number})


def _point_node(connection: Connection, effect: effects.PointNode) -> None:
    key = {'traversal': effect.traversal_id, 'node': effect.number}
    pointed = connection.execute(POINT_NODE, {**key, 'new_resource': effect.resource_id})
    expect_one(pointed.rowcount, f'node {effect.number} of {effect.traversal_id}')


def _tell_node(writes: Writes, effect: effects.NotifyNode, ready: Ready, told: Event | None) -> None:
    writes.add(TELL.call({'traversal': effect.traversal_id, 'node': effect.number}))


def _append_cleanup(connection: Connection, effect: effects.AppendCleanup) -> None:
    append_cleanup(connection, effect, _values(effect.node))


def _unnumbered(row: Any) -> dict[str, Any]:
    """The columns of a row that the database gives its place in a sequence."""
    return {name: value for name, value in _values(row).items() if name != 'sequence'}


def _insert_events(writes: Writes, effect: effects.InsertEvents, ready: Ready, told: Event | None) -> None:
    if len(effect.events) == 1:
        store_event(writes, effect.events[0])
        return
    writes.add_held_rows()  # events are numbered in their order
    writes.send()
    writes.connection.execute(insert(EVENT), [_unnumbered(event) for event in effect.events])


def _count_event(writes: Writes, effect: effects.CountEvent, ready: Ready, told: Event | None) -> None:
    writes.add(COUNT_EVENT.call({'key': effect.resource_id}))


def _update_resource(writes: Writes, effect: effects.UpdateResource, ready: Ready, told: Event | None) -> None:
    change_row(writes, effect, told)


def _delete_resource(writes: Writes, effect: effects.DeleteResource, ready: Ready, told: Event | None) -> None:
    remove_row(writes, effect)


def _insert_snapshot(connection: Connection, effect: effects.InsertSnapshot) -> None:
    connection.execute(insert(SNAPSHOT), _values(effect.snapshot))


def _delete_snapshots(connection: Connection, effect: effects.DeleteSnapshots) -> None:
    of_stack = update(SNAPSHOT).where(SNAPSHOT.c.stack_id == effect.stack_id).values(deleting=True)
    if effect.snapshot_id is not None:
        of_stack = of_stack.where(SNAPSHOT.c.id == effect.snapshot_id)
    if effect.keeping:
        of_stack = of_stack.where(SNAPSHOT.c.id.not_in(effect.keeping))
    connection.execute(of_stack)


def _keep_item(connection: Connection, effect: effects.KeepItem) -> None:
    item = effect.item
    # Whoever writes it holds the resource's row: nobody else does at the same time.
    connection.execute(
        delete(SNAPSHOT_ITEM).where(
            SNAPSHOT_ITEM.c.snapshot_id == item.snapshot_id, SNAPSHOT_ITEM.c.resource_id == item.resource_id
        )
    )
    connection.execute(insert(SNAPSHOT_ITEM), _values(item))


TOGETHER: dict[type, Callable[[Writes, Any, Ready, Event | None], None]] = {
    effects.InsertStack: _insert_stack,
    effects.UpdateStack: _update_stack,
    effects.RequireRoom: _require_room,
    effects.InsertTemplate: _insert_template,
    effects.PurgeTemplates: _purge_templates,
    effects.InsertTraversal: _insert_traversal,
    effects.EndTraversal: _end_traversal,
    effects.TellParent: _tell_parent,
    effects.InsertResources: _insert_resources,
    effects.FinishNode: _finish_node,
    effects.UpdateResource: _update_resource,
    BeginNode: _update_resource,
    effects.DeleteResource: _delete_resource,
    effects.CountEvent: _count_event,
    effects.NotifyNode: _tell_node,
    effects.InsertEvents: _insert_events,
}
"""Effects that may go to the server with others. To some of them belongs an event: see `_with_events`."""

ALONE: dict[type, Callable[[Connection, Any], None]] = {
    effects.BeginCancel: _begin_cancel,
    effects.NoteFailure: _note_failure,
    effects.NoteInService: _note_in_service,
    effects.StallTraversal: _stall_traversal,
    effects.DoubtParents: _doubt_parents,
    effects.InsertSignal: _insert_signal,
    effects.ClearHook: _clear_hook,
    effects.RevokeAddresses: _revoke_addresses,
    effects.UpdateResources: _update_resources,
    effects.FailNode: _fail_node,
    effects.PointNode: _point_node,
    effects.AppendCleanup: _append_cleanup,
    effects.InsertSnapshot: _insert_snapshot,
    effects.DeleteSnapshots: _delete_snapshots,
    effects.KeepItem: _keep_item,
}


class Sequel:
    """What else is to be carried out by a transaction in which a node is done; here nothing.

    :ivar looks_before_arrival: whether `before_arrival` has something to say; so too `looks_after_arrival`.
    """

    looks_before_arrival = False
    looks_after_arrival = False

    def before_arrival(self, writes: Writes) -> Sequence[effects.Effect]:
        """When rows of resources are written, and no row is locked yet that others arrive at.

        :param writes: with what is written and not sent yet; so too for `after_arrival`.
        """
        return ()

    def after_arrival(self, writes: Writes, ready: Ready) -> Sequence[effects.Effect]:
        """When all else is written.

        :param ready: the nodes that became ready by it.
        """
        return ()


NO_SEQUEL = Sequel()


def apply(writes: Writes, decided: Iterable[effects.Effect], ready: Ready, sequel: Sequel = NO_SEQUEL) -> None:
    """Carry out effects in their order, inside the caller's transaction.

    :param writes: what is left in it at the end the caller sends.
    :param ready: the nodes that became ready and are to be cast are added to it, at the latest when all is sent, or
        committed with it.
    :param sequel: asked what else is to be carried out.
    :raises Conflict: something is not as it was when the decision was made.
    :raises StackExists: a new stack has the name of a living one.
    """
    for effect, told in _with_more(decided, sequel, writes, ready):
        together = TOGETHER.get(type(effect))
        if together is not None:
            together(writes, effect, ready, told)
        else:
            writes.send()
            ALONE[type(effect)](writes.connection, effect)


def _with_more(
    decided: Iterable[effects.Effect], sequel: Sequel, writes: Writes, ready: Ready
) -> Iterator[tuple[effects.Effect, Event | None]]:
    connection = writes.connection
    for effect, told in _with_events(connection, decided):
        if isinstance(effect, effects.FinishNode) and sequel.looks_before_arrival:
            yield from _with_events(connection, sequel.before_arrival(writes))
        if isinstance(effect, effects.FinishNode) and not sequel.looks_after_arrival:
            writes.add_held_rows()  # the arrival comes last
        yield effect, told
    if sequel.looks_after_arrival:
        writes.send()  # only then it is known what became ready
        yield from _with_events(connection, sequel.after_arrival(writes, ready))


def _with_events(
    connection: Connection, decided: Iterable[effects.Effect]
) -> Iterator[tuple[effects.Effect, Event | None]]:
    """Effects in their order, each with the event that its statement stores as well, where the server can do both."""
    if not takes_more_at_once(connection):
        yield from ((effect, None) for effect in decided)
        return
    left = list(decided)
    while left:
        effect = left.pop(0)
        follower = left[0] if left else None
        if _is_one_event(effect) and isinstance(follower, effects.FinishNode) and follower.last is None:
            left.pop(0)
            yield follower, effect.events[0]
        elif (
            isinstance(effect, effects.UpdateResource)
            and _is_one_event(follower)
            and not (len(left) > 1 and isinstance(left[1], effects.FinishNode))
        ):
            left.pop(0)
            yield effect, follower.events[0]
        else:
            yield effect, None


def _is_one_event(effect: effects.Effect | None) -> TypeGuard[effects.InsertEvents]:
    return isinstance(effect, effects.InsertEvents) and len(effect.events) == 1
