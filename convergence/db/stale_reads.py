"""Checks against stale reads: no decision uses rows from an older state of the database.

A lagging server shows old rows and misses new ones, and may catch up between two statements of one transaction. So a
row that is not seen may exist, and a row that seems free may be claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from convergence.core.effects import Decision, FinishNode
from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Node, Resource, Stack, Traversal
from convergence.db.scopes import HeldResource, Scope, ViewT
from convergence.errors import Conflict, OlderState
from convergence.values import quickly_made

MANY_LEFTOVERS = 50
"""Highest number of leftovers that are named; see `NodeView.leftovers`."""


@quickly_made
@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node with its traversal and stack.

    :param now: the time of the database.
    :param is_chosen: of a cleanup node, whether a node of the goal works on the same row.
    """

    node: Node
    traversal: Traversal
    stack: Stack
    now: float
    is_chosen: bool


def row_and_node(
    lock_and_read: Callable[[], tuple[Resource | None, SeenNode]],
    lock_row: Callable[[str], Resource | None],
    read_node: Callable[[], SeenNode],
) -> tuple[Resource | None, SeenNode]:
    """Return a node and its row, locked; None for the row only if it is gone.

    :param lock_and_read: locks and reads the row of the node, and then reads the node in another statement: a join with
        the locking read would show an older state of the node.
    :param lock_row: locks one row, by its id, and reads it.
    :param read_node: reads the node again.
    :raises Conflict: the node got another row in between.
    """
    resource, seen = lock_and_read()
    resource_id = seen.node.resource_id
    if resource is None and resource_id is not None:
        # Not seen is not gone: the first look may have come before the plan with this node was there. The node is seen
        # now, so its row is, too, unless it is gone. What depends on the lock is read again under it.
        resource = lock_row(resource_id)
        seen = read_node()
    if resource is not None and seen.node.resource_id != resource.id:
        raise Conflict(f'node {seen.node.number} of {seen.traversal.id} works on another row by now')
    return resource, seen


def needs_rivals(resource: Resource, node: Node) -> bool:
    """Return True if a decision about a row needs the other rows of its name; see `NodeView.rivals`.

    No worker claims them while the node is not done: if none is claimed this stays so, and none is locked.
    """
    return resource.handover is not None and node.phase is Phase.UPDATE


def waits_for(node: Node, resource: Resource) -> bool:
    """Return True if a node must be dispatched when a row becomes free: it works on this row, or on one that takes over
    from it.
    """
    if node.status is not NodeStatus.READY:
        return False
    takes = resource.handover is not None and node.phase is Phase.UPDATE and node.name == resource.name
    return takes or node.resource_id == resource.id


def require_lock(held: object | None, stack: Stack) -> None:
    """See that a stack that is read now was there when it was to be locked.

    :raises Conflict: it was not: the lock was looked for in an older state.
    """
    if held is None:
        raise Conflict(f'stack {stack.id} was not there when it was to be locked')


def only_follower(node: Node, traversal: Traversal, complete: Node | None) -> Node | None:
    """The node `COMPLETE`, for the node `IN_SERVICE`, where it waits for that alone: nothing is left over.

    The stack is locked, so no node can come between them.

    :param complete: the last node of the traversal.
    """
    if node.phase is not Phase.IN_SERVICE or traversal.late_numbers or complete is None:
        return None
    return complete if node.required_by == (complete.number,) and complete.waiting == 1 else None


def awaits_end(node: Node, last: Node | None, traversal: Traversal, stack: Stack) -> str | None:
    """The row that may wait for the end that a node brings to a nested stack; None: there is none.

    :param last: see `only_follower`.
    """
    is_last = node.phase is Phase.COMPLETE or last is not None
    return stack.parent_resource_id if is_last and traversal.for_parent else None


def assumption(scope: Scope[ViewT]) -> ViewT | None:
    """The view on which a decision is made before anything is read; None: there is none."""
    return cast('ViewT', scope.assumed) if isinstance(scope, HeldResource) else None


def require_checked(decision: Decision[Any]) -> None:
    """See that a decision that was made on an assumption is held against the rows.

    :raises Conflict: it is not.
    """
    if not any(isinstance(effect, FinishNode) and effect.checked for effect in decision.effects):
        raise Conflict('the cached state is insufficient; reading again under the lock')


def held_row(lock_row: Callable[[str], Resource | None], scope: HeldResource) -> Resource | None:
    """Return a row that is or was claimed, locked; None only if it is gone.

    :param lock_row: locks one row, by its id, and reads it again.
    :raises OlderState: the row has a smaller fence than its holder knows.
    """
    resource = lock_row(scope.resource_id)
    if resource is None:
        resource = lock_row(scope.resource_id)  # not seen is not gone
    if resource is not None and resource.fence < scope.fence:
        raise OlderState(f'resource {resource.id} is older than its holder knows it to be; the server lags')
    return resource
