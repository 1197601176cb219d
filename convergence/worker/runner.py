"""Drive a resource type from the beginning, or the middle, of an action to an end that can be stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from convergence import logs
from convergence.concurrency import StopReason, Task, TaskKilled
from convergence.core.adoption import is_adopted
from convergence.core.claim import Claim, Step
from convergence.core.finish import Failed, Parked, Postponed, Result, Succeeded, Unsuitable
from convergence.core.model import PERFORMED, Action, Change, Json, Output
from convergence.core.rows import Signal as Received
from convergence.errors import ConvergenceError
from convergence.resources.attributes import attribute_names
from convergence.resources.comparison import compare
from convergence.resources.contract import (
    Answer,
    InProgress,
    ObjectNotFound,
    ReplacementNeeded,
    TransientFailure,
)
from convergence.resources.invocation import Subject, build_call, heard_by
from convergence.resources.performing import delete_after_snapshot, perform, poll_deletion, wants_snapshot_first
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.secrets import known_secrets
from convergence.worker.course import Course, Later, Pace, pause_s, policy_of, poll_interval_s
from convergence.worker.storable import carried, storable_id, text_of

LOG = logging.getLogger(__name__)


class Fenced(Exception):
    """Somebody else holds the row by now: stop, write nothing.

    :param physical_id: the object that the call has made or found, if any.
    """

    def __init__(self, physical_id: str | None) -> None:
        super().__init__(physical_id)
        self.physical_id = physical_id


class NotStored(Exception):
    """What an action has led to could not be stored. That is no failure of the resource; it will be resumed."""


def wait(task: Task, duration_s: float) -> bool:
    """Wait for a while, or until the task is cancelled; whether it was."""
    return task.cancelled.wait(duration_s)


def none_received(resource_ids: Sequence[str]) -> list[tuple[str, Received]]:
    """The default of `Surroundings.signals`."""
    return []


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a runner needs of the worker that it works for.

    :param record: stores what has become known while an action goes on; False: the row is not held any more.
    :param escalate: stores that a repair goes on as an update; False: the row is not held any more.
    :param draining: whether the process is about to end.
    :param wanted: whether the traversal that a row was claimed for still runs.
    :param signals: the signals that some rows have received, oldest first, each with the name of the resource.
    :param wait: waits for a while, or until the task is cancelled; whether it was.
    """

    record: Callable[[Claim, Parked], bool]
    escalate: Callable[[Claim], bool]
    draining: Callable[[], bool]
    wanted: Callable[[Claim], bool]
    wait: Callable[[Task, float], bool] = wait
    signals: Callable[[Sequence[str]], list[tuple[str, Received]]] = none_received


class Runner:
    """Runs claimed steps with the resource types of this process."""

    def __init__(self, registry: Registry, pace: Pace, surroundings: Surroundings) -> None:
        self._registry = registry
        self._pace = pace
        self._around = surroundings

    def run(self, claim: Claim, task: Task) -> Result:
        """Do what the row was claimed for.

        Whatever a resource type raises, the result is an answer; only `TaskKilled` and `Fenced` come through.

        :raises Fenced: the row is not ours any more.
        """
        with logs.concealing(known_secrets(claim.resource, self._registry, claim.pending, claim.node.definition)):
            return self._answer(claim, task)

    def _answer(self, claim: Claim, task: Task) -> Result:
        course: Course | None = None
        try:
            course = self._begin(claim, task)
            return self._run(course)
        except (Fenced, NotStored):
            raise
        except Later as later:
            return self._with_known(
                course, Postponed(later.reason, later.attempts, later.after_s, course.progress if course else None)
            )
        except TaskKilled:
            if course is not None and course.physical_id != claim.resource.physical_id:
                # The call came back after all, when nobody waited for it any more: somebody must know what it made.
                raise Fenced(course.physical_id) from None
            raise
        except BaseException as error:  # a type may raise anything at all; it must not end the worker
            if isinstance(error, ReplacementNeeded) and claim.action is Action.UPDATE:
                return self._with_known(course, Unsuitable(text_of(error)))
            physical_id = storable_id(getattr(error, 'physical_id', None))
            if task.cancelled.is_set() and (
                self._around.draining() or (task.reason is not StopReason.TIME and self._around.wanted(claim))
            ):  # perhaps only because this worker has to stop: another one finds out how far it got
                LOG.info('%s of %s was interrupted', claim.action, claim.resource.name, exc_info=True)
                return self._with_known(course, Parked(course.progress if course else None, 0.0, physical_id))
            LOG.info('%s of %s failed', claim.action, claim.resource.name, exc_info=True)
            return self._with_known(course, Failed(text_of(error), physical_id=physical_id))

    def _begin(self, claim: Claim, task: Task) -> Course:
        resource = claim.resource
        kind = self._registry.get(resource.type)
        subject = Subject(
            name=resource.name,
            stack_name=claim.stack.name,
            stack_id=claim.stack.id,
            project_id=claim.stack.project_id,
            resource_id=resource.id,
            token=resource.token or '',
            physical_id=resource.physical_id,
            data=resource.data,
            metadata=claim.pending.metadata if claim.pending is not None else {},
            restored_from=claim.pending.definition.restored_from if claim.pending is not None else None,
        )
        pending = claim.pending
        deleting, performing = claim.action is Action.DELETE, claim.action in PERFORMED
        properties = pending.properties if pending is not None and not deleting else resource.properties
        call = build_call(
            kind,
            subject,
            properties,
            previous=resource.properties if claim.action is Action.UPDATE else None,
            strictness=Strictness.LENIENT if deleting or performing or is_adopted(resource) else Strictness.STRICT,
            cancelled=task.cancelled.is_set,
        )
        course = Course(
            claim, kind, task, call, resource.physical_id, resource.data, resource.progress, attempts=claim.attempts
        )
        signals = partial(heard_by, resource, pending, self._around.signals)
        course.call = replace(call, age_s=lambda: course.age_s, signals=signals)
        return course

    def _run(self, course: Course) -> Result:
        claim, call, kind = course.claim, course.call, course.kind
        match claim.step:
            case Step.CREATE:
                return self._drive(course, lambda: kind.create(course.call))
            case Step.ADOPT:
                return self._adopt(course)
            case Step.UPDATE:
                return self._drive(course, lambda: kind.update(course.call))
            case Step.PERFORM:
                return self._drive(course, lambda: perform(kind, claim.action, course.call, claim.traversal.id))
            case Step.DELETE:
                return self._delete(course)
            case Step.RESUME:
                return self._resume(course)
            case Step.REPAIR:
                return self._repair(course)
            case Step.CANCEL | Step.INTERRUPT:
                return self._let_go(course)
            case Step.READ:
                return Succeeded(self._output(course), call.physical_id, call.data)
        raise AssertionError(f'{claim.step} needs no plugin')

    # --- the steps --------------------------------------------------------------------------------------------

    def _delete(self, course: Course) -> Result:
        kind = course.kind
        try:
            if course.physical_id is None:
                found = self._patiently(course, lambda: kind.find(course.call))
                if found is None:
                    return _not_found(course)
                course.learn(found)
            if wants_snapshot_first(kind, course.claim.resource):
                return self._drive(course, lambda: delete_after_snapshot(kind, course.call))
            return self._drive(course, lambda: kind.delete(course.call))
        except ObjectNotFound:
            return Succeeded(None)

    def _adopt(self, course: Course) -> Result:
        """Look whether the object that others have made is there."""
        try:
            self._patiently(course, lambda: course.kind.observe(course.call))
        except ObjectNotFound:
            called = 'external_id' if is_adopted(course.claim.resource) else 'physical id'
            return Failed(f'there is no object with the {called} {course.physical_id}')
        return Succeeded(self._output(course), course.physical_id, course.data)

    def _resume(self, course: Course) -> Result:
        """Go on where somebody stopped: by polling, or by finding out how far the action got."""
        kind, action, progress = course.kind, course.claim.action, course.progress
        if progress is not None:
            try:
                return self._drive(course, lambda: _poll(course, progress))
            except ObjectNotFound:
                if action is Action.DELETE:
                    return Succeeded(None)
                raise
        if action is Action.DELETE:
            return self._delete(course)
        if action in PERFORMED:
            return self._drive(course, lambda: perform(kind, action, course.call, course.claim.traversal.id))
        if action is Action.UPDATE:
            return self._drive(course, lambda: kind.update(course.call))
        if course.claim.clean and course.physical_id is None:
            return self._drive(course, lambda: kind.create(course.call))
        found = self._patiently(course, lambda: kind.find(course.call))
        if found is not None:
            return self._drive(course, lambda: found)
        if kind.token_enforced:
            return self._drive(course, lambda: kind.create(course.call))
        return Unsuitable('its creation was interrupted, and whether it made anything is unknown')

    def _repair(self, course: Course) -> Result:
        """The row says FAILED. Look at what is really there before throwing it away."""
        kind, claim = course.kind, course.claim
        try:
            if course.physical_id is None:
                found = self._patiently(course, lambda: kind.find(course.call))
                if found is None:
                    return Unsuitable('nothing was found of it')
                course.learn(found)
            observed = self._patiently(course, lambda: kind.observe(course.call))
        except ObjectNotFound:
            return self._with_known(course, Unsuitable('it does not exist any more'))
        was_updated = claim.resource.action is Action.UPDATE
        if (observed is None and not was_updated) or (observed is not None and not observed.healthy):
            return self._with_known(course, Unsuitable('it failed'))
        previous, wanted = claim.resource.properties, claim.pending.properties if claim.pending else {}
        change = compare(kind, previous, wanted, lambda: course.call)
        if change is Change.REPLACE:
            return self._with_known(course, Unsuitable('it failed, and its properties have changed'))
        if change is Change.NONE and not was_updated:
            return Succeeded(self._output(course), course.physical_id, course.data)
        self._store(course, lambda: self._around.escalate(claim))
        return self._drive(course, lambda: kind.update(course.call))

    # --- driving ----------------------------------------------------------------------------------------------

    def _drive(self, course: Course, first: Callable[[], Answer]) -> Result:
        """Make the first call, then poll until the action is done, or until the thread is needed elsewhere."""
        action = course.claim.action
        answer = self._patiently(course, first)
        while isinstance(answer, InProgress):
            news = course.learn(answer) or course.progress is None
            course.progress = answer.progress
            if course.left_s <= 0:
                return self._let_go(course)
            wait_s = min(poll_interval_s(course, answer, self._pace), course.left_s)
            if self._around.draining():
                return self._with_known(course, Parked(answer.progress, 0.0))
            # What has been parked once is polled once and parked again: it has shown that it takes its time.
            parked_before = course.claim.resource.progress is not None
            if parked_before or course.waited_s + wait_s > self._pace.park_after_s:
                return self._with_known(course, Parked(answer.progress, wait_s))
            if news:
                known = self._with_known(course, Parked(answer.progress, wait_s))
                self._store(course, partial(self._around.record, course.claim, known))
            if self._around.wait(course.task, wait_s):
                return self._let_go(course)
            course.waited_s += wait_s
            answer = self._patiently(course, partial(_poll, course, answer.progress))
        course.learn(answer)
        if action is Action.DELETE:
            return Succeeded(None)
        output = None if action in PERFORMED else self._output(course)
        return Succeeded(output, course.physical_id, course.data, course.kept)

    @staticmethod
    def _store(course: Course, step: Callable[[], bool]) -> None:
        """Store something about a row while an action goes on.

        :raises Fenced: the row is not held any more.
        :raises NotStored: the database does not take it.
        """
        try:
            held = step()
        except ConvergenceError as error:
            raise NotStored(str(error)) from error
        if not held:
            raise Fenced(course.physical_id)

    def _let_go(self, course: Course) -> Result:
        """Nobody wants the action any more; or somebody does, and another worker is to go on with it.

        A cancel is in the database before anybody is told. If nothing there says so, this worker alone has to stop.
        """
        late = course.left_s <= 0 or course.task.reason is StopReason.TIME
        unwanted = late or course.claim.step in (Step.CANCEL, Step.INTERRUPT)
        if not unwanted and (self._around.draining() or self._around.wanted(course.claim)):
            return self._with_known(course, Parked(course.progress, 0.0))
        action, progress = course.claim.action, course.progress or {}
        try:
            with course.task.killable():
                course.kind.cancel(course.call, action, progress)
        except TaskKilled:
            raise
        except BaseException:  # as in run()
            LOG.warning('Cancelling %s of %s failed', action, course.call.name, exc_info=True)
        resumable = not late and course.claim.step is not Step.CANCEL and not course.kind.can_cancel(action)
        reason = f'{action} timed out' if late else f'{action} cancelled'
        return self._with_known(course, Failed(reason, progress=progress if resumable else None))

    def _patiently(self, course: Course, call: Callable[[], Any]) -> Any:
        """Make a call; while it says that it may work later, repeat it as often as the policy allows.

        :raises Later: the next time is too far off to keep a thread for it.
        """
        policy = policy_of(course, self._pace)
        while True:
            try:
                with course.task.killable():
                    answer = call()
            except TransientFailure as error:
                course.attempts += 1
                if course.attempts >= (policy.attempts or 1) or course.task.cancelled.is_set():
                    raise
                wait_s = pause_s(course, policy, self._pace)
                if wait_s >= course.left_s:
                    raise
                if course.waited_s + wait_s > self._pace.park_after_s:
                    raise Later(text_of(error), course.attempts, wait_s) from error
                LOG.info('%s of %s is repeated: %s', course.claim.action, course.call.name, error)
                self._around.wait(course.task, wait_s)
                course.waited_s += wait_s
            else:
                course.attempts = 0
                return answer

    # --- results ----------------------------------------------------------------------------------------------

    @staticmethod
    def _with_known(course: Course | None, result: Any) -> Any:
        """The result, together with what is known of the physical object."""
        if course is None:
            return result
        known = replace(result, physical_id=result.physical_id or course.physical_id, data=course.data)
        return known if isinstance(known, Unsuitable) else replace(known, kept=course.kept)

    def _output(self, course: Course) -> Output:
        """Reference and the attributes that the template asks for, each read once.

        An attribute that cannot be read fails whoever uses it, not this resource.
        """
        kind, call = course.kind, course.call
        attributes: dict[str, Json] = {}
        failures: dict[str, str] = {}
        for name in course.claim.node.asked:
            wanted = (name,) if name else attribute_names(kind)
            try:
                with course.task.killable():
                    read = {key: kind.attribute(call, key) for key in wanted}
                attributes[name] = carried(read[name] if name else read, f'attribute {name}'.strip())
            except TaskKilled:
                raise
            except BaseException as error:  # noqa: BLE001 - as in run()
                failures[name] = text_of(error)
        with course.task.killable():
            reference = kind.reference_id(call)
        carried(reference, 'the reference id')
        return Output(course.claim.resource.id, reference, attributes, failures)


def _poll(course: Course, progress: Mapping[str, Json]) -> Answer:
    if course.claim.action is Action.DELETE:
        return poll_deletion(course.kind, course.call, progress)
    return course.kind.poll(course.call, course.claim.action, progress)


def _not_found(course: Course) -> Result:
    """There is nothing to delete; unless a creation that was interrupted may still land: then look again later."""
    claim = course.claim
    unsure_s = (claim.resource.unsure_until or claim.at) - claim.at
    return Parked(None, min(unsure_s, 5.0)) if unsure_s > 0 else Succeeded(None)
