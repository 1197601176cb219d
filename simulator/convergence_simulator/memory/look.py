"""The rows in memory as one transaction sees them, on the server that it uses.

Usually there is one server, which shows all commits. In a simulated Galera cluster a server may lag: it shows the state
of some commits ago, until the end of the transaction or only for its first statement. A lock is valid only on its own
server. The commit requires instead that no other transaction has written the same rows since they were read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Phase
from convergence.core.observation import Observation
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
from convergence.db.stale_reads import SeenNode
from convergence.db.transaction import Missing
from convergence.errors import Conflict
from convergence.values import replace

RowKey = tuple[str, str]
"""Identifies a row that can be locked: its table and its key."""


@dataclass
class Tables:
    """The rows, by key.

    `observations_scheduled` contains the ids of traversals, `untold` the ids of stacks whose new policy has not been
    applied to their objects.
    """

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
    observation: dict[str, Observation] = field(default_factory=dict)
    observations_scheduled: set[str] = field(default_factory=set)
    untold: set[str] = field(default_factory=set)

    def resources_of(self, stack_id: str) -> list[Resource]:
        """Return the rows of a stack, in key order."""
        return sorted((row for row in self.resource.values() if row.stack_id == stack_id), key=lambda row: row.id)

    def nodes_of(self, traversal_id: str) -> Mapping[int, Node]:
        """Return the nodes of a traversal, by number."""
        return self.node.get(traversal_id, {})

    def as_they_are(self) -> Tables:
        """Return a copy of the rows that later commits do not change. Only `notified_at` is shared."""
        return replace(
            self,
            stack=dict(self.stack),
            template=dict(self.template),
            traversal=dict(self.traversal),
            node={traversal_id: dict(nodes) for traversal_id, nodes in self.node.items()},
            resource=dict(self.resource),
            event=list(self.event),
            signal=list(self.signal),
            snapshot=dict(self.snapshot),
            snapshot_item=dict(self.snapshot_item),
            observation=dict(self.observation),
            observations_scheduled=set(self.observations_scheduled),
            untold=set(self.untold),
        )


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a server.

    :param commits: number of latest commits that the server has not applied.
    :param catches_up: True if the server has applied them by the second statement of a transaction.
    """

    commits: int = 0
    catches_up: bool = False


UP_TO_DATE = Lag()


class History:
    """The rows after each of the last commits."""

    def __init__(self, commits: int) -> None:
        self._kept: deque[Tables] = deque([Tables()], maxlen=commits + 1)

    def keep(self, tables: Tables) -> None:
        """Record the rows after a commit."""
        self._kept.append(tables.as_they_are())

    def forget(self, commits: int) -> None:
        """Drop the states after the last `commits` commits."""
        for _ in range(min(commits, len(self._kept) - 1)):
            self._kept.pop()

    def before(self, commits: int) -> Tables:
        """Return the rows before the last `commits` commits."""
        return self._kept[max(0, len(self._kept) - 1 - commits)]


class Look:
    """The rows as one transaction sees them, and its locks.

    :param committed: the committed rows.
    :param older: the rows that a lagging server shows instead; None if the server does not lag.
    :param wait: called with the key of a row to lock and True to wait for the lock; returns True once the transaction
        has the lock, False if it is occupied and the call must not wait.
    :ivar tables: the rows that the next statement sees.
    :ivar held: the locked rows, as they were read.
    :ivar written: nodes that this transaction has written.
    """

    def __init__(
        self,
        committed: Tables,
        wait: Callable[[RowKey, bool], bool],
        clock: Callable[[], float],
        older: Tables | None = None,
        *,
        catches_up: bool = False,
    ) -> None:
        self.committed = committed
        self.tables = committed if older is None else older
        self.held: dict[RowKey, Any] = {}
        self.written: Mapping[tuple[str, int], Node] = {}
        self._wait = wait
        self._catches_up = catches_up
        self.now = clock

    @property
    def lags(self) -> bool:
        """True while this server lags."""
        return self.tables is not self.committed

    def over(self) -> None:
        """End a statement. After the first statement of a transaction a lagging server may catch up.

        :raises Conflict: it has, and others have written rows that are locked here.
        """
        if self._catches_up and self.lags:
            self.tables = self.committed
            self.require_held()

    def require_held(self) -> None:
        """Require that no transaction on another server has written the rows that are locked on this one.

        :raises Conflict: one has.
        """
        for (table, key), row in self.held.items():
            if row is not None and getattr(self.committed, table).get(key) is not row:
                raise Conflict(f'{table} {key} was written on another server')

    def lock_project(self, project_id: str) -> None:
        """Lock a project; a project has no row here."""
        self._wait(('project', project_id), True)

    def lock(self, table: str, key: str, *, waits: bool = True) -> Any:
        """Lock a row and read it; return None if it does not exist: a missing row cannot be locked.

        :param waits: True to wait if another transaction has locked the row; otherwise return None then.
        """
        if key not in getattr(self.tables, table) or not self._wait((table, key), waits):
            return None
        row = self.held[table, key] = getattr(self.tables, table).get(key)
        return row

    def nodes(self, traversal_id: str) -> Mapping[int, Node]:
        """Return the nodes of a traversal, by number."""
        nodes = self.tables.nodes_of(traversal_id)
        if not self.written:
            return nodes
        return {**nodes, **{number: node for (of, number), node in self.written.items() if of == traversal_id}}

    def node(self, traversal_id: str, number: int) -> SeenNode:
        """Return a node with its traversal and stack, and the time.

        :raises Missing: the node does not exist.
        """
        node = self.nodes(traversal_id).get(number)
        if node is None:
            raise Missing
        traversal = self.tables.traversal[traversal_id]
        is_chosen = node.phase is Phase.CLEANUP and any(
            other.phase is Phase.UPDATE and other.resource_id == node.resource_id
            for other in self.nodes(traversal_id).values()
        )
        return SeenNode(node, traversal, self.tables.stack[traversal.stack_id], self.now(), is_chosen)
