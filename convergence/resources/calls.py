"""The call: the argument of the hooks of a resource type."""

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
    """A signal that a resource received.

    :param details: the body of the signal; None if it had none.
    :param at: time of arrival in seconds since the epoch, by the clock of the engine's database.
    :param resource_id: the row of the receiving resource: its `Call.resource_id`.
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
        'This call has no credentials: only the actions of a resource have some, in a deployment with Keystone.'
    )


def never_closed(close: Callable[[], object]) -> None:
    """The default of `Call.on_cancel`: the call is never cancelled."""


class Recorder(Protocol):
    """Stores what an action has learned of its object before it answers."""

    def __call__(self, physical_id: str | None = None, data: Mapping[str, Json] | None = None) -> None:
        """Store it now, as `Done` would. After a crash the next worker gets it with its calls.

        If another worker owns the resource by now, this raises an error that is no `Exception`: do not catch it.

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
    """The argument of the hooks of a resource type.

    :param token: idempotency token of this resource's creation: the same in every call for this row, different for
        every other row. A service that enforces unique client tokens or names makes a repeated create harmless.
    :param properties: the desired properties, an instance of the type's own dataclass.
    :param physical_id: id of the physical object, None while it is not known.
    :param data: private data returned by an earlier call.
    :param previous: in `update` and `needs_replacement`, the properties as last applied.
    :param restored_from: in `create` and `update`, the `kept` data of a `snapshot` to which the stack is restored;
        None otherwise.
    :param cancelled: returns True when the engine needs the thread back; check it in long loops.
    :param on_cancel: registers a function that the engine calls, in another thread, when it needs the thread back
        before the call has ended. Use one that closes the connection on which the call waits, so that the call raises.
    :param signals: reads the signals that this resource, and the resources that it requires, have received so far.
    :param signal_count: counts the signals that this resource has received itself, without reading them. For `signal`,
        which is called with each of them.
    :param revocation: the value that signal addresses of the resource sign since all earlier ones were revoked; see
        `convergence.signing`.
    :param age_s: seconds since the action began, by the clock of the engine's database.
    :param type_name: the name of the resource's type; empty if no hook needs it.
    :param nested: the stack that is the object of a resource, for the types of `convergence.resources.nested`.
    :param software: the software configurations and deployments of the project.
    :param credentials: gives the credentials with which to act for the user of the stack in the cloud. Raises
        `FinalFailure` if there are none: call it before you make anything.
    :param asked: in actions, the attributes that the template reads from the resource, '' for all of them. A type need
        not compute others.
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
