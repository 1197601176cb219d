"""Traversals that are left to the one thread that works on them, for as long as that gets on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

ALONE_S = 0.1
"""Seconds within which a thread goes on to the next of what is left to it, or others come to its help."""


@dataclass(slots=True)
class LeftAlone:
    """Knows for which traversals no further thread is wanted.

    A thread that goes on from node to node begins each of them in the transaction that finishes the one before; another
    thread would need one more, and a way to the server. Where types answer quickly that is all that a few nodes cost,
    and other threads have other things to do. Where one does not get on, its type takes its time: then others come to
    its help, for as long as anything of the traversal runs here.

    :param clock: seconds, from any moment on.
    """

    clock: Callable[[], float]
    _until: dict[str, float] = field(default_factory=dict)

    def begins(self, traversal_id: str) -> None:
        """A thread begins with what is left to one."""
        self._until.setdefault(traversal_id, self.clock() + ALONE_S)

    def gets_on(self, traversal_id: str) -> None:
        """A thread has come to the next node. Once it was late it does not matter any more."""
        if self.wait_s(traversal_id) > 0:
            self._until[traversal_id] = self.clock() + ALONE_S

    def ends(self, traversal_id: str) -> None:
        """Nothing of the traversal runs any more."""
        self._until.pop(traversal_id, None)

    def wait_s(self, traversal_id: str) -> float:
        """For how many seconds a traversal is left to its thread, unless that gets on meanwhile. 0: it is not."""
        until = self._until.get(traversal_id)
        return 0.0 if until is None else max(0.0, until - self.clock())
