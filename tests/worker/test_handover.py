"""Objects give way in the order in which services let them: those that are known first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from convergence.core.claim import Step
from convergence.core.model import Action
from convergence.core.rows import Retry
from convergence.worker.attempts.attempt import CallPostponed
from convergence.worker.attempts.handover import ObjectHandover
from tests.core.build import MADE, claim, held, row


@dataclass(frozen=True)
class NamedCall:
    """A call, as far as it matters."""

    name: str
    record: Any = None


class Address:
    """There is one address, and a type of whose objects only a second creation tells.

    :ivar owner: who has it.
    :ivar calls: what was done, in its order.
    """

    def __init__(self, owner: str | None) -> None:
        self.owner = owner
        self.calls: list[str] = []
        self.attempts: list[int] = []

    def begin(self, made_for: Any, task: Any) -> Any:
        """An attempt with a row."""
        resource = made_for.resource
        self.attempts.append(made_for.attempts)
        return SimpleNamespace(
            claim=made_for,
            task=task,
            call=NamedCall(resource.id),
            kind=SimpleNamespace(implements=lambda name: True, release_for_replacement=self.release_for_replacement),
            physical_id=resource.physical_id,
            data={},
            keep=None,
        )

    def release_for_replacement(self, call: Any) -> None:
        """Whoever has it does not any more."""
        self.calls.append(f'{call.name} gives way')
        self.owner = None if self.owner == call.name else self.owner

    def create_again(self, attempt: Any) -> bool:
        """What is gone is made again, if nobody else has the address."""
        name = attempt.call.name
        if self.owner not in (None, name):
            self.calls.append(f'{name} is refused')
            raise CallPostponed(f'{self.owner} has it', 3, 1.0)
        self.calls.append(f'{name} is made')
        self.owner = attempt.physical_id = name
        return True

    def giving_way(self) -> ObjectHandover:
        """What is tested."""
        stored = self.calls.append
        return ObjectHandover(
            lambda attempt, call: call(),
            lambda attempt: None,
            self.create_again,
            lambda attempt: stored(f'{attempt.call.name} is stored'),
            self.begin,
        )

    def attempt(self, resource: Any, *rivals: Any) -> Any:
        """An attempt with the row that is held."""
        held_for = replace(claim(Step.HAND_OVER, Action.UPDATE, resource), rivals=rivals)
        return self.begin(held_for, None)


def unknown(key: str) -> Any:
    """A row whose creation was cut off."""
    return row(key, 'r', physical_id=None, output=None, token='t')


def test_what_only_a_second_creation_tells_of_comes_after_what_has_the_address() -> None:
    address = Address('R')
    address.giving_way().release_for_replacement(address.attempt(held(MADE), unknown('X')))
    assert address.calls == ['R gives way', 'X is made', 'X gives way']
    assert address.owner is None


def test_who_is_refused_has_another_turn_when_others_have_given_way() -> None:
    address = Address('Y')
    address.giving_way().release_for_replacement(address.attempt(held(MADE), unknown('X'), unknown('Y')))
    assert address.calls == [
        *('R gives way', 'X is refused', 'Y is made', 'Y gives way'),
        *('X is made', 'X gives way'),
    ]


def test_its_own_object_is_stored_as_soon_as_it_is_known() -> None:
    address = Address(None)
    own = held(unknown('R'))
    address.giving_way().release_for_replacement(address.attempt(own))
    assert address.calls == ['R is made', 'R is stored', 'R gives way']


def test_tries_count_for_the_step_as_a_whole() -> None:
    """Each time that the step was taken up again they were counted anew, and it waited for its time limit."""
    address = Address('somebody else')
    tried = held(MADE, retry=Retry(2, 'busy'))
    with pytest.raises(CallPostponed):
        address.giving_way().release_for_replacement(address.attempt(tried, unknown('X')))
    assert address.calls == ['R gives way', 'X is refused', 'X is refused']
    assert address.attempts == [2, 2]
