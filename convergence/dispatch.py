"""Tell somebody about the nodes that became ready.

Nodes that need a worker are cast, and the broker hands the messages round: one for each node, or for some of many. The
two nodes that end a traversal need only the database; whoever sees them become ready finishes them on the spot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol, TypeAlias

from convergence import errors
from convergence.core.complete import conclude
from convergence.core.model import DISPATCH_WINDOW, MAX_BATCH_NODES
from convergence.db.scopes import LastNode
from convergence.db.transaction import Committed, Transactions

LOG = logging.getLogger(__name__)

TellOfNodes: TypeAlias = Callable[[Iterable[tuple[str, int]]], None]
"""Tells somebody of nodes that became ready."""

SPREAD = 4
"""What becomes ready at once goes to so many workers, or more."""


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

    To send and to take a message costs as much as a transaction.

    :param new_id: makes an id that was never used before.
    :param together: of how many nodes workers are told in one message, at most.
    :param window: how many nodes of a stack are cast at once; see `Node.next_in_backlog`.
    """

    def __init__(
        self,
        store: Transactions,
        messenger: Messenger,
        new_id: Callable[[], str],
        together: int = MAX_BATCH_NODES,
        window: int = DISPATCH_WINDOW,
    ) -> None:
        self._store = store
        self._messenger = messenger
        self._new_id = new_id
        self.together = together
        self._window = window

    def attend(self, committed: Committed[Any]) -> None:
        """Cast what needs a worker, finish what does not. Errors are logged: the sweeper comes back to the rows."""
        self.cast(committed.cast)
        self.conclude(committed.last)

    def cast(self, nodes: Iterable[tuple[str, int]]) -> None:
        """Tell the workers about nodes: `SPREAD` messages or more for each traversal, as far as there are as many."""
        for traversal_id, group in groupby(nodes, key=lambda node: node[0]):
            numbers = [number for _, number in group]
            self._cast(traversal_id, numbers, min(self.together, len(numbers) // SPREAD))

    def cast_together(self, traversal_id: str, numbers: Sequence[int], few: int = 0) -> None:
        """Tell the workers about nodes of a traversal in as few messages as possible.

        So of the nodes of a nested stack: others of these stacks keep all threads busy.

        :param few: so many are not divided among messages, even if that is more than `together`.
        """
        self._cast(traversal_id, numbers, max(self.together, few) if self.together > 1 else 1)

    def _cast(self, traversal_id: str, numbers: Sequence[int], size: int) -> None:
        for start in range(0, len(numbers), max(1, size)):
            several = numbers[start : start + max(1, size)]
            if len(several) == 1:
                self._messenger.check_resource(traversal_id, several[0])
            else:
                self._messenger.check_resources(traversal_id, several)

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
        waiting, woken = list(nodes), list[tuple[str, int]]()
        try:
            while waiting:
                committed = self._conclude(*waiting.pop(0))
                if committed is not None:
                    waiting += committed.last
                    woken += committed.cast
        finally:
            if woken:
                (around or self.cast)(woken)

    def _conclude(self, traversal_id: str, number: int) -> Committed[bool] | None:
        try:
            return self._store.transact(
                LastNode(traversal_id, number), lambda view: conclude(view, self._new_id, self._window)
            )
        except errors.ConvergenceError as error:
            level = logging.INFO if isinstance(error, errors.Conflict) else logging.ERROR
            LOG.log(level, 'Node %d of traversal %s is left to the sweeper: %s', number, traversal_id, error)
            return None
