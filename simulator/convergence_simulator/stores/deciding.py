"""What was decided in a transaction of a database, which tells only what it came to."""

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
    """The default of what happens before a decision."""


class Decisions:
    """Notes the decisions of one transaction. It may be repeated: then those of the last attempt count.

    :param before: called before each decision.
    """

    def __init__(self, before: Callable[[], object] = nothing) -> None:
        self._before = before
        self._decision: Decision[Any] | None = None
        self._following: Decision[Any] | None = None
        self._views: list[Any] = []

    def noting(self, decide: Callable[[ViewT], Decision[V]]) -> Callable[[ViewT], Decision[V]]:
        """The function, whose decisions are noted."""

        def noted(view: ViewT) -> Decision[V]:
            self._before()
            self._following = None
            self._views = [view]
            self._decision = decision = decide(view)
            return decision

        return noted

    def noting_both(self, following: Following | None) -> Following | None:
        """The same for the node that follows."""
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
        """Those that have been written."""
        if committed is None or self._decision is None or not self._decision.effects:
            return []
        if committed.following is None or self._following is None:
            return [self._decision]
        return [self._decision, self._following]

    def views(self) -> list[Any]:
        """What each of those was decided about, in the same order."""
        return self._views


class SeveralDecisions:
    """Notes what is decided about nodes in one transaction that is made once.

    :param before: see `Decisions`.
    """

    def __init__(self, before: Callable[[], object] = nothing) -> None:
        self._before = before
        self._decided: list[tuple[Decision[Any], NodeView]] = []

    def noting(self, decide: Callable[[NodeView], Decision[V] | None]) -> Callable[[NodeView], Decision[V] | None]:
        """The function, whose decisions are noted."""

        def noted(view: NodeView) -> Decision[V] | None:
            self._before()
            decision = decide(view)
            if decision is not None:
                self._decided.append((decision, view))
            return decision

        return noted

    def come_true(self, committed: Sequence[object]) -> list[tuple[Decision[Any], NodeView]]:
        """Those that have been written, if any, with what each was decided about."""
        return self._decided if committed else []
