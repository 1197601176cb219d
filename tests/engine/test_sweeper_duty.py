"""Which engine sweeps: nobody asks more often than that can change, and no duty is left undone for longer."""

from __future__ import annotations

from collections import Counter

import pytest

from convergence import errors
from convergence.core.claim import Worker
from convergence.db.connections.counting import count
from convergence.engine.sweeper.duty import Duty
from convergence.engine.sweeper.sweeper import Sweeper
from convergence.engine.sweeper.tasks import SweepOptions
from tests.harness import Harness

EVERY_S = 5.0
TERM_S = 15.0


class Time:
    """One clock for the database and for every engine."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.duty: tuple[str, float] = ('', 0.0)
        self.asked = Counter[str]()
        self.away = False

    def __call__(self) -> float:
        return self.now

    def take_duty(self, name: str, holder: str, for_s: float) -> bool:
        """As the port tells it."""
        self._ask(f'{holder} takes')
        if self.duty[0] != holder and self.duty[1] >= self.now:
            return False
        self.duty = (holder, self.now + for_s)
        return True

    def duty_held_s(self, name: str, holder: str) -> float:
        """As the port tells it."""
        self._ask(f'{holder} looks')
        return 0.0 if self.duty[0] == holder else self.duty[1] - self.now

    def _ask(self, what: str) -> None:
        if self.away:
            raise errors.DatabaseUnavailable('away')
        self.asked[what] += 1


def duty(time: Time, holder: str, rest_s: float = 10.0, answers: list[float] | None = None) -> Duty:
    """The duty as one engine sees it."""
    told = [] if answers is None else answers
    return Duty(time, 'sweeper', holder, EVERY_S, rest_s, lambda: told.append(time.now), time)  # type: ignore[arg-type]


def test_who_has_it_renews_it_with_every_second_turn_and_others_look_as_often() -> None:
    time = Time()
    a, b = duty(time, 'a'), duty(time, 'b')
    for turn in range(24):
        if turn == 2:
            time.asked.clear()
        assert (a.is_ours(), b.is_ours()) == (True, False)
        assert (a.is_elsewhere(), b.is_elsewhere()) == (False, True)
        time.now += EVERY_S
    assert sum(time.asked.values()) <= 24
    assert set(time.asked) == {'a takes', 'b looks'}


def test_when_its_holder_is_gone_another_has_it_with_its_first_turn_after_the_term() -> None:
    """As soon as one that tries with each turn."""
    for holds_on in range(6):
        time = Time()
        a, b = duty(time, 'a'), duty(time, 'b')
        for _ in range(holds_on + 1):
            assert a.is_ours()
            time.now += 1.0
            assert not b.is_ours()
            time.now += EVERY_S - 1.0
        ends = time.duty[1]
        time.now += 1.0
        while not b.is_ours():
            assert time.now <= ends
            time.now += EVERY_S
        assert time.now - ends <= EVERY_S
        assert not b.is_elsewhere()
        assert not a.is_ours()


def test_that_nobody_is_known_to_have_it_is_no_reason_to_leave_anything_to_another() -> None:
    time = Time()
    a, b = duty(time, 'a'), duty(time, 'b')
    assert not b.is_elsewhere()
    assert a.is_ours()
    assert not b.is_ours()
    time.now += 10.0 + EVERY_S - 0.1
    assert b.is_elsewhere()
    time.now += 0.2
    assert not b.is_elsewhere()


def test_a_database_that_is_away_is_told_to_whoever_asks_it_and_its_answers_are_noted() -> None:
    time, answers = Time(), list[float]()
    a = duty(time, 'a', answers=answers)
    assert a.is_ours()
    assert answers == [1000.0]
    time.away = True
    time.now += EVERY_S
    assert a.is_ours()
    time.now += EVERY_S
    for _ in range(2):
        with pytest.raises(errors.DatabaseUnavailable):
            a.is_ours()
    assert answers == [1000.0]
    time.away = False
    assert a.is_ours()
    assert answers == [1000.0, 1010.0]


def test_what_a_clock_that_has_gone_back_says_is_believed_for_a_while_only() -> None:
    time = Time()
    b = duty(time, 'b')
    time.duty = ('a', time.now + 3600.0)
    assert not b.is_ours()
    time.now += 10.0
    time.duty = ('a', time.now - 1.0)
    assert b.is_ours()


def test_a_sweep_with_nothing_to_do_is_one_statement_and_a_second_one_with_every_second_turn(engine) -> None:
    harness, sent, time = Harness(engine), Counter[str](), Time()
    options = SweepOptions(clock=time)
    sweepers = [
        Sweeper(harness.sweeps, harness.sweep_tasks(options), options, Worker(name, harness.new_id)) for name in 'ab'
    ]
    stop = count(engine, lambda kind: sent.update([kind]))
    costs = []
    for _ in range(6):
        time.now += EVERY_S
        for each in sweepers:
            sent.clear()
            each.sweep()
            costs.append(sent['statements'])
    stop()
    assert (costs[4::2], costs[5::2]) == ([2, 1, 2, 1], [1, 0, 1, 0])
