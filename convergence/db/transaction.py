"""What every store offers, whatever it keeps its rows in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from convergence.core.effects import Decision
from convergence.core.model import Phase
from convergence.db.scopes import Scope

ViewT = TypeVar('ViewT')
V = TypeVar('V')

LAST = frozenset({Phase.IN_SERVICE, Phase.COMPLETE})
"""Phases whose nodes need no worker."""

Ready = list[tuple[str, int, Phase]]
"""Nodes that became ready and are to be attended to: traversal, number and phase."""


class Missing(Exception):
    """What a scope names is not there (any more)."""


@dataclass(frozen=True, slots=True)
class Committed(Generic[V]):
    """What a committed transaction came to.

    :param cast: the nodes ``(traversal_id, number)`` that workers have to be told about now.
    :param last: nodes of the phases in `LAST` that became ready; they need no worker.
    """

    verdict: V
    cast: tuple[tuple[str, int], ...] = ()
    last: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, decision: Decision[V], ready: Iterable[tuple[str, int, Phase]]) -> Committed[V]:
        """A decision that has come true, and the nodes that became ready by it."""
        cast = [(traversal_id, number) for traversal_id, number, phase in ready if phase not in LAST]
        last = [(traversal_id, number) for traversal_id, number, phase in ready if phase in LAST]
        return cls(decision.verdict, (*decision.wake, *cast), tuple(last))


class Transactions(Protocol):
    """Lock and read a scope, decide, carry out the decision: all in one transaction."""

    def transact(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V] | None:
        """Make the decision of a pure function true, all or nothing; it may be asked several times.

        :returns: None where what the scope names does not exist (any more).
        :raises Conflict: the rows kept changing under our hands; `OlderState`: they kept being shown as they were.
        :raises DatabaseUnavailable: the database cannot be reached.
        """
