"""What a resource type whose objects are stacks asks of the engine, and what it is told.

A type says what stack it wants (`DesiredStack`); the engine makes it so, from the resource's row as it is stored, and
whoever asks need send nothing but the row's key. See `convergence.resources.nested` for the types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from typing_extensions import override

from convergence.core.handoff import Handoff
from convergence.core.model import Json, Path


@dataclass(frozen=True, slots=True)
class DesiredStack:
    """What a nested stack should be.

    :param template: a document, or text.
    :param parameters: values by name. None stands for "not given".
    :param more: whether another step follows when the stack has got there: the type is asked again, one step further.
    :param pause_s: how long to wait before that step, in seconds.
    :param hidden: names of those parameters whose values nobody may be shown, whatever the template says.
    :param types: what types of the template stand for, where the environment does not say it.
    :param timeout_mins: how many minutes each operation of the stack may take; None: as for the stack that it is in.
    """

    template: str | Mapping[str, Json]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    more: bool = False
    pause_s: float = 0.0
    hidden: frozenset[str] = frozenset()
    types: Mapping[str, str] = field(default_factory=dict)
    timeout_mins: int | None = None


@dataclass(frozen=True, slots=True)
class SampleTemplate:
    """What is known of a nested stack before there is one, to be checked with the template that the resource is in.

    :param path: where in the properties of the resource it stands what is wrong at `at` in the template, or below.
    :param wanted: with parameters as far as they are known.
    """

    path: Path
    at: Path
    wanted: DesiredStack


@dataclass(frozen=True, slots=True)
class Member:
    """A resource of the nested stack as it is now.

    :param made_at: when its row was made, in seconds since the epoch.
    :param failed: whether the last thing done to it failed.
    :param reference: what `get_resource` gives for it.
    """

    name: str
    physical_id: str | None
    made_at: float
    failed: bool = False
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class RequiredResource:
    """A resource that another one is built on, as it was made last.

    :param masked_paths: where values stand that nobody may be shown: paths that begin with ``properties``.
    """

    properties: Mapping[str, Json]
    metadata: Mapping[str, Json] = field(default_factory=dict)
    masked_paths: tuple[Path, ...] = ()


def nothing_required(reference: str) -> RequiredResource | None:
    """The default of `NestingContext.required`."""
    return None


@dataclass(frozen=True, slots=True)
class NestingContext:
    """What a type may look at to say what stack it wants.

    :param files: what came with the template of the stack that the resource is in, by name.
    :param present: the template that the nested stack has now, as a document; None before it has one.
    :param members: reads the resources of the nested stack that are in service, in the order of their making.
    :param step: how many steps of the action have been taken before; 0 at its beginning.
    :param action: the action of the resource that asks: ``CREATE`` or ``UPDATE``; ``ROLLBACK`` where an update is part
        of one.
    :param goal: what the action is to lead to: the same for all steps of the action, and different for any other goal.
    :param present_parameters: the parameters that the nested stack has got now, by name.
    :param update_policy: of the resource.
    :param masked_paths: where values stand in the properties that nobody may be shown.
    :param required: reads the resource that a reference means, of those that the resource is built on; None: there is
        no such resource.
    :param adopted: the names of the resources that are there before the nested stack, which is to be made of just
        these; None: it is made from nothing, or is there itself.
    :param at_once: whether only the end is asked for of what is done a few members at a time: nothing is done, somebody
        wants to know what would be.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    present: Mapping[str, Json] | None = None
    members: Callable[[], tuple[Member, ...]] = tuple
    step: int = 0
    action: str = 'CREATE'
    goal: str = ''
    present_parameters: Mapping[str, Json] = field(default_factory=dict)
    update_policy: Mapping[str, Json] = field(default_factory=dict)
    masked_paths: tuple[Path, ...] = ()
    required: Callable[[str], RequiredResource | None] = nothing_required
    adopted: tuple[str, ...] | None = None
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class NestedState:
    """Where a nested stack stands.

    :param traversal_id: what it is doing, or has done last.
    :param is_deleted: there is no such stack (any more).
    :param is_seen: whether there is a row of it, if only one that says that it was deleted. One that was begun has one,
        unless the database has lost it or a server of the database lags behind.
    """

    is_at_work: bool = False
    has_failed: bool = False
    is_deleted: bool = False
    is_seen: bool = True
    reason: str = ''
    traversal_id: str | None = None


@dataclass(frozen=True, slots=True)
class NestedStep:
    """What the engine has begun for a nested stack.

    :param traversal_id: empty where there was nothing to begin.
    :param more: see `DesiredStack`, as is `pause_s`.
    :param is_gone: there is no such stack any more.
    :param is_silent: the template of the stack is known to have no outputs.
    :param handoff: the row of the resource, if the engine released it.
    """

    traversal_id: str = ''
    more: bool = False
    pause_s: float = 0.0
    is_gone: bool = False
    is_silent: bool = False
    handoff: Handoff | None = None


@dataclass(frozen=True, slots=True)
class NestedValues:
    """What a nested stack tells to others.

    :param outputs: by name.
    :param errors: for each output that has no value, why.
    :param name: of the stack.
    :param resources: of each resource in service: its ``reference``, ``physical_id``, ``attributes`` (also those that
        are only shown) and ``errors``, when it was made (``made_at``), and whether it has ``failed``.
    """

    outputs: Mapping[str, Json] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    name: str = ''


class NestedStacks(Protocol):
    """The nested stack of one resource. Every method may raise `TransientFailure`.

    :ivar handoff: the row of the resource, if an engine released it when the stack started its operation.
    """

    handoff: Handoff | None

    def act(self, step: int = 0) -> NestedStep:
        """Have an engine begin what the resource's row says is under way. To repeat it does no harm."""

    def cancel(self) -> None:
        """Have an engine stop what the stack does on behalf of the resource. Of one at rest: nothing."""

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Have an engine delete a snapshot of the stack. Of one that is gone: nothing."""

    def state(self, traversal_id: str) -> NestedState:
        """Where the stack stands.

        :param traversal_id: what it is known to have begun: an older state than that is not told.
        """

    def values(self) -> NestedValues:
        """What the stack tells to others. Read once for each call."""

    def output_names(self) -> tuple[str, ...]:
        """The names of its outputs. Where it is known that there are none nobody is asked."""


class NoNestedStack:
    """What a type gets whose objects are no stacks."""

    handoff: Handoff | None = None

    def act(self, step: int = 0) -> NestedStep:
        """Refuse, as all of them."""
        raise NotImplementedError('only for types whose objects are stacks')

    def cancel(self) -> None:
        """See `act`."""
        self.act()

    def delete_snapshot(self, snapshot_id: str) -> None:
        """See `act`."""
        self.act()

    def state(self, traversal_id: str) -> NestedState:
        """See `act`."""
        self.act()
        return NestedState()

    def values(self) -> NestedValues:
        """See `act`."""
        self.act()
        return NestedValues()

    def output_names(self) -> tuple[str, ...]:
        """See `act`."""
        return tuple(self.values().outputs)


class FutureStack(NoNestedStack):
    """A stack without outputs, of which nothing else is known yet.

    :ivar was_asked: whether somebody wanted to know more.
    """

    def __init__(self) -> None:
        self.was_asked = False

    @override
    def values(self) -> NestedValues:
        """Nobody knows."""
        self.was_asked = True
        return super().values()

    @override
    def output_names(self) -> tuple[str, ...]:
        """There are none."""
        return ()


NO_STACK = NoNestedStack()
"""The default of `Call.nested`."""
