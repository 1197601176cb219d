"""One node whose row is replaced: another row takes its place, or its object is deleted first.

If the name of an object is its key, the object is deleted before its replacement is created in the same row. From that
decision on the row is in the middle of an update and is marked as being cleared. The next worker that visits the row
deletes the object, in whichever traversal; then the row is empty, and the desired object is created in it. References
to the row stay valid.
"""

from __future__ import annotations

from convergence.core import states
from convergence.core.changes import ResourceChange
from convergence.core.claim import MAX_CRASHES, Step, StepDecision, Worker
from convergence.core.effects import (
    AppendCleanup,
    Decision,
    Effect,
    InsertEvents,
    InsertResources,
    PointNode,
    UpdateResource,
)
from convergence.core.handover import begin_handover, must_hand_over
from convergence.core.model import PERFORMED, Action, Definition, DeletionPolicy, NodeStatus, Phase, Status
from convergence.core.object_state import Made, is_adopted, made
from convergence.core.rows import Event, Node, Resource, Traversal
from convergence.core.verdicts import claim_row, refuse_lethal
from convergence.core.views import NodeView


def is_replaceable(node: Node, traversal: Traversal) -> bool:
    """Return True if another row may replace the row of a node: the traversal has a goal and the node a definition."""
    return node.definition is not None and traversal.action not in PERFORMED


def replacement(view: NodeView, worker: Worker, replaced_id: str) -> Decision[str | None]:
    """Create a new row for an update node. Cleanup deletes the old row when nothing depends on it any more.

    If the old object must be deleted first, the new one is created in the same row; see the docstring of this module.
    If the old object must release a part for the new one, it does so first; see `convergence.core.handover`.

    The store locks the stack row before the resource row, so that a concurrent plan sees the new row.

    :param replaced_id: id of the row that an earlier decision chose for replacement.
    :returns: a decision whose verdict is the id of the new row; None if the rows have changed since.
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
        or old.action is Action.INIT  # another decision has deleted its object meanwhile
    )


def _cleanup(traversal: Traversal, old: Resource) -> AppendCleanup:
    """Add a cleanup node for the old row. It runs after the goal is in service; until then a rollback can use the row.

    Dependents of the row that are replaced too get their cleanup later, and it runs before this one.
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


def goes_first(worker: Worker, old: Resource, definition: Definition) -> bool:
    """Return True if a row's object must be deleted before its replacement can be created."""
    if not worker.creation(old.type).is_exclusive or old.type != definition.type or is_adopted(old):
        return False
    retained = old.definition is not None and old.definition.deletion_policy is DeletionPolicy.RETAIN
    return not retained and old.action is not Action.DELETE


def begin_clearing(view: NodeView, worker: Worker, old: Resource) -> Decision[str | None]:
    """Decide that the object of a row is deleted before its replacement is created. The next node check deletes it.

    :returns: a decision whose verdict is the id of the row for the new object, which is the same row.
    """
    changes: ResourceChange = {
        **states.resource_state(old, Action.UPDATE, Status.IN_PROGRESS, 'it is removed to make room for the new one'),
        'clearing': True,
        'progress': None,
        'retry': None,
        'deadline': None,
        'wake_at': None,
        'began_at': view.now,
        'nothing_made': made(old) is Made.NOTHING,
    }
    event = Event.of_resource(
        worker.new_id(), old, Action.DELETE, Status.IN_PROGRESS, str(changes['status_reason']), view.now
    )
    effects = (UpdateResource(old.id, None, old.fence, changes), InsertEvents((event,)))
    return Decision(old.id, effects, ((view.node.traversal_id, view.node.number),))


def go_on_clearing(view: NodeView, worker: Worker, resource: Resource) -> Decision[StepDecision]:
    """Claim the row to delete its object. The node is checked again afterwards."""
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    return claim_row(view, worker, Step.CLEAR, Action.DELETE, {}, completes_node=False)


def cleared(resource: Resource) -> ResourceChange:
    """Return the columns of a row after its object was deleted: those of a row without a creation."""
    return {
        **states.resource_state(resource, Action.INIT, Status.COMPLETE),
        'clearing': False,
        'physical_id': None,
        'data': {},
        'output': None,
        'digest': None,
        'pending': None,
        'token': None,
        'template_id': None,
        'search_until': None,
        'nothing_made': False,
        'handover': None,
    }
