"""The turn of one thread: a node, and the nodes of the same operation that the thread runs after it."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.concurrency import Task
from convergence.core.claim import StepDecision


@dataclass(slots=True)
class Turn:
    """The inline chain of one thread: node after node of one operation. The scheduler changes it.

    :param node: number of the node that the thread runs now.
    :param task: what runs in the thread. A cancelled task runs no further node.
    :param began_at: when the turn began, on the clock of the process.
    :param nodes_left: how many nodes the thread may run after this one.
    :param claimed: the step of this node, if its row was claimed by the commit that finished the node before.
    :ivar next_node: the node that the thread runs next, if there is one.
    :ivar next_claimed: the step of the next node, if its row is claimed already.
    :ivar batched: how many nested stacks of other nodes the thread has started together with this one.
    :ivar is_over: True if other nodes that this worker has taken come first.
    """

    traversal_id: str
    node: int
    task: Task
    began_at: float
    nodes_left: int
    claimed: StepDecision | None = None
    next_node: int | None = None
    next_claimed: StepDecision | None = None
    batched: int = 0
    is_over: bool = False

    def keep(self, node: int) -> bool:
        """Keep a node for this thread; False if the turn ends with the present one, or another node is kept."""
        if self.next_node is not None or not self.nodes_left:
            return False
        self.next_node = node
        return True

    def drop_unclaimed(self) -> list[tuple[str, int]]:
        """Return the next node, if there is one, and run it no more; a node that is claimed already stays."""
        if self.next_claimed is not None or self.next_node is None:
            return []
        node, self.next_node = self.next_node, None
        return [(self.traversal_id, node)]

    def advance(self) -> bool:
        """Go to the next node; False if there is none."""
        if self.next_node is None:
            return False
        self.node, self.claimed = self.next_node, self.next_claimed
        self.next_node = self.next_claimed = None
        self.nodes_left = max(0, self.nodes_left - 1)
        self.batched, self.is_over = 0, False
        return True
