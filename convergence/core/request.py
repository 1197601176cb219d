"""The input of planning: the request of an operation, the functions that planning calls, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from convergence.core.changes import StackChange
from convergence.core.effects import Effect, UpdateResource
from convergence.core.handoff import Handoff
from convergence.core.model import DISPATCH_WINDOW, PERFORMED, Action, Goal, Json, Phase
from convergence.core.rows import Node, Template, Traversal
from convergence.core.scaling import Scaling
from convergence.core.views import PlanView
from convergence.values import quickly_made


@dataclass(frozen=True, slots=True)
class Offer:
    """An object that existed before its stack, with the private data of its type.

    :param physical_id: id of the object; None for a nested stack to create from existing objects, which `data` names.
    """

    physical_id: str | None
    data: Mapping[str, Json] = field(default_factory=dict)


@quickly_made
@dataclass(frozen=True, slots=True)
class Request:
    """The request of an operation on a stack.

    :param goal: the desired resources; empty for a delete and for the rollback of a create.
    :param guard: called with the stack after its row is locked; raises an error to refuse the operation.
    :param template: the goal's template; None if `goal` is empty.
    :param is_new_template: True if the plan must store the template.
    :param stack_changes: columns of the stack that change with the operation.
    :param cancels: True if the operation cancels the actions in progress; see `Traversal.cancels`.
    :param retains: True if objects stay when their rows are deleted; see `Traversal.retains`.
    :param offered: existing objects, by resource name.
    :param leaves: names of resources whose objects are left behind: the plan deletes all of their rows at once.
    :param beside: called like `guard`, after it; returns further effects of the plan.
    :param traversal_id: id of the new traversal; empty until the caller that starts it has set one.
    :param cause: the cause of an operation that no user requested; the stack's reason contains it from the start of the
        operation to its end.
    :param deadline: time until which the requester waits; None: the time limit of the stack applies.
    :param for_parent: see `Traversal.for_parent`.
    :param observes: see `Traversal.observes`; workers then visit every node, or those of `visits`.
    :param scaling: see `Traversal.scaling`.
    :param visits: for an operation that observes, names of the resources to visit together with their dependents. None:
        all.
    :param repair_attempt: see `Traversal.repair_attempt`.
    :param takes_back: True if it is a part of a rollback: the goal existed before, so no limit applies.
    """

    action: Action
    goal: Goal
    guard: Callable[[PlanView], None] = lambda view: None
    template: Template | None = None
    is_new_template: bool = False
    rollback_on_failure: bool = False
    request_id: str = ''
    stack_changes: StackChange = field(default_factory=StackChange)
    cancels: bool = False
    retains: bool = False
    offered: Mapping[str, Offer] = field(default_factory=dict)
    leaves: frozenset[str] = frozenset()
    beside: Callable[[PlanView], tuple[Effect, ...]] = lambda view: ()
    traversal_id: str = ''
    cause: str = ''
    deadline: float | None = None
    for_parent: bool = False
    observes: bool = False
    scaling: Scaling | None = None
    visits: frozenset[str] | None = None
    repair_attempt: int = 0
    takes_back: bool = False

    @property
    def performs(self) -> bool:
        """True if the action leaves the goal unchanged and acts on existing objects, such as a check."""
        return self.action in PERFORMED

    @property
    def wants_nothing(self) -> bool:
        """True if the goal is empty: a delete, or the rollback of a create."""
        return self.template is None and not self.performs


@dataclass(frozen=True, slots=True)
class Planner:
    """The functions and limits that planning uses, the same for every request.

    :param new_id: returns a new unique id.
    :param window: maximum number of nodes dispatched at the same time; see `Node.next_in_backlog`.
    :param is_exclusive: returns True if only one object of a type can have the name that a template sets.
    :param max_resources: maximum number of resources in all goals of a tree of stacks together; None: no limit.
    :param hands_over: returns True if an object of a type must release a part before its replacement can be created.
    """

    new_id: Callable[[], str]
    window: int = DISPATCH_WINDOW
    is_exclusive: Callable[[str], bool] = lambda type_name: False
    max_resources: int | None = None
    hands_over: Callable[[str], bool] = lambda type_name: False

    def skips_unchanged(self, request: Request) -> bool:
        """Return True if nodes without a change are planned as done. A check of all resources visits each of them."""
        return not request.performs and (request.visits is not None or not request.observes)


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of planning.

    :param ready: the nodes to dispatch or finish now.
    :param superseded: id of the running traversal that this one supersedes; None if there was none.
    :param row_ids: id of the chosen or new row for each name of the goal.
    :param beside: further effects of the plan; see `Request.beside`.
    :param is_busy: True if an operation on the stack was running, or a worker had claimed one of its rows.
    """

    traversal: Traversal
    ready: tuple[Node, ...]
    superseded: str | None
    row_ids: Mapping[str, str]
    beside: tuple[Effect, ...] = ()
    is_busy: bool = True

    @property
    def checks(self) -> tuple[int, ...]:
        """Numbers of the ready nodes that need a worker."""
        return tuple(node.number for node in self.ready if node.phase in (Phase.UPDATE, Phase.CLEANUP))

    def releases(self, handoff: Handoff | None) -> bool:
        """Return True if the plan parks the row that was offered with it; see `convergence.core.nesting.park`."""
        released = (each.resource_id for each in self.beside if isinstance(each, UpdateResource))
        return handoff is not None and handoff.resource_id in released
