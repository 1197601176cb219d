"""Applies effects to rows in memory. A failure leaves no change, because writes are kept separately until the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from convergence.core import effects
from convergence.core.model import NodeStatus, Phase, Status, TraversalStatus
from convergence.core.nesting import DOUBTED
from convergence.core.rows import Node, Resource, Stack
from convergence.db.transaction import LAST, Ready
from convergence.errors import Conflict, StackExists, require_room
from convergence.values import replace
from convergence_simulator.memory.draft import GONE, Draft, changed
from convergence_simulator.memory.look import Tables


def apply(
    committed: Tables,
    decided: Iterable[effects.Effect],
    now: float,
    *,
    seen: Tables | None = None,
    written: Iterable[tuple[str, str]] = (),
    becomes_ready: tuple[str, int] | None = None,
) -> Ready:
    """Apply effects in their order, all or none.

    :param committed: the committed rows.
    :param seen: the rows that this transaction sees, if its server may lag.
    :param written: tables and keys of rows that the transaction writes in any case.
    :param becomes_ready: a node about which a decision was made because it becomes ready in this transaction.
    :returns: the nodes that became ready and need a worker.
    :raises Conflict: a row has changed since the decision.
    :raises StackExists: another stack has the name of the new one.
    """
    draft = drafted(Draft(seen or committed, committed, now), decided)
    if becomes_ready is not None:
        _expect(becomes_ready in {node[:2] for node in draft.ready}, 'node {1} of {0}'.format(*becomes_ready))
    for table, key in written:
        row = draft.get(table, key)
        if row is not None:
            draft.put(table, key, replace(row))
    if draft.tables is not committed:
        draft.require_unwritten()
    draft.become_true()
    return draft.ready


def drafted(draft: Draft, decided: Iterable[effects.Effect]) -> Draft:
    """Write effects to a draft, in their order, and return it.

    :raises Conflict: see `apply`.
    """
    for effect in decided:
        APPLIERS[type(effect)](draft, effect)
    return draft


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise Conflict(f'{what} has changed since it was read')


def _insert_stack(draft: Draft, effect: effects.InsertStack) -> None:
    stack = effect.stack
    for other in draft.committed.stack.values():
        if other.deleted_at is None and (other.project_id, other.name) == (stack.project_id, stack.name):
            raise StackExists(f'The Stack ({stack.name}) already exists.')
        same_key = (other.project_id, other.request_key) == (stack.project_id, stack.request_key)
        if same_key and stack.request_key is not None:
            raise StackExists(f'The Stack ({stack.name}) already exists.')
    draft.put('stack', stack.id, stack)


def _update_stack(draft: Draft, effect: effects.UpdateStack) -> None:
    stack: Stack | None = draft.get('stack', effect.stack_id)
    _expect(stack is not None and stack.traversal_id == effect.traversal_id, f'stack {effect.stack_id}')
    assert stack is not None
    draft.put('stack', effect.stack_id, changed(stack, effect.changes))
    if 'drift_policy' in effect.changes:
        draft.given_policy.append(stack)


def _require_room(draft: Draft, effect: effects.RequireRoom) -> None:
    tree = [each for each in draft.stacks() if each.deleted_at is None and each.tree_id == effect.root_id]
    require_room(sum(stack.resource_count for stack in tree), effect.most)


def _insert_template(draft: Draft, effect: effects.InsertTemplate) -> None:
    draft.put('template', effect.template.id, effect.template)


def _purge_templates(draft: Draft, effect: effects.PurgeTemplates) -> None:
    stored = draft.tables.template
    equivalent = {stored[key].equivalent_template_id for key in effect.keep if key in stored}
    for key, template in stored.items():
        if template.stack_id == effect.stack_id and key not in effect.keep and key not in equivalent:
            draft.put('template', key, GONE)


def _insert_traversal(draft: Draft, effect: effects.InsertTraversal) -> None:
    if effect.traversal.id in draft.tables.traversal:
        raise ValueError(f'traversal {effect.traversal.id} exists already')
    draft.put('traversal', effect.traversal.id, effect.traversal)
    for node in effect.nodes:
        draft.put_node(node)
    for node in effect.nodes:
        if node.next_in_backlog is not None:
            draft.hide(node.traversal_id, node.next_in_backlog)


def _end_traversal(draft: Draft, effect: effects.EndTraversal) -> None:
    traversal = draft.get('traversal', effect.traversal_id)
    if traversal is None or traversal.status is not effect.expected:
        return
    ended = replace(
        traversal,
        status=effect.status,
        finished_at=effect.at,
        reason=effect.reason,
        failed_phase=effect.failed_phase,
        failed_name=effect.failed_name,
        in_service_at=traversal.in_service_at if effect.in_service_at is None else effect.in_service_at,
    )
    draft.put('traversal', effect.traversal_id, ended)
    snapshot = draft.get('snapshot', effect.traversal_id)
    if snapshot is not None and effect.took_snapshot:
        status = Status.COMPLETE if effect.status is TraversalStatus.COMPLETE else Status.FAILED
        draft.put('snapshot', snapshot.id, replace(snapshot, status=status, status_reason=effect.reason))


def _begin_cancel(draft: Draft, effect: effects.BeginCancel) -> None:
    traversal = draft.get('traversal', effect.traversal_id)
    if traversal is not None and traversal.status is TraversalStatus.RUNNING:
        cancelling = replace(traversal, status=TraversalStatus.CANCELLING, deadline=effect.deadline)
        draft.put('traversal', traversal.id, cancelling)


def _note_failure(draft: Draft, effect: effects.NoteFailure) -> None:
    traversal = draft.get('traversal', effect.traversal_id)
    if traversal is not None and traversal.status is TraversalStatus.RUNNING:
        reason = f'{traversal.reason}; {effect.said}' if traversal.reason else effect.said
        if len(traversal.reason) > effects.MAX_LISTED:
            reason = traversal.reason
        name = traversal.failed_name or effect.name
        draft.put('traversal', traversal.id, replace(traversal, reason=reason, failed_name=name))


def _insert_snapshot(draft: Draft, effect: effects.InsertSnapshot) -> None:
    draft.put('snapshot', effect.snapshot.id, effect.snapshot)


def _delete_snapshots(draft: Draft, effect: effects.DeleteSnapshots) -> None:
    for key, snapshot in draft.tables.snapshot.items():
        if snapshot.stack_id == effect.stack_id and effect.snapshot_id in (None, key) and key not in effect.keeping:
            draft.put('snapshot', key, replace(draft.get('snapshot', key), deleting=True))


def _keep_item(draft: Draft, effect: effects.KeepItem) -> None:
    draft.put('snapshot_item', (effect.item.snapshot_id, effect.item.resource_id), effect.item)


def _note_in_service(draft: Draft, effect: effects.NoteInService) -> None:
    traversal = draft.get('traversal', effect.traversal_id)
    if traversal is not None:
        draft.put('traversal', effect.traversal_id, replace(traversal, in_service_at=effect.at))


def _stall_traversal(draft: Draft, effect: effects.StallTraversal) -> None:
    traversal = draft.get('traversal', effect.traversal_id)
    if traversal is not None:
        draft.put('traversal', effect.traversal_id, replace(traversal, stalled_at=effect.since))


def _count_event(draft: Draft, effect: effects.CountEvent) -> None:
    row = draft.get('resource', effect.resource_id)
    if row is not None:
        draft.put('resource', effect.resource_id, replace(row, event_count=row.event_count + 1))


def _tell_parent(draft: Draft, effect: effects.TellParent) -> None:
    row = draft.get('resource', effect.resource_id)
    if row is None:
        return
    draft.put('resource', effect.resource_id, replace(row, event_count=row.event_count + 1))
    stack = draft.get('stack', row.stack_id)
    nodes = draft.tables.node.get(stack.traversal_id or '', {}) if stack is not None else {}
    draft.ready += [
        (node.traversal_id, number, node.phase)
        for number, node in sorted(nodes.items())
        if node.resource_id == row.id and node.status is NodeStatus.READY
    ]


def _doubt_parents(draft: Draft, effect: effects.DoubtParents) -> None:
    row = draft.get('resource', effect.resource_id)
    while row is not None:
        is_busy = row.owner is not None or row.status is Status.IN_PROGRESS
        draft.put('resource', row.id, replace(row, digest=DOUBTED if is_busy else None))
        stack = draft.get('stack', row.stack_id)
        row = draft.get('resource', stack.parent_resource_id or '') if stack is not None else None


def _insert_resources(draft: Draft, effect: effects.InsertResources) -> None:
    for row in effect.resources:
        draft.put('resource', row.id, row)


def _held(draft: Draft, effect: effects.UpdateResource | effects.DeleteResource) -> Resource:
    row: Resource | None = draft.get('resource', effect.resource_id)
    _expect(
        row is not None and row.owner == effect.owner and row.fence == effect.fence, f'resource {effect.resource_id}'
    )
    assert row is not None
    return row


def _update_resource(draft: Draft, effect: effects.UpdateResource) -> None:
    row, changes = _held(draft, effect), effect.changes
    if row.digest == DOUBTED and changes.get('digest') is not None:
        changes = {**changes, 'digest': None}
    draft.put('resource', effect.resource_id, changed(row, changes))


def _update_resources(draft: Draft, effect: effects.UpdateResources) -> None:
    for key in effect.resource_ids:
        row: Resource | None = draft.get('resource', key)
        if row is not None:
            draft.put('resource', key, changed(row, effect.changes))


def _delete_resource(draft: Draft, effect: effects.DeleteResource) -> None:
    _held(draft, effect)
    draft.put('resource', effect.resource_id, GONE)
    draft.forgotten.add(effect.resource_id)


def _ready_node(draft: Draft, traversal_id: str, number: int) -> Node:
    node = draft.node(traversal_id, number)
    _expect(node is not None and node.status is NodeStatus.READY, f'node {number} of {traversal_id}')
    assert node is not None
    return node


def _is_as_assumed(draft: Draft, effect: effects.FinishNode, node: Node) -> bool:
    traversal = draft.get('traversal', effect.traversal_id)
    stack = draft.get('stack', traversal.stack_id) if traversal is not None else None
    return (
        stack is not None
        and stack.traversal_id == effect.traversal_id
        and traversal.status is TraversalStatus.RUNNING
        and (node.required_by, node.next_in_backlog) == (effect.required_by, effect.next_in_backlog)
    )


def _finish_node(draft: Draft, effect: effects.FinishNode) -> None:
    node = _ready_node(draft, effect.traversal_id, effect.number)
    if effect.checked:
        _expect(_is_as_assumed(draft, effect, node), f'node {effect.number} of {effect.traversal_id}')
    draft.put_node(changed(node, {'status': NodeStatus.DONE, 'output': effect.output}))
    if effect.last is not None:
        last = draft.node(effect.traversal_id, effect.last)
        _expect(last is not None and last.waiting == 1, f'nodes {effect.number} and {effect.last}')
        assert last is not None
        draft.put_node(changed(last, {'status': NodeStatus.DONE, 'waiting': 0}))
    if effect.next_in_backlog is not None:
        draft.tell(effect.traversal_id, effect.next_in_backlog)
    became: list[Node] = []
    for number in sorted(effect.required_by):
        successor = draft.node(effect.traversal_id, number)
        if successor is None:
            continue
        status = NodeStatus.READY if successor.waiting == 1 else successor.status
        arrived = changed(successor, {'waiting': successor.waiting - 1, 'status': status})
        draft.put_node(arrived)
        if successor.waiting == 1:
            became.append(arrived)
    checks = [each for each in became if each.phase not in LAST]
    behind = checks[effect.window :]
    for before, follower in zip(checks, behind, strict=False):
        draft.put_node(replace(before, next_in_backlog=follower.number))
        draft.hide(effect.traversal_id, follower.number)
    draft.ready += [(effect.traversal_id, each.number, each.phase) for each in became if each not in behind]


def _fail_node(draft: Draft, effect: effects.FailNode) -> None:
    node = draft.node(effect.traversal_id, effect.number)
    if node is not None and node.status is NodeStatus.READY:
        draft.put_node(replace(node, status=NodeStatus.FAILED))


def _point_node(draft: Draft, effect: effects.PointNode) -> None:
    node = _ready_node(draft, effect.traversal_id, effect.number)
    draft.put_node(replace(node, resource_id=effect.resource_id))


def _tell_node(draft: Draft, effect: effects.NotifyNode) -> None:
    draft.tell(effect.traversal_id, effect.number)


def _append_cleanup(draft: Draft, effect: effects.AppendCleanup) -> None:
    traversal_id = effect.node.traversal_id
    before = draft.node(traversal_id, effect.before)
    _expect(before is not None and before.status is NodeStatus.WAITING, f'node {effect.before} of {traversal_id}')
    assert before is not None
    traversal = draft.get('traversal', traversal_id)
    _expect(traversal.node_count == effect.node.number, f'the number of nodes of {traversal_id}')
    held_up = [
        node
        for node in draft.nodes(traversal_id)
        if node.status is NodeStatus.WAITING
        and (node.number == effect.holds_up or (node.phase is Phase.CLEANUP and node.resource_id in effect.rows_after))
    ]
    for follower in (*held_up, before):
        draft.put_node(replace(follower, waiting=follower.waiting + 1))
    required_by = sorted(node.number for node in (*held_up, before))
    draft.put_node(replace(effect.node, required_by=tuple(required_by)))
    draft.put('traversal', traversal_id, replace(traversal, node_count=traversal.node_count + 1))


def _insert_signal(draft: Draft, effect: effects.InsertSignal) -> None:
    draft.signals.append(effect.signal)


def _clear_hook(draft: Draft, effect: effects.ClearHook) -> None:
    row = draft.get('resource', effect.resource_id)
    if row is not None:
        cleared = replace(row, cleared=effect.hook, cleared_traversal_id=effect.traversal_id)
        draft.put('resource', effect.resource_id, cleared)


def _revoke_addresses(draft: Draft, effect: effects.RevokeAddresses) -> None:
    row = draft.get('resource', effect.resource_id)
    if row is not None:
        draft.put('resource', effect.resource_id, replace(row, revocation=effect.revocation))


def _insert_events(draft: Draft, effect: effects.InsertEvents) -> None:
    draft.events += effect.events


APPLIERS: dict[type, Callable[[Draft, Any], None]] = {
    effects.InsertStack: _insert_stack,
    effects.UpdateStack: _update_stack,
    effects.RequireRoom: _require_room,
    effects.InsertTemplate: _insert_template,
    effects.PurgeTemplates: _purge_templates,
    effects.InsertTraversal: _insert_traversal,
    effects.EndTraversal: _end_traversal,
    effects.BeginCancel: _begin_cancel,
    effects.NoteFailure: _note_failure,
    effects.NoteInService: _note_in_service,
    effects.StallTraversal: _stall_traversal,
    effects.CountEvent: _count_event,
    effects.TellParent: _tell_parent,
    effects.DoubtParents: _doubt_parents,
    effects.InsertSignal: _insert_signal,
    effects.ClearHook: _clear_hook,
    effects.RevokeAddresses: _revoke_addresses,
    effects.InsertResources: _insert_resources,
    effects.UpdateResource: _update_resource,
    effects.UpdateResources: _update_resources,
    effects.DeleteResource: _delete_resource,
    effects.FinishNode: _finish_node,
    effects.FailNode: _fail_node,
    effects.PointNode: _point_node,
    effects.NotifyNode: _tell_node,
    effects.AppendCleanup: _append_cleanup,
    effects.InsertEvents: _insert_events,
    effects.InsertSnapshot: _insert_snapshot,
    effects.DeleteSnapshots: _delete_snapshots,
    effects.KeepItem: _keep_item,
}
"""The function that applies each kind of effect."""
