"""The events of a stack do not grow without end."""

from __future__ import annotations

from convergence.db.sweeps import Sweeps
from tests.harness import Harness


def test_only_the_newest_events_of_a_stack_are_kept(harness: Harness) -> None:
    stack = harness.created({'a': 'x'})
    before = harness.reader.events(stack)
    Sweeps(harness.store, most_events=2).purge_nodes(100)
    assert len(before) > 2
    assert harness.reader.events(stack) == before[-2:]
