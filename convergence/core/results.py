"""What came of an action, as the worker that ran it tells the core; and what that led to, as the core answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from convergence.core.claim import Claim
from convergence.core.handoff import Handoff
from convergence.core.model import Action, Json, Output
from convergence.values import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class Succeeded:
    """The action is complete; `output` is what dependents get (None after a delete).

    :param note: what the event is to say of it; empty for the usual.
    :param kept: here and below, what the type keeps for a snapshot; None where that is not known.
    """

    output: Output | None
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    kept: Mapping[str, Json] | None = None
    note: str = ''


@dataclass(frozen=True, slots=True)
class Failed:
    """The action has failed.

    :param nothing_made: of a creation, whether the type has said that it left nothing behind.
    :param findable: of a creation, whether its type can be asked what it has made, whatever it has said.
    :param repairable: of a check: see `Resource.repairable`.
    """

    reason: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    progress: Mapping[str, Json] | None = None
    kept: Mapping[str, Json] | None = None
    nothing_made: bool = False
    findable: bool = False
    repairable: bool = False


@dataclass(frozen=True, slots=True)
class Parked:
    """The action continues by itself; a worker polls it again after `after_s` seconds.

    :param handoff: the row, if an engine has parked it already: then nothing is left to write.
    """

    progress: Mapping[str, Json] | None
    after_s: float
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    kept: Mapping[str, Json] | None = None
    handoff: Handoff | None = None


@dataclass(frozen=True, slots=True)
class Postponed:
    """A call failed for the moment; it is to be repeated after `after_s` seconds.

    :param attempts: how often it has been made by now.
    """

    reason: str
    attempts: int
    after_s: float
    progress: Mapping[str, Json] | None = None
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    kept: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class NeedsReplacement:
    """Only a new object will do: the row is given back as it is, to be replaced."""

    reason: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotBegun:
    """Nothing was called under the claim: the worker was told to stop before that. Another one takes the step."""

    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)


Result: TypeAlias = Succeeded | Failed | Parked | Postponed | NeedsReplacement | NotBegun


def may_have_made(claim: Claim, result: Result) -> bool:
    """Whether there may be an object that a creation, of which this is the result, has made.

    A type that can be asked is asked: that a failed creation has left nothing behind is what it says, and may be wrong.
    """
    if claim.action is not Action.CREATE or claim.resource.token is None:
        return False
    if isinstance(result, Failed):
        return result.findable or not result.nothing_made
    return isinstance(result, Succeeded | Parked)


class End(StrEnum):
    """What the end of an action led to.

    * `FENCED`: somebody else holds the row by now; nothing was written.
    * `DONE`: the node is finished. `RELEASED`: the row is free, the node is not finished by this.
    * `FAILED`: the traversal has failed, somebody has to settle the stack.
    * `OVER`: the traversal is being cancelled, and perhaps that was the last that ran: somebody has to look.
    """

    FENCED = 'FENCED'
    DONE = 'DONE'
    RELEASED = 'RELEASED'
    FAILED = 'FAILED'
    OVER = 'OVER'
