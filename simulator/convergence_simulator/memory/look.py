"""The view that one transaction has of the rows in memory, depending on its server.

Usually there is one server, and it shows all committed rows. In a cluster of several servers, such as Galera, a server
may lag: it shows the state of some commits ago, until the end of the transaction or only for its first statement. A
lock
on such a server does not lock out transactions on other servers. Instead, the commit checks that no other transaction
has written the same rows since this transaction read them.
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
"""A row that can be locked: its table and its key there."""


@dataclass
class Tables:
    """The rows, by key.

    :ivar notified_at: when a worker was last notified of a node, by traversal and number.
    :ivar observations_scheduled: ids of traversals whose objects an observer has scheduled.
    :ivar untold: ids of stacks that received a new drift policy, which observers do not apply yet.
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
        """The rows of a stack, in key order."""
        return sorted((row for row in self.resource.values() if row.stack_id == stack_id), key=lambda row: row.id)

    def nodes_of(self, traversal_id: str) -> Mapping[int, Node]:
        """The nodes of a traversal, by number."""
        return self.node.get(traversal_id, {})

    def as_they_are(self) -> Tables:
        """A copy of the tables that later writes do not change, except for `notified_at`, which both share."""
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
    """How far a server is behind.

    :param commits: number of the latest commits that it has not applied yet.
    :param catches_up: True if it applies them before the second statement of a transaction.
    """

    commits: int = 0
    catches_up: bool = False


UP_TO_DATE = Lag()


class History:
    """The rows after each of the latest commits."""

    def __init__(self, commits: int) -> None:
        self._kept: deque[Tables] = deque([Tables()], maxlen=commits + 1)

    def keep(self, tables: Tables) -> None:
        """Store a copy of the rows after a commit."""
        self._kept.append(tables.as_they_are())

    def forget(self, commits: int) -> None:
        """Drop that many of the latest commits."""
        for _ in range(min(commits, len(self._kept) - 1)):
            self._kept.pop()

    def before(self, commits: int) -> Tables:
        """The rows before that many of the latest commits."""
        return self._kept[max(0, len(self._kept) - 1 - commits)]


class Look:
    """The rows as one transaction sees them, and its locks.

    :param committed: the committed rows.
    :param older: the rows that the server of this transaction shows instead, or None if it does not lag.
    :param wait: takes the key of a row to lock, and True if the transaction waits while another one holds the lock.
        Returns
        True if the transaction has the lock.
    :param clock: returns the time in seconds since the epoch.
    :param catches_up: see `Lag`.
    :ivar tables: the rows that the next statement shows.
    :ivar held: the locked rows, as they were read.
    :ivar written: the nodes that this transaction has written.
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
        """True if this server has not caught up."""
        return self.tables is not self.committed

    def over(self) -> None:
        """End a statement. A lagging server may catch up after the first one of a transaction.

        :raises Conflict: the server has caught up, and another transaction has written a row that this one has locked.
        """
        if self._catches_up and self.lags:
            self.tables = self.committed
            self.require_held()

    def require_held(self) -> None:
        """Ensure that no transaction on another server has written the rows that this one has locked.

        :raises Conflict: another transaction has written one of them.
        """
        for (table, key), row in self.held.items():
            if row is not None and getattr(self.committed, table).get(key) is not row:
                raise Conflict(f'{table} {key} was written on another server')

    def lock_project(self, project_id: str) -> None:
        """Lock a project. The memory store has no row for it."""
        self._wait(('project', project_id), True)

    def lock(self, table: str, key: str, *, waits: bool = True) -> Any:
        """Lock a row and read it. Return None if this server shows no such row.

        :param waits: False to return None at once if another transaction has locked the row.
        """
        if key not in getattr(self.tables, table) or not self._wait((table, key), waits):
            return None
        row = self.held[table, key] = getattr(self.tables, table).get(key)
        return row

    def nodes(self, traversal_id: str) -> Mapping[int, Node]:
        """The nodes of a traversal, by number."""
        nodes = self.tables.nodes_of(traversal_id)
        if not self.written:
            return nodes
        return {**nodes, **{number: node for (of, number), node in self.written.items() if of == traversal_id}}

    def node(self, traversal_id: str, number: int) -> SeenNode:
        """A node with its traversal and stack, and the time.

        :raises Missing: there is no such node.
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
