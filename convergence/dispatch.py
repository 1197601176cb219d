"""Tell somebody about the nodes that became ready.

Nodes that need a worker are cast, one message each, and the broker hands them round. The two nodes that end a
traversal need only the database; whoever sees them become ready finishes them on the spot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from convergence import errors
from convergence.core.complete import conclude
from convergence.db.scopes import LastNode
from convergence.db.transaction import Committed, Transactions

LOG = logging.getLogger(__name__)

TellOfNodes: TypeAlias = Callable[[Iterable[tuple[str, int]]], None]
"""Tells somebody of nodes that became ready."""

TOGETHER = 5
"""So many nodes of a nested stack are told of in one message. No more than a worker has threads: what waits for one
there could begin elsewhere."""


class Messenger(Protocol):
    """What is sent to the workers. A message is a hint: it may be lost, and False says that it was."""

    def check_resource(self, traversal_id: str, node: int, hops: int = 0) -> bool:
        """Somebody should look at this node.

        :param hops: how many workers without a free thread have handed that on.
        """

    def check_resources(self, traversal_id: str, nodes: Sequence[int]) -> bool:
        """Somebody should look at these nodes: one message, so one worker has all of them."""

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Everybody should stop working on this traversal."""

    def can_send(self) -> bool:
        """Whether a message would go out now, as far as can be told."""


class Dispatcher:
    """Attends to the nodes that a committed transaction made ready.

    :param new_id: makes an id that was never used before.
    """

    def __init__(self, store: Transactions, messenger: Messenger, new_id: Callable[[], str]) -> None:
        self._store = store
        self._messenger = messenger
        self._new_id = new_id

    def attend(self, committed: Committed[Any]) -> None:
        """Cast what needs a worker, finish what does not. Errors are logged: the sweeper comes back to the rows."""
        self.cast(committed.cast)
        self.conclude(committed.last)

    def cast(self, nodes: Iterable[tuple[str, int]]) -> None:
        """Tell the workers about nodes."""
        for traversal_id, number in nodes:
            self._messenger.check_resource(traversal_id, number)

    def cast_together(self, traversal_id: str, numbers: Sequence[int]) -> None:
        """Tell the workers about nodes of a nested stack, of which there may be many: some in each message.

        To send and to take a message costs more than a transaction, and others of these stacks keep all threads busy.
        """
        for start in range(0, len(numbers), TOGETHER):
            self._messenger.check_resources(traversal_id, numbers[start : start + TOGETHER])

    def hand_on(self, traversal_id: str, number: int, hops: int) -> None:
        """Tell another worker about a node; see `Messenger.check_resource`."""
        self._messenger.check_resource(traversal_id, number, hops)

    def can_send(self) -> bool:
        """Whether messages go out, as far as can be told."""
        return self._messenger.can_send()

    def cancel(self, stack_id: str, traversal_id: str) -> None:
        """Tell all workers to stop working on a traversal that the database says is over."""
        self._messenger.cancel(stack_id, traversal_id)

    def conclude(self, nodes: Iterable[tuple[str, int]], around: TellOfNodes | None = None) -> None:
        """Finish nodes of the phases `IN_SERVICE` and `COMPLETE`, and those that become ready by that.

        :param around: tells somebody of the nodes of the stack that this one is nested in; None: the workers are told.
        """
        waiting = list(nodes)
        while waiting:
            waiting += self._conclude(*waiting.pop(0), around or self.cast)

    def _conclude(self, traversal_id: str, number: int, around: TellOfNodes) -> tuple[tuple[str, int], ...]:
        try:
            committed = self._store.transact(LastNode(traversal_id, number), lambda view: conclude(view, self._new_id))
        except errors.ConvergenceError as error:
            level = logging.INFO if isinstance(error, errors.Conflict) else logging.ERROR
            LOG.log(level, 'Node %d of traversal %s is left to the sweeper: %s', number, traversal_id, error)
            return ()
        if committed is None:
            return ()
        around(committed.cast)
        return committed.last
