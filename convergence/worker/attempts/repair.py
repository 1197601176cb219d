"""Observe the object of a row and repair it: keep it, update it in place, or have it replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convergence.core.claim import Claim
from convergence.core.model import Action, Change, Status
from convergence.core.object_state import may_still_sleep
from convergence.core.results import NeedsReplacement, Result, Succeeded
from convergence.resources.comparison import changed_properties, compare
from convergence.resources.contract import (
    Answer,
    FinalFailure,
    NotAsWanted,
    ObjectNotFound,
    Observed,
    ReplacementNeeded,
)
from convergence.resources.drift import differing
from convergence.resources.reading import Strictness
from convergence.resources.schema import PropertySchema
from convergence.values import replace
from convergence.worker.attempts.attempt import Attempt, output_of


class Repairs:
    """Keeps an object, updates it in place, or has it replaced.

    :param patiently: makes a call, and retries it after transient errors.
    :param find: searches for the object of a creation.
    :param drive: makes the first call of an action and polls the action until it ends.
    :param learned: stores the known facts about the object.
    :param escalate: stores that the repair continues as an update; raises `ClaimLost` if the claim is lost.
    """

    def __init__(
        self,
        patiently: Callable[[Attempt, Callable[[], Any]], Any],
        find: Callable[[Attempt], Answer | None],
        drive: Callable[[Attempt, Callable[[], Answer]], Result],
        learned: Callable[[Attempt], None],
        escalate: Callable[[Attempt], None],
    ) -> None:
        self._patiently = patiently
        self._find = find
        self._drive = drive
        self._learned = learned
        self._escalate = escalate

    def look(self, attempt: Attempt) -> Result:
        """Observe the object, and keep, update or replace it accordingly."""
        kind, claim = attempt.kind, attempt.claim
        failed, action = claim.resource.status is Status.FAILED, claim.resource.action
        try:
            # An object without an id may exist although the type cannot search for it.
            if attempt.physical_id is None and (failed or kind.implements('find')):
                found = self._find(attempt)
                if found is None:
                    return _another(attempt, 'its object was not found')
                if attempt.learn(found):  # an interrupted update continues with the object that was found
                    self._learned(attempt)
            observed = self._observed(attempt)
        except ObjectNotFound:
            return _another(attempt, 'it does not exist any more')
        of_use = observed.healthy if observed is not None else not failed or action is Action.UPDATE
        if not of_use:
            return _another(attempt, 'it failed' if failed else 'it is of no use any more')
        if may_still_sleep(claim.resource):
            # A suspended object must not be changed: the update could fail, or hide that it is suspended. The core
            # decides what the suspension means for the row.
            return Succeeded(None, attempt.physical_id, attempt.data)
        wanted = claim.pending.properties if claim.pending else {}
        change = compare(kind, claim.resource.properties, wanted, lambda: attempt.call, attempt.data)
        if change is Change.REPLACE:
            return _another(attempt, f'{"it failed, and " if failed else ""}its properties have changed')
        differs = _take_in(attempt, observed, change)
        # A failed update may be applied in part, and the fault that a check found may not be a property.
        touched = failed and action in (Action.UPDATE, Action.CHECK)
        if change is Change.NONE and not differs and not touched:
            return Succeeded(output_of(attempt), attempt.physical_id, attempt.data)
        self._escalate(attempt)
        return self._drive(attempt, lambda: kind.update(attempt.call))

    def update_again(self, attempt: Attempt) -> Result:
        """Repeat an interrupted update.

        If the desired properties equal the applied ones, the update was a repair of drift. No row stores the drift, so
        the object is observed again.
        """
        kind, claim = attempt.kind, attempt.claim
        wanted = claim.pending.properties if claim.pending is not None else {}
        same = not changed_properties(kind, claim.resource.properties, wanted, attempt.data)

        def update() -> Answer:
            if same:
                try:
                    _take_in(attempt, kind.observe(attempt.call), Change.NONE)
                except ObjectNotFound as error:
                    raise ReplacementNeeded('it does not exist any more') from error
            return kind.update(attempt.call)

        return self._drive(attempt, update)

    def _observed(self, attempt: Attempt) -> Observed | None:
        observed: Observed | None = self._patiently(attempt, lambda: attempt.kind.observe(attempt.call))
        return observed


def is_repairable(claim: Claim, error: BaseException) -> bool:
    """Return True if a check that ended with `error` leaves it open that the object is of use; see
    `Resource.repairable`.
    """
    is_verdict = isinstance(error, FinalFailure | ObjectNotFound | ReplacementNeeded)
    return claim.action is Action.CHECK and (isinstance(error, NotAsWanted) or not is_verdict)


def _another(attempt: Attempt, reason: str) -> NeedsReplacement:
    return NeedsReplacement(reason, attempt.physical_id, attempt.data)


def _take_in(attempt: Attempt, observed: Observed | None, change: Change) -> bool:
    """Make the live properties of the object the starting point of the update. Return True if they have drifted.

    :param change: the change of the template.
    :raises FinalFailure: a drifted property cannot be updated, and the template did not change, so that it needs no
        other object.
    """
    kind, call = attempt.kind, attempt.call
    if observed is None or call.previous is None:
        return False
    names = differing(kind, call.previous, observed.properties, attempt.data)
    if not names:
        return False
    schema = PropertySchema.of(kind.Properties)
    fixed = [name for name in names if name in schema.properties and not schema.properties[name].update_allowed]
    if fixed and change is Change.NONE:
        raise FinalFailure(
            f'{", ".join(fixed)} changed outside of the stack, and no update can restore that; mark the resource '
            'unhealthy to have its object replaced'
        )
    found = {**attempt.claim.resource.properties, **{name: observed.properties[name] for name in names}}
    attempt.call = replace(call, previous=schema.parse(found, Strictness.LENIENT))
    return True
