"""Has objects looked at as soon as their types tell that something has happened to them."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from convergence.concurrency import Lock, ThreadEvent, start_thread
from convergence.core.observation import LookSource
from convergence.db.ports import ObservationLeasesPort, WatchedPort
from convergence.db.records import WatchTarget
from convergence.errors import ConvergenceError
from convergence.resources.contract import ResourceType, Watcher

LOG = logging.getLogger(__name__)

SETTLE_S = 0.05
"""What is told in this time is written together: a change of a file is often several events."""
PAUSE_S = 0.5
"""Between two such writes: what changes without end costs no more."""
REFRESH_S = 1.0
"""Pause between two questions what is to be watched; longer where the answer takes long."""
SHARE = 0.02
"""The part of the time that such questions may take."""
AT_A_TIME = 500


class Watching:
    """Runs the watchers of types, and writes down what they tell of: it is due at once, for any observer.

    :param types: those that have watchers, by name; others may be told of all the same.
    :param hurry: is called when something is due.
    :param wake: is called with each row that is in the middle of an action.
    """

    def __init__(
        self,
        watched: WatchedPort,
        rows: ObservationLeasesPort,
        types: Mapping[str, ResourceType[Any]],
        hurry: Callable[[], None],
        wake: Callable[[WatchTarget], object],
    ) -> None:
        self._watched = watched
        self._rows = rows
        self._types = dict(types)
        self._hurry = hurry
        self._wake = wake
        self._watchers: dict[str, Watcher | None] = {}
        self._troubles: dict[str, str] = {}
        self._away: dict[str, str] = {}
        self._lock = Lock()
        self._told: dict[str, set[str]] = defaultdict(set)
        self._awake = ThreadEvent()
        self._stopping = ThreadEvent()
        self._ended = ThreadEvent()

    def start(self) -> None:
        """Begin to watch, and to write down what is told."""
        start_thread('watching', self._run)

    def stop(self, timeout_s: float) -> bool:
        """Watch nothing more; whether that came to its end in time."""
        self._stopping.set()
        self._awake.set()
        return self._ended.wait(timeout_s)

    def tell(self, type_: str, physical_id: str) -> None:
        """Something may have happened to an object; from any thread."""
        with self._lock:
            self._told[type_].add(physical_id)
        self._awake.set()

    def refresh(self) -> None:
        """Have watched what is observed now.

        :raises ConvergenceError: the database cannot be reached.
        """
        objects = self._watched.objects(sorted(self._types))
        for name in self._types:
            wanted = objects.get(name, ())
            if wanted or name in self._watchers:
                self._have_watched(name, frozenset(wanted))

    def deliver(self) -> int:
        """Write down what was told; how many rows that was about.

        :raises ConvergenceError: the database cannot be reached; what was told is kept.
        """
        with self._lock:
            told, self._told = self._told, defaultdict(set)
        try:
            found = [row for name, ids in told.items() for row in self._watched.targets_of(name, sorted(ids))]
            for start in range(0, len(found), AT_A_TIME):
                self._ask(found[start : start + AT_A_TIME])
            for row in found:
                if row.is_busy:
                    self._wake(row)
        except ConvergenceError:
            with self._lock:
                for name, ids in told.items():
                    self._told[name] |= ids
            raise
        return len(found)

    def _ask(self, rows: list[WatchTarget]) -> None:
        stacks = sorted({row.stack_id for row in rows})
        self._rows.ask(stacks, LookSource.NOTIFICATION, sorted(row.resource_id for row in rows))
        self._hurry()

    def _have_watched(self, name: str, wanted: frozenset[str]) -> None:
        """Tell a watcher what is wanted. One that fails is said to, and asked again; its objects are polled anyway."""
        try:
            if name not in self._watchers:
                self._watchers[name] = self._types[name].watcher(partial(self.tell, name))
            watcher = self._watchers[name]
            if watcher is not None:
                watcher.watch(wanted)
        except Exception as error:  # noqa: BLE001 - it is somebody else's code
            trouble = f'{type(error).__name__}: {error}'
            if self._troubles.get(name) != trouble:
                LOG.warning('Objects of type %s are only looked at, and not watched: %s', name, trouble)
            self._troubles[name] = trouble
        else:
            self._troubles.pop(name, None)

    def _run(self) -> None:
        refresh_at = delivered_at = 0.0
        try:
            while not self._stopping.is_set():
                self._awake.wait(max(0.0, refresh_at - time.monotonic()))
                if self._awake.is_set():
                    self._stopping.wait(max(SETTLE_S, delivered_at + PAUSE_S - time.monotonic()))
                    self._awake.clear()
                    if not self._survive('deliver', self.deliver):
                        self._awake.set()
                    delivered_at = time.monotonic()
                begun = time.monotonic()
                if begun >= refresh_at and not self._stopping.is_set():
                    self._survive('refresh', self.refresh)
                    took_s = time.monotonic() - begun
                    refresh_at = begun + took_s + max(REFRESH_S, took_s / SHARE)
        finally:
            for watcher in filter(None, self._watchers.values()):
                watcher.close()
            self._ended.set()

    def _survive(self, name: str, step: Callable[[], object]) -> bool:
        """Whether a step was done. What keeps it from that is said once, however often it is tried again."""
        try:
            step()
        except ConvergenceError as error:
            if str(error) not in self._away.values():
                LOG.warning('What is watched cannot be looked up or written down, and is tried again: %s', error)
            self._away[name] = str(error)
            return False
        except Exception:
            LOG.exception('What is watched cannot be looked up or written down')
            return False
        self._away.pop(name, None)
        return True
