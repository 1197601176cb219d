"""What a worker does for a node: the steps there are, and the claim under which it takes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import DISPATCH_WINDOW, Action, Change, Json
from convergence.core.rows import Acceptance, Node, Pending, Resource, Stack, Traversal
from convergence.core.views import NodeView
from convergence.values import quickly_made


class Step(StrEnum):
    """What is to be done for a node now. `OVER`: nothing begins any more, and perhaps nothing runs either."""

    DROP = 'DROP'
    OVER = 'OVER'
    WAIT = 'WAIT'
    PAUSE = 'PAUSE'
    NOTHING = 'NOTHING'
    FAIL = 'FAIL'
    CREATE = 'CREATE'
    ADOPT = 'ADOPT'
    UPDATE = 'UPDATE'
    REPLACE = 'REPLACE'
    REPAIR = 'REPAIR'
    READ = 'READ'
    PERFORM = 'PERFORM'
    RESUME = 'RESUME'
    CANCEL = 'CANCEL'
    INTERRUPT = 'INTERRUPT'
    CLEAR = 'CLEAR'
    HAND_OVER = 'HAND_OVER'
    RECLAIM = 'RECLAIM'
    DELETE = 'DELETE'


ACTING = frozenset(
    {
        Step.CREATE,
        Step.ADOPT,
        Step.UPDATE,
        Step.REPAIR,
        Step.READ,
        Step.PERFORM,
        Step.RESUME,
        Step.CANCEL,
        Step.INTERRUPT,
        Step.CLEAR,
        Step.HAND_OVER,
        Step.RECLAIM,
        Step.DELETE,
    }
)
"""Steps for which the row has been claimed and a plugin is to be called."""


NO_NODE = -1
"""Stands for the node of a row whose action belongs to none any more."""

MAX_CRASHES = 5
"""An action in the middle of which so many workers in a row have died is not begun by another one."""


def no_limit(type_name: str, action: Action) -> float | None:
    """The default of `Worker.time_limit`."""
    return None


def keeps_none(type_name: str) -> bool:
    """The default of `Worker.keeps_snapshots`."""
    return False


@quickly_made
@dataclass(frozen=True, slots=True)
class Creation:
    """What is known of the creations of a type, for the case that the end of one is not known.

    :param is_repeated: whether nothing but a second creation with the same token tells what the first one has made.
    :param is_enforced: whether a second creation with the same token makes nothing new.
    :param is_exclusive: whether there can be one object only of a name, so that it goes before another is made.
    :param hands_over: whether an object has to give something up before the one is made that replaces it.
    :param settles_s: for how many seconds it may still make something when its worker gives no sign of life any more.
    """

    is_repeated: bool = False
    settles_s: float = 60.0
    is_enforced: bool = False
    is_exclusive: bool = False
    hands_over: bool = False


def nests_none(type_name: str) -> bool:
    """The default of `Worker.nests`."""
    return False


def one_more(row: Resource) -> int:
    """The default of `Worker.fence`."""
    return row.fence + 1


def unknown_type(type_name: str) -> Creation:
    """The default of `Worker.creation`."""
    return Creation()


@dataclass(frozen=True, slots=True)
class Worker:
    """Who asks, and what a claim needs from outside.

    :param id: the worker that will own the row.
    :param new_id: makes an id that was never used before.
    :param window: how many nodes are cast at once; see `Node.next_in_backlog`.
    :param time_limit: seconds that an action of a resource type may take, where the template sets no limit.
    :param keeps_snapshots: whether resources of a type have something to be kept for a snapshot of their stack.
    :param creation: what is known of the creations of a resource type.
    :param max_input_bytes: what a resource may take from others, as it is stored; None: no limit.
    :param nests: whether the objects of a resource type are stacks.
    :param fence: the fence under which it claims a row: larger than the row's, and never the same twice.
    """

    id: str
    new_id: Callable[[], str]
    window: int = DISPATCH_WINDOW
    time_limit: Callable[[str, Action], float | None] = no_limit
    keeps_snapshots: Callable[[str], bool] = keeps_none
    creation: Callable[[str], Creation] = unknown_type
    max_input_bytes: int | None = None
    nests: Callable[[str], bool] = nests_none
    fence: Callable[[Resource], int] = one_more


@dataclass(frozen=True, slots=True)
class Desired:
    """What the template wants of a resource, with everything resolved.

    :param change: what it takes to get there from the row's properties as last applied.
    :param is_renewed: whether the next traversal is to look at it even if nothing seems to have changed.
    :param accepted: which of the properties are not as the template says, but were accepted.
    """

    properties: Mapping[str, Json]
    change: Change
    metadata: Json = field(default_factory=dict)
    is_renewed: bool = False
    accepted: Acceptance | None = None


@dataclass(frozen=True, slots=True)
class Undesirable:
    """The wanted properties cannot be had: a reference could not be resolved, or a value is not allowed."""

    reason: str


@quickly_made
@dataclass(frozen=True, slots=True)
class Claim:
    """A row held by a worker, and what it is held for.

    :param resource: the row as claimed, with the owner and the fence that guard every further write.
    :param step: what is to be done.
    :param action: the action that the step belongs to.
    :param completes_node: whether success finishes the node; a leftover of an older traversal does not.
    :param at: when it was claimed, by the database's clock.
    :param rivals: to give way or take back: the other rows of the name of which there may be an object.
    :param clean: whether the step repeats a call that failed for the moment and left nothing behind.
    """

    step: Step
    action: Action
    resource: Resource
    node: Node
    stack: Stack
    traversal: Traversal
    completes_node: bool = True
    pending: Pending | None = None
    at: float = 0.0
    clean: bool = False
    rivals: tuple[Resource, ...] = ()

    @property
    def row_action(self) -> Action:
        """What the row is in the middle of: to clear it is part of its update, and a deletion to its type."""
        return self.resource.action if self.step is Step.CLEAR else self.action

    @property
    def attempts(self) -> int:
        """How often the call was made already, and failed for the moment."""
        return self.resource.retry.attempts if self.resource.retry is not None else 0

    @property
    def age_s(self) -> float:
        """For how long the action had been going on when it was claimed, in seconds."""
        began_at = self.resource.began_at
        return max(0.0, self.at - began_at) if began_at is not None else 0.0


@quickly_made
@dataclass(frozen=True, slots=True)
class StepDecision:
    """The verdict on a node.

    :param claim: set for the steps in `ACTING`.
    :param stack_id: set for `REPLACE`, `FAIL` and `OVER`, which go on with the stack.
    :param resource_id: set for `REPLACE`: the row to be replaced.
    """

    step: Step
    claim: Claim | None = None
    stack_id: str = ''
    resource_id: str = ''


Assess = Callable[[NodeView], Desired | Undesirable]
"""Resolves what the template wants and compares it with the row. Pure; given by the caller, who knows templates."""
