"""Dispatch nodes that became ready.

Nodes that need a worker are cast, and the broker distributes the messages: one for each node, or one for several. The
two nodes that end a traversal need only the database: the process whose commit makes them ready finishes them on the
spot.
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

DispatchNodes: TypeAlias = Callable[[Iterable[tuple[str, int]]], None]
"""Dispatches nodes that became ready: each by its traversal and number."""

SPREAD = 4
"""Minimum number of messages for nodes that become ready at once, if there are as many: so several workers get some."""


class Messenger(Protocol):
    """Sends messages to workers. A message is a hint: it may be lost. False says that the broker did not take it."""

    def check_resource(self, traversal_id: str, node: int, hops: int = 0) -> bool:
        """Ask one worker to check a node.

        :param hops: number of redeliveries: how often workers without a free thread have forwarded the node.
        """

    def check_resources(self, traversal_id: str, nodes: Sequence[int]) -> bool:
        """Ask one worker to check several nodes of a traversal, in one message."""

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Ask all workers to stop their tasks of a traversal."""

    def can_send(self) -> bool:
        """Return True if the broker takes messages, as far as this process knows."""


def ignore(traversal_id: str, node: int) -> None:
    """Leave a node to the sweeper."""


class Dispatcher:
    """Dispatches the nodes that a committed transaction made ready.

    To send and to receive a message costs as much processor time as a transaction.

    :param new_id: makes an id that was never used before.
    :param together: maximum number of nodes in one message.
    :param window: maximum number of nodes of a stack that are dispatched at once; see `Node.next_in_backlog`.
    :param unsent: called with each node for which the broker takes no message.
    """

    def __init__(
        self,
        store: Transactions,
        messenger: Messenger,
        new_id: Callable[[], str],
        together: int = MAX_BATCH_NODES,
        window: int = DISPATCH_WINDOW,
        unsent: Callable[[str, int], object] = ignore,
    ) -> None:
        self._store = store
        self._messenger = messenger
        self._new_id = new_id
        self.together = together
        self._window = window
        self._unsent = unsent

    def attend(self, committed: Committed[Any]) -> None:
        """Cast the nodes that need a worker, and finish the others. Errors are logged: the sweeper finds the rows."""
        self.cast(committed.cast)
        self.conclude(committed.last)

    def cast(self, nodes: Iterable[tuple[str, int]]) -> None:
        """Send nodes to workers, in at least `SPREAD` messages for each traversal that has as many."""
        for traversal_id, group in groupby(nodes, key=lambda node: node[0]):
            numbers = [number for _, number in group]
            self._cast(traversal_id, numbers, min(self.together, len(numbers) // SPREAD))

    def cast_together(self, traversal_id: str, numbers: Sequence[int], size: int = 0) -> None:
        """Send nodes of a traversal in as few messages as possible.

        This is for nodes of nested stacks: other stacks of the same tree keep all threads busy.

        :param size: nodes that may be one message even if it is more than `together`.
        """
        self._cast(traversal_id, numbers, max(self.together, size) if self.together > 1 else 1)

    def _cast(self, traversal_id: str, numbers: Sequence[int], size: int) -> None:
        for start in range(0, len(numbers), max(1, size)):
            several = numbers[start : start + max(1, size)]
            if len(several) == 1:
                is_sent = self._messenger.check_resource(traversal_id, several[0])
            else:
                is_sent = self._messenger.check_resources(traversal_id, several)
            for number in () if is_sent else several:
                self._unsent(traversal_id, number)

    def forward(self, traversal_id: str, number: int, redeliveries: int) -> None:
        """Send a node from a worker without a free thread to another one; see `Messenger.check_resource`."""
        if not self._messenger.check_resource(traversal_id, number, redeliveries):
            self._unsent(traversal_id, number)

    def can_send(self) -> bool:
        """Return True if the broker takes messages, as far as this process knows."""
        return self._messenger.can_send()

    def cancel(self, stack_id: str, traversal_id: str) -> None:
        """Ask all workers to stop their tasks of a traversal that is over according to the database."""
        self._messenger.cancel(stack_id, traversal_id)

    def conclude(self, nodes: Iterable[tuple[str, int]], dispatch: DispatchNodes | None = None) -> None:
        """Finish nodes of the phases `IN_SERVICE` and `COMPLETE`, and those that become ready by that.

        :param dispatch: dispatches nodes that need a worker and become ready by that, such as nodes of the parent
            stack. None: `cast`.
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
                (dispatch or self.cast)(woken)

    def _conclude(self, traversal_id: str, number: int) -> Committed[bool] | None:
        try:
            return self._store.transact(
                LastNode(traversal_id, number), lambda view: conclude(view, self._new_id, self._window)
            )
        except errors.ConvergenceError as error:
            level = logging.INFO if isinstance(error, errors.Conflict) else logging.ERROR
            LOG.log(level, 'Node %d of traversal %s not finished, the sweeper retries: %s', number, traversal_id, error)
            return None
