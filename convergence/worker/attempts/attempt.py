"""One action of a claimed row while it runs, and the intervals at which a worker polls and retries."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from convergence.concurrency import Task, TaskKilled
from convergence.core.claim import Claim
from convergence.core.model import Action, Json, Output, RetryPolicy
from convergence.core.results import Failed, NeedsReplacement, NotBegun, Parked, Postponed
from convergence.resources.attributes import attribute_names, attributes_to_show, is_live, read_attribute
from convergence.resources.contract import Answer, Call, Done, InProgress, ResourceType
from convergence.resources.nested import NestedType
from convergence.resources.nesting import FutureStack
from convergence.resources.performing import poll_deletion
from convergence.resources.storable import MOST_BYTES, carried, checked, text_of
from convergence.settings import WorkerSettings
from convergence.values import replace

_SETTINGS = WorkerSettings()

LOG = logging.getLogger(__name__)

MOST_SHOWN_BYTES = 65_536
"""Maximum size, in bytes of JSON, of an attribute that no resource uses: it is stored only to be shown."""
_Ending = TypeVar('_Ending', Failed, Parked, Postponed, NeedsReplacement, NotBegun)


class NotStarted(Exception):
    """Nothing was called: the process drains, or the action is not desired any more."""


class ClaimLost(BaseException):
    """Another worker holds the row: the action stops and writes nothing.

    Not an `Exception`, so that a resource type does not catch it by accident.

    :param physical_id: the object that the call created or found, if any.
    """

    def __init__(self, physical_id: str | None) -> None:
        super().__init__(physical_id)
        self.physical_id = physical_id


class CallPostponed(Exception):
    """A call failed transiently, and its next attempt is too far off to keep a thread for it."""

    def __init__(self, reason: str, attempts: int, after_s: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.attempts = attempts
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """Intervals and limits of polling. All times in seconds.

    Fields with the name of an option of ``[worker]`` hold its value.

    :param jitter: chooses a time between two, so that workers do not repeat their calls all at once.
    """

    poll_interval_min_s: float = _SETTINGS.poll_interval_min_s
    poll_interval_max_s: float = _SETTINGS.poll_interval_max_s
    park_after_s: float = _SETTINGS.park_after_s
    transient_attempts: int = _SETTINGS.transient_attempts
    jitter: Callable[[float, float], float] = random.uniform


@dataclass(slots=True)
class Attempt:
    """An action under way, with the known facts about the object and the action.

    :ivar answered: True if a call of the type has returned, or has recorded its object.
    :ivar is_begun: True if an engine has started the nested stack already: the first call only reads its answer.
    :ivar is_preparing: True during `validate` and `prepare`, which make no object.
    """

    claim: Claim
    kind: ResourceType[Any]
    task: Task
    call: Call[Any]
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    progress: Mapping[str, Json] | None = None
    kept: Mapping[str, Json] | None = None
    waited_s: float = 0.0
    attempts: int = 0
    most_bytes: int = MOST_BYTES
    answered: bool = False
    is_preparing: bool = False
    is_begun: bool = False

    @property
    def age_s(self) -> float:
        """Seconds since the action began."""
        return self.claim.age_s + self.waited_s

    @property
    def left_s(self) -> float:
        """Seconds until the deadline of the action."""
        deadline = self.claim.resource.deadline
        return math.inf if deadline is None else deadline - self.claim.at - self.waited_s

    def learn(self, answer: Answer) -> bool:
        """Keep the facts in an answer. Return True if they are new and should be stored before the action continues.

        :raises FinalFailure: the answer has another type, or cannot be stored.
        """
        answer = checked(answer, self.most_bytes)
        news = answer.physical_id is not None and answer.physical_id != self.physical_id
        if answer.physical_id is not None:
            self.physical_id = answer.physical_id
        if answer.data is not None:
            news = news or answer.data != self.data
            self.data = answer.data
        if answer.kept is not None:
            news = news or answer.kept != self.kept
            self.kept = answer.kept
        self.call = replace(self.call, physical_id=self.physical_id, data=self.data)
        return news

    def note(self, physical_id: str | None, data: Mapping[str, Json] | None) -> bool:
        """Keep the facts that a call records before it returns. Return True if they are new.

        From then on an object may exist.

        :raises FinalFailure: the facts cannot be stored.
        """
        self.answered = True
        return self.learn(Done(physical_id, data))

    def keep(self, physical_id: str | None = None, data: Mapping[str, Json] | None = None) -> None:
        """A `Recorder` that keeps the facts in this attempt only, not in the database."""
        self.note(physical_id, data)

    def carried(self, value: Any, what: str) -> Json:
        """Return the value if it can be stored.

        :param what: name of the value in the error.
        :raises FinalFailure: the value cannot be stored, or is too large.
        """
        return carried(value, what, self.most_bytes)

    def learn_id(self, physical_id: str) -> None:
        """Keep the physical id of the object."""
        self.learn(Done(physical_id))


def poll(attempt: Attempt, progress: Mapping[str, Json]) -> Answer:
    """Poll the action: call the type once for its progress."""
    if attempt.claim.action is Action.DELETE:
        return poll_deletion(attempt.kind, attempt.call, progress)
    return attempt.kind.poll(attempt.call, attempt.claim.action, progress)


def poll_interval_s(attempt: Attempt, answer: InProgress, poll_policy: PollPolicy) -> float:
    """Seconds to the next poll: as the type says, else a quarter of the time since the action began."""
    if answer.poll_after_s is not None and answer.is_told:
        return max(answer.poll_after_s, poll_policy.poll_interval_min_s)
    if answer.poll_after_s is not None:
        # At least the minimum: a type that returns 0 must not keep a thread busy. At most the maximum.
        return min(max(answer.poll_after_s, poll_policy.poll_interval_min_s), poll_policy.poll_interval_max_s)
    return min(max(poll_policy.poll_interval_min_s, attempt.age_s / 4), poll_policy.poll_interval_max_s)


def policy_of(attempt: Attempt, poll_policy: PollPolicy) -> RetryPolicy:
    """The retry policy: of the template, else of the type, else of the configuration."""
    definition = attempt.claim.resource.definition
    pending = attempt.claim.pending
    if pending is not None and attempt.claim.action is not Action.DELETE:
        definition = pending.definition
    own = attempt.kind.retry.over(
        RetryPolicy(
            poll_policy.transient_attempts, 2 * poll_policy.poll_interval_min_s, poll_policy.poll_interval_max_s
        )
    )
    return own if definition is None or definition.retry is None else definition.retry.over(own)


def pause_s(attempt: Attempt, policy: RetryPolicy, poll_policy: PollPolicy) -> float:
    """Seconds before the next attempt. They double with each attempt, up to the limit of the policy, with jitter."""
    limit_s = min((policy.first_s or 0.0) * 2 ** min(attempt.attempts - 1, 32), policy.longest_s or 0.0)
    return poll_policy.jitter(limit_s / 2, limit_s)


def output_of(attempt: Attempt) -> Output:
    """Read the reference id, the attributes that the template uses, and the attributes that are only shown, once each.

    If an attribute cannot be read, the resources that use it fail; this one does not. An unused one is left out.
    """
    kind, call = attempt.kind, attempt.call
    attributes: dict[str, Json] = {}
    failures: dict[str, str] = {}
    for name in attempt.claim.node.asked:
        try:
            with attempt.task.killable():
                wanted = (name,) if name else (*attribute_names(kind), *kind.present_attributes(call))
                read = {key: read_attribute(kind, call, key) for key in wanted}
            attributes[name] = attempt.carried(read[name] if name else read, f'attribute {name}'.strip())
        except TaskKilled:
            raise
        except BaseException as error:  # noqa: BLE001 - a type may raise anything; it must not end the worker
            failures[name] = text_of(error)
    with attempt.task.killable():
        reference = kind.reference_id(call)
    attempt.carried(reference, 'the reference id')
    each = {name: count for name in attributes if (count := kind.attribute_prefix_len(name)) is not None and name}
    return Output(attempt.claim.resource.id, reference, attributes, failures, _shown(attempt), each)


def output_without_stack(attempt: Attempt) -> dict[str, Json] | None:
    """Return the output of the resource for a complete nested stack without outputs, in the form of the database.

    None if the output depends on the content of the stack, or if another resource uses an attribute.
    """
    kind, claim = attempt.kind, attempt.claim
    is_known = isinstance(kind, NestedType) and kind.tells_outputs_only and not claim.node.asked
    if not is_known or claim.action not in (Action.CREATE, Action.UPDATE):
        return None
    future = FutureStack()
    before_stack = replace(attempt, call=replace(attempt.call, nested=future))
    try:
        output = output_of(before_stack)
    except Exception:  # noqa: BLE001 - a type may raise anything; the output is read when the stack exists
        return None
    return None if future.was_asked or output.errors else output.document()


def output_of_check(attempt: Attempt) -> Output | None:
    """The output of the row, with its live attributes read again. An attribute that cannot be read keeps its value.

    None if no attribute is live.
    """
    kept, kind = attempt.claim.resource.output, attempt.kind
    if kept is None:
        return None
    every = kept.attributes.get('')
    names = {*kept.attributes, *kept.shown, *kept.errors, *(every if isinstance(every, dict) else ())}
    fresh = {name: value for name in sorted(names) if is_live(kind, name) for value in _reread(attempt, name)}
    if not fresh:
        return None
    attributes = {name: fresh.get(name, value) for name, value in kept.attributes.items()}
    attributes |= {name: fresh[name] for name in kept.errors if name in fresh}
    if isinstance(every, dict):
        attributes[''] = {name: fresh.get(name, value) for name, value in every.items()}
    errors = {name: text for name, text in kept.errors.items() if name not in fresh}
    shown = {name: fresh.get(name, value) for name, value in kept.shown.items()}
    return replace(kept, attributes=attributes, errors=errors, shown=shown)


def _reread(attempt: Attempt, name: str) -> list[Json]:
    """Return a list with the value of an attribute; an empty list if it cannot be read."""
    try:
        with attempt.task.killable():
            return [attempt.carried(attempt.kind.attribute(attempt.call, name), f'attribute {name}')]
    except TaskKilled:
        raise
    except BaseException as error:  # noqa: BLE001 - a type may raise anything; it must not end the worker
        LOG.info(
            'Attribute %s of %s not read again, its stored value stays: %s', name, attempt.call.name, text_of(error)
        )
        return []


def _shown(attempt: Attempt) -> dict[str, Json]:
    """Read the attributes that are only shown, and that no resource uses."""
    asked = attempt.claim.node.asked
    shown: dict[str, Json] = {}
    for name in () if '' in asked else _to_show(attempt):
        if name in asked:
            continue
        try:
            with attempt.task.killable():
                value = attempt.kind.attribute(attempt.call, name)
            shown[name] = carried(value, f'attribute {name}', min(attempt.most_bytes, MOST_SHOWN_BYTES))
        except TaskKilled:
            raise
        except BaseException:  # noqa: BLE001, S112 - as above; shown as null, and no resource depends on it
            continue
    return shown


def _to_show(attempt: Attempt) -> tuple[str, ...]:
    declared = attributes_to_show(attempt.kind)
    try:
        with attempt.task.killable():
            return (*declared, *attempt.kind.present_attributes(attempt.call))
    except TaskKilled:
        raise
    except BaseException:  # noqa: BLE001 - as above
        return declared


def store(attempt: Attempt, step: Callable[[], bool]) -> None:
    """Store facts about a row while its action runs.

    :param step: writes them; returns False if the claim is lost.
    :raises ClaimLost: another worker holds the row.
    """
    if not step():
        raise ClaimLost(attempt.physical_id)


def with_known(attempt: Attempt | None, result: _Ending) -> _Ending:
    """Return the result with the known facts about the physical object."""
    if attempt is None:
        return result
    known = replace(result, physical_id=result.physical_id or attempt.physical_id, data=attempt.data)
    return known if isinstance(known, NeedsReplacement | NotBegun) else replace(known, kept=attempt.kept)
