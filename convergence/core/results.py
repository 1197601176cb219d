"""The results of actions that workers report to the core, and the core's answers to them."""

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
    """The action is complete.

    :param output: output for the dependents; None after a delete.
    :param kept: here and below, the data that the type stores for a snapshot; None if they are unknown.
    :param note: text of the event; empty for the default text.
    """

    output: Output | None
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    kept: Mapping[str, Json] | None = None
    note: str = ''


@dataclass(frozen=True, slots=True)
class Failed:
    """The action has failed.

    :param nothing_made: for a creation, True if the type reported that it left no object behind.
    :param findable: for a creation, True if the type can search for the object that it may have created.
    :param repairable: for a check: see `Resource.repairable`.
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

    :param handoff: the row that an engine has parked already, so that there is nothing to write; None: it has not.
    """

    progress: Mapping[str, Json] | None
    after_s: float
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    kept: Mapping[str, Json] | None = None
    handoff: Handoff | None = None


@dataclass(frozen=True, slots=True)
class Postponed:
    """A call had a transient failure; a worker retries it after `after_s` seconds.

    :param attempts: number of calls so far.
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
    """The object cannot be changed in place: the worker releases the row unchanged, and it is replaced."""

    reason: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The worker stopped before it called the type under the claim. Another worker does the step."""

    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)


Result: TypeAlias = Succeeded | Failed | Parked | Postponed | NeedsReplacement | NotBegun


def may_have_made(claim: Claim, result: Result) -> bool:
    """Return True if a creation with this result may have created an object.

    If a type can search for the object, its report that a failed creation left nothing behind does not count: it may be
    wrong.
    """
    if claim.action is not Action.CREATE or claim.resource.token is None:
        return False
    if isinstance(result, Failed):
        return result.findable or not result.nothing_made
    return isinstance(result, Succeeded | Parked)


class End(StrEnum):
    """The consequence of the end of an action.

    * `FENCED`: the claim was lost to another worker; nothing was written.
    * `DONE`: the node is finished.
    * `RELEASED`: the row is free, and the node is not finished.
    * `FAILED`: the traversal has failed; an engine has to settle the stack.
    * `OVER`: the traversal is being cancelled, and this may have been its last action: an engine has to check.
    """

    FENCED = 'FENCED'
    DONE = 'DONE'
    RELEASED = 'RELEASED'
    FAILED = 'FAILED'
    OVER = 'OVER'
