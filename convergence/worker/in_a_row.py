"""One thread of a worker goes from node to node of a traversal, for as long as each makes the next one ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from convergence import logs
from convergence.concurrency import Task
from convergence.db.transaction import Committed
from convergence.dispatch import Dispatcher

Attend: TypeAlias = Callable[[Committed[Any]], None]
"""Sees to the nodes that a transaction made ready."""


class CheckOne(Protocol):
    """Does what there is to do for one node; see `convergence.worker.checks.NodeChecks.check`."""

    def __call__(self, traversal_id: str, number: int, task: Task, attend: Attend) -> None: ...


class InARow:
    """Checks nodes one after the other.

    What a thread goes on with costs no message. It is a node of which others could have been told just as well: so a
    thread goes on with a bounded number of them, and lets other traversals that wait for a thread go first.

    The node of a nested stack is one of another traversal. When the last thing in the stack is done a thread comes free
    here, and this worker takes the node itself.

    :param most: how many nodes a thread looks at one after the other. 1: others are told of every node.
    :param is_crowded: whether something else than the traversal of that id waits for a thread.
    :param take: has a node looked at when a thread is free here; whether there is room for that.
    """

    def __init__(
        self,
        check: CheckOne,
        dispatcher: Dispatcher,
        most: int,
        is_crowded: Callable[[str], bool],
        take: Callable[[str, int], bool],
    ) -> None:
        self._check = check
        self._dispatcher = dispatcher
        self._most = most
        self._is_crowded = is_crowded
        self._take = take if most > 1 else _others

    def check(self, traversal_id: str, number: int, task: Task) -> None:
        """Do what there is to do for a node now, and for one of those that this makes ready, and so on.

        :param task: what runs in the thread; once it was told to stop it goes on with nothing.
        """
        node = number
        for place in range(self._most):
            kept = _Kept(self._dispatcher, traversal_id, self._take, is_last=place == self._most - 1)
            try:
                with logs.bind(node=node):
                    self._check(traversal_id, node, task, kept.attend)
            except Exception:
                kept.tell()
                raise
            if task.cancelled.is_set() or self._is_crowded(traversal_id):
                kept.tell()
            if kept.node is None:
                return
            node = kept.node


class _Kept:
    """Attends to what the last step for a node makes ready, and keeps back one node of the same traversal."""

    def __init__(
        self, dispatcher: Dispatcher, traversal_id: str, take: Callable[[str, int], bool], *, is_last: bool
    ) -> None:
        self._dispatcher = dispatcher
        self._take = take
        self._traversal_id = traversal_id
        self._is_last = is_last
        self.node: int | None = None

    def attend(self, committed: Committed[Any]) -> None:
        """As `Dispatcher.attend`, but for the node that is kept back."""
        for traversal_id, number in committed.cast:
            if self.node is None and traversal_id == self._traversal_id and not self._is_last:
                self.node = number
            else:
                self._dispatcher.cast([(traversal_id, number)])
        self._dispatcher.conclude(committed.last, self._around)

    def _around(self, nodes: Iterable[tuple[str, int]]) -> None:
        """Others are told of nodes of the same traversal: this thread may keep one of these back already."""
        self._dispatcher.cast([node for node in nodes if node[0] == self._traversal_id or not self._take(*node)])

    def tell(self) -> None:
        """Tell others of what was kept back."""
        if self.node is not None:
            self._dispatcher.cast([(self._traversal_id, self.node)])
            self.node = None


def _others(traversal_id: str, number: int) -> bool:
    """Takes no node: another worker is told of it."""
    return False
