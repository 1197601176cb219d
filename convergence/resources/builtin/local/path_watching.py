"""Decides if file events are available in this process."""

from __future__ import annotations

from pathlib import Path

from convergence.concurrency import Executor, installed
from convergence.resources.watching import Tell, Watcher


def paths_watched(root: Path, tell: Tell) -> Watcher | None:
    """Return a watcher of paths below a root directory. None on green threads, which the library does not support."""
    if installed() is not Executor.THREADING:
        return None
    from convergence.resources.builtin.local.path_watcher import PathWatcher  # noqa: PLC0415 - only observers need it

    return PathWatcher(root, tell)
