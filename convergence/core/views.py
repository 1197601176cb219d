"""The input of a decision: the rows that the store has locked and read for it, in one transaction.

`now` is the time of the database's clock, in seconds since the epoch.
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
    """A whole stack, with its row and all of its resource rows locked.

    :param stack: None if the operation creates the stack.
    :param traversal: the current traversal of the stack.
    :param stack_count: number of live root stacks of the project; counted only when the operation creates a root stack.
    :param parent: for a nested stack, the locked row in the parent stack whose object this stack is. None if the scope
        does not name it.
    :param around: the view of that row and of the node that it was claimed for. None if the scope does not name them.
    :param tree_count: number of resources in the whole tree of stacks, read with `around`; None if it was not counted
        or not read.
    :param has_webhook: True if a webhook receives notices of the stack, or if the store did not check.
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
    """One node, with its row locked and all other rows read after that lock.

    :param resource: the row that the node works on; None if the node has no row or the row was removed.
    :param inputs: outputs of the update nodes that this one requires, by resource name.
    :param input_bytes: stored size of those outputs in bytes. If it exceeds the limit, the store does not read them.
    :param unread: names of the resources whose stored output could not be read.
    :param chosen_id: for a cleanup node, the id of the row in service for the same name; None if the goal does not
        contain the name.
    :param has_cleanup: for a replacement, True if the traversal also has a cleanup node for the row.
    :param leftovers: for the node `IN_SERVICE`, sorted names of rows that do not belong to the goal's template; only a
        part of them.
    :param last: for the node `IN_SERVICE`, the node `COMPLETE` if it waits for nothing else.
    :param late: for the node `IN_SERVICE`, numbers of the waiting nodes that were added while the traversal ran.
    :param rivals: for an update node whose row is in a handover, the other rows of its name, not locked.
    :param around: for the last node of a nested stack, the locked resource of the parent stack that waits for the
        nested stack, with its node; None if no resource waits.
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
        """True if the node belongs to the current traversal of the stack."""
        return self.stack.traversal_id == self.traversal.id

    @property
    def may_start(self) -> bool:
        """True if a worker may begin the work on a node of this traversal."""
        return self.is_current and self.traversal.status is TraversalStatus.RUNNING

    @property
    def is_under_way(self) -> bool:
        """True if actions that have begun for this traversal may continue."""
        return self.is_current and self.traversal.status in UNDER_WAY


@quickly_made
@dataclass(frozen=True, slots=True)
class FinishView:
    """A claimed row, locked, and the node for which a worker claimed it.

    :param resource: None if the row was removed.
    :param node: None if the node was removed with its traversal.
    :param waiting: `READY` nodes of the *current* traversal that work on the row or, during a handover, on another row
        of its name. Read only if the node belongs to an older traversal.
    :param assumed: True if the store did not read the rows again and passes those that the claim saw. The store then
        applies the decision only if the rows are unchanged.
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
        """True if the node belongs to the current traversal of the stack."""
        return self.traversal is not None and self.stack is not None and self.stack.traversal_id == self.traversal.id

    @property
    def is_running(self) -> bool:
        """True if the node's traversal is current and no node of it has failed."""
        return self.is_current and self.traversal is not None and self.traversal.status is TraversalStatus.RUNNING

    @property
    def is_under_way(self) -> bool:
        """True if the node's traversal is current and waits for its actions."""
        return self.is_current and self.traversal is not None and self.traversal.status in UNDER_WAY

    @property
    def is_being_cancelled(self) -> bool:
        """True if the node's traversal is being cancelled: it ends as soon as no action runs any more."""
        return self.is_under_way and not self.is_running


@dataclass(frozen=True, slots=True)
class SignalView:
    """A row that receives a signal from outside the stack. The row and its dependents are locked.

    :param resource: None if the row was removed.
    :param traversal: the current traversal of the stack.
    :param dependents: ids of the rows that require this row in that traversal and whose nodes are not done.
    :param ready: the ready nodes of that traversal that work on one of these rows, as (traversal, number, row).
    :param received_bytes: stored size in bytes of the contents of all signals that the row has received.
    """

    now: float
    stack: Stack
    resource: Resource | None
    traversal: Traversal | None
    dependents: tuple[str, ...] = ()
    ready: tuple[tuple[str, int, str], ...] = ()
    received_bytes: int = 0
