"""The steps of a node check, and the claim under which a worker carries one out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import DISPATCH_WINDOW, Action, Change, Json
from convergence.core.rows import Acceptance, Node, Pending, Resource, Stack, Traversal
from convergence.core.views import NodeView
from convergence.values import quickly_made


class Step(StrEnum):
    """The step that a node needs now.

    `OVER`: the traversal is being cancelled, so no action begins, and possibly none runs any more.
    """

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
"""Steps that claim the row and call its resource type."""


NO_NODE = -1
"""Number for the node of a claim whose action belongs to no node any more."""

MAX_CRASHES = 5
"""Maximum number of workers in a row that may die during an action. Then it fails, so that it kills no more workers."""


def no_limit(type_name: str, action: Action) -> float | None:
    """The default of `Worker.time_limit`."""
    return None


def keeps_none(type_name: str) -> bool:
    """The default of `Worker.keeps_snapshots`."""
    return False


@quickly_made
@dataclass(frozen=True, slots=True)
class Creation:
    """The properties of creations of a resource type, for creations with an unknown outcome.

    :param is_repeated: True if only a second creation with the same token can find the object of the first one.
    :param settles_s: seconds during which a creation may still create an object after its worker was last alive.
    :param is_enforced: True if a second creation with the same token creates no second object.
    :param is_exclusive: True if only one object can have a name, so that it is deleted before its replacement exists.
    :param hands_over: True if an object must release a part before its replacement can be created.
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
    """The worker that checks a node, with the functions and limits that a claim uses.

    :param id: id of the worker that will own the row.
    :param new_id: returns a new unique id.
    :param window: maximum number of nodes dispatched at the same time; see `Node.next_in_backlog`.
    :param time_limit: returns the time limit in seconds for an action of a resource type, if the template sets none.
    :param keeps_snapshots: returns True if a resource type stores data for a snapshot.
    :param creation: returns the properties of creations of a resource type.
    :param max_input_bytes: maximum stored size of the inputs of a resource in bytes; None: no limit.
    :param nests: returns True if the objects of a resource type are nested stacks.
    :param fence: returns the fence for a claim of a row: larger than the row's fence, and unique.
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
    """The desired properties of a resource, with all references resolved.

    :param change: kind of the change from the last applied properties of the row to these.
    :param is_renewed: True if the next traversal must compare the resource even without a change.
    :param accepted: the acceptance that applies to the properties; None if there is none.
    """

    properties: Mapping[str, Json]
    change: Change
    metadata: Json = field(default_factory=dict)
    is_renewed: bool = False
    accepted: Acceptance | None = None


@dataclass(frozen=True, slots=True)
class Undesirable:
    """There are no desired properties: a reference could not be resolved, or a value is not allowed."""

    reason: str


@quickly_made
@dataclass(frozen=True, slots=True)
class Claim:
    """A row claimed by a worker for one step.

    :param step: the step to carry out.
    :param action: the action that the step belongs to.
    :param resource: the row after the claim, with the owner and the fence that all further writes must match.
    :param completes_node: True if success finishes the node; False for the unfinished action of an older traversal.
    :param pending: the values that the row gets when the step succeeds.
    :param at: time of the claim, by the database's clock.
    :param clean: True if the step retries a call that had a transient failure and left nothing behind.
    :param rivals: for a step of a handover, the other rows of the same name that may have an object.
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
        """The action of the row: for the step `CLEAR` the row's update, although the type deletes the object."""
        return self.resource.action if self.step is Step.CLEAR else self.action

    @property
    def attempts(self) -> int:
        """Number of earlier calls of this step with a transient failure."""
        return self.resource.retry.attempts if self.resource.retry is not None else 0

    @property
    def age_s(self) -> float:
        """Seconds from the start of the action to the claim."""
        began_at = self.resource.began_at
        return max(0.0, self.at - began_at) if began_at is not None else 0.0


@quickly_made
@dataclass(frozen=True, slots=True)
class StepDecision:
    """The verdict on a node.

    :param claim: set for the steps in `ACTING`.
    :param stack_id: set for `REPLACE`, `FAIL` and `OVER`, whose next decision concerns the whole stack.
    :param resource_id: set for `REPLACE`: id of the row to replace.
    """

    step: Step
    claim: Claim | None = None
    stack_id: str = ''
    resource_id: str = ''


Assess = Callable[[NodeView], Desired | Undesirable]
"""Resolves the desired properties and compares them with the row, without I/O. The caller supplies it."""
