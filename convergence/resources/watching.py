"""How a resource type tells that something has happened to objects: whoever is told looks at them at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Called with the physical id of an object to which something may have happened; from any thread, returns at once."""


class Watcher(Protocol):
    """Tells of events of the objects of one type, without being asked about each. One for each observer process.

    It may tell of an object too often: somebody looks once more. What it does not tell of is found when it is time to
    look, so a watcher may leave objects out that it cannot see from here, and need not make up for what it has missed.
    """

    def watch(self, physical_ids: Collection[str]) -> None:
        """Tell of these objects from now on, and of no others. Called again and again, from one thread.

        What of them is gone already, and was here, is told of as well.
        """

    def close(self) -> None:
        """Tell of nothing any more, and give back what is held. Called once."""
