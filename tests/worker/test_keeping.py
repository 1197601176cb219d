"""What a worker keeps for its own threads: as much as they come to soon, whatever else waits for one."""

import pytest

from convergence.worker.keeping import SOON_S, Keeping
from convergence.worker.scheduler.thread_groups import Check, Occupancy

MANY = 1000


class Now:
    """A worker at some moment."""

    def __init__(self, busy=8, waiting=100):
        self.busy, self.waiting, self.seconds, self.stopping = busy, waiting, 0.0, False
        self.taken = []
        self.keeping = Keeping(self, self.submit, lambda: self.stopping, lambda: self.seconds)

    def occupancy(self):
        return Occupancy(8, self.busy, self.waiting, 0)

    def waiting_ahead(self):
        return sum(check.ahead for check in self.taken)

    def submit(self, checks):
        self.taken.extend(checks)
        return not self.stopping

    def gets_on(self, steps, each_s):
        for _ in range(steps):
            self.seconds += each_s
            self.keeping.note_step()


@pytest.mark.parametrize(('each_s', 'kept'), [(0.02, 49), (0.125, 8), (2.0, 0), (10.0, 0)])
def test_it_keeps_what_its_threads_come_to_soon(each_s, kept):
    now = Now()
    now.gets_on(20, each_s)
    assert now.keeping.room_ahead(MANY) == pytest.approx(kept, abs=1)
    assert kept <= SOON_S / each_s


@pytest.mark.parametrize(('each_s', 'kept'), [(0.12, 8), (0.16, 8), (0.26, 0), (10.0, 0)])
def test_a_few_nodes_of_a_traversal_are_not_divided_while_threads_get_on(each_s, kept):
    """One thread does all of them, each begun with the end of the one before."""
    now = Now()
    now.gets_on(20, each_s)
    assert now.keeping.room_ahead(8) == kept


def test_of_a_few_nodes_free_threads_take_one_each_where_types_take_their_time():
    now = Now(busy=5, waiting=0)
    now.gets_on(20, 0.4)
    assert now.keeping.room_ahead(8) == 3


def test_what_it_has_kept_already_is_part_of_what_its_threads_come_to():
    now = Now()
    now.gets_on(64, 0.01)
    room = now.keeping.room_ahead(MANY)
    now.keeping.take_ahead('V', range(room - 1))
    assert room > 8 and now.keeping.room_ahead(MANY) == 1
    now.keeping.take_ahead('W', range(1))
    assert now.keeping.room_ahead(MANY) == 0


def test_what_it_keeps_goes_ahead_of_what_waits():
    now = Now()
    now.keeping.take_ahead('V', (3, 4))
    assert now.taken == [Check('V', 3, ahead=True), Check('V', 4, ahead=True)]
    assert Now(waiting=0).keeping.take('V', 5)


def test_who_has_done_nothing_yet_keeps_what_is_for_its_free_threads():
    now = Now(busy=5, waiting=0)
    assert now.keeping.room_ahead(MANY) == 3
    assert Now().keeping.room_ahead(MANY) == 0


def test_who_got_on_quickly_long_ago_keeps_nothing():
    now = Now()
    now.gets_on(64, 0.001)
    now.seconds += 120.0
    assert now.keeping.room_ahead(MANY) == 0


def test_who_is_to_end_keeps_nothing():
    now = Now(busy=0, waiting=0)
    now.stopping = True
    assert now.keeping.room_ahead(MANY) == 0
    assert now.keeping.take('V', 1) is False


@pytest.mark.parametrize(('each_s', 'stacks'), [(0.01, 9), (0.05, 5), (10.0, 5)])
def test_as_many_nested_stacks_may_be_begun_as_its_threads_come_to_soon(each_s, stacks):
    """And some in any case: what is in them goes to others where this worker is slow."""
    now = Now()
    now.gets_on(64, each_s)
    assert now.keeping.stacks_ahead() == stacks
    now.keeping.take_ahead('V', range(10 * stacks))
    assert now.keeping.stacks_ahead() == 0
