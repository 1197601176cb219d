"""Stops operations of nested stacks, and makes nested stacks independent whose resources are gone."""

from __future__ import annotations

from collections.abc import Callable

from convergence.core.model import Status, TraversalStatus
from convergence.core.nesting import is_wanted, may_act
from convergence.core.rows import Resource, Stack
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.db.scopes import StackAlone
from convergence.engine.callers.caller import Caller
from convergence.engine.nesting.claimed import claimed
from convergence.engine.nesting.releases import Releases
from convergence.engine.traversals.traversals import Traversals


class NestedStops:
    """Stops nested stacks: on request of a worker, or of the sweeper."""

    def __init__(self, reader: ReaderPort, traversals: Traversals, releases: Releases) -> None:
        self._reader = reader
        self._traversals = traversals
        self._releases = releases

    def cancel_nested_stack(self, context: Caller, resource_id: str, fence: int) -> None:
        """Stop the operation that a nested stack performs for its resource. Has no effect on a stack at rest."""
        rows = {found.row.id: found for found in self._reader.nesting([resource_id])}
        held = claimed(resource_id, fence, rows)
        self._cancel(held.row, lambda view: may_act(view.parent, held.row.token or '', fence))

    def cancel_unwanted(self, stack_id: str, resource_id: str) -> None:
        """Stop the operation of a nested stack whose resource no longer needs it."""
        row = self._reader.resource(resource_id)
        stack = self._reader.stack(stack_id)
        if stack is None or stack.status is not Status.IN_PROGRESS:
            return
        self._stop(stack, resource_id, lambda view: not is_wanted(view.parent))
        if row is None:
            self._releases.release(stack_id, resource_id)

    def release(self, stack_id: str, resource_id: str) -> None:
        """Make a nested stack independent whose resource is gone; see `Releases.release`."""
        self._releases.release(stack_id, resource_id)

    def cancel_with(self, stack_id: str, resource_id: str) -> None:
        """Cancel the operation of a nested stack whose parent stack is being cancelled."""
        row = self._reader.resource(resource_id)
        stack = self._reader.stack(row.stack_id) if row is not None else None
        around = self._reader.traversal(stack.traversal_id or '') if stack is not None else None
        if around is not None and around.status is TraversalStatus.CANCELLING:
            self._traversals.cancel_with(around, stack_id, resource_id)

    def _cancel(self, row: Resource, may: Callable[[PlanView], bool]) -> None:
        stack = self._reader.stack(row.token or '')
        if stack is not None and stack.deleted_at is None:
            self._stop(stack, row.id, may)

    def _stop(self, stack: Stack, resource_id: str, may: Callable[[PlanView], bool]) -> None:
        """Cancel without a rollback, if the condition still holds under the lock."""

        def wanted(view: PlanView) -> bool:
            busy = view.stack is not None and view.stack.status is Status.IN_PROGRESS
            ours = view.traversal is not None and view.traversal.for_parent
            return busy and ours and may(view)

        self._traversals.stop(StackAlone(stack.id, resource_id), wanted)
