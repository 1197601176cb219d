"""Snapshots of stacks: taken, shown, deleted, and come back to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from convergence import errors, template
from convergence.core.effects import Decision, DeleteSnapshots
from convergence.core.model import Action, Status
from convergence.core.nesting import nested_snapshot
from convergence.core.request import Request
from convergence.core.rows import Snapshot, Stack
from convergence.core.views import PlanView
from convergence.db.ports import SnapshotsPort
from convergence.db.scopes import StackAlone
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.goal_rows import template_row
from convergence.engine.compile.submission import Submission
from convergence.engine.operations.abandonment import nested_data
from convergence.engine.operations.snapshot_plans import SnapshotPlans
from convergence.engine.operations.stacks import Stacks
from convergence.engine.reads import formats
from convergence.engine.traversals.refusals import may_get_goal, may_perform
from convergence.engine.traversals.traversals import ROUNDS, Overtaken, Traversals

_LONGEST_NAME = 255


class Snapshots:
    """Accepts operations on snapshots. An accepted operation is in the database before a method returns.

    :param most: maximum number of snapshots of a stack; None: no limit.
    """

    def __init__(
        self,
        stacks: Stacks,
        compiler: TemplateCompiler,
        traversals: Traversals,
        rows: SnapshotsPort,
        new_id: Callable[[], str],
        *,
        most: int | None = 32,
    ) -> None:
        self._stacks = stacks
        self._compiler = compiler
        self._plans = SnapshotPlans(stacks.reader, compiler, rows)
        self._traversals = traversals
        self._rows = rows
        self._new_id = new_id
        self._most = most

    def stack_snapshot(self, context: Caller, stack_identity: Document, name: str | None = None) -> Document:
        """Start to take a snapshot; the snapshot in its present state.

        :raises ActionInProgress: the stack is in progress.
        :raises Invalid: the name is too long.
        :raises RequestLimitExceeded: the stack has the maximum number of snapshots.
        """
        if name is not None and len(name) > _LONGEST_NAME:
            raise errors.Invalid(f'name: a snapshot is called by at most {_LONGEST_NAME} characters, not {len(name)}')
        for _ in range(ROUNDS):
            stack = self._stacks.find(context, stack_identity)
            may_perform(stack, Action.SNAPSHOT)
            if self._most is not None and self._rows.count(stack.id) >= self._most:
                raise errors.RequestLimitExceeded(
                    f'You have reached the maximum snapshots per stack, {self._most} '
                    '([limits] max_snapshots_per_stack). Please delete some snapshots.'
                )
            try:
                snapshot_id = self._take(context, stack, name)
            except Overtaken:
                continue
            return self.show_snapshot(context, stack_identity, snapshot_id)
        raise errors.ActionInProgress(f'Stack {stack.name} keeps changing; repeat the request.')

    def stack_list_snapshots(self, context: Caller, stack_identity: Document) -> list[Document]:
        """The snapshots of a stack, oldest first."""
        stack = self._stacks.find(context, stack_identity)
        return [self._shown(stack, snapshot) for snapshot in self._rows.of_stack(stack.id)]

    def show_snapshot(self, context: Caller, stack_identity: Document, snapshot_id: str) -> Document:
        """One snapshot with its data.

        :raises EntityNotFound: the stack has no such snapshot.
        """
        stack = self._stacks.find(context, stack_identity)
        return self._shown(stack, self._find(stack, snapshot_id))

    def delete_snapshot(self, context: Caller, stack_identity: Document, snapshot_id: str) -> None:
        """Begin to delete a snapshot, with the data that resource types keep for it. Repeating it changes nothing.

        :raises NotSupported: it is just being taken.
        """
        stack = self._stacks.find(context, stack_identity)

        def decide(view: PlanView) -> Decision[None]:
            if self._find(stack, snapshot_id).status is Status.IN_PROGRESS:
                raise errors.NotSupported('Deleting in-progress snapshot is not supported.')
            return Decision(None, (DeleteSnapshots(stack.id, snapshot_id),))

        self._find(stack, snapshot_id)
        self._traversals.decide(StackAlone(stack.id), decide)

    def stack_restore(self, context: Caller, stack_identity: Document, snapshot_id: str) -> None:
        """Bring a stack back to the state that a snapshot has recorded.

        :raises NotSupported: the snapshot is not complete, or the state of the stack allows no new goal.
        """
        stack = self._stacks.find(context, stack_identity)
        may_get_goal(stack, Action.RESTORE)
        snapshot = self._find(stack, snapshot_id)
        if snapshot.status is not Status.COMPLETE or snapshot.deleting:
            state = 'being deleted' if snapshot.deleting else f'SNAPSHOT_{snapshot.status}'
            raise errors.NotSupported(f'Restoring from snapshot {snapshot_id}, which is {state}, is not supported.')
        submission = Submission.from_content(snapshot.content)
        compiled = self._compiler.compile(stack, submission, Permits.of(context))

        def guard(view: PlanView) -> None:
            assert view.stack is not None
            may_get_goal(view.stack, Action.RESTORE)

        row = template_row(self._new_id(), stack.id, submission, compiled)
        request = Request(
            Action.RESTORE,
            self._plans.brought_back(compiled.goal, snapshot),
            guard,
            template=row,
            is_new_template=True,
            rollback_on_failure=not stack.disable_rollback,
            request_id=context.request_id,
        )
        self._traversals.start(stack, request)
        self._compiler.keep(stack, row, compiled)

    # --- parts ------------------------------------------------------------------------------------------------

    def _take(self, context: Caller, stack: Stack, name: str | None) -> str:
        """Plan the traversal that takes the snapshot; both have the same id."""
        snapshot_id = self._new_id()
        self._traversals.start(stack, self._plans.taking(stack, snapshot_id, name, request_id=context.request_id))
        return snapshot_id

    def _find(self, stack: Stack, snapshot_id: str) -> Snapshot:
        snapshot = self._rows.one(snapshot_id)
        if snapshot is None or snapshot.stack_id != stack.id:
            raise errors.EntityNotFound(f'The Snapshot ({snapshot_id}) for Stack ({stack.name}) could not be found.')
        return snapshot

    def _shown(self, stack: Stack, snapshot: Snapshot) -> Document:
        taken = snapshot.status if not snapshot.deleting or snapshot.status is Status.FAILED else Status.IN_PROGRESS
        return {
            'id': snapshot.id,
            'name': snapshot.name,
            'action': (Action.DELETE if snapshot.deleting else Action.SNAPSHOT).value,
            'status': taken.value,
            'status_reason': snapshot.status_reason,
            'creation_time': formats.moment(snapshot.created_at),
            'data': self._data(stack, snapshot),
        }

    def _data(self, stack: Stack, snapshot: Snapshot) -> Document:
        """The data of a snapshot, hidden values masked, in the form in which a stack could be adopted."""
        submission = Submission.from_content(snapshot.content)
        return {
            'name': snapshot.content.get('name'),
            'id': stack.id,
            'project_id': stack.project_id,
            'tags': snapshot.content.get('tags'),
            'template': self._compiler.submissions.document(submission.template),
            'environment': formats.environment(submission.environment, self._parameters(stack, submission)),
            'files': dict(submission.files),
            'resources': self._resources(snapshot),
        }

    def _resources(self, snapshot: Snapshot) -> Document:
        """The recorded data of the resources; of nested stacks, with all of their data."""
        kept = snapshot.content.get('resources')
        found: Document = {**kept} if isinstance(kept, dict) else {}
        for item in self._rows.items(snapshot.id):
            part = self._rows.one(nested_snapshot(snapshot.id, item.physical_id or ''))
            child = self._stacks.reader.stack(part.stack_id) if part is not None else None
            if part is not None and child is not None and item.name in found:
                found[item.name] = nested_data(found[item.name], self._data(child, part))
        return found

    def _parameters(self, stack: Stack, submission: Submission) -> Mapping[str, template.Parameter] | None:
        """The parameters that the template of a snapshot declares; None if it is unreadable."""
        try:
            inspect = self._compiler.validator.inspect
            compiled, _ = inspect(stack.project_id, submission, Permits(), ignore_unknown_types=True)
        except errors.UserError:
            return None
        parameters: Mapping[str, template.Parameter] = compiled.parameters
        return parameters
