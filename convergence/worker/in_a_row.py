"""One thread of a worker goes from node to node of a traversal, for as long as each makes the next one ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from typing_extensions import override

from convergence import logs
from convergence.concurrency import Task
from convergence.core.claim import StepDecision
from convergence.db.transaction import Committed
from convergence.dispatch import Dispatcher
from convergence.worker.keeping import BRANCHES, FEW, Keeping
from convergence.worker.unannounced import Unannounced


class Attendant:
    """Sees to the nodes that a transaction made ready: others are told of all of them."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def attend(self, committed: Committed[Any]) -> None:
        """See to what a transaction made ready."""
        self._dispatcher.attend(committed)

    def attend_nested(self, traversal_id: str, numbers: Sequence[int]) -> None:
        """See to what is ready in a nested stack that has just got something to do.

        A few go to one worker, where a thread goes from one to the next.
        """
        self._dispatcher.cast_together(traversal_id, numbers, FEW)

    def goes_on(self) -> bool:
        """Whether the thread would go on with a node that is claimed for it now."""
        return False

    def take_others(self) -> list[int]:
        """Where it goes on: nodes of the same traversal that wait here, and that it sees to beside the one it has.

        As many as nested stacks may be begun with that one.
        """
        return []

    def attend_others(self, committed: Committed[Any]) -> None:
        """See to what the claim of one of those has made ready, if anything."""
        self._dispatcher.attend(committed)

    def leave_to_others(self, traversal_id: str, numbers: Sequence[int]) -> None:
        """Have others see to nodes that were taken."""
        self._dispatcher.cast_together(traversal_id, numbers)

    def take_waiting(self) -> int | None:
        """Where it goes on: a node of the same traversal that waits here, and that it sees to from now on."""
        return None


class CheckOne(Protocol):
    """Does what there is to do for one node; see `convergence.worker.checks.node_checks.NodeChecks.check`."""

    def __call__(
        self, traversal_id: str, number: int, task: Task, attendant: Attendant, begun: StepDecision | None
    ) -> None: ...


SLICE_S = 0.25
"""Seconds for which a thread goes on although other traversals wait for one: as many as a person does not notice."""

QUICK_SLICE_S = 1.0
"""The same where its nodes take no longer than `QUICK_S` each. To leave a node to another thread costs a message, and a
transaction more; and where nothing takes long, a thread comes free all the time for those who wait."""

QUICK_S = 0.1
"""Seconds: a worker whose threads compete for its processor needs nearly as many for a node whose type needs none."""


class WaitingChecks(Protocol):
    """What waits for a thread of this worker; see `convergence.worker.scheduler.thread_groups.ThreadGroups`."""

    def is_crowded(self, traversal_id: str) -> bool:
        """Whether something else than the traversal waits."""

    def take_waiting(self, traversal_id: str) -> int | None:
        """A node of the traversal that waits; whoever asks sees to it."""


class InARow:
    """Checks nodes one after the other.

    What a thread goes on with costs no message. It is a node of which others could have been told just as well: so a
    thread goes on with a bounded number of them, and lets other traversals that wait for a thread go first, at once
    where types take their time.

    The row of the node that it goes on with is claimed by the transaction that finishes the node before, where that can
    be done without waiting: one commit for both. It is a node that becomes ready by that, or one that was ready all
    along: it stands behind the window of a stack that is wide, or waits for a thread here.

    Other nodes that it makes ready are for other threads, of this worker or of others; see
    `convergence.worker.unannounced`.

    What is ready in a nested stack that it has had begun its own threads come to next. When the last thing in the stack
    is done a thread comes free here, and this worker takes a node of the stack around: that of the resource whose
    object the stack is, or one that becomes ready because that is done as well.

    :param most: how many nodes a thread looks at one after the other. 1: others are told of every node.
    :param waiting: what waits for a thread.
    :param unannounced: what was made ready here lately.
    :param keeping: takes nodes for the threads of this worker.
    :param clock: seconds on the clock of this process, from any moment on.
    """

    def __init__(
        self,
        check: CheckOne,
        dispatcher: Dispatcher,
        most: int,
        waiting: WaitingChecks,
        unannounced: Unannounced,
        keeping: Keeping,
        clock: Callable[[], float],
    ) -> None:
        self._check = check
        self._dispatcher = dispatcher
        self._most = most
        self._waiting = waiting
        self._unannounced = unannounced
        self._keeping = keeping
        self._clock = clock

    def check(self, traversal_id: str, number: int, task: Task) -> None:
        """Do what there is to do for a node now, and for one of those that this makes ready, and so on.

        :param task: what runs in the thread; once it was told to stop it goes on with nothing.
        """
        try:
            self._check_in_a_row(traversal_id, number, task)
        finally:
            self._unannounced.announce()

    def _check_in_a_row(self, traversal_id: str, number: int, task: Task) -> None:
        node = number
        begun: StepDecision | None = None
        begun_at, steps, others = self._clock(), 0, 0

        def lets_others_go() -> bool:
            took_s = self._clock() - begun_at
            slice_s = QUICK_SLICE_S if took_s <= QUICK_S * steps else SLICE_S
            has_had_its_share = took_s >= slice_s and self._waiting.is_crowded(traversal_id)
            return task.cancelled.is_set() or has_had_its_share

        for left in reversed(range(self._most)):
            steps = self._most - left + others
            kept = _Kept(
                self._dispatcher,
                traversal_id,
                self._keeping if self._most > 1 else None,
                self._waiting,
                self._unannounced,
                lets_others_go,
                is_last=not left,
            )
            try:
                with logs.bind(node=node):
                    self._check(traversal_id, node, task, kept, begun)
            except Exception:
                kept.tell()  # what is claimed the worker gives back when it misses it
                raise
            for _ in range(1 + kept.others):
                self._keeping.note_step()
            others += kept.others
            steps += kept.others
            if lets_others_go():
                kept.tell()
            elif kept.goes_on():
                kept.take_waiting()
            if kept.node is None:
                return
            node, begun = kept.node, kept.begun


class _Kept(Attendant):
    """Attends to what the last step for a node makes ready, and keeps back one node of the same traversal.

    :ivar node: the node that the thread goes on with.
    :ivar begun: what is to be done for it, where that is decided already: its row is claimed.
    :ivar others: how many nodes the thread has done beside its own.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        traversal_id: str,
        keeping: Keeping | None,
        waiting: WaitingChecks,
        unannounced: Unannounced,
        lets_others_go: Callable[[], bool],
        *,
        is_last: bool,
    ) -> None:
        super().__init__(dispatcher)
        self._keeping = keeping
        self._traversal_id = traversal_id
        self._waiting = waiting
        self._unannounced = unannounced
        self._lets_others_go = lets_others_go
        self._is_last = is_last
        self._is_over = False
        self.node: int | None = None
        self.begun: StepDecision | None = None
        self.others = 0

    @override
    def goes_on(self) -> bool:
        """As the base class: unless another node is kept back, or it is somebody else's turn."""
        is_free = not self._is_last and not self._is_over and self.node is None
        return is_free and not self._lets_others_go()

    @override
    def attend_nested(self, traversal_id: str, numbers: Sequence[int]) -> None:
        """As the base class, but for what this worker keeps: then its threads come to that first.

        So a tree is made branch by branch. Else all nested stacks of a stack would be begun before anything in them.
        """
        room = self._keeping.room_ahead(len(numbers)) if self._keeping is not None else 0
        super().attend_nested(traversal_id, numbers[room:])
        if self._keeping is not None and numbers[:room]:
            self._is_over = True
            self._keeping.take_ahead(traversal_id, numbers[:room])

    @override
    def take_others(self) -> list[int]:
        """As the base class."""
        taken: list[int] = []
        most = min(self._keeping.stacks_ahead(), BRANCHES) - 1 if self._keeping is not None else 0
        while len(taken) < most and self.goes_on() and (number := self._take()) is not None:
            taken.append(number)
        return taken

    @override
    def attend_others(self, committed: Committed[Any]) -> None:
        """As the base class. There is one more node that the thread does in this step."""
        self.others += 1
        super().attend_others(committed)

    @override
    def take_waiting(self) -> int | None:
        """As the base class. It is kept back, whether it is claimed or not; then there is no other."""
        if self.node is None:
            self.node = self._take()
        return self.node

    def _take(self) -> int | None:
        number = self._unannounced.take(self._traversal_id)
        return self._waiting.take_waiting(self._traversal_id) if number is None else number

    @override
    def attend(self, committed: Committed[Any]) -> None:
        """As `Dispatcher.attend`, but for the node that is kept back."""
        following = committed.following
        others: list[tuple[str, int]] = []
        if following is not None:
            claimed: StepDecision = following.verdict
            assert claimed.claim is not None
            number = claimed.claim.node.number
            if self.node not in {None, number}:
                # It was taken when nothing seemed to become ready, and the transaction was repeated.
                others.append((self._traversal_id, self.node))
            self.begun, self.node = claimed, number
            self._dispatcher.attend(following)
        for traversal_id, number in committed.cast:
            if self.node is None and traversal_id == self._traversal_id and not self._is_last:
                self.node = number
            else:
                others.append((traversal_id, number))
        self._hand_out(others)
        self._dispatcher.conclude(committed.last, self._around)

    def _hand_out(self, nodes: list[tuple[str, int]]) -> None:
        """Have others see to nodes. What becomes ready by the hundred is not kept back."""
        if len(nodes) > self._dispatcher.together:
            self._dispatcher.cast(nodes)
            return
        for traversal_id, number in nodes:
            self._unannounced.add(traversal_id, number)

    def _around(self, nodes: Iterable[tuple[str, int]]) -> None:
        """Take one node of the stack around. Of its own traversal this thread may keep one back already."""
        others = [node for node in nodes if node[0] != self._traversal_id]
        self._dispatcher.cast([node for node in nodes if node[0] == self._traversal_id])
        self._hand_out(others[1:])
        for node in others[:1]:
            if self._keeping is None or not self._keeping.take(*node):
                self._dispatcher.cast([node])

    def tell(self) -> None:
        """Tell others of what was kept back; what is claimed stays with this thread."""
        if self.node is not None and self.begun is None:
            self._dispatcher.cast([(self._traversal_id, self.node)])
            self.node = None
