"""The two nodes that end a traversal: `IN_SERVICE` and `COMPLETE`. They have no resource; the stack row is locked."""

from __future__ import annotations

from collections.abc import Callable

from convergence.core import failure, nesting, states
from convergence.core.changes import StackChange
from convergence.core.effects import (
    Decision,
    Effect,
    EndTraversal,
    FinishNode,
    InsertEvents,
    NoteInService,
    PurgeTemplates,
    UpdateStack,
)
from convergence.core.failure import listed
from convergence.core.model import PERFORMED, Action, NodeStatus, Phase, Status, TraversalStatus
from convergence.core.rows import Event
from convergence.core.views import NodeView


def conclude(view: NodeView, new_id: Callable[[], str]) -> Decision[bool]:
    """Finish a node of phase `IN_SERVICE` or `COMPLETE`.

    :returns: as the verdict, whether it was finished now (and not before, or made pointless by another traversal).
    """
    if not view.may_start or view.node.status is not NodeStatus.READY:
        return Decision(False)
    if view.node.phase is Phase.IN_SERVICE:
        return _in_service(view, new_id)
    if view.traversal.failed_name is not None:
        return _failed(view, new_id, view.traversal.reason)
    if _is_behind(view):
        return _failed(view, new_id, f'Stack {view.traversal.action}: {NEVER_UP}')
    return _complete(view, new_id)


def _in_service(view: NodeView, new_id: Callable[[], str]) -> Decision[bool]:
    """Everything wanted is up: from now on this is what a rollback comes back to. Where leftovers remain it is told."""
    node, stack, traversal, template_id = view.node, view.stack, view.traversal, view.traversal.template_id
    effects: list[Effect] = [NoteInService(traversal.id, view.now)]
    if template_id is not None and traversal.action not in PERFORMED:
        changes: StackChange = {'last_good_template_id': template_id}
        if stack.last_good_template_id not in (None, template_id):
            changes['previous_good_template_id'] = stack.last_good_template_id
        if view.leftovers:
            told = f'Stack {traversal.action}: everything wanted is up; still to be removed: {listed(view.leftovers)}'
            changes['status_reason'] = told
            event = Event.of_stack(new_id(), stack.id, traversal.action, Status.IN_PROGRESS, told, view.now)
            effects.append(InsertEvents((event,)))
        effects.append(UpdateStack(stack.id, traversal.id, changes))
    effects.append(FinishNode(node.traversal_id, node.number, node.required_by))
    return Decision(True, tuple(effects))


NEVER_UP = (
    'all resources were visited, but they are not those of the template: no operation has brought that into service. '
    'Update the stack, or roll it back'
)


def _is_behind(view: NodeView) -> bool:
    """Whether what was done to the objects as they are does not make the stack what its template says.

    To put it to sleep is complete all the same. Resumed, checked or kept as a snapshot it would pass for what it is
    not.
    """
    done = view.traversal.action in (Action.RESUME, Action.CHECK, Action.SNAPSHOT)
    return done and view.traversal.template_id != view.stack.last_good_template_id


def _failed(view: NodeView, new_id: Callable[[], str], reason: str) -> Decision[bool]:
    """Everything was visited, and something has failed."""
    node, traversal = view.node, view.traversal
    end = EndTraversal(traversal.id, TraversalStatus.FAILED, view.now, reason, Phase.UPDATE, traversal.failed_name)
    return Decision(
        True,
        (
            *failure.stop(view.stack, traversal, reason, view.now, new_id),
            end,
            FinishNode(node.traversal_id, node.number, node.required_by),
        ),
    )


def _complete(view: NodeView, new_id: Callable[[], str]) -> Decision[bool]:
    """Leftovers are gone too: the operation is complete."""
    node, stack, traversal = view.node, view.stack, view.traversal
    reason = traversal.reason_of('completed successfully')
    changes: StackChange = {
        **states.stack_state(stack, traversal.action, Status.COMPLETE, reason),
        'updated_at': stack.updated_at if traversal.action in (Action.CREATE, Action.ADOPT) else view.now,
    }
    if traversal.action is Action.DELETE:
        changes['deleted_at'] = view.now
    event = Event.of_stack(new_id(), stack.id, traversal.action, Status.COMPLETE, reason, view.now)
    keep = {
        stack.template_id,
        stack.last_good_template_id,
        stack.previous_good_template_id,
        traversal.template_id,
    }
    return Decision(
        True,
        (
            UpdateStack(stack.id, traversal.id, changes),
            PurgeTemplates(stack.id, tuple(sorted(template for template in keep if template))),
            EndTraversal(traversal.id, TraversalStatus.COMPLETE, view.now, reason),
            FinishNode(node.traversal_id, node.number, node.required_by),
            InsertEvents((event,)),
            *nesting.told(stack),
        ),
    )
