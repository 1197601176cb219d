"""What is left to one thread: for as long as that gets on."""

import pytest

from convergence.worker.alone import ALONE_S, LeftAlone
from tests.worker.test_draining import Turns


class Moments:
    """Traversals at some moments."""

    def __init__(self):
        self.seconds = 100.0
        self.alone = LeftAlone(lambda: self.seconds)

    def after(self, seconds):
        self.seconds += seconds
        return self.alone


def test_a_thread_that_gets_on_is_left_alone_for_as_long_as_it_does():
    now = Moments()
    assert now.alone.wait_s('V') == 0
    now.alone.begins('V')
    for _ in range(5):
        assert now.after(0.75 * ALONE_S).wait_s('V') == pytest.approx(0.25 * ALONE_S)
        now.alone.gets_on('V')
    assert now.after(ALONE_S).wait_s('V') == 0


def test_who_was_late_once_is_helped_until_nothing_of_the_traversal_runs():
    now = Moments()
    now.alone.begins('V')
    now.after(2 * ALONE_S).gets_on('V')
    now.alone.begins('V')
    assert now.alone.wait_s('V') == 0
    now.alone.ends('V')
    now.alone.begins('V')
    assert now.alone.wait_s('V') == pytest.approx(ALONE_S)
    assert now.alone.wait_s('W') == 0


def left_to_one(turns: Turns, count: int) -> list[float]:
    """So many nodes of a nested stack go ahead, with threads for all of them; after how many seconds to look again."""
    looks: list[float] = []
    turns.groups.soon = lambda delay_s, call: looks.append(delay_s)
    turns.submit('nested', count, ahead=True)
    turns.assert_running('nested')
    return looks


def test_what_goes_ahead_has_one_thread_and_others_help_where_that_does_not_get_on():
    turns = Turns(8)
    assert left_to_one(turns, 3) == [ALONE_S]
    turns.submit('other', 2)
    turns.assert_running('nested', 'other', 'other')
    turns.now += ALONE_S
    turns.groups.begin()  # as `soon` was asked to
    turns.assert_running('nested', 'nested', 'nested', 'other', 'other')
    turns.let_all_go()


def test_a_thread_that_takes_what_waits_ahead_gets_on():
    turns = Turns(8)
    looks = left_to_one(turns, 4)
    turns.now += 0.75 * ALONE_S
    assert turns.groups.take_waiting('nested') == 1
    turns.now += 0.75 * ALONE_S
    turns.groups.begin()
    turns.assert_running('nested')
    assert looks == [ALONE_S, pytest.approx(0.25 * ALONE_S)], 'somebody looks again when it would be late'
    turns.end('nested')
    turns.assert_running('nested')
    turns.let_all_go()


def test_nobody_looks_again_while_no_thread_is_free():
    turns = Turns(1)
    assert left_to_one(turns, 3) == []
    turns.let_all_go()
