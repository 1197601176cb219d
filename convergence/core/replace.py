"""One node: when its row will not do, another one takes its place."""

from __future__ import annotations

from convergence.core.claim import Worker
from convergence.core.clearing import begin_clearing, goes_first
from convergence.core.effects import (
    AppendCleanup,
    Decision,
    Effect,
    InsertResources,
    PointNode,
    UpdateResource,
)
from convergence.core.handover import begin_handover, must_hand_over
from convergence.core.model import PERFORMED, Action, NodeStatus, Phase, Status
from convergence.core.rows import Node, Resource, Traversal
from convergence.core.views import NodeView


def is_replaceable(node: Node, traversal: Traversal) -> bool:
    """Whether another row may take the place of a node's: something is wanted, not only done to what is there."""
    return node.definition is not None and traversal.action not in PERFORMED


def replacement(view: NodeView, worker: Worker, replaced_id: str) -> Decision[str | None]:
    """Make a new row for an update node; the old one stays, to be cleaned up when nothing is built on it any more.

    Where the old object has to go first, the new one is made in the same row; see `convergence.core.clearing`.
    Where it has to give something up for the new one, it does so first; see `convergence.core.handover`.

    The stack row is locked before the resource row: the new row is part of what a plan has to see.

    :param replaced_id: the row that was decided upon.
    :returns: as the verdict, the key of the new row; None where the decision has been overtaken.
    """
    old, node = view.resource, view.node
    definition = node.definition
    if old is None or definition is None or old.id != replaced_id or _is_overtaken(view, old):
        return Decision(None)
    if goes_first(worker, old, definition):
        return begin_clearing(view, worker, old)
    if must_hand_over(view, worker, old):
        return begin_handover(view, old)
    new = Resource(
        id=worker.new_id(),
        stack_id=old.stack_id,
        name=old.name,
        type=definition.type,
        action=Action.INIT,
        status=Status.COMPLETE,
        created_at=view.now,
        replaces=old.id,
        template_id=view.traversal.template_id,
        cleared=old.cleared,
        cleared_traversal_id=old.cleared_traversal_id,
        crash_count=old.crash_count,
        accepted=old.accepted if old.type == definition.type else None,
    )
    effects: list[Effect] = [
        InsertResources((new,)),
        UpdateResource(old.id, None, old.fence, {'replaced_by': new.id}),
        PointNode(node.traversal_id, node.number, new.id),
    ]
    if not view.has_cleanup:
        effects.append(_cleanup(view.traversal, old))
    return Decision(new.id, tuple(effects), ((node.traversal_id, node.number),))


def _is_overtaken(view: NodeView, old: Resource) -> bool:
    return (
        not view.may_start
        or not is_replaceable(view.node, view.traversal)
        or view.node.status is not NodeStatus.READY
        or old.owner is not None
        or old.replaced_by is not None
        or old.is_cleared
        or old.action is Action.INIT  # its object has gone first meanwhile
    )


def _cleanup(traversal: Traversal, old: Resource) -> AppendCleanup:
    """The old row goes when everything wanted is in service: until then there is a way back to it.

    What is built on it and is replaced too, is so later, and its cleanup comes before this one.
    """
    node = Node(
        traversal_id=traversal.id,
        number=traversal.node_count,
        phase=Phase.CLEANUP,
        status=NodeStatus.WAITING,
        name=old.name,
        resource_id=old.id,
        waiting=1,
        required_by=(traversal.complete_number,),
    )
    return AppendCleanup(node, traversal.complete_number, rows_after=old.requires)
