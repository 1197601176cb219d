"""What every store offers, whatever it keeps its rows in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from convergence.core.effects import Decision, Effect, FinishNode
from convergence.core.model import Phase
from convergence.core.rows import Stack, Traversal
from convergence.core.views import NodeView
from convergence.db.scopes import DoneNow, FreeNodes, OneNode, Scope

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
    :param following: what was decided about the node that follows, in the same transaction; see `Following`.
    """

    verdict: V
    cast: tuple[tuple[str, int], ...] = ()
    last: tuple[tuple[str, int], ...] = ()
    following: Committed[Any] | None = None

    @classmethod
    def of(cls, decision: Decision[V], ready: Iterable[tuple[str, int, Phase]]) -> Committed[V]:
        """A decision that has come true, and the nodes that became ready by it."""
        cast = [(traversal_id, number) for traversal_id, number, phase in ready if phase not in LAST]
        last = [(traversal_id, number) for traversal_id, number, phase in ready if phase in LAST]
        return cls(decision.verdict, (*decision.wake, *cast), tuple(last))

    def followed_by(self, node: tuple[str, int], begun: Committed[Any]) -> Committed[V]:
        """The same, with what was decided about the node that follows: nobody has to be told of that any more."""
        return replace(self, cast=tuple(each for each in self.cast if each != node), following=begun)


@dataclass(frozen=True, slots=True)
class Following:
    """A node that whoever finishes another one goes on with: both are decided in one transaction.

    It is decided after the row of the other one is written, and its own row is not waited for: what somebody else holds
    is left alone. A node that was ready all along is decided about before the other one arrives at those that wait for
    it: their rows are locked for as short as ever.

    :param number: the node; None: the first one that becomes ready, else the one that `otherwise` gives.
    :param decide: a pure function; None: nothing is decided about it now, and it is told of as always.
    :param assumed: see `OneNode`; so too for `max_input_bytes`.
    :param name: that of the resource of the other one, in the template.
    :param otherwise: a node that was ready all along, if there is one; it may be called several times.
    """

    traversal_id: str
    number: int | None
    decide: Callable[[NodeView], Decision[Any] | None]
    assumed: tuple[Traversal, Stack]
    max_input_bytes: int | None = None
    name: str | None = None
    otherwise: Callable[[], int | None] = lambda: None

    def first_of(self, ready: Ready) -> int | None:
        """The node, of those that became ready; None where there is none that needs a worker."""
        return next(
            (
                number
                for traversal_id, number, phase in ready
                if traversal_id == self.traversal_id and phase not in LAST
            ),
            None,
        )

    def scope(self, number: int, effects: Iterable[Effect] = ()) -> OneNode:
        """What has to be seen of the node.

        :param effects: of the decision that finishes the other one.
        """
        return OneNode(
            self.traversal_id,
            number,
            self.max_input_bytes,
            waits=False,
            done_now=self._done_now(effects),
            assumed=self.assumed,
        )

    def _done_now(self, effects: Iterable[Effect]) -> DoneNow | None:
        done = next((effect for effect in effects if isinstance(effect, FinishNode)), None)
        if done is None or done.output is None or self.name is None or done.traversal_id != self.traversal_id:
            return None
        return DoneNow(done.number, self.name, done.output)


class Transactions(Protocol):
    """Lock and read a scope, decide, carry out the decision: all in one transaction."""

    def transact(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None = None
    ) -> Committed[V] | None:
        """Make the decision of a pure function true, all or nothing; it may be asked several times.

        :param following: decided as well where all is as the scope assumes it to be; else it is as if not given.
        :returns: None where what the scope names does not exist (any more).
        :raises Conflict: the rows kept changing under our hands; `OlderState`: they kept being shown as they were.
        :raises DatabaseUnavailable: the database cannot be reached.
        """

    def decide_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        """Decide about each of some nodes in one transaction that waits for nobody.

        What is decided comes true where the node is as it was seen. Where one is not, nothing comes true of it all.

        :param decide: a pure function, asked about each of them once; None: nothing is decided about that node.
        :returns: what was decided about some of them, in their order.
        :raises DatabaseUnavailable: the database cannot be reached.
        """
