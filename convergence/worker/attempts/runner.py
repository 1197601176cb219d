"""Run the action of a claim: call the resource type, poll and retry, until there is a result that can be stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from convergence import logs
from convergence.concurrency import StopReason, Task, TaskKilled
from convergence.core.claim import Claim, Step
from convergence.core.model import PERFORMED, Action, Json
from convergence.core.object_state import Made, is_adopted, made
from convergence.core.results import (
    Failed,
    NeedsReplacement,
    NotBegun,
    Parked,
    Postponed,
    Result,
    Succeeded,
)
from convergence.documents import Document
from convergence.errors import Conflict, DatabaseUnavailable
from convergence.resources.contract import (
    Answer,
    Done,
    InProgress,
    ObjectNotFound,
    ReplacementNeeded,
    TransientFailure,
)
from convergence.resources.performing import delete_after_snapshot, perform, wants_snapshot_first
from convergence.resources.registry import Registry
from convergence.resources.storable import storable_id, text_of
from convergence.worker.attempts.attempt import (
    Attempt,
    CallPostponed,
    ClaimLost,
    NotStarted,
    PollPolicy,
    output_of,
    output_of_check,
    pause_s,
    policy_of,
    poll,
    poll_interval_s,
    store,
    with_known,
)
from convergence.worker.attempts.factory import Attempts
from convergence.worker.attempts.failure_log import log_failure
from convergence.worker.attempts.handover import ObjectHandover
from convergence.worker.attempts.port import WorkerPort
from convergence.worker.attempts.recovery import CreationRecovery, is_creating, says_nothing_made
from convergence.worker.attempts.repair import Repairs, is_repairable

LOG = logging.getLogger(__name__)

PASSING = (TransientFailure, Conflict, DatabaseUnavailable)
"""Transient errors: a call that raises one is retried. A call that writes to the database may raise the last two."""
_Answer = TypeVar('_Answer')


class Runner:
    """Runs claimed steps with the resource types of this process."""

    def __init__(self, registry: Registry, poll_policy: PollPolicy, port: WorkerPort) -> None:
        self._poll_policy = poll_policy
        self._port = port
        self.attempts = attempts = Attempts(registry, port, self._note)
        self._recovery = CreationRecovery(self._patiently, poll_policy, port.draining)

        def escalate(attempt: Attempt) -> None:
            store(attempt, lambda: port.escalate(attempt.claim))

        self._repairs = Repairs(self._patiently, self._recovery.find, self._drive, self._learned, escalate)
        recovery = self._recovery
        self._handover = ObjectHandover(
            self._patiently, recovery.find, recovery.create_again, self._learned, attempts.of
        )

    def run(self, claim: Claim, task: Task, begun: Document | None = None) -> Result:
        """Run the step that the row was claimed for.

        Any exception of a resource type becomes a result.

        :param begun: see `convergence.worker.checks.nested_batch.NestedBatch.begin_together`.
        :raises ClaimLost: another worker holds the row.
        :raises TaskKilled: the supervisor of the task gave it up.
        """
        with logs.masking(self.attempts.secrets(claim)):
            return self._answer(claim, task, begun)

    def _answer(self, claim: Claim, task: Task, begun: Document | None) -> Result:
        attempt: Attempt | None = None
        try:
            attempt = self.attempts.of(claim, task, begun)
            return self._run(attempt)
        except ClaimLost:
            raise
        except NotStarted:
            return with_known(attempt, NotBegun())
        except CallPostponed as later:
            return with_known(
                attempt, Postponed(later.reason, later.attempts, later.after_s, attempt.progress if attempt else None)
            )
        except TaskKilled:
            if attempt is not None and attempt.physical_id != claim.resource.physical_id:
                # The call returned after its task was given up: its object must still be tracked.
                raise ClaimLost(attempt.physical_id) from None
            raise
        except BaseException as error:  # noqa: BLE001 - a type may raise anything; it must not end the worker
            nests = attempt is not None and attempt.kind.nests
            if isinstance(error, ReplacementNeeded) and (claim.action is Action.UPDATE or nests):
                return with_known(attempt, NeedsReplacement(text_of(error)))
            physical_id = storable_id(getattr(error, 'physical_id', None))
            if task.cancelled.is_set() and (
                self._port.draining() or (task.reason is not StopReason.TIME and self._port.wanted(claim))
            ):  # the cause may be only that this worker stops: another worker resumes the action
                log_failure(claim, 'was interrupted', error)
                return with_known(attempt, Parked(attempt.progress if attempt else None, 0.0, physical_id))
            log_failure(claim, 'failed', error)
            failed = Failed(
                text_of(error),
                physical_id=physical_id,
                nothing_made=says_nothing_made(claim, attempt, error),
                findable=claim.action is Action.CREATE and attempt is not None and attempt.kind.implements('find'),
                repairable=is_repairable(claim, error),
            )
            return with_known(attempt, failed)

    def _run(self, attempt: Attempt) -> Result:
        claim, call, kind = attempt.claim, attempt.call, attempt.kind
        match claim.step:
            case Step.CREATE:
                self._prepare(attempt)
                return self._drive(attempt, lambda: kind.create(attempt.call))
            case Step.ADOPT:
                return self._adopt(attempt)
            case Step.UPDATE:
                return self._drive(attempt, lambda: kind.update(attempt.call))
            case Step.PERFORM:
                return self._drive(attempt, lambda: perform(kind, claim.action, attempt.call, claim.traversal.id))
            case Step.DELETE:
                return self._delete(attempt)
            case Step.RESUME | Step.CLEAR:
                return self._resume(attempt)
            case Step.REPAIR:
                return self._repairs.look(attempt)
            case Step.HAND_OVER:
                return self._handover.release_for_replacement(attempt)
            case Step.RECLAIM:
                return self._handover.reclaim(attempt)
            case Step.CANCEL:
                return self._stop(attempt)
            case Step.INTERRUPT:
                return self._cancel_or_park(attempt, is_ordered=True)
            case Step.READ:
                return Succeeded(output_of(attempt), call.physical_id, call.data)
        raise AssertionError(f'{claim.step} needs no plugin')

    # --- the steps --------------------------------------------------------------------------------------------

    def _delete(self, attempt: Attempt) -> Result:
        kind = attempt.kind
        try:
            ended = self._recovery.before_deletion(attempt)
            if ended is not None:
                return with_known(attempt, ended) if isinstance(ended, Parked) else ended
            if attempt.physical_id != attempt.claim.resource.physical_id:
                # The search may have taken long: store the object, unless the claim was lost or cancelled meanwhile.
                self._learned(attempt)
            if wants_snapshot_first(kind, attempt.claim.resource):
                return self._drive(attempt, lambda: delete_after_snapshot(kind, attempt.call))
            return self._drive(attempt, lambda: kind.delete(attempt.call))
        except ObjectNotFound:
            return Succeeded(None)

    def _prepare(self, attempt: Attempt) -> None:
        """Call `validate` and `prepare` before a creation, and store the answer of `prepare`.

        :raises NotStarted: the process drains, or the traversal was cancelled.
        """
        kind = attempt.kind
        if not (kind.implements('validate') or kind.implements('prepare')):
            return
        if self._port.draining() or attempt.task.is_unwanted:
            raise NotStarted
        attempt.is_preparing = True
        if kind.implements('validate'):
            self._patiently(attempt, lambda: kind.validate(attempt.call))
            attempt.answered = False  # nothing was made
        if kind.implements('prepare'):
            chosen = self._patiently(attempt, lambda: kind.prepare(attempt.call))
            attempt.learn(Done(data=chosen))
            attempt.answered = False  # nothing was made
            known = with_known(attempt, Parked(None, 0.0))
            store(attempt, partial(self._port.record, attempt.claim, known))
        attempt.is_preparing = False

    def _adopt(self, attempt: Attempt) -> Result:
        """Check that an object that was made outside of the stack exists."""
        try:
            self._patiently(attempt, lambda: attempt.kind.observe(attempt.call))
        except ObjectNotFound:
            called = 'external_id' if is_adopted(attempt.claim.resource) else 'physical id'
            return Failed(f'there is no object with the {called} {attempt.physical_id}')
        return Succeeded(output_of(attempt), attempt.physical_id, attempt.data)

    def _resume(self, attempt: Attempt) -> Result:
        """Resume an interrupted action: poll it if its progress is stored, else find its object or begin again."""
        kind, action, progress = attempt.kind, attempt.claim.action, attempt.progress
        if progress is not None and not is_creating(progress):
            try:
                return self._drive(attempt, lambda: poll(attempt, progress))
            except ObjectNotFound:
                if action is Action.DELETE:
                    return Succeeded(None)
                raise
        if action is Action.DELETE:
            return self._delete(attempt)
        if action in PERFORMED:
            return self._drive(attempt, lambda: perform(kind, action, attempt.call, attempt.claim.traversal.id))
        if action is Action.UPDATE:
            return self._repairs.update_again(attempt)
        if action is Action.ADOPT:
            return self._adopt(attempt)
        if attempt.claim.clean and attempt.physical_id is None:
            self._prepare(attempt)  # no object was made, and the preparation may not have ended
            return self._drive(attempt, lambda: kind.create(attempt.call))
        try:
            found = self._recovery.find_whole(attempt)
        except ReplacementNeeded as error:
            return NeedsReplacement(text_of(error), error.physical_id, attempt.data)
        if found is not None:
            return self._drive(attempt, lambda: found)
        if kind.token_enforced:
            return self._drive(attempt, lambda: kind.create(attempt.call))
        waits_s = self._recovery.waits_s(attempt)
        if waits_s > 0:
            return with_known(attempt, Parked(None, waits_s))
        return NeedsReplacement('its creation was interrupted, and it is not known if it made an object')

    def _stop(self, attempt: Attempt) -> Result:
        """Stop an action that is not desired any more.

        A creation that cannot be stopped is polled until it has ended, or its object is known.
        """
        progress, known = attempt.progress, made(attempt.claim.resource) is not Made.PERHAPS
        if progress is None or known or attempt.kind.can_cancel(attempt.claim.action):
            return self._cancel_or_park(attempt, is_ordered=True)
        return self._drive(attempt, lambda: poll(attempt, progress))

    # --- driving ----------------------------------------------------------------------------------------------

    def _drive(self, attempt: Attempt, first: Callable[[], Answer]) -> Result:
        """Make the first call, then poll until the action ends, or park it so that the thread is free."""
        too_late = self._port.draining() or (attempt.task.is_unwanted and attempt.progress is None)
        if too_late and not attempt.is_begun:
            raise NotStarted  # an action that is under way is cancelled below
        answer = self._patiently(attempt, first)
        while isinstance(answer, InProgress):
            news = attempt.learn(answer) or attempt.progress is None
            attempt.progress = answer.progress
            if (handoff := attempt.call.nested.handoff) is not None:
                after_s = poll_interval_s(attempt, answer, self._poll_policy)
                return Parked(answer.progress, after_s, attempt.physical_id, handoff=handoff)
            if attempt.left_s <= 0:
                return self._cancel_or_park(attempt)
            wait_s = min(poll_interval_s(attempt, answer, self._poll_policy), attempt.left_s)
            if self._port.draining():
                return with_known(attempt, Parked(answer.progress, 0.0))
            # An action that was parked before takes long: it is polled once and parked again.
            parked_before = attempt.claim.resource.progress is not None
            if parked_before or attempt.waited_s + wait_s > self._poll_policy.park_after_s:
                return with_known(attempt, Parked(answer.progress, wait_s))
            if news:
                known = with_known(attempt, Parked(answer.progress, wait_s))
                store(attempt, partial(self._port.record, attempt.claim, known))
            if self._port.wait(attempt.task, wait_s):
                return self._cancel_or_park(attempt)
            attempt.waited_s += wait_s
            answer = self._patiently(attempt, partial(poll, attempt, answer.progress))
        attempt.learn(answer)
        if attempt.claim.action is Action.DELETE:
            return Succeeded(None)
        if attempt.claim.action is Action.CHECK:
            output = output_of_check(attempt)
        else:
            output = None if attempt.claim.action in PERFORMED else output_of(attempt)
        return Succeeded(output, attempt.physical_id, attempt.data, attempt.kept)

    def _note(self, attempt: Attempt, physical_id: str | None = None, data: Mapping[str, Json] | None = None) -> None:
        """Implement `Call.record`. The attempt keeps the facts first, so that they survive the end of this thread.

        :raises ClaimLost: another worker holds the row.
        """
        if not attempt.note(physical_id, data):
            return
        with attempt.task.protected():
            self._learned(attempt)

    def _learned(self, attempt: Attempt) -> None:
        """Store the known facts about the object.

        :raises ClaimLost: another worker holds the row.
        """
        known = with_known(attempt, Parked(attempt.progress, 0.0))
        store(attempt, partial(self._port.record, attempt.claim, known))

    def _cancel_or_park(self, attempt: Attempt, is_ordered: bool = False) -> Result:
        """Cancel the action if it is late or its traversal is cancelled; else park it for another worker.

        A cancel is stored before workers are notified. If the database shows none, only this worker has to stop.

        :param is_ordered: True if the step itself is a cancel.
        """
        late = attempt.left_s <= 0 or attempt.task.reason is StopReason.TIME
        if not (late or is_ordered) and (self._port.draining() or self._port.wanted(attempt.claim)):
            return with_known(attempt, Parked(attempt.progress, 0.0))
        action, progress = attempt.claim.action, attempt.progress or {}
        try:
            with attempt.task.killable():
                attempt.kind.cancel(attempt.call, action, progress)
        except (TaskKilled, ClaimLost):
            raise
        except BaseException as error:  # noqa: BLE001 - as in run()
            log_failure(attempt.claim, 'could not be cancelled', error)
        resumable = not (late or (is_ordered and attempt.claim.step is Step.CANCEL)) and not attempt.kind.can_cancel(
            action
        )
        reason = f'{action} timed out' if late else f'{action} cancelled'
        is_check = action is Action.CHECK  # which changed nothing
        return with_known(attempt, Failed(reason, progress=progress if resumable else None, repairable=is_check))

    def _patiently(self, attempt: Attempt, call: Callable[[], _Answer], insist: bool = False) -> _Answer:
        """Make a call, and retry it after transient errors as often as the policy allows.

        :param insist: True to retry after any exception, until the time limit of the action.
        :raises CallPostponed: the next attempt is too far off to keep a thread waiting for it.
        """
        policy = policy_of(attempt, self._poll_policy)
        while True:
            try:
                with attempt.task.killable():
                    answer = call()
            except BaseException as error:
                if isinstance(error, TaskKilled | ClaimLost) or not (insist or isinstance(error, PASSING)):
                    raise
                attempt.attempts += 1
                unwanted = attempt.task.cancelled.is_set() and not self._port.draining()
                spent = not insist and attempt.attempts >= (policy.attempts or 1)
                if spent or unwanted:
                    raise
                wait_s = pause_s(attempt, policy, self._poll_policy)
                if wait_s >= attempt.left_s:
                    raise
                if self._port.draining() or attempt.waited_s + wait_s > self._poll_policy.park_after_s:
                    raise CallPostponed(text_of(error), attempt.attempts, wait_s) from error
                LOG.info('Retrying %s of %s: %s', attempt.claim.action, attempt.call.name, error)
                self._port.wait(attempt.task, wait_s)
                attempt.waited_s += wait_s
                if self._port.draining():
                    raise CallPostponed(text_of(error), attempt.attempts, 0.0) from error
                if attempt.task.cancelled.is_set():
                    raise
            else:
                attempt.attempts, attempt.answered = 0, True
                return answer
