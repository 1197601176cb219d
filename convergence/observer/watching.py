"""Has objects observed, or parked actions polled, as soon as a watcher or a notification reports an object."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from convergence.concurrency import Lock, ThreadEvent, start_thread
from convergence.core.observation import ObservationSource
from convergence.core.signals import stir
from convergence.db.ports import ObservationLeasesPort, WatchedPort
from convergence.db.records import WatchTarget
from convergence.db.scopes import SignalledResource
from convergence.db.transaction import Transactions
from convergence.dispatch import Dispatcher
from convergence.errors import ConvergenceError
from convergence.resources.contract import ResourceType, Watcher

LOG = logging.getLogger(__name__)

COLLECT_S = 0.05
"""Seconds for which reports are collected before they are written: one change of a file is often several events."""
PAUSE_S = 0.5
"""Seconds between two writes of reports. Bounds the cost of an object that changes all the time."""
REFRESH_S = 1.0
"""Seconds between two queries for the objects to watch; longer where the query is slow (see `SHARE`)."""
SHARE = 0.02
"""Maximum share of the time that these queries take. At this share their load on the database is negligible."""
AT_A_TIME = 500
"""Maximum number of rows that one statement makes due. Bounds the size of the statement."""


class NotificationReader:
    """Reads notifications of services: reports the objects that a notification is about.

    :param types: the types that read notifications, by name.
    :param report: called with a type and a physical id. There may be no resource with that object.
    """

    def __init__(self, types: Mapping[str, ResourceType[Any]], report: Callable[[str, str], None]) -> None:
        self._types = dict(types)
        self._report = report

    def __call__(self, event_type: str, payload: object) -> None:
        """Read one notification. A type that cannot parse it is skipped."""
        if not isinstance(payload, Mapping):
            return
        for name, kind in self._types.items():
            try:
                found = set(kind.notified(event_type, payload))
            except Exception as error:  # noqa: BLE001 - the code of a type, and the payload of a service
                LOG.info(
                    'Resource type %s could not parse notification %s, ignoring it: %s',
                    *(name, event_type, type(error).__name__),
                )
                continue
            for physical_id in found:
                self._report(name, physical_id)


class Waker:
    """Has the action of a row polled: counts an event of the row, as a signal does, and dispatches its node.

    A worker that holds the row is not disturbed.
    """

    def __init__(self, store: Transactions, dispatcher: Dispatcher) -> None:
        self._store = store
        self._dispatcher = dispatcher

    def __call__(self, target: WatchTarget) -> bool:
        """Wake the action that waits for an object; return False if no action was in progress.

        :raises ConvergenceError: the database cannot be reached, or rows kept changing.
        """
        committed = self._store.transact(SignalledResource(target.stack_id, target.resource_id), stir)
        if committed is None:
            return False
        self._dispatcher.attend(committed)
        return committed.verdict


class WatchService:
    """Runs the watchers of types and stores their reports: a reported object is due at once, for any observer.

    :param types: the types that have watchers, by name. Objects of other types may be reported as well.
    :param hurry: called when an object has become due.
    :param wake: called with each reported row that is in the middle of an action.
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
        self._watcher_errors: dict[str, str] = {}
        self._database_errors: dict[str, str] = {}
        self._lock = Lock()
        self._reported: dict[str, set[str]] = defaultdict(set)
        self._awake = ThreadEvent()
        self._stopping = ThreadEvent()
        self._ended = ThreadEvent()

    def start(self) -> None:
        """Start the thread that watches objects and stores reports."""
        start_thread('watching', self._run)

    def stop(self, timeout_s: float) -> bool:
        """Stop watching; return False if the thread did not end in time."""
        self._stopping.set()
        self._awake.set()
        return self._ended.wait(timeout_s)

    def report(self, type_: str, physical_id: str) -> None:
        """Report an object that may have changed. May be called from any thread."""
        with self._lock:
            self._reported[type_].add(physical_id)
        self._awake.set()

    def refresh(self) -> None:
        """Give each watcher the objects that are observed now.

        :raises ConvergenceError: the database cannot be reached.
        """
        objects = self._watched.objects(sorted(self._types))
        for name in self._types:
            desired = objects.get(name, ())
            if desired or name in self._watchers:
                self._update_watcher(name, frozenset(desired))

    def deliver(self) -> int:
        """Store the reports; return the number of reported rows.

        :raises ConvergenceError: the database cannot be reached; the reports are kept.
        """
        with self._lock:
            reported, self._reported = self._reported, defaultdict(set)
        try:
            found = [row for name, ids in reported.items() for row in self._watched.targets_of(name, sorted(ids))]
            for start in range(0, len(found), AT_A_TIME):
                self._make_due(found[start : start + AT_A_TIME])
            for row in found:
                if row.is_busy:
                    self._wake(row)
        except ConvergenceError:
            with self._lock:
                for name, ids in reported.items():
                    self._reported[name] |= ids
            raise
        return len(found)

    def _make_due(self, rows: list[WatchTarget]) -> None:
        stacks = sorted({row.stack_id for row in rows})
        self._rows.request(stacks, ObservationSource.NOTIFICATION, sorted(row.resource_id for row in rows))
        self._hurry()

    def _update_watcher(self, name: str, desired: frozenset[str]) -> None:
        """Give a watcher its objects. The error of a watcher is logged once; its objects are polled meanwhile."""
        try:
            if name not in self._watchers:
                self._watchers[name] = self._types[name].watcher(partial(self.report, name))
            watcher = self._watchers[name]
            if watcher is not None:
                watcher.watch(desired)
        except Exception as error:  # noqa: BLE001 - the code of a type
            text = f'{type(error).__name__}: {error}'
            if self._watcher_errors.get(name) != text:
                LOG.warning('Watcher of type %s failed, polling its objects and retrying: %s', name, text)
            self._watcher_errors[name] = text
        else:
            self._watcher_errors.pop(name, None)

    def _run(self) -> None:
        refresh_at = delivered_at = 0.0
        try:
            while not self._stopping.is_set():
                self._awake.wait(max(0.0, refresh_at - time.monotonic()))
                if self._awake.is_set():
                    self._stopping.wait(max(COLLECT_S, delivered_at + PAUSE_S - time.monotonic()))
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
        """Run a step; return False if it failed. The same error is logged once, however often the step is retried."""
        try:
            step()
        except ConvergenceError as error:
            if str(error) not in self._database_errors.values():
                LOG.warning('Watched objects cannot be read or stored, retrying: %s', error)
            self._database_errors[name] = str(error)
            return False
        except Exception:
            LOG.exception('Watched objects cannot be read or stored, retrying; report this error')
            return False
        self._database_errors.pop(name, None)
        return True
