"""Move unique things, such as an address, between an object and its replacement; see `convergence.core.handover`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from convergence.concurrency import Task
from convergence.core.claim import Claim
from convergence.core.object_state import Made, made
from convergence.core.results import NeedsReplacement, Result, Succeeded
from convergence.core.rows import Resource
from convergence.errors import EntityNotFound
from convergence.resources.contract import Answer, FinalFailure, ForeignObject, ObjectNotFound, ReplacementNeeded
from convergence.resources.storable import text_of
from convergence.values import replace
from convergence.worker.attempts.attempt import Attempt, CallPostponed

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ObjectHandover:
    """Calls `release_for_replacement` and `reclaim`.

    :param patiently: makes a call, and retries it after transient errors.
    :param find: searches for the object of a creation.
    :param create_again: learns the object from a second creation; returns True if it is known then.
    :param learned: stores the known facts about the object.
    :param begin: makes an attempt.
    """

    patiently: Callable[[Attempt, Callable[[], Any]], Any]
    find: Callable[[Attempt], Answer | None]
    create_again: Callable[[Attempt], bool]
    learned: Callable[[Attempt], None]
    begin: Callable[[Claim, Task], Attempt]

    def release_for_replacement(self, attempt: Attempt) -> Result:
        """Have every object of the resource release its unique things for the replacement.

        An object that does not exist, or of which nothing can be known, is skipped.
        """
        self._free([*self._rivals(attempt), attempt])
        return Succeeded(None, attempt.physical_id, attempt.data)

    def reclaim(self, attempt: Attempt) -> Result:
        """Have every other object of the resource release its unique things.

        Then the object of the row reclaims them.
        """
        self._free(self._rivals(attempt))
        if not self._is_there(attempt):
            return Succeeded(None, attempt.physical_id, attempt.data)
        self._store(attempt)
        try:
            self._call(attempt, 'reclaim')
        except ObjectNotFound:
            return NeedsReplacement('it does not exist any more', attempt.physical_id, attempt.data)
        return Succeeded(None, attempt.physical_id, attempt.data)

    def _free(self, attempts: Sequence[Attempt]) -> None:
        """Have objects release their unique things, known objects first.

        The object of a lost creation may only be known from a second creation. The service may refuse that until other
        objects have released what it needs. So such an object is tried again after others have released theirs.

        :raises CallPostponed: none of the remaining objects is known yet.
        """
        left = sorted(attempts, key=lambda each: made(each.claim.resource) is Made.PERHAPS)
        while left:
            refused: list[tuple[Attempt, CallPostponed]] = []
            for each in left:
                try:
                    is_there = self._is_there(each)
                except CallPostponed as later:
                    refused.append((each, later))
                else:
                    if is_there:
                        self._store(each)
                        self._release(each)
            if len(refused) == len(left):
                raise refused[0][1]
            left = [each for each, _ in refused]

    def _release(self, attempt: Attempt) -> None:
        try:
            self._call(attempt, 'release_for_replacement')
        except ObjectNotFound:
            LOG.info('Nothing to release of %s: its object does not exist any more', attempt.call.name)

    def _call(self, attempt: Attempt, method: str) -> None:
        try:
            self.patiently(attempt, lambda: getattr(attempt.kind, method)(attempt.call))
        except ReplacementNeeded as error:
            raise FinalFailure(f'{method}() must not request a replacement: {text_of(error)}') from error

    def _store(self, attempt: Attempt) -> None:
        """Store the id of an object that was just found, unless no worker holds its row."""
        resource = attempt.claim.resource
        if resource.owner is not None and attempt.physical_id != resource.physical_id:
            self.learned(attempt)

    def _rivals(self, attempt: Attempt) -> list[Attempt]:
        others = [self._rival(attempt, rival) for rival in attempt.claim.rivals]
        return [other for other in others if other is not None]

    def _rival(self, attempt: Attempt, rival: Resource) -> Attempt | None:
        """Make an attempt for another row; None if its type is not installed or releases nothing."""
        claim = attempt.claim
        own = claim.resource  # deadline and retries count for the whole step, not for each row
        row = replace(rival, deadline=own.deadline, began_at=own.began_at, retry=own.retry)
        try:
            other = self.begin(replace(claim, resource=row, pending=None), attempt.task)
        except EntityNotFound as error:
            LOG.warning(
                'Object of %s keeps its unique things, its type is not installed here; install it if the replacement '
                'fails: %s',
                rival.name,
                error,
            )
            return None
        # This worker does not hold the row, so facts about its object stay in this step.
        other.call = replace(other.call, record=other.keep)
        return other if other.kind.implements('release_for_replacement') else None

    def _is_there(self, attempt: Attempt) -> bool:
        """Return True if an object is known to exist. Then the attempt has its id, if it has one."""
        known = made(attempt.claim.resource)
        if attempt.physical_id is not None or known is not Made.PERHAPS:
            return known is Made.OBJECT
        try:
            found = self.find(attempt)
        except ForeignObject as error:
            LOG.info(
                'Nothing to release of %s, its object belongs to another owner: %s', attempt.call.name, text_of(error)
            )
            return False
        if found is None:
            return self.create_again(attempt)
        attempt.learn(found)
        return True
