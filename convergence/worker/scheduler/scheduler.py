"""The scheduler of a worker: it decides who runs the next ready node.

A node becomes ready when a commit finishes the last node that it requires. The scheduler decides, in this order:

1. *This thread* runs one ready node of its own operation next (`run`, `Turn`). The commit that finishes a node claims
   the next one: no message, and a commit less for each node. `next_node` finds one that waits here where none became
   ready.
2. *Another thread of this worker* runs it: nodes of a nested stack (`on_nested_ready`) and of a parent stack, as many
   as this worker ran within the last second. They cost no message.
3. *Another worker* runs it. While a thread is free here, every node is a message at once. While all are busy, a node
   waits for a moment, in which threads of this worker often run it; then up to five nodes are one message
   (`flush`).
4. *No worker yet*: behind the dispatch window a node waits in the database for the node before it.

Messages are hints. A node that is kept here and lost with the process is requeued by the sweeper.

What it saves (`tests/engine/test_operations_costs.py`, 20 links of a chain): 19 messages, 19 commits and 38 statements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from convergence import logs
from convergence.concurrency import Lock, Task
from convergence.core.handoff import Handoff
from convergence.db.transaction import Committed
from convergence.dispatch import Dispatcher
from convergence.rpc.shares import beneficiary, on_behalf_of
from convergence.worker.scheduler.constants import (
    BUFFER_S,
    HORIZON_S,
    INLINE_SLICE_S,
    NESTED_BACKLOG,
    NESTED_BATCH,
    NESTED_MESSAGE_NODES,
    THROUGHPUT_NODES,
)
from convergence.worker.scheduler.local_queue import LocalQueue
from convergence.worker.scheduler.thread_groups import Check
from convergence.worker.scheduler.turn import Turn

CallLater: TypeAlias = Callable[[float, Callable[[], object]], object]
"""Makes a call after some seconds."""


class Scheduler:
    """Decides who runs a node that became ready.

    :param check: runs one node, and reports the nodes that become ready to `on_ready` and `on_nested_ready`.
    :param dispatcher: sends messages to workers.
    :param queue: nodes that wait for a thread of this worker.
    :param max_inline: how many nodes a thread runs one after the other. 1: every ready node is a message.
    :param call_later: makes a call after some seconds, for buffered nodes.
    :param clock: seconds on the clock of this process.
    """

    def __init__(
        self,
        check: Callable[[Turn], None],
        dispatcher: Dispatcher,
        queue: LocalQueue,
        max_inline: int,
        call_later: CallLater,
        clock: Callable[[], float],
    ) -> None:
        self._check = check
        self._dispatcher = dispatcher
        self._queue = queue
        self._threads = queue.threads
        self._max_inline = max_inline
        self._call_later = call_later
        self._clock = clock
        self._lock = Lock()
        self._buffer: list[tuple[str, str, int]] = []
        self._buffer_ends_at = float('-inf')
        self._recent: deque[float] = deque(maxlen=THROUGHPUT_NODES)

    # --- What does this thread run next? ----------------------------------------------------------------------

    def run(self, traversal_id: str, node: int, task: Task) -> None:
        """Run a node in this thread, and then nodes of the same operation, as long as the turn lasts."""
        turn = Turn(traversal_id, node, task, self._clock(), self._max_inline - 1)
        try:
            while True:
                self._run_one(turn)
                if not turn.advance():
                    return
        finally:
            self.flush()

    def _run_one(self, turn: Turn) -> None:
        try:
            with logs.bind(node=turn.node):
                self._check(turn)
        except Exception:
            self._dispatcher.cast(turn.drop_unclaimed())  # the next heartbeat gives back a claimed row
            raise
        if self._must_stop(turn):
            self._dispatcher.cast(turn.drop_unclaimed())
        with self._lock:
            self._recent.extend([self._clock()] * (1 + turn.batched))
        if self.may_continue(turn):
            self.next_node(turn)

    def may_continue(self, turn: Turn | None) -> bool:
        """Return True if the thread would run a further node, and has none yet: then a commit may claim one for it."""
        if turn is None or turn.is_over or turn.next_node is not None or not turn.nodes_left:
            return False
        return not self._must_stop(turn)

    def next_node(self, turn: Turn) -> int | None:
        """Return the node that the thread runs next. If there is none yet, take one that waits here."""
        if turn.next_node is None:
            turn.next_node = self._take(turn.traversal_id)
        return turn.next_node

    def batch_with(self, turn: Turn | None) -> list[int]:
        """Return nodes of the same operation that wait here and may be started with the present one in one call.

        An engine plans five nested stacks in one transaction: 1.6 commits for each instead of 3, and a third of its
        round trips ("nested" of `make bench`). The caller dispatches nodes that it does not claim.
        """
        taken: list[int] = []
        if turn is None or self._max_inline == 1 or self._threads.waiting_ahead() >= max(self._reach(), NESTED_BACKLOG):
            return taken
        while len(taken) < NESTED_BATCH - 1 and self.may_continue(turn):
            number = self._take(turn.traversal_id)
            if number is None:
                break
            taken.append(number)
        return taken

    # --- Who runs what became ready? --------------------------------------------------------------------------

    def on_ready(self, committed: Committed[Any], turn: Turn | None = None) -> None:
        """Decide who runs the nodes that a commit made ready, and finish nodes that need only the database.

        :param turn: of the thread that committed, if it may run one of them; None: other workers run all of them.
        """
        if turn is None:
            self._dispatcher.attend(committed)
            return
        others: list[tuple[str, int]] = []
        if (following := committed.following) is not None:
            claim = following.verdict.claim
            assert claim is not None
            if turn.next_node not in {None, claim.node.number}:
                # It was taken when nothing seemed to become ready, and the transaction was repeated.
                others.append((turn.traversal_id, turn.next_node))
            turn.next_claimed, turn.next_node = following.verdict, claim.node.number
            self._dispatcher.attend(following)
        others += [each for each in committed.cast if each[0] != turn.traversal_id or not turn.keep(each[1])]
        self._spread(others)
        self._dispatcher.conclude(committed.last, lambda nodes: self._on_parent_ready(nodes, turn))

    def on_nested_ready(self, handoff: Handoff | None, turn: Turn | None = None) -> None:
        """Decide who runs the first ready nodes of a nested stack, whose operation has just started.

        Threads of this worker run as many as they reach within a second, before other waiting nodes: so a tree is made
        branch by branch, and its nodes cost no message: 0.04 for each resource of a tree instead of one for five nodes.

        :param handoff: the operation and its ready nodes; None if no engine started one.
        """
        if handoff is None:
            return
        traversal_id, nodes = handoff.traversal_id, handoff.nodes
        keeps = turn is not None and self._max_inline > 1 and not self._queue.is_draining()
        room = max(self._threads.occupancy().idle, self._reach() - self._threads.waiting_ahead()) if keeps else 0
        if len(nodes) <= 2 * room:
            room = len(nodes)  # a few nodes are not divided: the thread that runs one runs the others after it
        self._dispatcher.cast_together(traversal_id, nodes[room:], NESTED_MESSAGE_NODES)
        if turn is not None and nodes[:room]:
            turn.is_over = True
            self._queue.put([Check(traversal_id, number, 0, beneficiary(), ahead=True) for number in nodes[:room]])

    def give_back(self, traversal_id: str, nodes: Sequence[int]) -> None:
        """Dispatch nodes that `batch_with` returned and the caller did not claim."""
        self._dispatcher.cast_together(traversal_id, nodes)

    def flush(self) -> None:
        """Dispatch all nodes that are kept back in the buffer."""
        with self._lock:
            buffered, self._buffer = sorted(self._buffer), []
        for (project, traversal_id), group in groupby(buffered, key=lambda each: each[:2]):
            with on_behalf_of(project):
                self._dispatcher.cast_together(traversal_id, [number for _, _, number in group])

    # --- How it decides ---------------------------------------------------------------------------------------

    def _must_stop(self, turn: Turn) -> bool:
        """Return True if the task was cancelled, or had its time while other operations wait."""
        is_slice_over = self._clock() - turn.began_at >= INLINE_SLICE_S
        return turn.task.cancelled.is_set() or (is_slice_over and self._threads.is_crowded(turn.traversal_id))

    def _take(self, traversal_id: str) -> int | None:
        """Take a node of an operation out of the buffer, or else out of the queue."""
        with self._lock:
            found = next((each for each in self._buffer if each[1] == traversal_id), None)
            if found is not None:
                self._buffer.remove(found)
                return found[2]
        return self._threads.take_waiting(traversal_id)

    def _reach(self) -> int:
        """Return how many nodes the threads will run within `HORIZON_S`, if they are as quick as with the last ones."""
        with self._lock:
            count, took_s = len(self._recent), self._clock() - self._recent[0] if self._recent else 0.0
        return int((count - 1) * HORIZON_S / took_s) if took_s > 0 else 0

    def _on_parent_ready(self, nodes: Iterable[tuple[str, int]], turn: Turn) -> None:
        """Run one node of the parent stack here: a thread of this worker comes free when a nested stack is done."""
        found = sorted(nodes, key=lambda node: node[0] != turn.traversal_id)
        parents = [node for node in found if node[0] != turn.traversal_id]
        self._dispatcher.cast(found[: len(found) - len(parents)])
        for first in parents[:1]:
            check = Check(*first, project=beneficiary())
            if self._max_inline == 1 or not self._queue.put_if_room(check, self._reach()):
                self._dispatcher.cast([first])
        self._spread(parents[1:])

    def _spread(self, nodes: Sequence[tuple[str, int]]) -> None:
        """Dispatch nodes: at once where many became ready, or a thread is free here; else by way of the buffer."""
        size = self._dispatcher.together
        if len(nodes) > size or size == 1:
            self._dispatcher.cast(nodes)
            return
        for traversal_id, number in nodes:
            if self._queue.has_room_for(traversal_id):
                self._dispatcher.cast([(traversal_id, number)])
                continue
            now = self._clock()
            with self._lock:
                self._buffer.append((beneficiary(), traversal_id, number))
                is_full = len(self._buffer) >= size
                begins = now >= self._buffer_ends_at  # also if the call at the end of the period before was lost
                if begins:
                    self._buffer_ends_at = now + BUFFER_S
            if begins:
                self._call_later(BUFFER_S, self.flush)
            if is_full:
                self.flush()
