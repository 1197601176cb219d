"""Snapshots of nested stacks: each is part of a snapshot of the parent stack, or stands alone."""

from __future__ import annotations

from collections.abc import Callable

from convergence import errors
from convergence.core.effects import Decision, DeleteSnapshots, Effect
from convergence.core.model import Action, Status
from convergence.core.nesting import nested_snapshot
from convergence.core.rows import Snapshot, Stack
from convergence.core.views import PlanView
from convergence.db.ports import SnapshotsPort
from convergence.db.scopes import StackAlone
from convergence.engine.callers.caller import Caller
from convergence.engine.nesting.claimed import NestingResource
from convergence.engine.nesting.starts import NestedStart, NestedStarts
from convergence.engine.operations.snapshot_plans import SnapshotPlans
from convergence.engine.traversals.refusals import may_perform
from convergence.engine.traversals.traversals import Traversals
from convergence.resources.nested import SNAPSHOT
from convergence.resources.nesting import NestedStep


class NestedSnapshots:
    """Takes and deletes snapshots of nested stacks as parts of their parent stacks' snapshots."""

    def __init__(self, plans: SnapshotPlans, rows: SnapshotsPort, traversals: Traversals, starts: NestedStarts) -> None:
        self.plans = plans
        self._rows = rows
        self._traversals = traversals
        self._starts = starts

    def take(self, held: NestingResource, fence: int, present: Stack) -> NestedStep | NestedStart:
        """Begin to take the snapshot of a nested stack, unless it exists.

        :raises Invalid: it has failed.
        """
        snapshot_id = nested_snapshot(held.traversal.id, present.id)
        taken = self._rows.one(snapshot_id)
        if taken is None:
            may_perform(present, Action.SNAPSHOT)
            request = self.plans.taking(present, snapshot_id, part_of=held.traversal.id)
            request = self._starts.request(held, fence, request, request.guard)
            return NestedStart.of(present, held, request)
        if taken.status is Status.FAILED:
            raise errors.Invalid(taken.status_reason)
        self._starts.confirm(held, fence, present)
        return NestedStep(snapshot_id if taken.status is Status.IN_PROGRESS else '')

    def delete_nested_snapshot(self, context: Caller, stack_id: str, snapshot_id: str) -> None:
        """Begin to delete the snapshot of a nested stack. Has no effect if the snapshot is gone.

        :raises NotSupported: it is just being taken.
        """
        taken = self._rows.one(snapshot_id)
        if taken is None or taken.stack_id != stack_id or taken.deleting:
            return
        if taken.status is Status.IN_PROGRESS:
            raise errors.NotSupported('Deleting in-progress snapshot is not supported.')
        deleting = Decision(None, (DeleteSnapshots(stack_id, snapshot_id),))
        self._traversals.decide(StackAlone(stack_id), lambda view: deleting)

    def going(self, held: NestingResource, present: Stack) -> Callable[[PlanView], tuple[Effect, ...]]:
        """The effects that delete a nested stack's snapshots together with it.

        Snapshots that are part of a parent stack's snapshot stay, because a restore of that one needs them. An
        abandoned stack keeps all of them.
        """
        if held.traversal.retains:
            return lambda view: ()
        keeping = self.plans.taken_with_others(present.id) if held.has_snapshots else ()

        def gone(view: PlanView) -> tuple[Effect, ...]:
            # One is taken by an operation of the stack: without another one than was seen there is none still.
            is_same = view.stack is not None and view.stack.traversal_id == present.traversal_id
            return () if is_same and not held.has_snapshots else (DeleteSnapshots(present.id, keeping=keeping),)

        return gone

    def wanted(self, held: NestingResource) -> Snapshot | None:
        """The snapshot that a nested stack is to be restored from, if it is complete."""
        pending = held.row.pending
        kept = pending.definition.restored_from if pending is not None else None
        return self.plans.whole(str(kept.get(SNAPSHOT))) if isinstance(kept, dict) else None
