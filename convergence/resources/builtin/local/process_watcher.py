"""Watches the ends of processes of this machine through the kernel."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
from collections.abc import Collection

from typing_extensions import override

from convergence.concurrency import Lock, start_thread
from convergence.resources.builtin.local.process_table import ProcessTable, is_running
from convergence.resources.watching import Tell, Watcher

LOG = logging.getLogger(__name__)

CAN_WATCH = hasattr(os, 'pidfd_open')
"""True if the kernel of this machine reports the ends of processes (Linux)."""


class ProcessWatcher(Watcher):
    """Reports the ends of processes that the provider started. One descriptor for each, and one thread for all.

    Without descriptors for further processes it logs that once; the observer finds the end of those at the next
    interval.
    """

    def __init__(self, table: ProcessTable, tell: Tell) -> None:
        self._table = table
        self._tell = tell
        self._lock = Lock()
        self._wanted: frozenset[str] | None = frozenset()  # None: it is over
        self._known: dict[str, int | None] = {}  # the descriptor of each; None: it is over, or elsewhere
        self._complained = False
        self._selector = selectors.DefaultSelector()
        self._hears, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)
        self._selector.register(self._hears, selectors.EVENT_READ)
        start_thread('processes watched', self._run)

    @override
    def watch(self, physical_ids: Collection[str]) -> None:
        """Report the ends of these processes, as far as the provider started them."""
        with self._lock:
            if self._wanted is not None and self._wanted != (wanted := frozenset(physical_ids)):
                self._wanted = wanted
                self._wake()

    @override
    def close(self) -> None:
        """End the thread, which gives back the descriptors."""
        with self._lock:
            self._wanted = None
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it will wake up already, or it has ended
            self._wakes.send(b'.')

    def _run(self) -> None:
        """Everything but waking is done here, so that nothing is registered while the selector waits."""
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.data is None:
                        self._hears.recv(4096)
                    else:
                        self._over(key.data)
                with self._lock:
                    wanted = self._wanted
                if wanted is None:
                    break
                self._take_on(wanted)
        finally:
            for physical_id in list(self._known):
                self._leave(physical_id)
            self._selector.close()
            self._hears.close()
            self._wakes.close()

    def _take_on(self, wanted: frozenset[str]) -> None:
        for physical_id in self._known.keys() - wanted:
            self._leave(physical_id)
        new = wanted - self._known.keys()
        here = self._table.started() if new else frozenset()
        for physical_id in new:
            self._known[physical_id] = None
            if physical_id in here:
                self._begin(physical_id)

    def _begin(self, physical_id: str) -> None:
        """Watch a process that the provider started; report one that ended before that."""
        try:
            descriptor = os.pidfd_open(int(physical_id.partition(':')[0]))
        except ProcessLookupError:
            self._tell(physical_id)
            return
        except OSError as error:
            if not self._complained:
                LOG.warning(
                    'Out of file descriptors, polling further processes instead of watching them; nothing needs '
                    'doing: %s',
                    error.strerror,
                )
                self._complained = True
            return
        if not is_running(physical_id):  # another one has its number
            os.close(descriptor)
            self._tell(physical_id)
            return
        self._known[physical_id] = descriptor
        self._selector.register(descriptor, selectors.EVENT_READ, physical_id)

    def _over(self, physical_id: str) -> None:
        self._release(physical_id)
        self._known[physical_id] = None
        self._tell(physical_id)

    def _leave(self, physical_id: str) -> None:
        self._release(physical_id)
        self._known.pop(physical_id, None)

    def _release(self, physical_id: str) -> None:
        descriptor = self._known.get(physical_id)
        if descriptor is not None:
            self._selector.unregister(descriptor)
            os.close(descriptor)
