"""The interface between the engine and a resource type whose objects are stacks.

A type returns the stack that it needs (`DesiredStack`). The engine brings the stack to that state, from the resource's
row as stored; the caller sends only the key of the row. See `convergence.resources.nested` for the types.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from convergence.core.handoff import Handoff
from convergence.core.model import Json, Path


@dataclass(frozen=True, slots=True)
class DesiredStack:
    """The desired state of a nested stack.

    :param template: a document, or text.
    :param parameters: values by name. None stands for "not given".
    :param more: True if another step follows: the engine then calls the type again, one step further.
    :param pause_s: seconds before that step.
    :param hidden: names of the parameters whose values are masked, also if the template does not hide them.
    :param types: replacements for types of the template that the environment does not map.
    :param timeout_mins: minutes that each operation of the stack may take; None: as for its parent stack.
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
    """A sample of a nested stack that does not exist yet. It is checked with the parent template.

    :param path: the place in the properties of the resource that stands for the place `at` in the template, or below.
    :param wanted: the desired stack, with parameters as far as they are known.
    """

    path: Path
    at: Path
    wanted: DesiredStack


@dataclass(frozen=True, slots=True)
class Member:
    """A present resource of the nested stack.

    :param made_at: when its row was made, in seconds since the epoch.
    :param failed: True if its last action failed.
    :param reference: the value of `get_resource`.
    """

    name: str
    physical_id: str | None
    made_at: float
    failed: bool = False
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class RequiredResource:
    """A resource that another one requires, as last applied.

    :param masked_paths: places of values to mask: paths that begin with ``properties``.
    """

    properties: Mapping[str, Json]
    metadata: Mapping[str, Json] = field(default_factory=dict)
    masked_paths: tuple[Path, ...] = ()


def nothing_required(reference: str) -> RequiredResource | None:
    """The default of `NestingContext.required`."""
    return None


@dataclass(frozen=True, slots=True)
class NestingContext:
    """Data from which a type derives its desired stack.

    :param files: the files sent with the template of the parent stack, by name.
    :param present: the present template of the nested stack, as a document; None before it has one.
    :param members: reads the resources of the nested stack that are in service, in the order of their creation.
    :param step: number of steps of the action that are done; 0 at its beginning.
    :param action: the action of the resource: ``CREATE`` or ``UPDATE``; ``ROLLBACK`` if an update is part of a
        rollback.
    :param goal: the goal of the action: the same for all its steps, and different for any other goal.
    :param present_parameters: the present parameters of the nested stack, by name.
    :param update_policy: of the resource.
    :param masked_paths: places in the properties whose values must be masked.
    :param required: reads the resource that a reference means, of those that the resource requires; None: there is no
        such resource.
    :param adopted: the names of existing resources from which the nested stack is to be adopted; None: it is created
        empty, or exists.
    :param at_once: True for a preview of an action in several steps: the type returns the final state, and nothing is
        done.
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
    """The state of a nested stack.

    :param traversal_id: its running operation, or its last one.
    :param is_deleted: True if there is no such stack (any more).
    :param is_seen: True if it has a row, even one that only records its deletion. A started stack has one, unless the
        database lost it or a replica lags behind.
    """

    is_at_work: bool = False
    has_failed: bool = False
    is_deleted: bool = False
    is_seen: bool = True
    reason: str = ''
    traversal_id: str | None = None


@dataclass(frozen=True, slots=True)
class NestedStep:
    """An operation that the engine started on a nested stack.

    :param traversal_id: empty if there was nothing to start.
    :param more: see `DesiredStack`, as is `pause_s`.
    :param is_gone: True if there is no such stack any more.
    :param is_silent: True if the template of the stack is known to have no outputs.
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
    """The values that a nested stack gives to others.

    :param outputs: by name.
    :param errors: the reason for each output without a value.
    :param name: of the stack.
    :param resources: of each resource in service: its ``reference``, ``physical_id``, ``attributes`` (also those that
        are only shown) and ``errors``, its creation time (``made_at``), and ``failed``.
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
        """Return the state of the stack.

        :param traversal_id: an operation that it is known to have started; an older state is not returned.
        """

    def values(self) -> NestedValues:
        """Return the values that the stack gives to others. Read once for each call."""

    def output_names(self) -> tuple[str, ...]:
        """Return the names of its outputs. No request is made if it is known to have none."""


class NoNestedStack:
    """The nested stack of a type whose objects are no stacks: it refuses every use."""

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
    """A stack without outputs that does not exist yet.

    :ivar was_asked: True if a type tried to read more of it.
    """

    def __init__(self) -> None:
        self.was_asked = False

    @override
    def values(self) -> NestedValues:
        """Raise an error: the values are not known yet."""
        self.was_asked = True
        return super().values()

    @override
    def output_names(self) -> tuple[str, ...]:
        """There are none."""
        return ()


NO_STACK = NoNestedStack()
"""The default of `Call.nested`."""

RENAMED: Mapping[str, type] = {'StackWanted': DesiredStack, 'ForeseenTemplate': SampleTemplate}
"""Classes by their old names, which plugins may still import."""

if not TYPE_CHECKING:  # a type checker shall find misspelt names

    def __getattr__(name: str) -> Any:
        if name not in RENAMED:
            raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
        new = RENAMED[name]
        warnings.warn(f'{__name__}.{name} is now called {new.__name__}', DeprecationWarning, stacklevel=2)
        return new
