"""Begins operations on nested stacks, as long as the caller has claimed the row of the resource."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from convergence import errors, template
from convergence.core.effects import Decision, Effect
from convergence.core.model import Action, Status, TraversalStatus
from convergence.core.nesting import park
from convergence.core.request import Planned, Request
from convergence.core.rows import Stack
from convergence.core.upwards import TELLS, progress_towards
from convergence.core.views import PlanView
from convergence.db.scopes import StackAlone
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.goal_rows import template_row
from convergence.engine.compile.submission import Submission
from convergence.engine.nesting.claimed import NestingResource
from convergence.engine.traversals.start import TraversalStart
from convergence.engine.traversals.traversals import Overtaken, Traversals
from convergence.resources.nested import NestedType, begun_of, progress_of
from convergence.resources.nesting import NestedStep
from convergence.resources.registry import Registry
from convergence.values import replace

LOG = logging.getLogger(__name__)

T = TypeVar('T')

TOGETHER = 500
"""Rows and nodes of the stacks that begin in one transaction."""


@dataclass(frozen=True, slots=True)
class NestedStart:
    """An operation of a nested stack that is about to begin.

    :param held: the resource whose object the stack is.
    :param compiled: the goal, to be cached once the stack has begun; None: the request gives no new goal.
    """

    start: TraversalStart
    held: NestingResource
    compiled: template.Compiled | None = None

    @classmethod
    def of(
        cls, stack: Stack, held: NestingResource, request: Request, compiled: template.Compiled | None = None
    ) -> NestedStart:
        """A request to a stack that exists."""
        return cls(TraversalStart.of(stack, request, held.row.id, held.handoff), held, compiled)

    def fits(self, room: int) -> bool:
        """Return True if it may begin in one transaction with others, and has at most `room` rows."""
        size = self.start.size
        return self.held.handoff is not None and size is not None and size <= room


class NestedStarts:
    """Begins operations on nested stacks for the resources whose objects the stacks are."""

    def __init__(
        self, traversals: Traversals, compiler: TemplateCompiler, types: Registry, new_id: Callable[[], str]
    ) -> None:
        self._traversals = traversals
        self._compiler = compiler
        self._types = types
        self._new_id = new_id

    def with_goal(
        self, stack: Stack, submission: Submission, permits: Permits, request: Request
    ) -> tuple[Request, template.Compiled]:
        """Compile a submission, and complete a request with the goal and its row."""
        compiled = self._compiler.compile(stack, submission, permits, trusting=True)
        row = template_row(self._new_id(), stack.id, submission, compiled)
        return replace(request, goal=compiled.goal, template=row, is_new_template=True), compiled

    def give(self, stack: Stack, submission: Submission, permits: Permits, request: Request, resource_id: str) -> None:
        """Give a nested stack a goal that its resource has not requested.

        :param request: without the goal.
        :param resource_id: the row whose object the stack is: the request's guard reads it, locked.
        """
        request, compiled = self.with_goal(stack, submission, permits, request)
        self._traversals.start(stack, request, resource_id)
        assert request.template is not None
        self._compiler.keep(stack, request.template, compiled)

    def request(
        self, held: NestingResource, fence: int, request: Request, also: Callable[[PlanView], None] = lambda view: None
    ) -> Request:
        """Complete a request: it is refused when it is late, and its deadline is that of the parent stack.

        The plan releases the row of the resource, if the caller allows that.

        :param also: another guard.
        :raises NotSupported: the parent stack's operation is being cancelled.
        """
        if held.traversal.status is TraversalStatus.CANCELLING:
            raise errors.NotSupported(f'{held.traversal.action} of stack {held.stack.name} is being cancelled')
        traversal_id = request.traversal_id or self._new_id()
        progress = progress_of(replace(held.begun, traversal_id=traversal_id), held.step)
        if held.ends is not None and not held.begun.more:
            told = held.ends.get(TELLS) if held.begun.is_silent else None
            output = told if isinstance(told, dict) else None
            progress |= progress_towards(held.traversal.id, held.row.action, output)
        kind = self._types.get(held.row.type)
        assert isinstance(kind, NestedType)

        def beside(view: PlanView) -> tuple[Effect, ...]:
            return (*request.beside(view), *park(view, progress, kind.untold_s))

        return replace(
            request,
            guard=held.guard(fence, also),
            beside=beside,
            traversal_id=traversal_id,
            request_id=held.traversal.request_id,
            deadline=held.deadline(),
            for_parent=True,
            observes=held.traversal.observes and request.action is Action.UPDATE,
        )

    def confirm(self, held: NestingResource, fence: int, seen: Stack) -> None:
        """Check again, under the stack's lock, that there is nothing to begin.

        :raises Overtaken: the stack has changed since it was read.
        """
        guard = held.guard(fence)

        def decide(view: PlanView) -> Decision[None]:
            guard(view)
            now = view.stack
            same = now is not None and (now.traversal_id, now.status) == (seen.traversal_id, seen.status)
            if not same:
                raise Overtaken(f'stack {seen.name} has moved on')
            return Decision(None)

        self._traversals.decide(StackAlone(seen.id, held.row.id), decide)

    def begin(self, beginning: NestedStart) -> NestedStep:
        """Begin it.

        :raises ConvergenceError: see `Traversals.begin`.
        """
        return self._begun(beginning, self._traversals.begin(beginning.start))

    def begin_all(
        self, prepared: Sequence[NestedStep | NestedStart | None], is_late: Callable[[], bool]
    ) -> list[NestedStep | None]:
        """Begin all of them: small stacks in one transaction, others as long as there is time.

        :param prepared: for rows of one stack. An answer is returned unchanged; None stays None.
        :param is_late: returns True when the remaining ones are left to later requests.
        :returns: for each the answer; None if it does not begin now.
        """
        steps = list[NestedStep | NestedStart | None](prepared)
        for place, step in self._together(prepared).items():
            steps[place] = step
        found: list[NestedStep | None] = []
        for each in steps:
            if not isinstance(each, NestedStart):
                found.append(each)
            elif found and is_late():
                found.append(None)
            else:
                found.append(carefully(each.held.row.id, partial(self.begin, each)))
        return found

    def _together(self, prepared: Sequence[NestedStep | NestedStart | None]) -> dict[int, NestedStep | None]:
        """The results, by position, of the operations that begin in one transaction."""
        some: dict[int, NestedStart] = {}
        room = TOGETHER
        for place, each in enumerate(prepared):
            if isinstance(each, NestedStart) and each.fits(room):
                some[place] = each
                room -= each.start.size or 0
        if len(some) < 2:
            return {}
        starts = [each.start for each in some.values()]
        ids = ', '.join(each.held.row.id for each in some.values())
        planned = carefully(ids, partial(self._traversals.begin_together, starts)) or [None] * len(starts)
        return {
            place: None if plan is None else carefully(each.held.row.id, partial(self._begun, each, plan))
            for (place, each), plan in zip(some.items(), planned, strict=True)
        }

    def _begun(self, beginning: NestedStart, planned: Planned) -> NestedStep:
        """The answer to the caller after the operation has begun."""
        start, held = beginning.start, beginning.held
        if beginning.compiled is not None and start.request.template is not None:
            self._compiler.keep(start.stack, start.request.template, beginning.compiled)
        handoff, traversal_id = held.handoff, planned.traversal.id
        released = handoff.released(traversal_id, planned.checks) if handoff and planned.releases(handoff) else None
        return replace(held.begun, traversal_id=traversal_id, handoff=released)


def carefully(resource_ids: str, begin: Callable[[], T]) -> T | None:
    """The result of `begin`; None after an error: the worker then requests it separately, and gets the error.

    :param resource_ids: those whose objects are the stacks.
    """
    try:
        return begin()
    except errors.ConvergenceError:
        return None
    except Exception:
        LOG.exception('Beginning the nested stack of resource %s failed unexpectedly; its worker retries', resource_ids)
        return None


def started_before(held: NestingResource) -> NestedStep | None:
    """The operation that was begun under the caller's claim, if the answer to that request was lost; else None."""
    row = held.row
    if row.owner is not None or row.status is not Status.IN_PROGRESS or held.handoff is None:
        return None
    return begun_of(row.progress or {})
