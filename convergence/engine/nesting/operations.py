"""What workers ask engines about nested stacks. A request names a row and its fence: the engine reads the rest.

So a request is small, whatever the stack is, and it cannot be late: what begins is planned in a transaction that has
locked the row and seen that it is still held under that fence (`convergence.core.nesting`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from convergence import errors, template
from convergence.core.adoption import brings_nested
from convergence.core.model import PERFORMED, Action, DeletionPolicy, Goal, Status, TraversalStatus
from convergence.core.nesting import is_tidy, is_wanted, may_act
from convergence.core.plan import Request
from convergence.core.rows import Resource, Snapshot, Stack
from convergence.core.views import PlanView
from convergence.db.ports import Ports
from convergence.db.scopes import StackAlone
from convergence.documents import Document
from convergence.engine.caller import Caller
from convergence.engine.nesting.beginnings import Beginnings, begun_before
from convergence.engine.nesting.content import name_of
from convergence.engine.nesting.releases import Releases
from convergence.engine.nesting.snapshots import NestedSnapshots
from convergence.engine.nesting.wants import NestingResource, Wants, adopted_by
from convergence.engine.operations.actions import Present
from convergence.engine.operations.goal_rows import template_row
from convergence.engine.operations.goals import Goals
from convergence.engine.operations.permits import Permits
from convergence.engine.operations.refusals import may_get_goal, may_perform
from convergence.engine.operations.snapshot_plans import SnapshotPlans
from convergence.engine.operations.submission import Submission
from convergence.engine.operations.traversals import ROUNDS, Overtaken, Traversals
from convergence.resources.nesting import NestedStep
from convergence.resources.registry import Registry

_STAYS = frozenset({Action.SUSPEND, Action.RESUME})
"""What need not be done to a stack to which it was done last."""

_GIVEN = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE})
"""The actions of a stack that has the goal that its resource has given it."""


@dataclass(frozen=True, slots=True)
class NestingLimits:
    """How far stacks may be nested.

    :param max_depth: how many stacks a stack may be in.
    :param max_resources: how many resources a whole tree may have; None: no limit.
    """

    max_depth: int = 5
    max_resources: int | None = None


class Nesting:
    """Gives nested stacks something to do on behalf of the resources that they are the objects of.

    :ivar wants: asks the types of those resources.
    :ivar snapshots: their parts in the snapshots of the stacks that they are in.
    :ivar release: see `Releases.release`.
    """

    def __init__(
        self,
        ports: Ports,
        goals: Goals,
        traversals: Traversals,
        types: Registry,
        limits: NestingLimits,
        new_id: Callable[[], str],
    ) -> None:
        self._reader = reader = ports.reader
        self._traversals = traversals
        self.wants = Wants(reader, goals, types)
        self._limits = limits
        self._new_id = new_id
        self.release = Releases(ports, types, traversals).release
        self._present = Present(reader, goals)
        self._beginnings = Beginnings(traversals, types, new_id)
        plans = SnapshotPlans(reader, goals, ports.snapshots)
        self.snapshots = NestedSnapshots(plans, ports.snapshots, traversals, self._beginnings)

    # --- operations -------------------------------------------------------------------------------------------

    def act_on_nested_stack(
        self, context: Caller, resource_id: str, fence: int, step: int = 0, node: int | None = None
    ) -> Document:
        """Begin what the row of a resource says is under way. Once more, it changes nothing.

        :param fence: the one under which the caller holds the row.
        :param step: how many steps of the action have been taken before.
        :param node: number of the node that the row is held for, if it is let go of as soon as something has begun.
        :returns: the fields of `NestedStep`.
        :raises Conflict: the caller does not hold the row any more.
        """
        for _ in range(ROUNDS):
            held = replace(self._held(resource_id, fence), step=step, node=node)
            try:
                return asdict(begun_before(held) or self._act(held, fence))
            except (Overtaken, errors.StackExists, errors.EntityNotFound):
                continue
        raise errors.Conflict(f'the nested stack {resource_id} keeps changing')

    def cancel_nested_stack(self, context: Caller, resource_id: str, fence: int) -> None:
        """Stop what a nested stack does on behalf of its resource. Of one at rest: nothing."""
        held = self._held(resource_id, fence)
        self._cancel(held.row, lambda view: may_act(view.parent, held.row.token or '', fence))

    def cancel_unwanted(self, stack_id: str, resource_id: str) -> None:
        """A nested stack does something on behalf of a resource that does not want it any more: stop it."""
        row = self._reader.resource(resource_id)
        stack = self._reader.stack(stack_id)
        if stack is None or stack.status is not Status.IN_PROGRESS:
            return
        self._stop(stack, resource_id, lambda view: not is_wanted(view.parent))
        if row is None:
            self.release(stack_id, resource_id)

    def cancel_with(self, stack_id: str, resource_id: str) -> None:
        """A nested stack works on behalf of a stack that is being cancelled: it begins nothing more, too."""
        row = self._reader.resource(resource_id)
        stack = self._reader.stack(row.stack_id) if row is not None else None
        around = self._reader.traversal(stack.traversal_id or '') if stack is not None else None
        if around is not None and around.status is TraversalStatus.CANCELLING:
            self._traversals.cancel_with(around, stack_id, resource_id)

    # --- acting -----------------------------------------------------------------------------------------------

    def _held(self, resource_id: str, fence: int) -> NestingResource:
        found = self._reader.nesting(resource_id)
        if found is None or found.row.fence != fence or found.row.token is None:
            raise errors.Conflict(f'resource {resource_id} is held by somebody else by now')
        return NestingResource(found.row, found.stack, found.traversal, found.nested)

    def _act(self, held: NestingResource, fence: int) -> NestedStep:
        action, present = held.row.action, held.present
        if present is not None and present.deleted_at is not None:
            return NestedStep(is_gone=True)
        if action is Action.DELETE:
            return self._remove(held, fence, present)
        if action in PERFORMED:
            return self._perform(held, fence, present)
        return self._converge(held, fence, present)

    def _remove(self, held: NestingResource, fence: int, present: Stack | None) -> NestedStep:
        if present is None:
            return NestedStep(is_gone=True)
        definition = held.row.definition
        if not held.traversal.retains and definition and definition.deletion_policy is DeletionPolicy.RETAIN:
            self.release(present.id, held.row.id)
            return NestedStep(is_gone=True)
        running = self._reader.traversal(present.traversal_id or '')
        is_deleting = (present.action, present.status) == (Action.DELETE, Status.IN_PROGRESS)
        if is_deleting and running is not None and (running.retains or not held.traversal.retains):
            self._beginnings.confirm(held, fence, present)
            return NestedStep(running.id)
        request = self._beginnings.request(
            held,
            fence,
            Request(
                Action.DELETE,
                Goal(),
                cancels=True,
                retains=held.traversal.retains,
                beside=self.snapshots.going(held, present),
            ),
        )
        return self._beginnings.start(present, held, request)

    def _perform(self, held: NestingResource, fence: int, present: Stack | None) -> NestedStep:
        action = held.row.action
        if present is None:
            return NestedStep(is_gone=True)
        if (present.action, present.status) == (action, Status.IN_PROGRESS):
            self._beginnings.confirm(held, fence, present)
            return NestedStep(present.traversal_id or '')
        if (present.action, present.status) == (action, Status.COMPLETE) and action in _STAYS:
            self._beginnings.confirm(held, fence, present)
            return NestedStep()
        if action is Action.SNAPSHOT:
            return self.snapshots.take(held, fence, present)
        may_perform(present, action)
        row, goal = self._present.goal(present)

        def still(view: PlanView) -> None:
            assert view.stack is not None
            may_perform(view.stack, action)
            if view.stack.traversal_id != present.traversal_id:
                raise Overtaken(f'stack {present.name} has moved on')

        request = self._beginnings.request(held, fence, Request(action, goal, template=row), still)
        return self._beginnings.start(present, held, request)

    def _converge(self, held: NestingResource, fence: int, present: Stack | None) -> NestedStep:
        kept = self.snapshots.wanted(held)
        if kept is not None:
            return self._bring_back(held, fence, present, kept)
        submission, wanted = self.wants.of(held, present)
        held = replace(held, begun=NestedStep(more=wanted.more, pause_s=wanted.pause_s))
        if present is None:
            return self._create(held, fence, submission, wanted.timeout_mins)
        return self._update(held, fence, present, submission, wanted.timeout_mins)

    def _bring_back(self, held: NestingResource, fence: int, present: Stack | None, kept: Snapshot) -> NestedStep:
        submission = Submission.from_content(kept.content)
        if present is None:
            return self._create(held, fence, submission, None, kept)
        last = self._reader.traversal(present.traversal_id or '')
        if present.action is Action.RESTORE and present.status is not Status.FAILED and held.is_served_by(last):
            self._beginnings.confirm(held, fence, present)
            return NestedStep((present.traversal_id or '') if present.status is Status.IN_PROGRESS else '')
        return self._give_goal(held, fence, present, submission, None, kept)

    def _create(
        self,
        held: NestingResource,
        fence: int,
        submission: Submission,
        timeout_mins: int | None,
        kept: Snapshot | None = None,
    ) -> NestedStep:
        parent = held.stack
        stack_id = held.row.token or ''
        stack = Stack(
            id=stack_id,
            name=name_of(parent, held.row.name, stack_id),
            project_id=parent.project_id,
            action=Action.CREATE,
            status=Status.IN_PROGRESS,
            status_reason='',
            template_id=None,
            last_good_template_id=None,
            traversal_id=None,
            timeout_mins=parent.timeout_mins if timeout_mins is None else timeout_mins,
            disable_rollback=True,
            created_at=0.0,
            parent_id=parent.id,
            parent_resource_id=held.row.id,
            root_id=parent.tree_id,
            nested_depth=parent.nested_depth + 1,
            type_rules=parent.type_rules,
        )
        if stack.nested_depth > self._limits.max_depth:
            raise errors.RequestLimitExceeded(
                f'Recursion depth exceeds {self._limits.max_depth} ([limits] max_nested_stack_depth).'
            )
        adopts = brings_nested(held.row)
        action = Action.ADOPT if adopts else Action.CREATE
        request, compiled = self._with_goal(held, fence, action, stack, submission, kept=kept)
        if adopts:
            request = replace(request, offered=adopted_by(held.row))
        begun = self._beginnings.create(stack, held, request)
        self._keep(stack, request, compiled)
        return begun

    def _update(
        self, held: NestingResource, fence: int, present: Stack, submission: Submission, timeout_mins: int | None
    ) -> NestedStep:
        before = self.wants.goals.submitted(present.template_id or '')
        if before is not None and before.is_like(submission):
            running = self._reader.traversal(present.traversal_id or '')
            if present.status is Status.IN_PROGRESS and present.action in _GIVEN and held.is_served_by(running):
                self._beginnings.confirm(held, fence, present)
                return replace(held.begun, traversal_id=present.traversal_id or '')
            is_there = present.status is Status.COMPLETE and present.action not in (Action.SUSPEND, Action.ROLLBACK)
            compared = not held.traversal.observes or (held.is_served_by(running) and present.action in _GIVEN)
            if is_there and compared and is_tidy(self._reader.resources(present.id)):
                self._beginnings.confirm(held, fence, present)
                return held.begun
        return self._give_goal(held, fence, present, submission, timeout_mins)

    def _give_goal(
        self,
        held: NestingResource,
        fence: int,
        present: Stack,
        submission: Submission,
        timeout_mins: int | None,
        kept: Snapshot | None = None,
    ) -> NestedStep:
        action = Action.UPDATE if kept is None else Action.RESTORE
        may_get_goal(present, action)

        def may(view: PlanView) -> None:
            assert view.stack is not None
            may_get_goal(view.stack, action)
            if view.stack.template_id != present.template_id:
                raise Overtaken(f'stack {present.name} has got another goal')

        request, compiled = self._with_goal(held, fence, action, present, submission, may, kept)
        if timeout_mins is not None:
            request = replace(request, stack_changes={**request.stack_changes, 'timeout_mins': timeout_mins})
        started = self._beginnings.start(present, held, request)
        self._keep(present, request, compiled)
        return started

    def _with_goal(
        self,
        held: NestingResource,
        fence: int,
        action: Action,
        stack: Stack,
        submission: Submission,
        also: Callable[[PlanView], None] = lambda view: None,
        kept: Snapshot | None = None,
    ) -> tuple[Request, template.Compiled]:
        request = Request(
            action,
            Goal(),
            cancels=held.traversal.cancels,
            # Whoever has updated the nested stack by itself has said nothing about what it is given from above.
            stack_changes={'type_rules': held.stack.type_rules, 'credentials_id': None},
        )
        request, compiled = self._towards(stack, submission, Permits(held.stack.type_rules), request)
        held = replace(held, begun=replace(held.begun, is_silent=not compiled.outputs))
        if kept is not None:
            request = replace(request, goal=self.snapshots.plans.brought_back(request.goal, kept))
        return self._beginnings.request(held, fence, request, also), compiled

    def _towards(
        self, stack: Stack, submission: Submission, permits: Permits, request: Request
    ) -> tuple[Request, template.Compiled]:
        compiled = self.wants.goals.compile(stack, submission, permits)
        self._require_room(stack, len(compiled.goal.definitions))
        row = template_row(self._new_id(), stack.id, submission, compiled)
        return replace(request, goal=compiled.goal, template=row, is_new_template=True), compiled

    def give(self, stack: Stack, submission: Submission, permits: Permits, request: Request, resource_id: str) -> None:
        """Give a nested stack another goal that its resource has not asked for.

        :param request: all but the goal.
        :param resource_id: the row whose object the stack is: the request's guard sees it, locked.
        """
        request, compiled = self._towards(stack, submission, permits, request)
        self._traversals.start(stack, request, resource_id)
        self._keep(stack, request, compiled)

    def _require_room(self, stack: Stack, count: int) -> None:
        most = self._limits.max_resources
        if most is None:
            return
        there = self._reader.resources_of_tree(stack.tree_id) - stack.resource_count
        if there + count > most:
            raise errors.RequestLimitExceeded(
                f'Maximum resources per stack exceeded: the tree of stacks would have {there + count}, and the limit '
                f'is {most} ([limits] max_resources_per_stack).'
            )

    def _keep(self, stack: Stack, request: Request, compiled: template.Compiled) -> None:
        assert request.template is not None
        self.wants.goals.keep(stack, request.template, compiled)

    # --- stopping ---------------------------------------------------------------------------------------------

    def _cancel(self, row: Resource, may: Callable[[PlanView], bool]) -> None:
        stack = self._reader.stack(row.token or '')
        if stack is not None and stack.deleted_at is None:
            self._stop(stack, row.id, may)

    def _stop(self, stack: Stack, resource_id: str, may: Callable[[PlanView], bool]) -> None:
        """Cancel without a rollback, if that still makes sense when everything is locked."""

        def wanted(view: PlanView) -> bool:
            busy = view.stack is not None and view.stack.status is Status.IN_PROGRESS
            ours = view.traversal is not None and view.traversal.for_parent
            return busy and ours and may(view)

        self._traversals.stop(StackAlone(stack.id, resource_id), wanted)
