"""Requests of workers about nested stacks. A request names a row and its fence; the engine reads the rest.

A request also contains the output that the end of the stack gives the row, as far as that is known and not secret. So
requests are small for any stack. A late request does no harm: the plan is made in a transaction that has locked the row
and has checked that the claim still has that fence (`convergence.core.nesting`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial

from convergence import errors
from convergence.core.handoff import Handoff
from convergence.core.model import PERFORMED, Action, DeletionPolicy, Goal, NodeStatus, Status
from convergence.core.request import Request
from convergence.core.rows import Stack
from convergence.core.views import PlanView
from convergence.db.ports import ReaderPort
from convergence.db.records import NestingRow
from convergence.db.transaction import LAST
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.nesting.claimed import NestingResource, claimed
from convergence.engine.nesting.converger import NestedConverger
from convergence.engine.nesting.releases import Releases
from convergence.engine.nesting.snapshots import NestedSnapshots
from convergence.engine.nesting.starts import NestedStart, NestedStarts, carefully, started_before
from convergence.engine.operations.actions import Present
from convergence.engine.traversals.refusals import may_perform
from convergence.engine.traversals.traversals import ROUNDS, Overtaken
from convergence.resources.nesting import NestedStep
from convergence.values import replace

LOG = logging.getLogger(__name__)

TOGETHER_S = 0.5
"""Time limit in seconds for several stacks requested together; the worker requests the remaining ones separately."""

_STAYS = frozenset({Action.SUSPEND, Action.RESUME})
"""Actions that have no effect on a stack whose last action was the same."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request for one row; see `NestedOperations.act_on_nested_stack`."""

    resource_id: str
    fence: int
    step: int = 0
    node: int | None = None
    ends: Document | None = None


def _answer(step: NestedStep) -> Document:
    return asdict(step)


_ASKED = frozenset(each.name for each in fields(_Asked))


class NestedOperations:
    """Operations on nested stacks that workers request on behalf of the resources whose objects the stacks are.

    :param converger: leads the stacks to their desired goals.
    :param releases: makes nested stacks independent.
    :param present: reads the present goals of stacks.
    :ivar snapshots: takes and deletes the snapshots of nested stacks.
    """

    def __init__(
        self,
        reader: ReaderPort,
        converger: NestedConverger,
        snapshots: NestedSnapshots,
        starts: NestedStarts,
        releases: Releases,
        present: Present,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._converger = converger
        self.snapshots = snapshots
        self._starts = starts
        self._releases = releases
        self._present = present
        self._clock = clock

    # --- operations -------------------------------------------------------------------------------------------

    def act_on_nested_stack(
        self,
        context: Caller,
        resource_id: str,
        fence: int,
        step: int = 0,
        node: int | None = None,
        ends: Document | None = None,
    ) -> Document:
        """Begin the action that the row of a resource records. Repeating the request changes nothing.

        :param fence: the one under which the caller has claimed the row.
        :param step: number of finished steps of the action.
        :param node: number of the node that the row is claimed for, if the engine may release the row; see `Handoff`.
        :param ends: see `NestingResource`. None from workers of an older version, which do not dispatch nodes of nested
            stacks either.
        :returns: the fields of `NestedStep`.
        :raises Conflict: the claim is lost.
        """
        return self._begin(_Asked(resource_id, fence, step, node, ends), self._rows([resource_id]))

    def act_on_nested_stacks(self, context: Caller, asked: Sequence[Document]) -> list[Document | None]:
        """The same for several rows of one operation.

        :param asked: for each of them the arguments of `act_on_nested_stack`.
        :returns: for each the answer; None: not begun, because of an error or the time limit. The worker then requests
            it separately.
        """
        # A worker of a later version may say more.
        every = [_Asked(**{key: each[key] for key in each.keys() & _ASKED}) for each in asked]
        rows = self._rows([each.resource_id for each in every])
        until = self._clock() + TOGETHER_S
        prepared: list[NestedStep | NestedStart | None] = []
        for each in every:
            is_late = bool(prepared) and self._clock() >= until
            prepared.append(None if is_late else carefully(each.resource_id, partial(self._prepared, each, rows)))
        steps = self._starts.begin_all(prepared, lambda: self._clock() >= until)
        return [None if step is None else _answer(step) for step in steps]

    def _begin(self, asked: _Asked, rows: Mapping[str, NestingRow]) -> Document:
        """:param rows: rows that may be outdated; they are read again if needed."""
        for _ in range(ROUNDS):
            try:
                found = self._prepared(asked, rows)
                return _answer(self._starts.begin(found) if isinstance(found, NestedStart) else found)
            except (Overtaken, errors.StackExists, errors.EntityNotFound):
                rows = self._rows([asked.resource_id])
        raise errors.Conflict(f'the nested stack {asked.resource_id} keeps changing')

    def _prepared(self, asked: _Asked, rows: Mapping[str, NestingRow]) -> NestedStep | NestedStart:
        held = replace(claimed(asked.resource_id, asked.fence, rows), step=asked.step, ends=asked.ends)
        if asked.node is not None:
            claimed_for = (held.traversal.id, asked.node)
            held = replace(held, handoff=Handoff(asked.resource_id, claimed_for, asked.ends is not None))
        return self._begun_before(held) or self._act(held, asked.fence)

    def _rows(self, resource_ids: Sequence[str]) -> dict[str, NestingRow]:
        return {found.row.id: found for found in self._reader.nesting(resource_ids)}

    # --- acting -----------------------------------------------------------------------------------------------

    def _begun_before(self, held: NestingResource) -> NestedStep | None:
        begun = started_before(held)
        if begun is None or held.handoff is None:
            return None
        nodes = self._reader.nodes(begun.traversal_id)
        behind = {
            node.next_in_backlog for node in nodes
        }  # the worker that takes the node before one in a backlog dispatches the next
        ready = (node for node in nodes if node.status is NodeStatus.READY and node.phase not in LAST)
        numbers = [node.number for node in ready if node.number not in behind]
        return replace(begun, handoff=held.handoff.released(begun.traversal_id, numbers))

    def _act(self, held: NestingResource, fence: int) -> NestedStep | NestedStart:
        action, present = held.row.action, held.present
        if present is not None and present.deleted_at is not None:
            return NestedStep(is_gone=True)
        if action is Action.DELETE:
            return self._remove(held, fence, present)
        if action in PERFORMED:
            return self._perform(held, fence, present)
        return self._converger.converge(held, fence, present)

    def _remove(self, held: NestingResource, fence: int, present: Stack | None) -> NestedStep | NestedStart:
        if present is None:
            return NestedStep(is_gone=True)
        definition = held.row.definition
        if not held.traversal.retains and definition and definition.deletion_policy is DeletionPolicy.RETAIN:
            self._releases.release(present.id, held.row.id)
            return NestedStep(is_gone=True)
        is_deleting = (present.action, present.status) == (Action.DELETE, Status.IN_PROGRESS)
        running = self._reader.traversal(present.traversal_id or '') if is_deleting else None
        if running is not None and (running.retains or not held.traversal.retains):
            self._starts.confirm(held, fence, present)
            return NestedStep(running.id)
        request = self._starts.request(
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
        return NestedStart.of(present, held, request)

    def _perform(self, held: NestingResource, fence: int, present: Stack | None) -> NestedStep | NestedStart:
        action = held.row.action
        if present is None:
            return NestedStep(is_gone=True)
        if (present.action, present.status) == (action, Status.IN_PROGRESS):
            self._starts.confirm(held, fence, present)
            return NestedStep(present.traversal_id or '')
        if (present.action, present.status) == (action, Status.COMPLETE) and action in _STAYS:
            self._starts.confirm(held, fence, present)
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

        request = self._starts.request(held, fence, Request(action, goal, template=row), still)
        return NestedStart.of(present, held, request)
