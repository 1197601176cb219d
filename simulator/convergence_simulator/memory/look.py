"""What one transaction sees of the rows in memory, on the server that it has come to.

Usually there is one server, which shows everything that is committed. Where there are several, as in a Galera cluster,
one may lag: what it shows is the state of some commits ago, until the end of a transaction or only for its first look.
There a lock ends at its server. What the commit makes sure of instead is that nobody else has written, since it was
looked at, what is written now.
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
"""A row that can be locked: its table, and its key there."""


@dataclass
class Tables:
    """The rows, by key; the keys alone of traversals that are `observations_scheduled`, and of stacks whose policy is
    `untold`."""

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
        """The same rows, which stay as they are now. When anybody was told of a node goes on."""
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
    """How far behind a server is.

    :param commits: so many of the last ones it has not applied yet.
    :param catches_up: whether it has done so by the second statement of a transaction.
    """

    commits: int = 0
    catches_up: bool = False


UP_TO_DATE = Lag()


class History:
    """The rows as they were after each of the last commits."""

    def __init__(self, commits: int) -> None:
        self._kept: deque[Tables] = deque([Tables()], maxlen=commits + 1)

    def keep(self, tables: Tables) -> None:
        """Something was committed."""
        self._kept.append(tables.as_they_are())

    def forget(self, commits: int) -> None:
        """So many of the last commits have never been."""
        for _ in range(min(commits, len(self._kept) - 1)):
            self._kept.pop()

    def before(self, commits: int) -> Tables:
        """The rows as they were before so many of the last commits."""
        return self._kept[max(0, len(self._kept) - 1 - commits)]


class Look:
    """The rows as one transaction sees them, and its locks.

    :param committed: the rows as they are committed.
    :param older: what the server of this transaction shows instead; None: it does not lag.
    :param wait: called with the key of a row before it is locked, and whether it is worth waiting for; says, when this
        server has the lock to give, that it has, or else at once that it has not.
    :ivar tables: what a statement shows that begins now.
    :ivar held: the locked rows, as they were seen.
    :ivar written: nodes as this transaction has written them.
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
        """Whether this server has not caught up."""
        return self.tables is not self.committed

    def over(self) -> None:
        """A statement is over. After the first of a transaction a server may have caught up.

        :raises Conflict: it has, with what others have written meanwhile to rows that are locked here.
        """
        if self._catches_up and self.lags:
            self.tables = self.committed
            self.require_held()

    def require_held(self) -> None:
        """See that nobody on another server has written what is locked on this one.

        :raises Conflict: somebody has.
        """
        for (table, key), row in self.held.items():
            if row is not None and getattr(self.committed, table).get(key) is not row:
                raise Conflict(f'{table} {key} was written on another server')

    def lock_project(self, project_id: str) -> None:
        """Lock a project, of which nothing else is known here."""
        self._wait(('project', project_id), True)

    def lock(self, table: str, key: str, *, waits: bool = True) -> Any:
        """Lock a row and read it; None where there is none to be seen: what is not there cannot be locked.

        :param waits: whether for somebody else who has locked it; otherwise None there, too.
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

        :raises Missing: it is not there.
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
