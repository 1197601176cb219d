"""The store in memory: the same scopes, effects, guards and conflicts as the one on SQL.

It serves the simulator and quick tests. Row locks are modelled: a transaction takes them one by one in the order of
`convergence.db.scopes`, and between two steps it calls `pause`, where a simulator lets somebody else go on. What a
transaction writes becomes visible at its commit, all at once. Without a `pause`, transactions simply follow each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from convergence import concurrency
from convergence.core.effects import Decision
from convergence.core.model import NodeStatus, Phase
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
from convergence.core.views import FinishView, NodeView, PlanView, SignalView
from convergence.db.memory.effects import apply
from convergence.db.scopes import (
    UNDONE,
    HeldResource,
    LastNode,
    NewStack,
    OneNode,
    OneReplacement,
    Scope,
    SignalledResource,
    StackAlone,
    WholeStack,
)
from convergence.db.transaction import Committed, Missing
from convergence.errors import Conflict, DatabaseUnavailable

ViewT = TypeVar('ViewT')
V = TypeVar('V')
Key = tuple[Any, ...]


@dataclass
class Tables:
    """The rows, by key."""

    stack: dict[str, Stack] = field(default_factory=dict)
    template: dict[str, Template] = field(default_factory=dict)
    traversal: dict[str, Traversal] = field(default_factory=dict)
    node: dict[str, dict[int, Node]] = field(default_factory=dict)
    notified_at: dict[tuple[str, int], float] = field(default_factory=dict)
    resource: dict[str, Resource] = field(default_factory=dict)
    event: list[Event] = field(default_factory=list)
    signal: list[ReceivedSignal] = field(default_factory=list)
    snapshot: dict[str, Snapshot] = field(default_factory=dict)
    snapshot_item: dict[tuple[str, str], SnapshotItem] = field(default_factory=dict)

    def resources_of(self, stack_id: str) -> list[Resource]:
        """The rows of a stack, in key order."""
        return sorted((row for row in self.resource.values() if row.stack_id == stack_id), key=lambda row: row.id)


def no_pause(point: str) -> None:
    """The default of `MemoryStore.pause`: nobody else goes on."""


class MemoryStore:
    """Keeps rows in dictionaries.

    :param clock: tells the time, in seconds since the epoch.
    :ivar pause: called with the name of each point at which another transaction may go on. It may raise
        `DatabaseUnavailable` at ``begin``, ``commit`` and ``committed``: that is a connection lost before, or after it
        was all done.
    :ivar rest: called with the seconds to wait before a transaction that found no database is tried again.
    :ivar block: called when a lock is held by another transaction; returns when it may be free.
    :ivar released: called when a transaction has let go of its locks: whoever is blocked may look again.
    :ivar committed: called after each commit with the decision that has come true.
    """

    def __init__(self, clock: Callable[[], float], *, attempts: int = 12) -> None:
        self.clock = clock
        self.tables = Tables()
        self.pause: Callable[[str], None] = no_pause
        self.rest: Callable[[float], None] = lambda duration_s: None
        self.block: Callable[[], None] = lambda: None
        self.released: Callable[[], None] = lambda: None
        self.committed: Callable[[Decision[Any]], None] = lambda decision: None
        self._attempts = attempts
        self._locked: dict[Key, object] = {}
        self._one_at_a_time = concurrency.Lock()

    def transact(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V] | None:
        """As `convergence.db.transaction.Transactions.transact`."""
        if self.pause is no_pause:
            with self._one_at_a_time:
                return self._transact(scope, decide)
        return self._transact(scope, decide)

    def _transact(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V] | None:
        for attempt in range(self._attempts):
            try:
                return self._once(scope, decide)
            except Missing:
                return None
            except Conflict:
                continue
            except DatabaseUnavailable:
                if attempt == self._attempts - 1:
                    raise
                self.rest(min(0.1 * 2**attempt, 4.0))
        raise Conflict(f'{type(scope).__name__} kept changing')

    def _once(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V]:
        self.pause('begin')
        with self._locks() as lock:
            decision = decide(LOADERS[type(scope)](self, lock, scope))
            if not decision.effects:
                return Committed.of(decision, ())
            self.pause('commit')
            ready = apply(self.tables, decision.effects, self.clock())
            self.committed(decision)
        self.pause('committed')
        return Committed.of(decision, ready)

    @contextmanager
    def _locks(self) -> Iterator[Callable[[Key], None]]:
        mine, held = object(), []

        def lock(key: Key) -> None:
            self.pause(f'lock {key[0]}')
            while self._locked.get(key, mine) is not mine:
                self.block()
            if key not in self._locked:
                self._locked[key] = mine
                held.append(key)

        try:
            yield lock
        finally:
            for key in held:
                self._locked.pop(key, None)
            if held:
                self.released()

    # --- parts of loading -------------------------------------------------------------------------------------

    def nodes(self, traversal_id: str) -> Mapping[int, Node]:
        """The nodes of a traversal, by number."""
        return self.tables.node.get(traversal_id, {})

    def node(self, traversal_id: str, number: int) -> tuple[Node, Traversal, Stack]:
        """A node with its traversal and stack.

        :raises Missing: it is not there.
        """
        node = self.nodes(traversal_id).get(number)
        if node is None:
            raise Missing
        traversal = self.tables.traversal[traversal_id]
        return node, traversal, self.tables.stack[traversal.stack_id]


Lock = Callable[[Key], None]


def _new_stack(store: MemoryStore, lock: Lock, scope: NewStack) -> PlanView:
    lock(('project', scope.project_id))
    living = [row for row in store.tables.stack.values() if row.deleted_at is None]
    return PlanView(store.clock(), None, stack_count=sum(row.project_id == scope.project_id for row in living))


def _stack_alone(store: MemoryStore, lock: Lock, scope: StackAlone | WholeStack) -> PlanView:
    lock(('stack', scope.stack_id))
    stack = store.tables.stack.get(scope.stack_id)
    if stack is None:
        raise Missing
    traversal = store.tables.traversal.get(stack.traversal_id or '')
    return PlanView(store.clock(), stack, traversal)


def _whole_stack(store: MemoryStore, lock: Lock, scope: WholeStack) -> PlanView:
    alone = _stack_alone(store, lock, scope)
    for row in store.tables.resources_of(scope.stack_id):
        lock(('resource', row.id))
    assert alone.stack is not None
    traversal = store.tables.traversal.get(alone.stack.traversal_id or '')
    return replace(alone, traversal=traversal, resources=tuple(store.tables.resources_of(scope.stack_id)))


def _one_node(store: MemoryStore, lock: Lock, scope: OneNode) -> NodeView:
    seen = store.node(scope.traversal_id, scope.number)[0].resource_id
    if seen in store.tables.resource:  # what is not there cannot be locked, in a database neither
        lock(('resource', seen))
    node, traversal, stack = store.node(scope.traversal_id, scope.number)
    resource = store.tables.resource.get(seen) if seen is not None else None
    if resource is not None and node.resource_id != resource.id:
        raise Conflict('the node works on another row by now')
    nodes = store.nodes(scope.traversal_id)
    required = [nodes[number] for number in node.requires]
    inputs = {other.name: other.output for other in required if other.name and other.output}
    chosen_id = None
    if node.phase is Phase.CLEANUP and resource is not None:
        chosen = any(other.phase is Phase.UPDATE and other.resource_id == resource.id for other in nodes.values())
        chosen_id = resource.id if chosen else None
    size = 0
    if scope.max_input_bytes is not None:
        size = sum(len(json.dumps(output.document())) for output in inputs.values())
        inputs = {} if size > scope.max_input_bytes else inputs
    return NodeView(store.clock(), node, traversal, stack, resource, inputs, size, chosen_id=chosen_id)


def _one_replacement(store: MemoryStore, lock: Lock, scope: OneReplacement) -> NodeView:
    lock(('stack', scope.stack_id))
    lock(('resource', scope.resource_id))
    node, traversal, stack = store.node(scope.traversal_id, scope.number)
    resource = store.tables.resource.get(scope.resource_id) if node.resource_id == scope.resource_id else None
    has_cleanup = any(
        other.phase is Phase.CLEANUP and other.resource_id == scope.resource_id
        for other in store.nodes(scope.traversal_id).values()
    )
    return NodeView(store.clock(), node, traversal, stack, resource, has_cleanup=has_cleanup)


def _last_node(store: MemoryStore, lock: Lock, scope: LastNode) -> NodeView:
    traversal = store.tables.traversal.get(scope.traversal_id)
    if traversal is None:
        raise Missing
    lock(('stack', traversal.stack_id))
    return NodeView(store.clock(), *store.node(scope.traversal_id, scope.number))


def _held_resource(store: MemoryStore, lock: Lock, scope: HeldResource) -> FinishView:
    lock(('resource', scope.resource_id))
    resource = store.tables.resource.get(scope.resource_id)
    if resource is None:
        return FinishView(store.clock(), None, None, None, None)
    stack = store.tables.stack[resource.stack_id]
    traversal = store.tables.traversal.get(scope.traversal_id or '')
    node = store.nodes(scope.traversal_id or '').get(-1 if scope.number is None else scope.number)
    waiting: tuple[tuple[str, int], ...] = ()
    if stack.traversal_id is not None and stack.traversal_id != scope.traversal_id:
        waiting = tuple(
            (other.traversal_id, number)
            for number, other in sorted(store.nodes(stack.traversal_id).items())
            if other.resource_id == resource.id and other.status is NodeStatus.READY
        )
    return FinishView(store.clock(), resource, node, traversal, stack, waiting)


def _signalled(store: MemoryStore, lock: Lock, scope: SignalledResource) -> SignalView:
    def dependents(stack: Stack) -> set[str]:
        nodes = store.nodes(stack.traversal_id or '')
        told = {
            number
            for node in nodes.values()
            for number in node.required_by
            if node.phase is Phase.UPDATE and node.resource_id == scope.resource_id
        }
        reading = [nodes[number] for number in told if number in nodes and nodes[number].phase is Phase.UPDATE]
        return {each.resource_id for each in reading if each.resource_id and each.status in UNDONE}

    seen = store.tables.stack.get(scope.stack_id)
    if seen is None:
        raise Missing
    built_on = dependents(seen)
    rows = sorted({scope.resource_id, *built_on})
    for key in rows:
        if key in store.tables.resource:
            lock(('resource', key))
    stack = store.tables.stack[scope.stack_id]
    if stack.traversal_id != seen.traversal_id:
        raise Conflict(f'stack {scope.stack_id} has got another traversal')
    ready = tuple(
        (node.traversal_id, number, node.resource_id)
        for number, node in sorted(store.nodes(stack.traversal_id or '').items())
        if node.status is NodeStatus.READY and node.resource_id in rows
    )
    resource = store.tables.resource.get(scope.resource_id)
    traversal = store.tables.traversal.get(stack.traversal_id or '')
    return SignalView(store.clock(), stack, resource, traversal, tuple(sorted(built_on)), ready)


LOADERS: dict[type, Callable[[MemoryStore, Lock, Any], Any]] = {
    NewStack: _new_stack,
    StackAlone: _stack_alone,
    WholeStack: _whole_stack,
    OneNode: _one_node,
    OneReplacement: _one_replacement,
    LastNode: _last_node,
    HeldResource: _held_resource,
    SignalledResource: _signalled,
}
"""How each scope is locked and read."""
