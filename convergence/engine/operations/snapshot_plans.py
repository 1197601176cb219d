"""Requests that take a snapshot of a stack, or restore one."""

from __future__ import annotations

from convergence.core.effects import Effect, InsertSnapshot
from convergence.core.model import Action, Goal, Json, Status
from convergence.core.request import Request
from convergence.core.rows import Snapshot, Stack
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort, SnapshotsPort
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.submission import Submission
from convergence.engine.operations.abandonment import data_of
from convergence.engine.operations.actions import Present, still
from convergence.values import replace

NOTHING = Submission({'heat_template_version': '2018-08-31', 'resources': {}})
"""Content of a snapshot of a stack that was rolled back to nothing: a restore can bring it back to that, too."""

PART_OF = 'part_of'
"""Key in the snapshot of a nested stack: the snapshot of the parent stack that it is part of."""


class SnapshotPlans:
    """Makes the requests for snapshots, of root stacks and nested stacks."""

    def __init__(self, reader: ReaderPort, compiler: TemplateCompiler, rows: SnapshotsPort) -> None:
        self._compiler = compiler
        self._present = Present(reader, compiler)
        self._rows = rows

    def taking(
        self, stack: Stack, snapshot_id: str, name: str | None = None, *, part_of: str = '', request_id: str = ''
    ) -> Request:
        """The request that takes a snapshot; its id is also that of the traversal.

        :param part_of: id of the parent stack's snapshot that it is part of; empty: it stands alone.
        :raises Overtaken: the stack has changed since it was read.
        """
        row, goal = self._present.goal(stack)
        content = row.content if row is not None else NOTHING.content()

        def beside(view: PlanView) -> tuple[Effect, ...]:
            now = view.stack
            assert now is not None
            resources = data_of(now, {**content}, view.resources, None, self._compiler.types)['resources']
            for each in resources.values():
                del each['resource_data']  # private to the types; a restore reads it from rows and items
            whole: dict[str, Json] = {**content, 'resources': resources, 'name': now.name, 'tags': list(now.tags)}
            if part_of:
                whole[PART_OF] = part_of
            return (InsertSnapshot(Snapshot(snapshot_id, now.id, name, Status.IN_PROGRESS, '', view.now, whole)),)

        return Request(
            Action.SNAPSHOT,
            goal,
            still(stack, Action.SNAPSHOT),
            template=row,
            request_id=request_id,
            beside=beside,
            traversal_id=snapshot_id,
        )

    def brought_back(self, goal: Goal, snapshot: Snapshot) -> Goal:
        """The goal, with the kept data in the definitions of resources whose type is the same."""
        kept = {item.name: item for item in self._rows.items(snapshot.id) if item.kept}
        definitions = {
            name: replace(definition, restored_from=dict(kept[name].kept))
            if name in kept and kept[name].type == definition.type
            else definition
            for name, definition in goal.definitions.items()
        }
        return Goal(definitions, goal.asked)

    def whole(self, snapshot_id: str) -> Snapshot | None:
        """A snapshot from which a stack can be restored; None if it does not exist or is incomplete."""
        snapshot = self._rows.one(snapshot_id)
        is_whole = snapshot is not None and snapshot.status is Status.COMPLETE and not snapshot.deleting
        return snapshot if is_whole else None

    def taken_with_others(self, stack_id: str) -> tuple[str, ...]:
        """The ids of a nested stack's snapshots that are part of a parent stack's snapshot."""
        return tuple(each.id for each in self._rows.of_stack(stack_id) if each.content.get(PART_OF))
