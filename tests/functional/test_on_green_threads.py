"""Engines and workers on eventlet."""

import pytest

from tests.functional.behaviour import Deaths, Operations

# With each commit tests/test_concurrency.py covers green threads, in one process.
pytestmark = pytest.mark.long
DATABASE = 'postgresql'
OPTIONS = {'executor': 'eventlet'}
PROCESSES = {'engines': 1, 'workers': 2}


class TestOperations:
    """Those that touch every path of the executor: many at once, taking over, cancelling."""

    test_spread = Operations.test_the_work_on_a_stack_is_spread_over_the_workers
    test_takes_over = Operations.test_an_update_takes_over_from_an_update_in_progress
    test_cancel = Operations.test_a_cancelled_update_goes_back_where_that_is_wanted
    test_delete = Operations.test_a_delete_in_the_middle_of_a_create_stops_and_removes_it


class TestDeaths:
    """A green thread that is stuck in a call hears that it should end."""

    test_drain = Deaths.test_a_worker_that_is_told_to_stop_hands_its_work_on
    test_end = Deaths.test_a_worker_that_is_told_to_stop_begins_nothing_more
    test_kill = Deaths.test_the_work_of_a_killed_worker_is_taken_over
