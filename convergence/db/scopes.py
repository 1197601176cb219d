"""Scopes: the rows that a transaction locks and reads before a decision.

Locks are always taken in one order: the row of the project (for a new stack only), the stack row, then resource rows by
key, the traversal row, then sync points by key, and the row of the tree (for a plan with more resources). A transaction
that holds a resource row never waits for a stack row.

Between a nested stack and its parent, locks are taken upwards: a transaction that holds rows of a nested stack may lock
the parent's resource row, and a transaction that holds that row never locks a row of the nested stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from convergence.core.handoff import Handoff
from convergence.core.model import NodeStatus, Output
from convergence.core.rows import Stack, Traversal
from convergence.core.views import FinishView, NodeView, PlanView, SignalView
from convergence.values import quickly_made

ViewT = TypeVar('ViewT')


class Scope(Generic[ViewT]):
    """Base of the scopes; the parameter is the view that a decision on it gets."""


@dataclass(frozen=True, slots=True)
class NewStack(Scope[PlanView]):
    """A stack that is about to be stored: the row of its project is locked, and its living stacks are counted.

    :param parent_resource_id: for a nested stack, the row whose object it is: that is locked, and nothing is counted.
    :param handoff: that row with the node that it is claimed for, if the plan may release it.
    """

    project_id: str
    parent_resource_id: str | None = None
    handoff: Handoff | None = None


@dataclass(frozen=True, slots=True)
class WholeStack(Scope[PlanView]):
    """A stack and all of its resources, locked.

    :param parent_resource_id: the parent's row of a nested stack, if the decision needs it: locked last.
    :param handoff: as in `NewStack`.
    :param counted: approximate number of its resources; None: unknown. A few are locked and read in one statement.
    """

    stack_id: str
    parent_resource_id: str | None = None
    handoff: Handoff | None = None
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class SeveralStacks(Scope[tuple[PlanView | None, ...]]):
    """Several nested stacks of one parent: new ones, or whole ones. Each has its own view.

    A view is None where a stack is gone, a new one exists already, or no worker holds the parent's row. Rows of
    each kind are locked by key, across all stacks.

    :param scopes: each with a row that is held for a node, all for nodes of one traversal.
    """

    scopes: tuple[NewStack | WholeStack, ...]


@dataclass(frozen=True, slots=True)
class StackAlone(Scope[PlanView]):
    """A stack, locked, and its current traversal; the view holds no resources.

    :param parent_resource_id: as in `WholeStack`.
    """

    stack_id: str
    parent_resource_id: str | None = None


@dataclass(frozen=True, slots=True)
class DoneNow:
    """A node that this very transaction finishes.

    :param output: what it hands to those that require it.
    """

    number: int
    name: str
    output: Output


@dataclass(frozen=True, slots=True)
class OneNode(Scope[NodeView]):
    """A node of phase `UPDATE` or `CLEANUP`: its resource row is locked, then the rest is read.

    :param max_input_bytes: limit for the outputs of other nodes, in stored bytes; None: no limit.
    :param waits: True to wait for a locked row; otherwise the node of a locked row counts as missing.
    :param done_now: a node whose output need not be read.
    :param assumed: traversal and stack as read before. They need not be read again if every write checks them.
    """

    traversal_id: str
    number: int
    max_input_bytes: int | None = None
    waits: bool = True
    done_now: DoneNow | None = None
    assumed: tuple[Traversal, Stack] | None = None


@dataclass(frozen=True, slots=True)
class FreeNodes:
    """Some nodes of a traversal, without those whose rows are locked.

    :param assumed: see `OneNode`; so too for `max_input_bytes`.
    """

    traversal_id: str
    numbers: tuple[int, ...]
    assumed: tuple[Traversal, Stack]
    max_input_bytes: int | None = None

    def one(self, number: int) -> OneNode:
        """Return the scope of one node."""
        return OneNode(self.traversal_id, number, self.max_input_bytes, waits=False, assumed=self.assumed)


@dataclass(frozen=True, slots=True)
class OneReplacement(Scope[NodeView]):
    """An update node whose row is to be replaced: the stack row is locked, then the resource row."""

    traversal_id: str
    number: int
    stack_id: str
    resource_id: str


@dataclass(frozen=True, slots=True)
class LastNode(Scope[NodeView]):
    """A node of phase `IN_SERVICE` or `COMPLETE`: the stack row is locked.

    The parent's resource row that waits for a nested stack is locked as well, also if the operation does not end here.
    """

    traversal_id: str
    number: int


@quickly_made
@dataclass(frozen=True, slots=True)
class HeldResource(Scope[FinishView]):
    """A claimed resource row, and the node it is claimed for.

    :param fence: the fence that the caller knows. Fences only grow: a smaller one is an older state of the row, from a
    lagging server, and no decision uses it.
    :param assumed: the expected view. The decision is made on it first, and commits if each of its writes finds the
        expected
    row; otherwise the rows are locked and read, and the decision is made again.
    """

    resource_id: str
    traversal_id: str | None = None
    number: int | None = None
    fence: int = 0
    assumed: FinishView | None = None


UNDONE = (NodeStatus.WAITING, NodeStatus.READY)
"""Nodes whose resource may still have something to learn from a signal."""


@dataclass(frozen=True, slots=True)
class SignalledResource(Scope[SignalView]):
    """A resource row that receives a signal, and the rows that depend on it and are not done.

    All of them are locked for a moment, claimed or not; columns that claims write stay unchanged.
    """

    stack_id: str
    resource_id: str
