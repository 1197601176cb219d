"""A traversal that is about to start."""

from __future__ import annotations

from dataclasses import dataclass, field

from convergence.core.effects import Decision
from convergence.core.handoff import Handoff
from convergence.core.plan import plan
from convergence.core.request import Planned, Planner, Request
from convergence.core.rows import Stack, Traversal
from convergence.core.views import PlanView
from convergence.db.scopes import NewStack, WholeStack


@dataclass(frozen=True, slots=True)
class TraversalStart:
    """A traversal that a stack is about to get; it supersedes a running one.

    :param scope: the rows that the plan reads.
    :param stack: as it was read, or in the form to store.
    :param handoff: the claimed row whose object the stack is, if the plan may release it.
    :param plans: the plans of all attempts so far.
    """

    scope: NewStack | WholeStack
    stack: Stack
    request: Request
    handoff: Handoff | None = None
    plans: list[Planned] = field(default_factory=list)

    @classmethod
    def of_new(cls, stack: Stack, request: Request, handoff: Handoff | None = None) -> TraversalStart:
        """The start of the first traversal of a new stack.

        :param handoff: see `of`.
        """
        return cls(NewStack(stack.project_id, stack.parent_resource_id, handoff), stack, request, handoff)

    @classmethod
    def of(
        cls,
        stack: Stack,
        request: Request,
        parent_resource_id: str | None = None,
        handoff: Handoff | None = None,
    ) -> TraversalStart:
        """The start of a traversal of an existing stack.

        :param parent_resource_id: for a nested stack, the row on whose behalf it starts: the guard reads it.
        :param handoff: that row, if the plan may release it.
        """
        return cls(WholeStack(stack.id, parent_resource_id, handoff, stack.resource_count), stack, request, handoff)

    @property
    def size(self) -> int | None:
        """Estimate of the rows and nodes to be read and written; None: unknown."""
        there = 0 if isinstance(self.scope, NewStack) else self.scope.counted
        return None if there is None else there + len(self.request.goal.definitions)

    def decide(self, view: PlanView, planner: Planner) -> Decision[Planned]:
        """Plan it, unless one of its plans is already stored.

        :raises ConvergenceError: from the request's guard.
        """
        stored = self.stored(view.traversal)
        if stored is not None:
            return Decision(stored)
        self.request.guard(view)
        decision = plan(view, view.stack or self.stack, self.request, planner)
        self.plans.append(decision.verdict)
        return decision

    def stored(self, traversal: Traversal | None) -> Planned | None:
        """The plan that a stored traversal was made by. All attempts have one id, and different times."""
        key = (traversal.id, traversal.started_at) if traversal is not None else None
        return next((each for each in reversed(self.plans) if _key(each) == key), None)


def _key(planned: Planned) -> tuple[str, float]:
    return planned.traversal.id, planned.traversal.started_at
