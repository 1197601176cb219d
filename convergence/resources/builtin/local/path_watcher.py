"""Watches files and directories through the operating system."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from typing_extensions import override
from watchdog.events import FileSystemEvent
from watchdog.observers import Observer

from convergence.concurrency import Lock
from convergence.resources.watching import Tell, Watcher

LOG = logging.getLogger(__name__)

_LEFT_AS_IT_WAS = ('opened', 'closed_no_write')


class PathWatcher(Watcher):
    """Reports changed, removed and moved paths below a root directory. Watches nothing while no path is set."""

    def __init__(self, root: Path, tell: Tell) -> None:
        self._root = root
        self._tell = tell
        self._lock = Lock()
        self._wanted: frozenset[str] = frozenset()
        self._observer: Any = None

    @override
    def watch(self, physical_ids: Collection[str]) -> None:
        """Report these paths, which are relative to the root."""
        with self._lock:
            new = frozenset(physical_ids) - self._wanted
            self._wanted = frozenset(physical_ids)
        if self._wanted and self._observer is None:
            self._begin()
        elif not self._wanted:
            self.close()
        for path in new:
            if not os.path.lexists(self._root / path):
                self._tell(path)

    @override
    def close(self) -> None:
        """End the threads of the library."""
        if self._observer is not None:
            self._observer.stop()
            self._observer = None

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle an event. The library calls it."""
        if event.event_type in _LEFT_AS_IT_WAS or (event.is_directory and event.event_type == 'modified'):
            return  # a change in a directory reports the changed path itself
        with self._lock:
            wanted = self._wanted
        for path in filter(None, (self._below(event.src_path), self._below(event.dest_path))):
            # A directory moves with all its contents, and there is no event for each of them.
            inside = {each for each in wanted if each.startswith(f'{path}/')} if event.is_directory else set()
            for each in sorted(inside | ({path} & wanted)):
                self._tell(each)

    def _begin(self) -> None:
        observer = Observer()
        handler: Any = self  # of a handler the library calls this one method only
        observer.schedule(handler, str(self._root), recursive=True)
        observer.daemon = True
        observer.start()
        self._observer = observer

    def _below(self, path: bytes | str) -> str:
        """A path of an event relative to the root; empty: it is none below it."""
        prefix = f'{self._root}{os.sep}'
        text = os.fsdecode(path)
        return text.removeprefix(prefix) if text.startswith(prefix) else ''
