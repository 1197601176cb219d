"""Decides about the two end nodes of a traversal, `IN_SERVICE` and `COMPLETE`, which have no resource row.

The stack row is locked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from convergence.core import failure, nesting, states, upwards
from convergence.core.changes import StackChange
from convergence.core.claim import Worker
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
from convergence.core.model import (
    BEGINNINGS,
    DISPATCH_WINDOW,
    PERFORMED,
    Action,
    NodeStatus,
    Phase,
    Status,
    TraversalStatus,
)
from convergence.core.results import End
from convergence.core.rows import Event, Stack, Traversal
from convergence.core.views import NodeView
from convergence.values import replace


def conclude(view: NodeView, new_id: Callable[[], str], window: int = DISPATCH_WINDOW) -> Decision[bool]:
    """Finish a node of phase `IN_SERVICE` or `COMPLETE`, or both at once if no node lies between them.

    :param window: maximum number of nodes dispatched at the same time; see `Node.next_in_backlog`.
    :returns: a decision whose verdict is True if it finishes the node; False if the node is done or superseded.
    """
    if not view.may_start or view.node.status is not NodeStatus.READY:
        return Decision(False)
    if view.node.phase is Phase.COMPLETE:
        finish = FinishNode(view.node.traversal_id, view.node.number, view.node.required_by)
        return _end(_Ending(view, {}, finish, window), new_id)
    if view.last is not None:
        finish = FinishNode(view.node.traversal_id, view.node.number, (), last=view.last.number)
        return _end(_Ending(view, _brought_up(view), finish, window, in_service_at=view.now), new_id)
    return _in_service(view, new_id)


def _brought_up(view: NodeView) -> StackChange:
    """Return the columns of a stack whose goal is in service: its template becomes the target of rollbacks."""
    template_id, good = view.traversal.template_id, view.stack.last_good_template_id
    if template_id is None or view.traversal.action in PERFORMED:
        return {}
    changes: StackChange = {'last_good_template_id': template_id}
    if good not in (None, template_id):
        changes['previous_good_template_id'] = good
    return changes


def _in_service(view: NodeView, new_id: Callable[[], str]) -> Decision[bool]:
    """Finish the node `IN_SERVICE` while other nodes remain. An event names the leftovers that cleanup will delete."""
    node, stack, traversal = view.node, view.stack, view.traversal
    effects: list[Effect] = [NoteInService(traversal.id, view.now)]
    changes = _brought_up(view)
    if changes:
        if view.leftovers:
            names = listed(view.leftovers)
            told = f'Stack {traversal.action}: all resources of the goal are up; leftovers to delete: {names}'
            changes['status_reason'] = told
            event = Event.of_stack(new_id(), stack.id, traversal.action, Status.IN_PROGRESS, told, view.now)
            effects.append(InsertEvents((event,)))
        effects.append(UpdateStack(stack.id, traversal.id, changes))
    effects.append(FinishNode(node.traversal_id, node.number, (*node.required_by, *view.late)))
    return Decision(True, tuple(effects))


@dataclass(frozen=True, slots=True)
class _Ending:
    """The last step of a traversal, after all other nodes are done.

    :param brought_up: the columns of the stack that change because its goal is in service now.
    :param finish: the effect that finishes the end nodes.
    :param window: see `conclude`.
    :param in_service_at: time at which the goal was in service, if it is not stored yet.
    """

    view: NodeView
    brought_up: StackChange
    finish: FinishNode
    window: int
    in_service_at: float | None = None

    @property
    def stack(self) -> Stack:
        """The stack with the columns of a goal in service."""
        return replace(self.view.stack, **self.brought_up)


def _end(ending: _Ending, new_id: Callable[[], str]) -> Decision[bool]:
    traversal = ending.view.traversal
    if traversal.failed_name is not None:
        return _failed(ending, new_id, traversal.reason)
    if _is_behind(traversal, ending.stack):
        return _failed(ending, new_id, f'Stack {traversal.action}: {NEVER_UP}')
    return _complete(ending, new_id)


NEVER_UP = (
    'all resources were visited, but they are not those of the template: no operation has brought that into service. '
    'Update the stack, or roll it back'
)


def _is_behind(traversal: Traversal, stack: Stack) -> bool:
    """Return True if a resume, check or snapshot must fail because the template of the stack was never in service.

    Otherwise the stack would appear to match its template. A suspend may succeed.
    """
    done = traversal.action in (Action.RESUME, Action.CHECK, Action.SNAPSHOT)
    return done and traversal.template_id != stack.last_good_template_id


def _failed(ending: _Ending, new_id: Callable[[], str], reason: str) -> Decision[bool]:
    """Fail the traversal after all nodes were visited."""
    now, stack, traversal = ending.view.now, ending.stack, ending.view.traversal
    end = EndTraversal(
        traversal.id,
        TraversalStatus.FAILED,
        now,
        reason,
        Phase.UPDATE,
        traversal.failed_name,
        in_service_at=ending.in_service_at,
    )
    up = (UpdateStack(stack.id, traversal.id, ending.brought_up),) if ending.brought_up else ()
    return Decision(True, (*up, *failure.stop(stack, traversal, reason, now, new_id), end, ending.finish))


def _complete(ending: _Ending, new_id: Callable[[], str]) -> Decision[bool]:
    """Complete the operation: the goal is in service and the leftovers are deleted."""
    now, stack, traversal = ending.view.now, ending.stack, ending.view.traversal
    reason = traversal.reason_of('completed successfully')
    changes: StackChange = {
        **ending.brought_up,
        **states.stack_state(stack, traversal.action, Status.COMPLETE, reason),
        'updated_at': stack.updated_at if traversal.action in BEGINNINGS else now,
    }
    if traversal.action is Action.DELETE:
        changes['deleted_at'] = now
    event = Event.of_stack(new_id(), stack.id, traversal.action, Status.COMPLETE, reason, now)
    end = EndTraversal(
        traversal.id,
        TraversalStatus.COMPLETE,
        now,
        reason,
        in_service_at=ending.in_service_at,
        took_snapshot=traversal.action is Action.SNAPSHOT,
    )
    around = _around(ending, new_id)
    return Decision(
        True,
        (
            UpdateStack(stack.id, traversal.id, changes),
            *_purged(stack, traversal),
            end,
            ending.finish,
            InsertEvents((event,)),
            *(around.effects if around is not None else nesting.parent_told(stack)),
        ),
        around.wake if around is not None else (),
    )


def _around(ending: _Ending, new_id: Callable[[], str]) -> Decision[End] | None:
    """Return the decision that finishes the waiting resource of the parent stack; None if it is only woken."""
    view = ending.view
    if view.around is None:
        return None
    return upwards.finish_around(view.around, view.stack, view.traversal, Worker('', new_id, ending.window))


def _purged(stack: Stack, traversal: Traversal) -> list[Effect]:
    """Return the effect that deletes unused templates. A new stack has only one template."""
    if traversal.action in BEGINNINGS:
        return []
    keep = {
        stack.template_id,
        stack.last_good_template_id,
        stack.previous_good_template_id,
        traversal.template_id,
    }
    return [PurgeTemplates(stack.id, tuple(sorted(template for template in keep if template)))]
