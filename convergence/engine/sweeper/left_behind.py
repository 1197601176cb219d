"""Objects that deleted stacks have left in their rows: they are deleted, or forgotten with an abandoned stack."""

from __future__ import annotations

import logging
from collections.abc import Callable

from convergence.core.effects import Effect, InsertEvents
from convergence.core.model import Action, Goal, Status
from convergence.core.request import Request
from convergence.core.rows import Event, Resource
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.db.records import EndedTraversal
from convergence.engine.traversals.traversals import Overtaken, Traversals

LOG = logging.getLogger(__name__)

REMOVED = 'it is removed now'
FORGOTTEN = 'it is forgotten now, and stays: the stack was abandoned'


def may_exist(row: Resource) -> bool:
    """Return True if an object may have been created for a row."""
    return row.physical_id is not None or row.token is not None


class LeftBehind:
    """Begins another traversal of a deleted stack if it has left rows with objects. Such rows are an error."""

    def __init__(self, traversals: Traversals, reader: ReaderPort, new_id: Callable[[], str]) -> None:
        self._traversals = traversals
        self._reader = reader
        self._new_id = new_id

    def remove(self, found: EndedTraversal) -> None:
        """Start to delete the objects that a stack has left; the log and an event of the stack name each of them.

        The rows of an abandoned stack are only forgotten, because its objects stay.
        """
        stack, last = self._reader.stack(found.stack_id), self._reader.traversal(found.traversal_id)
        if stack is None or last is None:
            return
        now_it = FORGOTTEN if last.retains else REMOVED

        def guard(view: PlanView) -> None:
            now = view.stack
            if now is None or now.traversal_id != found.traversal_id or now.status is Status.IN_PROGRESS:
                raise Overtaken(f'stack {found.stack_id} has moved on')

        named: list[Resource] = []

        def tell(view: PlanView) -> tuple[Effect, ...]:
            named[:] = [row for row in view.resources if may_exist(row)]
            return (InsertEvents(tuple(self._event(row, view.now, now_it) for row in named)),)

        request = Request(
            Action.DELETE,
            Goal(),
            guard,
            request_id='left-behind',
            cancels=True,
            retains=last.retains,
            beside=tell,
            cause='resources were left when it was deleted',
        )
        try:
            self._traversals.start(stack, request)
        except Overtaken:
            return
        for row in named:
            LOG.error(
                'Stack %s (%s) was deleted, but its resource %s (%s, id %s, physical id %s) still has an object; %s',
                stack.name,
                stack.id,
                row.name,
                row.type,
                row.id,
                row.physical_id or f'unknown, token {row.token}',
                now_it,
            )

    def _event(self, row: Resource, now: float, now_it: str) -> Event:
        reason = f'left when the stack was deleted; {now_it}'
        return Event.of_resource(self._new_id(), row, Action.DELETE, Status.IN_PROGRESS, reason, now)
