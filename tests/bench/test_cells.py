"""Simulated installations do what queues do: near the bound where a part is full, and twice as much where there are two."""

import pytest

from tests.bench.cells import simulated
from tests.bench.costs import Cost

SMALL = Cost(engine=0.001, worker=0.02, database=0.001, broker=0.0001)
"""The workers are full first, up to 640 of them."""
FULL = Cost(engine=0.001, worker=0.01, database=0.1, broker=0.0001)
"""The database is full with 320 in a second, which takes four workers."""


def test_a_worker_has_enough_threads_to_be_busy():
    found = simulated(SMALL, 4)
    assert found.bound == pytest.approx(200)
    assert found.rate == pytest.approx(200, rel=0.1)
    assert found.workers_busy > 0.9
    assert found.database_busy < 0.1


def test_more_workers_do_not_help_a_database_that_is_full():
    few, many = simulated(FULL, 8), simulated(FULL, 16)
    assert (few.bound, many.bound) == (pytest.approx(320), pytest.approx(320))
    assert many.rate == pytest.approx(few.rate, rel=0.1)
    assert many.database_busy > 0.95
    assert many.workers_busy < few.workers_busy < 0.5


def test_installations_share_nothing():
    one, two = simulated(FULL, 16), simulated(FULL, 16, 2)
    assert two.bound == pytest.approx(640)
    assert two.rate == pytest.approx(2 * one.rate, rel=0.1)


def test_the_same_seed_is_the_same_run():
    assert simulated(SMALL, 2) == simulated(SMALL, 2)
    assert simulated(SMALL, 2).rate != simulated(SMALL, 2, seed=2).rate


def test_eight_threads_have_eight_resources_under_way():
    """Arithmetic with cores alone knows nothing of what a database takes that has cores to spare."""
    slow = Cost(engine=0.001, worker=0.01, database=0.32, broker=0.0001)
    found = simulated(slow, 1)
    assert found.bound == pytest.approx(100)
    assert found.rate == pytest.approx(8 / (0.33 + 0.006), rel=0.15)
