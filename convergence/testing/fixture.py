"""The facts about a resource type that the conformance kit needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from convergence.core.model import Change, Json
from convergence.core.software import SoftwareRowsPort
from convergence.credentials.model import Credentials
from convergence.resources.calls import no_credentials
from convergence.resources.contract import ResourceType, Signal
from convergence.testing.software import MemorySoftware


class Recovery(Enum):
    """How a type finds its object when the answer to a create was lost."""

    EXPECTED = 'by find(), or because a second create with the same token makes nothing new'
    NONE = 'not at all: the engine makes a new object, and the author accepts that the first one stays'


def pause(seconds: float) -> None:
    """Wait between two polls, at most a tenth of a second: tests are in a hurry."""
    time.sleep(min(seconds, 0.1))


def nothing_left() -> Iterable[str]:
    """The default of `Fixture.leftovers`: nothing can be left over."""
    return ()


@dataclass(frozen=True)
class Fixture:
    """A resource type and the facts that its checks need.

    :param make: makes the type. Called for every single call, as if another process made each.
    :param properties: properties with which a create succeeds, as a template would give them.
    :param changed: properties that differ and can be reached in place; None if the type has none.
    :param replaced: properties whose change must make a new object; None if the type has none.
    :param wrong: mappings of properties that the schema must refuse, besides those that the kit makes itself.
    :param impossible: mappings of properties that the schema accepts and `validate` must refuse.
    :param planned: properties, each with the result of `plan` for an update to them, of an object with `properties`.
    :param recovery: see `Recovery`.
    :param boundaries: functions by which the type calls external systems, as (owner, attribute), for example ``(os,
        'mkdir')``; each call of each of them is made to fail once before and once after it took effect.
    :param leftovers: names of the real objects that exist at the moment; must be empty after a delete.
    :param wait: gets the seconds that the type requests before the next poll.
    :param signals: details of signals that a type with `takes_signals` must accept, in order.
    :param refused: details of signals that it must refuse.
    :param heard: signals that the resources which it requires have received, by name.
    :param poll_limit: polls after which an action counts as endless.
    :param taken: for types that cannot have two objects with `properties`: has another creator make that object, for
        as long as the context lasts, and gives its name in `leftovers`.
    :param software: the store of software configurations and deployments.
    :param credentials: the result of `Call.credentials`; by default there are none.
    """

    make: Callable[[], ResourceType[Any]]
    properties: Mapping[str, Json]
    changed: Mapping[str, Json] | None = None
    replaced: Mapping[str, Json] | None = None
    wrong: Sequence[Mapping[str, Json]] = ()
    impossible: Sequence[Mapping[str, Json]] = ()
    planned: Sequence[tuple[Mapping[str, Json], Change]] = ()
    recovery: Recovery = Recovery.EXPECTED
    boundaries: Sequence[tuple[Any, str]] = ()
    leftovers: Callable[[], Iterable[str]] = nothing_left
    wait: Callable[[float], None] = field(default=pause)
    signals: Sequence[Json] = (None,)
    refused: Sequence[Json] = ()
    heard: Mapping[str, tuple[Signal, ...]] = field(default_factory=dict)
    poll_limit: int = 500
    taken: Callable[[], AbstractContextManager[str]] | None = None
    software: SoftwareRowsPort = field(default_factory=lambda: MemorySoftware(time.time))
    credentials: Callable[[], Credentials] = no_credentials
