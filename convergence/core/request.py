"""What an operation asks of a plan, and what planning needs from outside."""

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
    """An object that was there before its stack, with the private data of its type.

    :param physical_id: None for one that is to become a stack of what was there before; the data have that.
    """

    physical_id: str | None
    data: Mapping[str, Json] = field(default_factory=dict)


@quickly_made
@dataclass(frozen=True, slots=True)
class Request:
    """What is to happen to a stack.

    :param goal: the wanted resources; empty for a delete and for the rollback of a create.
    :param guard: called with the stack as it is when its row is locked; raises where the operation is refused.
    :param template: the goal's template; None where `goal` is empty.
    :param is_new_template: whether the template has to be stored.
    :param stack_changes: columns of the stack that change with the operation.
    :param cancels: whether what is in progress is not to be waited for; see `Traversal.cancels`.
    :param retains: whether objects stay when their rows go; see `Traversal.retains`.
    :param offered: objects that are there already, by resource name.
    :param leaves: names of resources whose objects are left behind: all rows of theirs go at once.
    :param beside: called like `guard`, after it; what else becomes true with the plan.
    :param traversal_id: of the new traversal; empty, until whoever starts it has given it one.
    :param cause: what made the operation necessary, where no user asked for it; in the stack's reason from the start of
        the operation to its end.
    :param deadline: when whoever asks does not wait any longer; None: the stack's own time limit says it.
    :param for_parent: see `Traversal.for_parent`.
    :param observes: see `Traversal.observes`; then every node is visited, or those of `visits`.
    :param visits: where an operation observes: names of the resources that are visited, and with them what reads them.
        None: all.
    :param scaling: see `Traversal.scaling`.
    :param repair_attempt: see `Traversal.repair_attempt`.
    :param takes_back: whether it is part of a rollback: the goal was there before, and no limit refuses it.
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
        """Whether something is done to objects as they are, and the stack keeps its goal."""
        return self.action in PERFORMED

    @property
    def wants_nothing(self) -> bool:
        """Whether all that there is is to go: by a delete, or by the way back from a create."""
        return self.template is None and not self.performs


@dataclass(frozen=True, slots=True)
class Planner:
    """What planning needs from outside, the same for every request.

    :param new_id: makes an id that was never used before.
    :param window: how many nodes are cast at once; see `Node.next_in_backlog`.
    :param is_exclusive: whether there can be one object only of a name that the template gives, by type.
    :param max_resources: how many resources all goals of a tree of stacks may have together; None: no limit.
    :param hands_over: whether an object has to give something up before another one of its name can be made, by type.
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
    """What a plan came to.

    :param ready: the nodes that are to be attended to now.
    :param superseded: the traversal that this one took over from while it was running.
    :param row_ids: the row chosen, or made, for each wanted name.
    :param beside: what else becomes true with it; see `Request.beside`.
    :param is_busy: whether something of the stack was under way, or somebody held a row of it.
    """

    traversal: Traversal
    ready: tuple[Node, ...]
    superseded: str | None
    row_ids: Mapping[str, str]
    beside: tuple[Effect, ...] = ()
    is_busy: bool = True

    @property
    def checks(self) -> tuple[int, ...]:
        """Numbers of those nodes that need a worker."""
        return tuple(node.number for node in self.ready if node.phase in (Phase.UPDATE, Phase.CLEANUP))

    def releases(self, handoff: Handoff | None) -> bool:
        """Return True if the plan parks the row that was offered with it; see `convergence.core.nesting.park`."""
        released = (each.resource_id for each in self.beside if isinstance(each, UpdateResource))
        return handoff is not None and handoff.resource_id in released
