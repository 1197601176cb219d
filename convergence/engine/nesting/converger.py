"""Leads nested stacks to their goals: the ones that their resources desire, or those kept in a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from convergence import errors, template
from convergence.core.model import Action, Goal, Status
from convergence.core.nesting import is_tidy
from convergence.core.object_state import brings_nested
from convergence.core.request import Request
from convergence.core.rows import Snapshot, Stack
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.nested_content import name_of
from convergence.engine.compile.submission import Submission
from convergence.engine.nesting.claimed import NestingResource
from convergence.engine.nesting.desired import DesiredStacks, adopted_by
from convergence.engine.nesting.snapshots import NestedSnapshots
from convergence.engine.nesting.starts import NestedStart, NestedStarts
from convergence.engine.traversals.refusals import may_be_given
from convergence.engine.traversals.start import TraversalStart
from convergence.engine.traversals.traversals import Overtaken
from convergence.resources.nesting import NestedStep
from convergence.values import replace

_GIVEN = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE})
"""The actions of a stack that has the goal that its resource has given it."""


@dataclass(frozen=True, slots=True)
class NestingLimits:
    """Limits of nesting.

    :param max_depth: how many stacks a stack may be in.
    :param max_resources: how many resources a whole tree may have; None: no limit.
    """

    max_depth: int = 5
    max_resources: int | None = None


class NestedConverger:
    """Leads nested stacks to their goals.

    :param desired: asks resource types for the stacks that their resources need.
    """

    def __init__(
        self,
        reader: ReaderPort,
        desired: DesiredStacks,
        snapshots: NestedSnapshots,
        starts: NestedStarts,
        limits: NestingLimits,
    ) -> None:
        self._reader = reader
        self._desired = desired
        self._snapshots = snapshots
        self._starts = starts
        self._limits = limits

    def converge(self, held: NestingResource, fence: int, present: Stack | None) -> NestedStep | NestedStart:
        """Lead a nested stack to the goal that its resource desires; create it if it does not exist.

        :param fence: the one under which the row of the resource is claimed.
        :param present: the stack, if it exists.
        """
        kept = self._snapshots.wanted(held)
        if kept is not None:
            return self._bring_back(held, fence, present, kept)
        submission, wanted = self._desired.of(held, present)
        held = replace(held, begun=NestedStep(more=wanted.more, pause_s=wanted.pause_s))
        if present is None:
            return self._create(held, fence, submission, wanted.timeout_mins)
        return self._update(held, fence, present, submission, wanted.timeout_mins)

    def _bring_back(
        self, held: NestingResource, fence: int, present: Stack | None, kept: Snapshot
    ) -> NestedStep | NestedStart:
        submission = Submission.from_content(kept.content)
        if present is None:
            return self._create(held, fence, submission, None, kept)
        last = self._reader.traversal(present.traversal_id or '')
        if present.action is Action.RESTORE and present.status is not Status.FAILED and held.is_served_by(last):
            self._starts.confirm(held, fence, present)
            return NestedStep((present.traversal_id or '') if present.status is Status.IN_PROGRESS else '')
        return self._give_goal(held, fence, present, submission, None, kept)

    def _create(
        self,
        held: NestingResource,
        fence: int,
        submission: Submission,
        timeout_mins: int | None,
        kept: Snapshot | None = None,
    ) -> NestedStart:
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
        held, request, compiled = self._with_goal(held, fence, action, stack, submission, kept=kept)
        if adopts:
            request = replace(request, offered=adopted_by(held.row))
        return NestedStart(TraversalStart.of_new(stack, request, held.handoff), held, compiled)

    def _update(
        self, held: NestingResource, fence: int, present: Stack, submission: Submission, timeout_mins: int | None
    ) -> NestedStep | NestedStart:
        before = self._desired.submissions.of_template(present.template_id or '')
        if before is not None and before.is_like(submission):
            running = self._reader.traversal(present.traversal_id or '')
            if present.status is Status.IN_PROGRESS and present.action in _GIVEN and held.is_served_by(running):
                self._starts.confirm(held, fence, present)
                return replace(held.begun, traversal_id=present.traversal_id or '')
            is_there = present.status is Status.COMPLETE and present.action not in (Action.SUSPEND, Action.ROLLBACK)
            compared = not held.traversal.observes or (held.is_served_by(running) and present.action in _GIVEN)
            if is_there and compared and is_tidy(self._reader.resources(present.id)):
                self._starts.confirm(held, fence, present)
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
    ) -> NestedStart:
        action = Action.UPDATE if kept is None else Action.RESTORE
        may_be_given(present)

        def may(view: PlanView) -> None:
            assert view.stack is not None
            may_be_given(view.stack)
            if view.stack.template_id != present.template_id:
                raise Overtaken(f'stack {present.name} has got another goal')

        held, request, compiled = self._with_goal(held, fence, action, present, submission, may, kept)
        if timeout_mins is not None:
            request = replace(request, stack_changes={**request.stack_changes, 'timeout_mins': timeout_mins})
        return NestedStart.of(present, held, request, compiled)

    def _with_goal(
        self,
        held: NestingResource,
        fence: int,
        action: Action,
        stack: Stack,
        submission: Submission,
        also: Callable[[PlanView], None] = lambda view: None,
        kept: Snapshot | None = None,
    ) -> tuple[NestingResource, Request, template.Compiled]:
        request = Request(
            action,
            Goal(),
            cancels=held.traversal.cancels,
            takes_back=held.traversal.action is Action.ROLLBACK,
            # A user who updated the nested stack directly has not changed the values that it inherits from its parent
            # stack.
            stack_changes={'type_rules': held.stack.type_rules, 'credentials_id': None},
        )
        request, compiled = self._starts.with_goal(stack, submission, Permits(held.stack.type_rules), request)
        held = replace(held, begun=replace(held.begun, is_silent=not compiled.outputs))
        if kept is not None:
            request = replace(request, goal=self._snapshots.plans.brought_back(request.goal, kept))
        return held, self._starts.request(held, fence, request, also), compiled
