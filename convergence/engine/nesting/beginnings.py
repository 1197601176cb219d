"""How something begins for a nested stack: only as long as the row of its resource is held by whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable

from convergence import errors
from convergence.core.effects import Decision, Effect
from convergence.core.model import Action, Status, TraversalStatus
from convergence.core.nesting import park
from convergence.core.request import Planned, Request
from convergence.core.rows import Stack
from convergence.core.upwards import TELLS, progress_towards
from convergence.core.views import PlanView
from convergence.db.scopes import StackAlone
from convergence.engine.nesting.wants import NestingResource
from convergence.engine.operations.traversals import Overtaken, Traversals
from convergence.resources.nested import NestedType, begun_of, progress_of
from convergence.resources.nesting import NestedStep
from convergence.resources.registry import Registry
from convergence.values import replace


class Beginnings:
    """Begins operations on nested stacks, on behalf of the resources that they are the objects of."""

    def __init__(self, traversals: Traversals, types: Registry, new_id: Callable[[], str]) -> None:
        self._traversals = traversals
        self._types = types
        self._new_id = new_id

    def request(
        self, held: NestingResource, fence: int, request: Request, also: Callable[[PlanView], None] = lambda view: None
    ) -> Request:
        """A request that is refused when it comes late, and that has no more time than whoever waits for it.

        Nobody holds the row any more when it has begun, if it could be let go of.

        :param also: what else is to be true.
        :raises NotSupported: whoever waits for it is being cancelled.
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
        """That there is nothing to begin was decided by what was read; look again at what nobody can change meanwhile.

        :raises Overtaken: it was an older state of the stack.
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

    def start(self, stack: Stack, held: NestingResource, request: Request) -> NestedStep:
        """Have a request carried out."""
        return _begun(
            held, self._traversals.start(stack, request, held.row.id, held.held_for(), caller_tells=held.tells())
        )

    def create(self, stack: Stack, held: NestingResource, request: Request) -> NestedStep:
        """Store a stack with a request."""
        return _begun(held, self._traversals.create(stack, request, held.held_for(), caller_tells=held.tells()))


def begun_before(held: NestingResource) -> NestedStep | None:
    """What was begun under the very claim that asks for it, and nobody has heard that it was; None: nothing was."""
    row = held.row
    if row.owner is not None or row.status is not Status.IN_PROGRESS or held.node is None:
        return None
    begun = begun_of(row.progress or {})
    return None if begun is None else replace(begun, is_parked=True)


def _begun(held: NestingResource, planned: Planned) -> NestedStep:
    is_parked = planned.lets_go_of(held.row.id)
    nodes = planned.checks if is_parked and held.tells() else ()
    return replace(held.begun, traversal_id=planned.traversal.id, is_parked=is_parked, nodes=nodes)
