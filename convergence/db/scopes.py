"""What a transaction locks and reads before anything is decided.

Locks are always taken in one order: the row of the project (for a new stack alone), the stack row, then resource rows
by key, then sync points by key, and the row of the tree (for a plan with more resources). Whoever holds a resource row
never waits for a stack row.

Between a nested stack and the one that it is in, locks are taken upwards: whoever holds rows of a nested stack may come
to the row of which it is the object, and nobody who holds that row comes to a row of the nested stack.
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

    :param parent_resource_id: the row whose object a nested stack is, where that has a say: it is locked last.
    :param handoff: as in `NewStack`.
    :param counted: about how many resources it has; None: nobody knows. Of a few all are locked and read at once.
    """

    stack_id: str
    parent_resource_id: str | None = None
    handoff: Handoff | None = None
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class SeveralStacks(Scope[tuple[PlanView | None, ...]]):
    """Stacks that are nested in one and the same: about to be stored, or whole. For each its own view.

    None where a stack is gone, or one that is about to be stored is there by now, or nobody holds the row whose object
    it is. Rows of each kind are locked by key, of whichever stacks they are.

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

    :param max_input_bytes: what of the outputs of others is read at most, in bytes as they are stored; None: all.
    :param waits: True if for a row that somebody else has locked; otherwise such a node counts as missing.
    :param done_now: what it hands on need not be read.
    :param assumed: traversal and stack as they were read before. They need not be read where whatever is written is
        held against them.
    """

    traversal_id: str
    number: int
    max_input_bytes: int | None = None
    waits: bool = True
    done_now: DoneNow | None = None
    assumed: tuple[Traversal, Stack] | None = None


@dataclass(frozen=True, slots=True)
class FreeNodes:
    """Some nodes of a traversal; those whose rows somebody has locked are left out.

    :param assumed: see `OneNode`; so too for `max_input_bytes`.
    """

    traversal_id: str
    numbers: tuple[int, ...]
    assumed: tuple[Traversal, Stack]
    max_input_bytes: int | None = None

    def one(self, number: int) -> OneNode:
        """What has to be seen of one of them."""
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

    So is the row of the resource that waits for what a nested stack is doing, whether that comes to its end or not.
    """

    traversal_id: str
    number: int


@quickly_made
@dataclass(frozen=True, slots=True)
class HeldResource(Scope[FinishView]):
    """A resource row that somebody holds, and the node it is held for.

    :param fence: the fence under which the caller knows the row. Fences only grow: a smaller one is an older state of
        the row, as a database server shows it that lags behind others, and nothing is decided by it.
    :param assumed: what there is to be seen, if nothing has changed. The decision is made on that first, and comes true
        if each of its writes finds what it replaces; otherwise all is locked, read and decided as always.
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
    """A resource row that somebody outside has something to say to, and the rows built on it that are not done.

    All of them are locked, for a moment, whoever holds them; what holders write is not touched.
    """

    stack_id: str
    resource_id: str
