"""Recover from a creation whose result is unknown: find its object before the resource is deleted or created again.

The result may have been lost with the worker that made the call, or on the way from the service. A type with `find`
searches for the object. A type whose token is enforced returns it from a second creation, which makes no second object.
For any other type the object cannot be known; an event of the stack reports that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from convergence.core.claim import Claim, Step
from convergence.core.model import Action, Json
from convergence.core.object_state import Made, made
from convergence.core.results import Parked, Succeeded
from convergence.resources.contract import (
    Answer,
    Done,
    FinalFailure,
    ForeignObject,
    InProgress,
    ObjectNotFound,
    ReplacementNeeded,
    TransientFailure,
)
from convergence.resources.manifest import CannotImport
from convergence.resources.storable import checked, storable_id, text_of
from convergence.worker.attempts.attempt import Attempt, CallPostponed, NotStarted, PollPolicy, poll_interval_s

LOG = logging.getLogger(__name__)

SEARCH_EVERY_S = 5.0
"""Seconds between two searches for an object that a lost creation may still make."""

_CREATING = 'creating_first'
"""Key in the progress of a deletion: the progress of the second creation that must end before the deletion."""

Patiently = Callable[[Attempt, Callable[[], Any], bool], Any]
"""Makes a call of a type and retries it after transient errors. With True as third argument it retries after any error,
until the time limit of the action."""


@dataclass(frozen=True, slots=True)
class CreationRecovery:
    """Finds the objects of creations whose result is unknown.

    :param patiently: makes a call of the resource type, with retries.
    :param draining: True while the process drains.
    """

    patiently: Patiently
    poll_policy: PollPolicy
    draining: Callable[[], bool]

    def find(self, attempt: Attempt) -> Answer | None:
        """Search for the object as `find_whole` does, and return it even if it is incomplete."""
        try:
            return self.find_whole(attempt)
        except ReplacementNeeded as error:
            return Done(error.physical_id)

    def find_whole(self, attempt: Attempt) -> Answer | None:
        """Search for the object of a lost creation; None if there is none, or if the type cannot search.

        If `find` raises any other error, the search is repeated until the time limit of the action. If the type cannot
        be imported and no object is known to have been made, the search ends at once with None.

        :raises ForeignObject: the object belongs to another owner.
        :raises ReplacementNeeded: the object, whose id the error has, is incomplete and its creation cannot continue.
        :raises FinalFailure: `find` has not answered before the time limit.
        """
        if not attempt.kind.implements('find'):
            return None

        def ask() -> Answer | ForeignObject | ReplacementNeeded | None:
            try:
                found = attempt.kind.find(attempt.call)
            except ObjectNotFound:
                return None
            except ForeignObject as error:
                return error
            except ReplacementNeeded as error:
                error.physical_id = storable_id(error.physical_id)
                if error.physical_id is None:
                    raise FinalFailure(f'find() names no object that has to be replaced: {text_of(error)}') from error
                return error
            except CannotImport:
                if made(attempt.claim.resource) is Made.NOTHING:
                    return None
                raise
            return None if found is None else checked(found, attempt.most_bytes)

        try:
            answer: Answer | ForeignObject | ReplacementNeeded | None = self.patiently(attempt, ask, True)
        except CallPostponed as later:
            raise CallPostponed(f'find() does not answer: {later.reason}', later.attempts, later.after_s) from later
        except Exception as error:
            raise FinalFailure(
                f'the object of its creation is not known, because find() does not answer: {text_of(error)}'
            ) from error
        if isinstance(answer, ForeignObject | ReplacementNeeded):
            raise answer
        return answer

    def _own(self, attempt: Attempt) -> Answer | None:
        """Search as `find` does; an object of another owner counts as none."""
        try:
            return self.find(attempt)
        except ForeignObject as error:
            LOG.info(
                'Object of %s not deleted, it belongs to another owner: %s', attempt.claim.resource.name, text_of(error)
            )
            return None

    def waits_s(self, attempt: Attempt) -> float:
        """Seconds until the next search for an object that an interrupted creation may still make; 0: no need to wait.

        A type with `release_for_replacement` holds something unique, such as an address. While the interrupted call
        may still take effect, its object cannot release that, and the service would refuse to make another object.
        Objects of other types can exist side by side, so there is no need to wait.
        """
        kind = attempt.kind
        left_s = (attempt.claim.resource.search_until or 0.0) - attempt.claim.at
        return (
            min(left_s, SEARCH_EVERY_S)
            if left_s > 0 and kind.implements('find') and kind.implements('release_for_replacement')
            else 0.0
        )

    def before_deletion(self, attempt: Attempt) -> Succeeded | Parked | None:
        """Find the object to delete, if it is not known.

        :returns: `Succeeded` if there is no object; `Parked` if the search must be repeated; None if the deletion can
            continue.
        :raises FinalFailure: the object could not be found out.
        """
        row, kind = attempt.claim.resource, attempt.kind
        begun = _creation_in(attempt.progress)
        if begun is not None:
            return self._learn(attempt, lambda: kind.poll(attempt.call, Action.CREATE, begun))
        known = made(row)
        if attempt.physical_id is not None or known is Made.OBJECT:
            return None
        found = self._own(attempt)
        if found is not None:
            attempt.learn(found)
            return None
        left_s = (row.search_until or 0.0) - attempt.claim.at
        asks_again = kind.implements('find') or (kind.token_enforced and known is Made.PERHAPS)
        if left_s > 0 and asks_again:  # otherwise a later call could find out no more
            return Parked(None, min(left_s, SEARCH_EVERY_S))
        unknowable = known is not Made.NOTHING and not kind.implements('find')
        if unknowable and kind.token_enforced:
            return self._learn(attempt, lambda: kind.create(attempt.call))
        note = _unknowable(attempt) if unknowable else ''
        # If the interrupted creation has recorded data, the type knows from it which object to delete.
        has_data = attempt.data and known is not Made.NOTHING
        return None if has_data else Succeeded(None, note=note)

    def create_again(self, attempt: Attempt) -> bool:
        """Learn the object of an interrupted creation from a second one, if the type has no `find`.

        If the first creation made no object, the second one makes it. Return True if the object is known then.

        :raises CallPostponed: the creation is still under way.
        :raises NotStarted: the process drains, or the traversal was cancelled.
        """
        if attempt.kind.implements('find') or not attempt.kind.token_enforced:
            return False
        try:
            parked = self._create(attempt, lambda: attempt.kind.create(attempt.call))
        except FinalFailure as error:
            LOG.info('Second creation of %s to learn its object failed: %s', attempt.claim.resource.name, error)
            return False
        if parked is not None:
            raise CallPostponed('the object of its creation is not known yet', attempt.attempts, parked.after_s)
        return True

    def _learn(self, attempt: Attempt, call: Callable[[], Answer]) -> Succeeded | Parked | None:
        """Create again in order to learn the object to delete.

        If an object of another owner has the token or name, the resource has no object.
        """
        try:
            return self._create(attempt, call)
        except ForeignObject as error:
            LOG.info('%s has no object to delete: %s', attempt.claim.resource.name, text_of(error))
            attempt.progress = None
            return None if attempt.data else Succeeded(None)

    def _create(self, attempt: Attempt, call: Callable[[], Answer]) -> Parked | None:
        """Create a second time in order to learn the object of the first creation; None once it is known.

        :raises NotStarted: the process drains, or the deletion was cancelled.
        :raises ForeignObject: the object exists already and belongs to another owner.
        """
        if self.draining() or (attempt.task.is_unwanted and attempt.progress is None):
            raise NotStarted
        try:
            answer = self.patiently(attempt, call, False)
            attempt.learn(answer)
        except Exception as error:
            if isinstance(error, CallPostponed | ForeignObject):
                raise
            known = storable_id(getattr(error, 'physical_id', None))
            if known is None:
                raise FinalFailure(_unlearned(error)) from error
            attempt.learn_id(known)
            return None
        if isinstance(answer, InProgress) and attempt.physical_id is None:
            return Parked({_CREATING: dict(answer.progress)}, poll_interval_s(attempt, answer, self.poll_policy))
        attempt.progress = None
        return None


def is_creating(progress: Mapping[str, Json] | None) -> bool:
    """Return True if the second creation, from which a deletion learns its object, is still under way."""
    return _creation_in(progress) is not None


def _creation_in(progress: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
    inner = progress.get(_CREATING) if progress is not None else None
    return inner if isinstance(inner, dict) else None


def _unlearned(error: Exception) -> str:
    again = 'is still not possible' if isinstance(error, TransientFailure) else 'fails'
    return (
        'it is not known if its interrupted creation has made an object, because a second creation with the same '
        f'token {again}: {text_of(error)}'
    )


def _unknowable(attempt: Attempt) -> str:
    """Write to the log and to the events that an object may be left over."""
    row = attempt.claim.resource
    note = (
        f'its creation ended without an answer and may have made an object: {row.type} has neither find() nor '
        f'token_enforced. Search for an object with the token {row.token} and delete it manually'
    )
    LOG.warning('Resource %s (%s) may have left an object: %s', row.name, row.id, note)
    return note


def says_nothing_made(claim: Claim, attempt: Attempt | None, error: BaseException) -> bool:
    """Return True if a failed creation has left no object: the type was not called, or reported none with its error.

    A type that raises `FinalFailure` or `TransientFailure` gives the id of the object if there is one. It does not know
    about objects of earlier calls, so only a first call counts.
    """
    if claim.action is not Action.CREATE or not (claim.step is Step.CREATE or claim.clean):
        return False
    if attempt is None:
        return True
    known = attempt.physical_id is not None or getattr(error, 'physical_id', None) is not None
    begun = attempt.answered or attempt.progress is not None
    promised = attempt.is_preparing or isinstance(error, (FinalFailure, TransientFailure))
    return promised and not known and not begun
