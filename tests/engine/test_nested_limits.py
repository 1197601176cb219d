"""How much may be nested: the resources of a whole tree of stacks, and its depth."""

from __future__ import annotations

from typing import Any

import pytest

from convergence import errors
from convergence.engine.nesting.giving import NestingLimits
from tests.engine.test_nested import CHILD, child_of, create, nested, tree, update
from tests.engine.test_operations_costs import Counted
from tests.harness import Harness, emptied

MOST = 6


def children(count: int) -> dict[str, Any]:
    """Nested stacks with the same template."""
    return {f'child{number}': {'type': CHILD, 'value': 'x'} for number in range(count)}


@pytest.fixture
def limited(engine: Any) -> Harness:
    """No tree may have more resources than `MOST`."""
    return Harness(engine, nesting=NestingLimits(max_resources=MOST))


def test_resources_are_counted_over_the_whole_tree(limited):
    """Two resources with two each are six. Of three each the last nested stack is refused, and a rollback fits."""
    stack = create(limited, children(2), {CHILD: nested(count=2)})
    limited.run()
    assert limited.state(stack) == 'CREATE_COMPLETE', limited.stack(stack).status_reason
    assert limited.reader.resources_of_tree(stack) == MOST
    update(limited, stack, children(2), {CHILD: nested(count=3)})
    limited.run()
    assert limited.state(stack) == 'UPDATE_FAILED'
    told = f'the tree of stacks would have {MOST + 1}, and the limit is {MOST} ([limits] max_resources_per_stack).'
    assert told in limited.stack(stack).status_reason
    update(limited, stack, children(2), {CHILD: nested(count=2)})
    limited.run()
    assert limited.state(stack) == 'UPDATE_COMPLETE', limited.stack(stack).status_reason


def test_what_is_two_levels_down_counts_and_what_was_deleted_does_not(limited):
    files = {'level1.yaml': tree(2)['level1.yaml'], 'level2.yaml': nested(count=4)}
    stack = create(limited, {'below': {'type': 'level1.yaml', 'value': 'x'}}, files)
    limited.run()
    assert limited.state(stack) == 'CREATE_COMPLETE', limited.stack(stack).status_reason
    assert limited.reader.resources_of_tree(stack) == MOST
    update(limited, stack, children(1), {CHILD: nested(count=MOST - 1)})
    limited.run()
    assert limited.state(stack) == 'UPDATE_FAILED', 'what it stands in for is still there'
    update(limited, stack, {'other': 'x'}, {})
    limited.run()
    assert limited.state(stack) == 'UPDATE_COMPLETE', limited.stack(stack).status_reason
    assert limited.reader.resources_of_tree(stack) == 1
    update(limited, stack, children(1), {CHILD: nested(count=MOST - 1)})
    limited.run()
    assert limited.state(stack) == 'UPDATE_COMPLETE', limited.stack(stack).status_reason


def test_the_limit_is_looked_at_with_one_question_however_many_stacks_the_tree_has(engine):
    def one_more(limits: NestingLimits, count: int) -> int:
        harness = Harness(emptied(engine), nesting=limits)
        files = {CHILD: nested()}
        stack = create(harness, children(count), files)
        harness.run(limit=20000)
        update(harness, stack, children(count + 1), files)
        with Counted(harness.engine) as counted:
            harness.run(limit=20000)
        assert harness.state(stack) == 'UPDATE_COMPLETE', harness.stack(stack).status_reason
        return counted.statements

    unlimited = one_more(NestingLimits(), 3)
    costs = [one_more(NestingLimits(max_resources=1000), count) for count in (3, 12)]
    assert costs == [unlimited + 1] * 2


def test_stacks_are_nested_as_deep_as_the_limit_says_and_no_deeper(engine):
    harness = Harness(engine, nesting=NestingLimits(max_depth=2))
    below = {'below': {'type': 'level1.yaml', 'value': 'x'}}
    stack = create(harness, below, tree(2))
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    assert child_of(harness, child_of(harness, stack, 'below').id, 'below').nested_depth == 2
    refused = r'Recursion depth exceeds 2 \(\[limits\] max_nested_stack_depth\)'
    with pytest.raises(errors.StackValidationFailed, match=refused):
        update(harness, stack, below, tree(3))
    assert harness.state(stack) == 'CREATE_COMPLETE'
