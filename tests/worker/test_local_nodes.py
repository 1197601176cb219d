"""Nodes of nested stacks that a worker keeps for its own threads: as many as it ran within the last second."""

import pytest

from convergence.concurrency import Task
from convergence.core.handoff import Handoff
from convergence.worker.scheduler.constants import HORIZON_S, NESTED_BATCH
from convergence.worker.scheduler.scheduler import Scheduler
from convergence.worker.scheduler.thread_groups import Check, Occupancy
from convergence.worker.scheduler.turn import Turn

MANY = 1000


def handoff(traversal_id, *nodes):
    return Handoff('R', ('S', 0), traversal_id=traversal_id, nodes=nodes)


class FakeDispatcher:
    """Counts the nodes that other workers get."""

    together = 5

    def __init__(self):
        self.sent = []

    def cast(self, nodes):
        self.sent.extend(nodes)

    def cast_together(self, traversal_id, numbers, size=0):
        self.sent.extend((traversal_id, number) for number in numbers)


class Now:
    """A worker at some moment: its queue, its threads and its dispatcher."""

    def __init__(self, busy=8, waiting=100):
        self.busy, self.waiting, self.seconds, self.draining = busy, waiting, 0.0, False
        self.taken, self.threads, self.dispatcher = [], self, FakeDispatcher()
        self.scheduler = Scheduler(
            lambda turn: None, self.dispatcher, self, 16, lambda delay_s, call: None, lambda: self.seconds
        )

    def is_draining(self):
        return self.draining

    def occupancy(self):
        return Occupancy(8, self.busy, self.waiting, 0)

    def waiting_ahead(self):
        return sum(check.ahead for check in self.taken)

    def is_crowded(self, traversal_id):
        return False

    def take_waiting(self, traversal_id):
        return None

    def put(self, checks):
        self.taken.extend(checks)
        return not self.draining

    def run(self, nodes, each_s):
        for _ in range(nodes):
            self.seconds += each_s
            self.scheduler.run('other', 0, Task('t'))

    def turn(self):
        return Turn('S', 0, Task('t'), self.seconds, 15)

    def keeps(self, count, traversal_id='V'):
        """How many nodes of a nested stack it keeps, of so many that are ready."""
        before, sent = len(self.taken), len(self.dispatcher.sent)
        self.scheduler.on_nested_ready(handoff(traversal_id, *range(count)), self.turn())
        kept = len(self.taken) - before
        assert kept + len(self.dispatcher.sent) - sent == count, 'other workers get the rest'
        return kept


@pytest.mark.parametrize(('each_s', 'kept'), [(0.02, 50), (0.125, 8), (2.0, 0), (10.0, 0)])
def test_a_worker_keeps_as_many_nodes_as_it_ran_within_the_last_second(each_s, kept):
    now = Now()
    now.run(100, each_s)
    assert now.keeps(MANY) == pytest.approx(kept, abs=1)
    assert kept <= HORIZON_S / each_s


@pytest.mark.parametrize(('each_s', 'kept'), [(0.12, 8), (0.16, 8), (0.45, 3), (10.0, 0)])
def test_the_nodes_of_a_small_stack_are_not_divided_while_threads_are_quick(each_s, kept):
    """One thread runs all of them, each claimed by the commit that finishes the node before."""
    now = Now()
    now.run(20, each_s)
    assert now.keeps(8) == pytest.approx(kept, abs=1)


def test_free_threads_take_one_node_each_while_types_are_slow():
    now = Now(busy=5, waiting=0)
    now.run(20, 0.4)
    assert now.keeps(8) == 3


def test_nodes_that_wait_here_already_count():
    now = Now()
    now.run(100, 0.01)
    room = now.keeps(MANY)
    assert room > 8
    assert now.keeps(MANY, 'W') == 0


def test_kept_nodes_go_before_other_waiting_nodes():
    now = Now(busy=0, waiting=0)
    assert now.keeps(2) == 2
    assert now.taken == [Check('V', 0, ahead=True), Check('V', 1, ahead=True)]


def test_the_turn_of_the_thread_is_over_when_nodes_are_kept():
    now, turn = Now(busy=0, waiting=0), Turn('S', 0, Task('t'), 0.0, 15)
    assert now.scheduler.may_continue(turn)
    now.scheduler.on_nested_ready(handoff('V', 1, 2), turn)
    assert not now.scheduler.may_continue(turn)


def test_a_new_worker_keeps_a_node_for_each_free_thread():
    assert Now(busy=5, waiting=0).keeps(MANY) == 3
    assert Now().keeps(MANY) == 0


def test_a_worker_that_was_quick_long_ago_keeps_nothing():
    now = Now()
    now.run(64, 0.001)
    now.seconds += 120.0
    assert now.keeps(MANY) == 0


def test_a_draining_worker_keeps_nothing():
    now = Now(busy=0, waiting=0)
    now.draining = True
    assert now.keeps(MANY) == 0


@pytest.mark.parametrize(('each_s', 'most_ahead'), [(0.01, 100), (0.05, 50), (10.0, 50)])
def test_nested_stacks_start_in_batches_until_many_of_their_nodes_wait(each_s, most_ahead):
    """And some in any case: other workers get their nodes if this worker is slow."""
    now = Now()
    now.run(120, each_s)
    now.take_waiting = lambda traversal_id: 7
    ahead = [Check('V', number, ahead=True) for number in range(most_ahead - 2)]
    now.put(ahead)
    assert now.scheduler.batch_with(now.turn()) == [7] * (NESTED_BATCH - 1)
    now.put(ahead[:3])
    assert now.scheduler.batch_with(now.turn()) == []
