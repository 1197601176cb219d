"""A node is done and arrives at others: which of them become ready is answered, however many they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from convergence.core.effects import FinishNode
from convergence.core.model import NodeStatus, Phase
from tests.contract.rows import NODES, Backend, node


def arrive(backend: Backend, *followers: Any, behind: int | None = None) -> Any:
    """Node 0 is done, and the only one that is before the others."""
    numbers = tuple(each.number for each in followers if each.number != behind)
    first = replace(NODES[0], required_by=numbers, next_in_backlog=behind)
    backend.fill(nodes=(first, *followers))
    return backend.write(FinishNode('V', 0, numbers, None, 64, behind))


@pytest.mark.parametrize('count', [1, 2, 3, 15, 16, 17, 40])
def test_those_become_ready_that_have_waited_for_one_node_only(backend: Backend, count: int) -> None:
    followers = [node(number, 1 + number % 3) for number in range(1, count + 1)]
    committed = arrive(backend, *followers)
    ready = [each.number for each in followers if each.waiting == 1]
    assert (committed.cast, committed.last) == (tuple(('V', number) for number in ready), ())
    for each in followers:
        expected = NodeStatus.READY if each.waiting == 1 else NodeStatus.WAITING
        assert (backend.node(each.number).status, backend.node(each.number).waiting) == (expected, each.waiting - 1)


@pytest.mark.parametrize('count', [1, 16, 17])
def test_what_needs_no_worker_is_known_by_its_phase(backend: Backend, count: int) -> None:
    """Of all phases, at each place."""
    phases = [list(Phase)[number % len(Phase)] for number in range(count)]
    committed = arrive(backend, *(node(number, 1, phase=phase) for number, phase in enumerate(phases, 1)))
    by_phase = [(('V', number), phase) for number, phase in enumerate(phases, 1)]
    last = (Phase.IN_SERVICE, Phase.COMPLETE)
    assert committed.last == tuple(key for key, phase in by_phase if phase in last)
    assert committed.cast == tuple(key for key, phase in by_phase if phase not in last)


@pytest.mark.parametrize('others', [0, 1, 20])
def test_who_stands_behind_the_window_is_told_of_by_others(backend: Backend, others: int) -> None:
    committed = arrive(backend, *(node(number, 1) for number in range(1, others + 1)), node(60), behind=60)
    assert committed.cast == tuple(('V', number) for number in range(1, others + 1))
    assert (backend.node(60).status, backend.node(60).waiting) == (NodeStatus.READY, 0)


def test_what_one_arrival_has_answered_is_forgotten_by_the_next(backend: Backend) -> None:
    """They may come on the same connection."""
    first = replace(NODES[0], required_by=(10, 11, 12, 13))
    second = node(1, required_by=(2, 3))
    followers = [node(number, 1) for number in first.required_by]
    backend.fill(nodes=(first, second, node(2, 1), node(3, 2), *followers))
    assert len(backend.write(FinishNode('V', 0, first.required_by, None, 64, None)).cast) == 4
    assert backend.write(FinishNode('V', 1, (2, 3), None, 64, None)).cast == (('V', 2),)
