"""Watchers: how a resource type reports events of its objects, so that they are observed at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Called with the physical id of an object to which something may have happened; from any thread, returns at once."""


class Watcher(Protocol):
    """Reports events of the objects of one type. Each observer process has one for each type.

    A report too many costs one observation. An event that is not reported is found at the next regular observation, so
    a watcher may leave out objects that it cannot see from this machine, and need not catch up on missed events.
    """

    def watch(self, physical_ids: Collection[str]) -> None:
        """Report events of these objects from now on, and of no others. Called repeatedly, from one thread.

        Also report those that existed on this machine and are gone.
        """

    def close(self) -> None:
        """Stop reporting, and release resources. Called once."""
