"""The verbs: everything that a decision may ask the store to do.

A decision is a value. The store carries out its effects in one transaction, in the order given, and either all of
them happen or none does. An effect that names what it replaces (an owner and a fence, a status) and does not find it
raises `convergence.errors.Conflict`: the transaction is undone, everything is read again and decided again.
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
    """A new stack. A live stack of the same name in the same project is refused (`StackExists`)."""

    stack: Stack


@dataclass(frozen=True, slots=True)
class UpdateStack:
    """Change columns of a stack whose row is locked and whose current traversal is `traversal_id`."""

    stack_id: str
    traversal_id: str | None
    changes: StackChange


@dataclass(frozen=True, slots=True)
class RequireRoom:
    """The goal of a stack, written before, has more resources than its last one: there must be room in its tree.

    Else everything is undone (`RequestLimitExceeded`). Of several at the same moment each counts those before it.

    :param root_id: the stack at the top of the tree, and `more` by how many there are more.
    :param most: how many all goals of the tree may have together; None: they are only counted.
    :param counted: how many it was known to have, see `convergence.core.views.PlanView`.
    """

    root_id: str
    more: int
    most: int | None = None
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class InsertTemplate:
    """A new template."""

    template: Template


@dataclass(frozen=True, slots=True)
class PurgeTemplates:
    """Remove the templates of a stack that nothing refers to."""

    stack_id: str
    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InsertTraversal:
    """A new traversal with all of its nodes."""

    traversal: Traversal
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class EndTraversal:
    """Take a traversal out of `expected`. If it is in another state already, nothing happens: the first one counts.

    The snapshot that the traversal was to take has ended with it.

    :param in_service_at: when everything was up that it wants, where that was not noted before.
    :param took_snapshot: False where it is known to have taken none.
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
    """From now on a running traversal is being cancelled. If it is not running, nothing happens.

    :param deadline: until then what has begun may come to its end.
    """

    traversal_id: str
    deadline: float


@dataclass(frozen=True, slots=True)
class NoteFailure:
    """A node of a running traversal has failed, and the others go on: what it said is added to the traversal's reason.

    :param name: the resource; the one that is noted first stays the traversal's `failed_name`.
    :param said: of that resource.
    """

    traversal_id: str
    name: str
    said: str


@dataclass(frozen=True, slots=True)
class NoteInService:
    """Note when everything was up that a traversal wants."""

    traversal_id: str
    at: float


@dataclass(frozen=True, slots=True)
class StallTraversal:
    """Note since when a traversal makes no progress; None: it does."""

    traversal_id: str
    since: float | None


@dataclass(frozen=True, slots=True)
class CountEvent:
    """Something has happened that the resource may wait for. Whoever holds the row is not disturbed."""

    resource_id: str


@dataclass(frozen=True, slots=True)
class TellParent:
    """A nested stack has come to rest: count that as an event of the resource whose object it is.

    The nodes of that resource's stack that are ready for it are attended to after the commit.
    """

    resource_id: str


@dataclass(frozen=True, slots=True)
class DoubtParents:
    """A nested stack has something to tidy up: the next update of each stack around it must come down to it.

    The digests of the resources on the way up are forgotten. Whoever holds one of them is not disturbed, but
    cannot store another one; see `convergence.core.nesting.DOUBTED`.

    :param resource_id: the resource whose object the nested stack is.
    """

    resource_id: str


@dataclass(frozen=True, slots=True)
class InsertSignal:
    """A new signal."""

    signal: ReceivedSignal


@dataclass(frozen=True, slots=True)
class ClearHook:
    """A person has cleared a hook of a resource. Whoever holds the row is not disturbed."""

    resource_id: str
    hook: Hook
    traversal_id: str


@dataclass(frozen=True, slots=True)
class RevokeAddresses:
    """No signal address of a resource is valid any more. Whoever holds the row is not disturbed."""

    resource_id: str
    revocation: str


@dataclass(frozen=True, slots=True)
class InsertResources:
    """New resource rows."""

    resources: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class UpdateResource:
    """Change columns of a resource that is held by `owner` under `fence`; else `Conflict`.

    Where it is doubted (see `DoubtParents`), no digest is stored but None, whatever the change says.
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
    """Remove a row that is held by `owner` under `fence`; else `Conflict`.

    :param signalled: whether it may have received signals, which go as well.
    """

    resource_id: str
    owner: str | None
    fence: int
    signalled: bool = True


@quickly_made
@dataclass(frozen=True, slots=True)
class FinishNode:
    """`READY` to `DONE`, exactly once; else `Conflict`. Each node in `required_by` waits for one predecessor less;
    those that wait for none any more become `READY` and are answered by the store.

    :param last: a node that waits for this one alone, and is `DONE` in the same moment; else `Conflict`.
    :param window: how many of those that became ready are to be cast at once; the others are chained to them.
    :param next_in_backlog: the ready node behind the window whose turn it is now.
    :param checked: whether what this rests on was not read in this transaction. Unless the traversal runs and is that
        of its stack, and the node has these successors, there is a `Conflict`.
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
    """`READY` to `FAILED`. If the node is in another state, nothing happens."""

    traversal_id: str
    number: int


@dataclass(frozen=True, slots=True)
class PointNode:
    """Let an update node that is `READY` work on another row; else `Conflict`."""

    traversal_id: str
    number: int
    resource_id: str


@dataclass(frozen=True, slots=True)
class NotifyNode:
    """A ready node behind the window is told of now."""

    traversal_id: str
    number: int


@dataclass(frozen=True, slots=True)
class AppendCleanup:
    """A cleanup node for a row that had none when the traversal was planned; the stack row is locked.

    :param node: ready, or `WAITING` for the node that says that everything wanted is in service; that one counts all
        late nodes as waiting for it (see `Traversal.late_numbers`). Where another one has got its number: `Conflict`.
    :param before: the node that ends the traversal; if that does not wait any more: `Conflict`.
    :param rows_after: keys of rows that the node's row was built on: their cleanup nodes wait for this one too, unless
        they are ready already, for then somebody may have begun.
    :param holds_up: a further node that waits for this one too, unless it does not wait any more.
    """

    node: Node
    before: int
    rows_after: tuple[str, ...] = ()
    holds_up: int | None = None


@dataclass(frozen=True, slots=True)
class InsertEvents:
    """Events, in order.

    :param details: what those outside are told of the events of a stack besides what these say.
    :param is_drift: whether they tell that objects were found otherwise than they were made, or are so again: those
        outside are told.
    :param suppressed: a change of a group's members that was asked for, and is not made: those outside are told.
    """

    events: tuple[Event, ...]
    details: Mapping[str, Json] | None = None
    suppressed: Scaling | None = None
    is_drift: bool = False


@dataclass(frozen=True, slots=True)
class InsertSnapshot:
    """A new snapshot."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class DeleteSnapshots:
    """From now on snapshots of a stack are being deleted.

    :param snapshot_id: only this one; None: all of them.
    :param keeping: but not these.
    """

    stack_id: str
    snapshot_id: str | None = None
    keeping: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeepItem:
    """Write what is known of what a type keeps for a snapshot, whatever was known before."""

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
    """What was decided: the verdict for the caller, and the effects that make it true.

    :param wake: nodes ``(traversal_id, number)`` to be cast after the commit, besides those that became ready.
    """

    verdict: V
    effects: tuple[Effect, ...] = ()
    wake: tuple[tuple[str, int], ...] = field(default=())
