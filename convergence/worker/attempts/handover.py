"""Have an object give way to the one that replaces it, or take back what that has; see `convergence.core.handover`."""

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

    :param patiently: makes a call, and repeats it while it says that it may work later.
    :param find: asks a type for the object that a creation has made.
    :param create_again: has a type tell by a second creation; whether it has.
    :param learned: stores what is known of the object by now.
    :param begin: begins an attempt.
    """

    patiently: Callable[[Attempt, Callable[[], Any]], Any]
    find: Callable[[Attempt], Answer | None]
    create_again: Callable[[Attempt], bool]
    learned: Callable[[Attempt], None]
    begin: Callable[[Claim, Task], Attempt]

    def release_for_replacement(self, attempt: Attempt) -> Result:
        """Have every object of the name give way. What is not there, or cannot be known, has nothing to give."""
        self._free([*self._rivals(attempt), attempt])
        return Succeeded(None, attempt.physical_id, attempt.data)

    def reclaim(self, attempt: Attempt) -> Result:
        """Have every other object of the name give way, then the object of the row take back what it had."""
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
        """Have objects give way, those that are known first.

        Where only a second creation tells of an object, and that is gone, the service may refuse to make another one
        until what it needs is free. Such a one has its turn again when others have given way.

        :raises CallPostponed: of those that are left nothing is known yet.
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
                        self._give_way(each)
            if len(refused) == len(left):
                raise refused[0][1]
            left = [each for each, _ in refused]

    def _give_way(self, attempt: Attempt) -> None:
        try:
            self._call(attempt, 'release_for_replacement')
        except ObjectNotFound:
            LOG.info('Nothing to release of %s: its object does not exist any more', attempt.call.name)

    def _call(self, attempt: Attempt, method: str) -> None:
        try:
            self.patiently(attempt, lambda: getattr(attempt.kind, method)(attempt.call))
        except ReplacementNeeded as error:
            raise FinalFailure(f'{method}() asks for a replacement, which it cannot: {text_of(error)}') from error

    def _store(self, attempt: Attempt) -> None:
        """Store the id of an object that was found just now, unless it belongs to a row that is not held."""
        resource = attempt.claim.resource
        if resource.owner is not None and attempt.physical_id != resource.physical_id:
            self.learned(attempt)

    def _rivals(self, attempt: Attempt) -> list[Attempt]:
        others = [self._rival(attempt, rival) for rival in attempt.claim.rivals]
        return [other for other in others if other is not None]

    def _rival(self, attempt: Attempt, rival: Resource) -> Attempt | None:
        """An attempt with another row; None where its type has nothing to give, or is not there any more."""
        claim = attempt.claim
        own = claim.resource  # the step as a whole is tried so often, and may take so long
        row = replace(rival, deadline=own.deadline, began_at=own.began_at, retry=own.retry)
        try:
            other = self.begin(replace(claim, resource=row, pending=None), attempt.task)
        except EntityNotFound as error:
            LOG.warning(
                'Object of %s not released for its replacement, install its resource type: %s', rival.name, error
            )
            return None
        # Its row is not held: what is learned of its object is known to this step alone.
        other.call = replace(other.call, record=other.keep)
        return other if other.kind.implements('release_for_replacement') else None

    def _is_there(self, attempt: Attempt) -> bool:
        """Return True if there is an object, as far as that is known. Then its id is known, if it has one."""
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
