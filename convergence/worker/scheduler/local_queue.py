"""Nodes that wait for a thread of this worker: which ones it accepts, forwards, or gives back when it drains."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from convergence.concurrency import Task, ThreadEvent
from convergence.core.claim import NO_NODE
from convergence.dispatch import Dispatcher
from convergence.rpc.shares import on_behalf_of
from convergence.worker.scheduler.constants import BACKLOG_PER_THREAD, JAMMED_S, MAX_REDELIVERIES
from convergence.worker.scheduler.thread_groups import Check, ThreadGroups

LOG = logging.getLogger(__name__)


class LocalQueue:
    """Accepts nodes for the threads of this worker, as long as it is not draining.

    :ivar threads: the threads of this worker, with the nodes that wait for them.
    :param dispatcher: sends nodes to other workers.
    :param run: runs an accepted node in a thread.
    """

    def __init__(self, threads: ThreadGroups, dispatcher: Dispatcher, run: Callable[[Check, Task], object]) -> None:
        self.threads = threads
        self._dispatcher = dispatcher
        self._run = run
        self._draining = ThreadEvent()
        self._leaving = ThreadEvent()
        self._refused: deque[Check] = deque()
        self._has_room_elsewhere = True

    # --- accepting nodes --------------------------------------------------------------------------------------

    def accept(self, check: Check) -> None:
        """Accept a node from a message; forward it to another worker if this one is jammed and another one has room."""
        is_jammed = self.is_jammed() and self._has_room_elsewhere
        if check.redeliveries < MAX_REDELIVERIES and is_jammed and not self.has_room_for(check.traversal_id):
            self._forward(check)
        else:
            self.put([check])

    def put(self, checks: Sequence[Check]) -> bool:
        """Let nodes wait for a thread. False while this worker drains: then others get them when it leaves."""
        taken = self.threads.submit_all([(check, partial(self._run, check)) for check in checks])
        if not taken:
            self._refused.extend(checks)
            if self._leaving.is_set():
                self._requeue_refused()
        return taken

    def put_if_room(self, check: Check, reach: int = 0) -> bool:
        """Let one node wait for a thread, unless many wait already; return True if it waits.

        :param reach: how many nodes the threads run soon.
        """
        now = self.threads.occupancy()
        has_room = now.waiting < max(BACKLOG_PER_THREAD * now.threads, reach) and not self.is_draining()
        return has_room and self.put([check])

    # --- how full it is ---------------------------------------------------------------------------------------

    def is_draining(self) -> bool:
        """Return True once this worker starts no further node."""
        return self._draining.is_set()

    def has_room_for(self, traversal_id: str) -> bool:
        """Return True if a node of the operation would start at once, or if this worker drains and should keep none."""
        return self.is_draining() or self.threads.has_room_for(traversal_id)

    def is_jammed(self) -> bool:
        """Return True if no thread has come free for a while."""
        return self.threads.jammed_s() > JAMMED_S

    # --- giving nodes away ------------------------------------------------------------------------------------

    def forward_waiting(self, find_room: Callable[[], bool]) -> None:
        """Forward waiting nodes to other workers if this one is jammed and another one has room.

        :param find_room: returns True if another worker has room. Called only while this worker is jammed.
        """
        self.threads.begin()
        if not self.is_jammed():
            return
        self._has_room_elsewhere = find_room()
        if not self._has_room_elsewhere:
            return
        withdrawn = self.threads.withdraw()
        if withdrawn:
            LOG.warning(
                'No thread came free for %g s; forwarding %d waiting nodes to other workers', JAMMED_S, len(withdrawn)
            )
        for check in withdrawn:
            self._forward(check)

    def _forward(self, check: Check) -> None:
        """Send a node to another worker; after `MAX_REDELIVERIES` the sweeper requeues it."""
        if check.redeliveries < MAX_REDELIVERIES and check.node != NO_NODE:
            self._dispatcher.forward(check.traversal_id, check.node, check.redeliveries + 1)

    def close(self) -> None:
        """Start no further node. Nodes that are refused from now on are kept until `leave`.

        As long as this worker takes messages, a node that it sent away could come straight back.
        """
        self._draining.set()
        self._refused.extend(self.threads.close())

    def leave(self) -> None:
        """Send all refused nodes to other workers, now and from now on."""
        self._leaving.set()
        self._requeue_refused()

    def _requeue_refused(self) -> None:
        with suppress(IndexError):
            while True:
                check = self._refused.popleft()
                if check.node != NO_NODE:
                    with on_behalf_of(check.project):
                        self._dispatcher.cast([(check.traversal_id, check.node)])
