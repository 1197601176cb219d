"""What a resource type is told: the call, with what it may ask for while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from convergence.core.model import Json
from convergence.credentials.model import Credentials
from convergence.resources.answers import FinalFailure
from convergence.resources.nesting import NO_STACK, NestedStacks
from convergence.resources.software import NO_SOFTWARE, ProjectSoftware
from convergence.values import quickly_made

P = TypeVar('P')


def never_cancelled() -> bool:
    """The default of `Call.cancelled`."""
    return False


@dataclass(frozen=True, slots=True)
class Signal:
    """What somebody outside has told a resource.

    :param details: what was said: whatever the type takes; None where nothing was.
    :param at: when, in seconds since the epoch, by the clock of the engine's database.
    :param resource_id: the row of the resource that was told: `Call.resource_id` of that resource.
    """

    details: Json
    at: float
    resource_id: str


Signals: TypeAlias = Mapping[str, tuple[Signal, ...]]
"""Signals by the name of the resource that received them, oldest first."""


def no_signals() -> Signals:
    """The default of `Call.signals`."""
    return {}


def none_yet() -> int:
    """The default of `Call.signal_count`."""
    return 0


def no_time() -> float:
    """The default of `Call.age_s`."""
    return 0.0


def no_credentials() -> Credentials:
    """The default of `Call.credentials`.

    :raises FinalFailure: there are none.
    """
    raise FinalFailure(
        'This call acts for nobody: only the actions of a resource have credentials, in a deployment with Keystone.'
    )


def never_closed(close: Callable[[], object]) -> None:
    """The default of `Call.on_cancel`: nobody ever cancels."""


class Recorder(Protocol):
    """Stores what an action has learned of its object before it answers."""

    def __call__(self, physical_id: str | None = None, data: Mapping[str, Json] | None = None) -> None:
        """Store it now, as `Done` would; whoever goes on with the action after a crash is handed it.

        What it raises where the resource is somebody else's by now is no `Exception`: let it through.

        :raises FinalFailure: it cannot be stored.
        """


def record_nothing(physical_id: str | None = None, data: Mapping[str, Json] | None = None) -> None:
    """The default of `Call.record`.

    :raises FinalFailure: only the actions of a resource have something to record.
    """
    raise FinalFailure('Nothing can be recorded here: only in an action of a resource.')


@quickly_made
@dataclass(frozen=True, slots=True)
class Call(Generic[P]):
    """Everything a method of a resource type is told.

    :param token: idempotency token of this resource's creation: the same in every call for this row, different for
        every other row. A service that enforces unique client tokens or names makes a repeated create harmless.
    :param properties: the wanted properties, an instance of the type's own dataclass.
    :param physical_id: id of the physical object, None while none is known.
    :param data: private data returned by an earlier call.
    :param previous: in `update` and `needs_replacement`, the properties as last applied.
    :param restored_from: in `create` and `update`, what a `snapshot` of the resource has kept, when the stack is
        brought back to that; None otherwise.
    :param cancelled: becomes true when the engine wants the thread back; long loops should look at it.
    :param on_cancel: has a function called, in another thread, when the engine wants the thread back before the call
        has ended: one that closes the connection on which the call waits, so that it raises.
    :param signals: reads the signals that this resource has received so far, and the resources that it requires.
    :param signal_count: counts the signals that this resource has received itself, and reads none of them. For
        `signal`, which is called with each of them.
    :param revocation: what signal addresses of the resource sign since all earlier ones were revoked; see
        `convergence.signing`.
    :param age_s: for how many seconds the action has been going on, by the clock of the engine's database.
    :param type_name: the name of the resource's type; empty where nobody needs it.
    :param nested: the stack that is the object of a resource, for the types of `convergence.resources.nested`.
    :param software: the software configurations and deployments of the project.
    :param credentials: with which to act for the user of the stack in the cloud; for types that need them, when they
        do. Raises `FinalFailure` where there are none: ask before anything is made.
    :param asked: in actions, the attributes that the template asks of the resource, '' for all of them. What nobody
        asks for need not be found out.
    :param record: stores an id, or private data, in the middle of a call, for actions that make several things.
    """

    properties: P
    name: str
    stack_name: str
    stack_id: str
    project_id: str
    resource_id: str
    token: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    previous: P | None = None
    restored_from: Mapping[str, Json] | None = None
    cancelled: Callable[[], bool] = never_cancelled
    on_cancel: Callable[[Callable[[], object]], None] = never_closed
    signals: Callable[[], Signals] = no_signals
    signal_count: Callable[[], int] = none_yet
    age_s: Callable[[], float] = no_time
    revocation: str = ''
    type_name: str = ''
    nested: NestedStacks = NO_STACK
    software: ProjectSoftware = NO_SOFTWARE
    credentials: Callable[[], Credentials] = no_credentials
    record: Recorder = record_nothing
    asked: tuple[str, ...] = ()
