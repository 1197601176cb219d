"""The effects: all changes that a decision may request from the store.

A decision is a value. The store applies its effects in one transaction, in their order, and either all or none of them.
An effect may contain an expected value, such as an owner, a fence or a status. If the row has another one, the effect
raises `convergence.errors.Conflict`: the store rolls the transaction back, reads the rows again and decides again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from convergence.core.changes import ResourceChange, StackChange
from convergence.core.model import DISPATCH_WINDOW, Hook, Json, Output, Phase, TraversalStatus
from convergence.core.rows import (
    Event,
    Node,
    ReceivedSignal,
    Resource,
    Snapshot,
    SnapshotItem,
    Stack,
    Template,
    Traversal,
)
from convergence.core.scaling import Scaling
from convergence.values import quickly_made

V = TypeVar('V')

MAX_LISTED = 2000
"""Characters of a traversal's reason after which further failures are not added to it."""


@dataclass(frozen=True, slots=True)
class InsertStack:
    """Insert a stack. Raises `StackExists` if the project has a live stack of the same name."""

    stack: Stack


@dataclass(frozen=True, slots=True)
class UpdateStack:
    """Change columns of a stack whose row is locked and whose current traversal is `traversal_id`."""

    stack_id: str
    traversal_id: str | None
    changes: StackChange


@dataclass(frozen=True, slots=True)
class RequireRoom:
    """Reserve room in the tree of a stack, because its new goal has more resources than its last one.

    Raises `RequestLimitExceeded` if the tree would exceed its limit. Concurrent reservations wait for each other.

    :param root_id: the root stack of the tree.
    :param more: number of additional resources.
    :param most: maximum number of resources in all goals of the tree together; None: they are only counted.
    :param counted: known number before, see `convergence.core.views.PlanView`.
    """

    root_id: str
    more: int
    most: int | None = None
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class InsertTemplate:
    """Insert a template."""

    template: Template


@dataclass(frozen=True, slots=True)
class PurgeTemplates:
    """Delete the templates of a stack that no row refers to, except those in `keep`."""

    stack_id: str
    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InsertTraversal:
    """Insert a traversal with all of its nodes."""

    traversal: Traversal
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class EndTraversal:
    """End a traversal that has the status `expected`. With another status nothing happens: the first end counts.

    The snapshot that the traversal takes ends with it.

    :param in_service_at: time at which its goal was in service, if it is not stored yet.
    :param took_snapshot: False if the traversal certainly takes no snapshot.
    """

    traversal_id: str
    status: TraversalStatus
    at: float
    reason: str = ''
    failed_phase: Phase | None = None
    failed_name: str | None = None
    expected: TraversalStatus = TraversalStatus.RUNNING
    in_service_at: float | None = None
    took_snapshot: bool = True


@dataclass(frozen=True, slots=True)
class BeginCancel:
    """Begin to cancel a running traversal. If it is not running, nothing happens.

    :param deadline: time until which running actions may end.
    """

    traversal_id: str
    deadline: float


@dataclass(frozen=True, slots=True)
class NoteFailure:
    """Add the failure of a node to the reason of a running traversal whose other nodes continue.

    :param name: name of the resource; the first one stays the traversal's `failed_name`.
    :param said: the failure of the resource.
    """

    traversal_id: str
    name: str
    said: str


@dataclass(frozen=True, slots=True)
class NoteInService:
    """Store the time at which the goal of a traversal was in service."""

    traversal_id: str
    at: float


@dataclass(frozen=True, slots=True)
class StallTraversal:
    """Store the time since when a traversal makes no progress; None: it makes progress."""

    traversal_id: str
    since: float | None


@dataclass(frozen=True, slots=True)
class CountEvent:
    """Count an event that the resource may wait for. A claim of the row stays valid."""

    resource_id: str


@dataclass(frozen=True, slots=True)
class TellParent:
    """Count the end of a nested stack's operation as an event of its parent resource, and dispatch the ready nodes."""

    resource_id: str


@dataclass(frozen=True, slots=True)
class DoubtParents:
    """Mark the parent resources of a nested stack with a leftover, so that the next update of each parent reaches it.

    Removes the digests of the resources up to the root stack. A claim of such a row stays valid, but it cannot store a
    new digest; see `convergence.core.nesting.DOUBTED`.

    :param resource_id: the resource whose object the nested stack is.
    """

    resource_id: str


@dataclass(frozen=True, slots=True)
class InsertSignal:
    """Insert a signal."""

    signal: ReceivedSignal


@dataclass(frozen=True, slots=True)
class ClearHook:
    """Store that a user has cleared a hook of a resource. A claim of the row stays valid."""

    resource_id: str
    hook: Hook
    traversal_id: str


@dataclass(frozen=True, slots=True)
class RevokeAddresses:
    """Revoke all signal addresses of a resource. A claim of the row stays valid."""

    resource_id: str
    revocation: str


@dataclass(frozen=True, slots=True)
class InsertResources:
    """Insert resource rows."""

    resources: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class UpdateResource:
    """Change columns of a resource row that has this `owner` and `fence`; else `Conflict`.

    If the row is marked by `DoubtParents`, the store writes the digest None instead of the one in `changes`.
    """

    resource_id: str
    owner: str | None
    fence: int
    changes: ResourceChange


@dataclass(frozen=True, slots=True)
class UpdateResources:
    """Change the same columns of many rows. Only while planning, when all rows of the stack are locked."""

    resource_ids: tuple[str, ...]
    changes: ResourceChange


@dataclass(frozen=True, slots=True)
class DeleteResource:
    """Delete a resource row that has this `owner` and `fence`; else `Conflict`.

    :param signalled: True if the row may have received signals, which are deleted with it.
    """

    resource_id: str
    owner: str | None
    fence: int
    signalled: bool = True


@quickly_made
@dataclass(frozen=True, slots=True)
class FinishNode:
    """Change a node from `READY` to `DONE`, exactly once; else `Conflict`.

    Each node in `required_by` waits for one requirement less. Nodes that wait for none any more become `READY`, and the
    store returns them.

    :param last: a node that waits only for this one and becomes `DONE` with it; else `Conflict`.
    :param window: maximum number of the new ready nodes to dispatch at once; the others are linked to them.
    :param next_in_backlog: the ready node of the backlog to dispatch next.
    :param checked: True if the decision did not read the rows in this transaction. The store then checks that the
        traversal is running and current and that the node has these successors; else `Conflict`.
    """

    traversal_id: str
    number: int
    required_by: tuple[int, ...]
    output: Output | None = None
    window: int = DISPATCH_WINDOW
    next_in_backlog: int | None = None
    last: int | None = None
    checked: bool = False


@dataclass(frozen=True, slots=True)
class FailNode:
    """Change a node from `READY` to `FAILED`. In another state nothing happens."""

    traversal_id: str
    number: int


@dataclass(frozen=True, slots=True)
class PointNode:
    """Point a `READY` update node at another row; else `Conflict`."""

    traversal_id: str
    number: int
    resource_id: str


@dataclass(frozen=True, slots=True)
class NotifyNode:
    """Mark a ready node of the backlog as dispatched."""

    traversal_id: str
    number: int


@dataclass(frozen=True, slots=True)
class AppendCleanup:
    """Add a cleanup node for a row that had none when the traversal was planned. The stack row is locked.

    :param node: the node, `READY` or `WAITING`. A waiting one waits for the node `IN_SERVICE`, which wakes all late
        nodes (see `Traversal.late_numbers`). `Conflict` if another node has its number.
    :param before: number of the node that ends the traversal; `Conflict` if that does not wait any more.
    :param rows_after: ids of the rows that the node's row depends on. Their cleanup nodes wait for this one too, unless
        they are ready, because a worker may have begun them.
    :param holds_up: number of a further node that waits for this one, unless it does not wait any more.
    """

    node: Node
    before: int
    rows_after: tuple[str, ...] = ()
    holds_up: int | None = None


@dataclass(frozen=True, slots=True)
class InsertEvents:
    """Insert events, in order.

    :param details: additional content of the notices about these events.
    :param suppressed: a requested change of a group's members that is not carried out; a notice reports it.
    :param is_drift: True if the events report drift or its end; notices report it.
    """

    events: tuple[Event, ...]
    details: Mapping[str, Json] | None = None
    suppressed: Scaling | None = None
    is_drift: bool = False


@dataclass(frozen=True, slots=True)
class InsertSnapshot:
    """Insert a snapshot."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class DeleteSnapshots:
    """Mark snapshots of a stack as being deleted.

    :param snapshot_id: only this one; None: all of them.
    :param keeping: ids of snapshots that stay.
    """

    stack_id: str
    snapshot_id: str | None = None
    keeping: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeepItem:
    """Store the data of a resource in a snapshot, in place of earlier data."""

    item: SnapshotItem


Effect: TypeAlias = (
    InsertStack
    | UpdateStack
    | RequireRoom
    | InsertTemplate
    | PurgeTemplates
    | InsertTraversal
    | EndTraversal
    | BeginCancel
    | NoteFailure
    | NoteInService
    | StallTraversal
    | CountEvent
    | TellParent
    | DoubtParents
    | InsertSignal
    | ClearHook
    | RevokeAddresses
    | InsertResources
    | UpdateResource
    | UpdateResources
    | DeleteResource
    | FinishNode
    | FailNode
    | PointNode
    | NotifyNode
    | AppendCleanup
    | InsertEvents
    | InsertSnapshot
    | DeleteSnapshots
    | KeepItem
)


@dataclass(frozen=True, slots=True)
class Decision(Generic[V]):
    """A decision: the verdict for the caller, and the effects for the store.

    :param wake: nodes ``(traversal_id, number)`` to dispatch after the commit, in addition to those that became ready.
    """

    verdict: V
    effects: tuple[Effect, ...] = ()
    wake: tuple[tuple[str, int], ...] = field(default=())
