"""What a decision gets to see: the rows that the store has locked and read for it, in one transaction.

`now` is the database's clock, in seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from convergence.core.model import UNDER_WAY, Output, TraversalStatus
from convergence.core.rows import Node, Resource, Stack, Traversal
from convergence.values import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class PlanView:
    """A whole stack: its row is locked, and so are all of its resource rows.

    :param stack: None where the stack is about to be created.
    :param traversal: the stack's current traversal.
    :param stack_count: live stacks of the project that are in no other; only counted for a new one that is in none.
    :param parent: for a nested stack, where the scope names it: the row whose object the stack is, locked.
    :param around: where the scope names the node that the row is held for: that, and what belongs to it.
    :param tree_count: with that, how many resources the tree is known to have; None where nobody has counted them yet,
        or has looked.
    :param has_webhook: whether anybody is told of the stack by a webhook; true also where nobody has looked.
    """

    now: float
    stack: Stack | None
    traversal: Traversal | None = None
    resources: tuple[Resource, ...] = ()
    stack_count: int = 0
    parent: Resource | None = None
    around: FinishView | None = None
    tree_count: int | None = None
    has_webhook: bool = True


@quickly_made
@dataclass(frozen=True, slots=True)
class NodeView:
    """One node, with the row it works on locked, and everything else read after that lock was held.

    :param resource: None where the node has no row, or the row is gone.
    :param inputs: outputs of the update nodes that this one requires, by resource name.
    :param input_bytes: how many bytes those have, as they are stored; where there is a limit, and these are more, they
        are not read.
    :param unread: names of those whose output is stored and cannot be read.
    :param chosen_id: for a cleanup node, the row that is in service for the same name, if the name is wanted.
    :param has_cleanup: for a replacement, whether the traversal has a cleanup node for the row as well.
    :param leftovers: for the node `IN_SERVICE`, names of rows that are not of the goal's template, sorted; not all.
    :param late: for the node `IN_SERVICE`, numbers of the nodes that were added while the traversal ran, and wait.
    :param rivals: for an update node whose row gave way, the other rows of its name; they are not locked.
    :param last: for the node `IN_SERVICE`, the node `COMPLETE` where it waits for nothing else.
    :param around: for the last node of a nested stack, the resource that waits for its end, locked, and what belongs to
        it; None where nobody does.
    :param has_webhook: see `PlanView`.
    """

    now: float
    node: Node
    traversal: Traversal
    stack: Stack
    resource: Resource | None = None
    inputs: Mapping[str, Output] = field(default_factory=dict)
    input_bytes: int = 0
    unread: tuple[str, ...] = ()
    chosen_id: str | None = None
    has_cleanup: bool = False
    leftovers: tuple[str, ...] = ()
    last: Node | None = None
    late: tuple[int, ...] = ()
    rivals: tuple[Resource, ...] = ()
    around: FinishView | None = None
    has_webhook: bool = True

    @property
    def is_current(self) -> bool:
        """Whether the node belongs to the stack's current traversal."""
        return self.stack.traversal_id == self.traversal.id

    @property
    def may_start(self) -> bool:
        """Whether work on a node of this traversal may begin."""
        return self.is_current and self.traversal.status is TraversalStatus.RUNNING

    @property
    def is_under_way(self) -> bool:
        """Whether what has begun for this traversal may go on."""
        return self.is_current and self.traversal.status in UNDER_WAY


@quickly_made
@dataclass(frozen=True, slots=True)
class FinishView:
    """A held row, locked, and the node for which it was claimed.

    :param resource: None where the row is gone.
    :param node: None where the node has been removed with its traversal.
    :param waiting: `READY` nodes of the *current* traversal that work on the row or, during a handover, on another row
        of its name; only read when that traversal is not the node's own.
    :param assumed: whether the rows are those that the claim saw, and were not read again: then what the decision
        writes is held against them, or it does not come true.
    """

    now: float
    resource: Resource | None
    node: Node | None
    traversal: Traversal | None
    stack: Stack | None
    waiting: tuple[tuple[str, int], ...] = ()
    assumed: bool = False

    @property
    def is_current(self) -> bool:
        """Whether the node belongs to the stack's current traversal."""
        return self.traversal is not None and self.stack is not None and self.stack.traversal_id == self.traversal.id

    @property
    def is_running(self) -> bool:
        """Whether the node's traversal is current and nothing has failed in it."""
        return self.is_current and self.traversal is not None and self.traversal.status is TraversalStatus.RUNNING

    @property
    def is_under_way(self) -> bool:
        """Whether somebody waits for what was begun for the node's traversal."""
        return self.is_current and self.traversal is not None and self.traversal.status in UNDER_WAY

    @property
    def is_being_cancelled(self) -> bool:
        """Whether the node's traversal ends as soon as nothing runs any more."""
        return self.is_under_way and not self.is_running


@dataclass(frozen=True, slots=True)
class SignalView:
    """A row that somebody outside has something to say to; it is locked, and so are the rows built on it.

    :param resource: None where the row is gone.
    :param traversal: the stack's current one.
    :param dependents: the rows that require it in that traversal and whose nodes are not done.
    :param ready: the nodes of that traversal that are ready and work on any of these rows: traversal, number, row.
    :param received_bytes: what the signals say that the row has received, as it is stored.
    """

    now: float
    stack: Stack
    resource: Resource | None
    traversal: Traversal | None
    dependents: tuple[str, ...] = ()
    ready: tuple[tuple[str, int, str], ...] = ()
    received_bytes: int = 0
