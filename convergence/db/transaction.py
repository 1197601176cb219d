"""Transactions as every store offers them, on any kind of storage."""

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
    """The stack, node or resource of a scope does not exist (any more)."""


@dataclass(frozen=True, slots=True)
class Committed(Generic[V]):
    """Outcome of a committed transaction.

    :param cast: the nodes ``(traversal_id, number)`` to dispatch to workers now.
    :param last: nodes of the phases in `LAST` that became ready; they need no worker.
    :param following: outcome for the node that follows, in the same transaction; see `Following`.
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
        """Return the outcome with that of the node that follows, which needs no dispatch any more."""
        return replace(self, cast=tuple(each for each in self.cast if each != node), following=begun)


@dataclass(frozen=True, slots=True)
class Following:
    """A node that the finisher of another node continues with: one transaction decides both.

    It is decided after the row of the other node is written, without waiting for its own row: a locked row is skipped.
    A node
    that was ready before is decided before the other node arrives at its successors, so their locks stay short.

    :param number: the node; None: the first one that becomes ready, else the one that `otherwise` returns.
    :param decide: a pure function; None: no decision now, and the node is dispatched as usual.
    :param assumed: see `OneNode`; so too for `max_input_bytes`.
    :param name: resource name of the other node, in the template.
    :param otherwise: returns a node that was ready before, if there is one; it may be called several times.
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
        """Return the scope of the node.

        :param effects: of the decision that finishes the other node.
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
        """Carry out the decision of a pure function, all or nothing; the function may be called several times.

        :param following: decided as well if the rows are as the scope assumes; otherwise ignored.
        :returns: None if the scope's stack, node or resource does not exist (any more).
        :raises Conflict: the rows kept changing; `OlderState`: the server kept returning an older state.
        :raises DatabaseUnavailable: the database cannot be reached.
        """

    def decide_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        """Decide about several nodes in one transaction that waits for no lock.

        The decisions commit if every node is as it was read; otherwise none of them does.

        :param decide: a pure function, called once for each node; None: no decision about that node.
        :returns: the decisions about some of them, in their order.
        :raises DatabaseUnavailable: the database cannot be reached.
        """
