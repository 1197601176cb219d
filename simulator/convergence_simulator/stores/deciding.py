"""Records the decisions of transactions. A transaction itself only returns the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from convergence.core.effects import Decision
from convergence.core.views import NodeView
from convergence.db.transaction import Committed, Following

ViewT = TypeVar('ViewT')
V = TypeVar('V')


def nothing() -> None:
    """Do nothing; the default of the call before a decision."""


class Decisions:
    """Records the decisions of one transaction.

    If the transaction is repeated, the decisions of the last attempt count.

    :param before: called before each decision.
    """

    def __init__(self, before: Callable[[], object] = nothing) -> None:
        self._before = before
        self._decision: Decision[Any] | None = None
        self._following: Decision[Any] | None = None
        self._views: list[Any] = []

    def noting(self, decide: Callable[[ViewT], Decision[V]]) -> Callable[[ViewT], Decision[V]]:
        """Return a function that calls `decide` and records its decisions."""

        def noted(view: ViewT) -> Decision[V]:
            self._before()
            self._following = None
            self._views = [view]
            self._decision = decision = decide(view)
            return decision

        return noted

    def noting_both(self, following: Following | None) -> Following | None:
        """Return the same for the node that follows, or None."""
        if following is None:
            return None
        decide = following.decide

        def noted(view: NodeView) -> Decision[Any] | None:
            self._before()
            self._views = [*self._views[:1], view]
            self._following = decide(view)
            return self._following

        return replace(following, decide=noted)

    def come_true(self, committed: Committed[Any] | None) -> list[Decision[Any]]:
        """Return the decisions that were committed."""
        if committed is None or self._decision is None or not self._decision.effects:
            return []
        if committed.following is None or self._following is None:
            return [self._decision]
        return [self._decision, self._following]

    def views(self) -> list[Any]:
        """Return the views of these decisions, in the same order."""
        return self._views


class SeveralDecisions:
    """Records the decisions about several nodes in one transaction, which is not repeated.

    :param before: see `Decisions`.
    """

    def __init__(self, before: Callable[[], object] = nothing) -> None:
        self._before = before
        self._decided: list[tuple[Decision[Any], NodeView]] = []

    def noting(self, decide: Callable[[NodeView], Decision[V] | None]) -> Callable[[NodeView], Decision[V] | None]:
        """Return a function that calls `decide` and records its decisions."""

        def noted(view: NodeView) -> Decision[V] | None:
            self._before()
            decision = decide(view)
            if decision is not None:
                self._decided.append((decision, view))
            return decision

        return noted

    def come_true(self, committed: Sequence[object]) -> list[tuple[Decision[Any], NodeView]]:
        """Return the decisions that were committed, if any, each with its view."""
        return self._decided if committed else []
