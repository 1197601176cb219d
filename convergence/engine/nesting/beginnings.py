"""How something begins for a nested stack: only as long as the row of its resource is held by whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from convergence import errors
from convergence.core.effects import Decision
from convergence.core.model import Action, TraversalStatus
from convergence.core.plan import Request
from convergence.core.rows import Stack
from convergence.core.views import PlanView
from convergence.db.scopes import StackAlone
from convergence.engine.nesting.wants import NestingResource
from convergence.engine.operations.traversals import Overtaken, Traversals


class Beginnings:
    """Begins operations on nested stacks, on behalf of the resources that they are the objects of."""

    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    @staticmethod
    def request(
        held: NestingResource, fence: int, request: Request, also: Callable[[PlanView], None] = lambda view: None
    ) -> Request:
        """A request that is refused when it comes late, and that has no more time than whoever waits for it.

        :param also: what else is to be true.
        :raises NotSupported: whoever waits for it is being cancelled.
        """
        if held.traversal.status is TraversalStatus.CANCELLING:
            raise errors.NotSupported(f'{held.traversal.action} of stack {held.stack.name} is being cancelled')
        return replace(
            request,
            guard=held.guard(fence, also),
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

    def start(self, stack: Stack, held: NestingResource, request: Request) -> str:
        """Have a request carried out; the traversal that begins."""
        return self._traversals.start(stack, request, held.row.id).traversal.id
