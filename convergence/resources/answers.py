"""Answers, observations and errors of a resource type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from convergence.core.model import Json


class PluginFailure(Exception):
    """Base of the errors that a resource type raises on purpose.

    :param physical_id: the object that exists although the call failed, if the type knows it.
    """

    def __init__(self, message: str, *, physical_id: str | None = None) -> None:
        super().__init__(message)
        self.physical_id = physical_id


class TransientFailure(PluginFailure):
    """The call may succeed when it is repeated."""


class FinalFailure(PluginFailure):
    """Repeating the call will not help.

    A text may begin with the name of an exception and a colon (``Error: no such image``), by which clients know what
    has happened: the reason of the stack then has it before the path, ``Error: resources.server: no such image``.
    """


class ForeignObject(FinalFailure):
    """Another creator made the object. The engine neither takes it over nor deletes it.

    Raised by `find`, or by `create` if the service refuses a second object of the same name. The text names the
    object. If a second creation under the same token raises it, the first creation made nothing.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


class NotAsWanted(FinalFailure):
    """From `check`: the object may differ from its record; an update can correct it.

    The next update observes the object and changes it in place. The same holds for a check that is interrupted or
    raises any other error. After `FinalFailure` or `ObjectNotFound` the object is replaced.
    """


class OutcomeUnknown(PluginFailure):
    """The call has failed, and perhaps it had its effect all the same: the answer was lost, for example.

    Before a resource whose `create` has ended like this is deleted or made again, the engine finds out what it has
    made. Any exception that is not of this module means the same.
    """


class ObjectNotFound(PluginFailure):
    """The physical object does not exist (any more)."""


class ReplacementNeeded(PluginFailure):
    """Raised by `update`, or by `poll` of an update: only a new object can satisfy the new properties.

    By `find`, with the id of the object: it exists, and its interrupted creation cannot continue.
    """


@dataclass(frozen=True, slots=True)
class Done:
    """The action is complete.

    :param physical_id: id of the physical object; None leaves it as it was.
    :param data: private data of the type, kept with the resource and handed in again; None leaves it as it was.
    :param kept: of a `snapshot`, what the type needs to restore it, or to delete it; None leaves it as it was.
    """

    physical_id: str | None = None
    data: Mapping[str, Json] | None = None
    kept: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class InProgress:
    """The action has begun and will take time.

    :param progress: data that `poll` needs to continue, in this or another process. JSON.
    :param physical_id: as in `Done`; stored at once, before the next poll.
    :param data: as in `Done`.
    :param poll_after_s: seconds that the engine waits before it polls; None leaves it to the engine.
    :param kept: as in `Done`; stored at once, before the next poll.
    :param is_told: True if an event wakes the resource when it is time to poll: `poll_after_s` may be long then.
    """

    progress: Mapping[str, Json] = field(default_factory=dict)
    physical_id: str | None = None
    data: Mapping[str, Json] | None = None
    poll_after_s: float | None = None
    kept: Mapping[str, Json] | None = None
    is_told: bool = False


Answer: TypeAlias = Done | InProgress


@dataclass(frozen=True, slots=True)
class Observed:
    """The live state of an object.

    :param healthy: False if the object exists but cannot be used; the engine replaces it.
    :param properties: live values by property name, as far as they can be read; may be empty. The engine compares each
        with the applied value, both in their canonical form.
    """

    healthy: bool = True
    properties: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One object that exists, as the service itself lists it.

    :param token: the idempotency token that it carries, or the SHA-256 digest of it, hexadecimal; None where the
        service shows none.
    :param name: what people call it.
    """

    physical_id: str
    token: str | None = None
    name: str = ''
