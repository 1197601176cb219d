"""An object whose name is its key: it is removed first, and then another one is made in the same row.

From the moment in which that is decided the row is in the middle of an update, and says that it is being cleared.
Whoever takes it up, in whatever traversal, removes the object; then nothing was ever made in the row, and what is
wanted by then is made there. What refers to the row goes on doing so.
"""

from __future__ import annotations

from convergence.core import states
from convergence.core.adoption import is_adopted
from convergence.core.changes import ResourceChange
from convergence.core.claim import MAX_CRASHES, Step, StepDecision, Worker
from convergence.core.creation import Made, made
from convergence.core.effects import Decision, InsertEvents, UpdateResource
from convergence.core.model import Action, Definition, DeletionPolicy, Status
from convergence.core.rows import Event, Resource
from convergence.core.verdicts import claim_row, refuse_lethal
from convergence.core.views import NodeView


def goes_first(worker: Worker, old: Resource, definition: Definition) -> bool:
    """Whether a row's object has to be removed before the one that replaces it can be made."""
    if not worker.creation(old.type).is_exclusive or old.type != definition.type or is_adopted(old):
        return False
    retained = old.definition is not None and old.definition.deletion_policy is DeletionPolicy.RETAIN
    return not retained and old.action is not Action.DELETE


def begin_clearing(view: NodeView, worker: Worker, old: Resource) -> Decision[str | None]:
    """Decide that the object of a row goes first; the node is then checked again, and removes it.

    :returns: as the verdict, the key of the row in which the new object is made: the same.
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
    """Take the row, to remove its object; the node is checked again afterwards."""
    if resource.crash_count >= MAX_CRASHES:
        return refuse_lethal(view, worker, resource)
    return claim_row(view, worker, Step.CLEAR, Action.DELETE, {}, completes_node=False)


def cleared(resource: Resource) -> ResourceChange:
    """The columns of a row whose object is gone: nothing was ever made in it."""
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
