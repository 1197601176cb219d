"""The two nodes that end a traversal: `IN_SERVICE` and `COMPLETE`. They have no resource; the stack row is locked."""

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
    """Finish a node of phase `IN_SERVICE` or `COMPLETE`; or both at once, where nothing lies between them.

    :param window: how many nodes are cast at once; see `Node.next_in_backlog`.
    :returns: as the verdict, whether it was finished now (and not before, or made pointless by another traversal).
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
    """Everything wanted is up: from now on this is what a rollback comes back to."""
    template_id, good = view.traversal.template_id, view.stack.last_good_template_id
    if template_id is None or view.traversal.action in PERFORMED:
        return {}
    changes: StackChange = {'last_good_template_id': template_id}
    if good not in (None, template_id):
        changes['previous_good_template_id'] = good
    return changes


def _in_service(view: NodeView, new_id: Callable[[], str]) -> Decision[bool]:
    """Everything wanted is up, and there is more to do. Where leftovers remain it is told."""
    node, stack, traversal = view.node, view.stack, view.traversal
    effects: list[Effect] = [NoteInService(traversal.id, view.now)]
    changes = _brought_up(view)
    if changes:
        if view.leftovers:
            told = f'Stack {traversal.action}: everything wanted is up; still to be removed: {listed(view.leftovers)}'
            changes['status_reason'] = told
            event = Event.of_stack(new_id(), stack.id, traversal.action, Status.IN_PROGRESS, told, view.now)
            effects.append(InsertEvents((event,)))
        effects.append(UpdateStack(stack.id, traversal.id, changes))
    effects.append(FinishNode(node.traversal_id, node.number, (*node.required_by, *view.late)))
    return Decision(True, tuple(effects))


@dataclass(frozen=True, slots=True)
class _Ending:
    """The last step of a traversal: every node was visited.

    :param brought_up: the columns of the stack that change because everything wanted is up now.
    :param finish: the nodes that are done with it.
    :param window: see `conclude`.
    :param in_service_at: when everything was up, where it is not noted yet.
    """

    view: NodeView
    brought_up: StackChange
    finish: FinishNode
    window: int
    in_service_at: float | None = None

    @property
    def stack(self) -> Stack:
        """The stack, with everything up that is wanted."""
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
    """Whether what was done to the objects as they are does not make the stack what its template says.

    To put it to sleep is complete all the same. Resumed, checked or kept as a snapshot it would pass for what it is
    not.
    """
    done = traversal.action in (Action.RESUME, Action.CHECK, Action.SNAPSHOT)
    return done and traversal.template_id != stack.last_good_template_id


def _failed(ending: _Ending, new_id: Callable[[], str], reason: str) -> Decision[bool]:
    """Everything was visited, and something has failed."""
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
    """Leftovers are gone too: the operation is complete."""
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
    """What becomes true of the resource that has waited for this; None where it is woken."""
    view = ending.view
    if view.around is None:
        return None
    return upwards.finish_around(view.around, view.stack, view.traversal, Worker('', new_id, ending.window))


def _purged(stack: Stack, traversal: Traversal) -> list[Effect]:
    """Templates that nothing refers to any more go. A stack that is new has but one."""
    if traversal.action in BEGINNINGS:
        return []
    keep = {
        stack.template_id,
        stack.last_good_template_id,
        stack.previous_good_template_id,
        traversal.template_id,
    }
    return [PurgeTemplates(stack.id, tuple(sorted(template for template in keep if template)))]
