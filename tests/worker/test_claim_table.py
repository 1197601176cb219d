"""What the tasks of a worker hold: who may still write, and what is given back when a task does not stop."""

from types import SimpleNamespace
from typing import Any

import pytest

from convergence.concurrency import Group, Task
from convergence.worker.checks.claim_table import ClaimTable


class Clock:
    """Says what it is set to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def claim(name: str, deadline: float | None = None) -> Any:
    """A claim that was made at 7 s, by the clock of the database."""
    return SimpleNamespace(resource=SimpleNamespace(id=name, deadline=deadline), at=7.0)


@pytest.fixture
def task():
    """One that runs."""
    with Group('V').enter('task') as entered:
        yield entered


def test_a_task_comes_to_one_claim_after_the_other(task):
    holdings = ClaimTable(Clock())
    a, b = claim('a'), claim('b')
    assert holdings.take(task, [a, b])
    assert holdings.claims() == [a, b]
    holdings.done(task, a)
    assert holdings.claims() == [b]
    assert holdings.drop(task) == [b]
    assert holdings.claims() == holdings.drop(task) == []


def test_who_was_given_up_holds_nothing_any_more_and_gets_nothing(task):
    """What it held is told once, to whoever gives it up: nobody else may give it back."""
    holdings = ClaimTable(Clock())
    a, b = claim('a'), claim('b')
    assert holdings.take(task, [a, b])
    assert holdings.give_up(task) == [a, b]
    holdings.done(task, a)
    assert holdings.drop(task) == holdings.give_up(task) == []
    assert not holdings.take(task, [a])
    assert holdings.claims() == []


def test_only_what_a_task_works_on_is_overdue(task):
    """What it has not come to has not begun."""
    clock = Clock()
    holdings = ClaimTable(clock)
    late, later = claim('late', 9.0), claim('later', 9.0)
    holdings.take(task, [late, later])
    assert holdings.overdue() == []
    clock.now += 2.5
    assert holdings.overdue() == [(task, late)]
    holdings.done(task, late)
    assert holdings.overdue() == [(task, later)]


def test_what_has_no_deadline_is_never_overdue(task: Task):
    clock = Clock()
    holdings = ClaimTable(clock)
    holdings.take(task, [claim('a')])
    clock.now += 1e9
    assert holdings.overdue() == []
