"""The claimed row of a resource whose object is a nested stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from convergence import errors
from convergence.core.handoff import Handoff
from convergence.core.nesting import may_act
from convergence.core.rows import Resource, Stack, Traversal
from convergence.core.views import PlanView
from convergence.db.records import NestingRow
from convergence.documents import Document
from convergence.resources.nesting import NestedStep


@dataclass(frozen=True, slots=True)
class NestingResource:
    """The claimed row of a resource whose object is a nested stack, with the rows that belong to it.

    :param present: the nested stack, deleted or not; None before it exists.
    :param step: number of finished steps of the action.
    :param handoff: the row, if the caller lets the engine release it.
    :param begun: the known part of the answer, before the nested stack begins.
    :param has_snapshots: True if there are snapshots of the nested stack.
    :param ends: under `TELLS`, the output of the resource for a nested stack without outputs that reaches its goal, if
        that is known. None: the end of the nested stack does not finish the resource.
    """

    row: Resource
    stack: Stack
    traversal: Traversal
    present: Stack | None = None
    step: int = 0
    handoff: Handoff | None = None
    begun: NestedStep = field(default_factory=NestedStep)
    has_snapshots: bool = True
    ends: Document | None = None

    def guard(self, fence: int, also: Callable[[PlanView], None] = lambda view: None) -> Callable[[PlanView], None]:
        """Make a guard that refuses late requests."""
        stack_id = self.row.token or ''

        def guard(view: PlanView) -> None:
            if not may_act(view.parent, stack_id, fence):
                raise errors.Conflict(
                    f'the claim on resource {self.row.name} is lost: its row was released, or claimed by another worker'
                )
            also(view)

        return guard

    def is_served_by(self, running: Traversal | None) -> bool:
        """Return True if the running operation of the nested stack began for this traversal of the parent stack."""
        if running is None or (self.traversal.observes and not running.observes):
            return False
        return running.for_parent and running.deadline == self.deadline()

    def deadline(self) -> float:
        """The time after which the parent stack no longer waits for the nested stack."""
        own = self.row.deadline
        return self.traversal.deadline if own is None else min(own, self.traversal.deadline)


def claimed(resource_id: str, fence: int, rows: Mapping[str, NestingRow]) -> NestingResource:
    """The row that a caller has claimed, with the rows that belong to it.

    :param fence: the one under which the caller has claimed it.
    :raises Conflict: the claim is lost.
    """
    found = rows.get(resource_id)
    if found is None or found.row.fence != fence or found.row.token is None:
        raise errors.Conflict(f'the claim on resource {resource_id} is lost: another worker holds the row')
    has = found.has_snapshots
    return NestingResource(found.row, found.stack, found.traversal, found.nested, has_snapshots=has)
