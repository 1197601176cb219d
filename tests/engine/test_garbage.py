"""What an engine makes for a plan goes when the plan is made: the collector of Python looks for circles rarely."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from tests.harness import Harness

COUNT = 300


def things(value: str) -> dict[str, Any]:
    """Many resources, and one that is built on all of them."""
    many: dict[str, Any] = {f'r{number}': {'value': value} for number in range(COUNT)}
    return {**many, 'last': {'value': 'x', 'after': list(many)}}


def in_circles(step: Callable[[], object]) -> int:
    """How many objects are held by nothing but each other after a step."""
    gc.collect()
    gc.disable()
    try:
        step()
        return gc.collect()
    finally:
        gc.enable()


def test_nothing_that_was_made_for_a_plan_is_left_in_circles(harness: Harness) -> None:
    """With each template an engine had once more all that was read of it, and the graph: 60 MiB of 50,000 resources."""
    stack_id = harness.create(things('a'))
    harness.run(limit=20 * COUNT)
    left = {
        'a change': in_circles(lambda: harness.update(stack_id, things('b'))),
        'two resources less': in_circles(lambda: harness.update(stack_id, dict(list(things('b').items())[:-2]))),
        'nothing at all': in_circles(lambda: harness.delete(stack_id)),
    }
    assert max(left.values()) < COUNT, left
