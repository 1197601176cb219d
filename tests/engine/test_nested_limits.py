"""How much may be nested: the resources of a whole tree of stacks, and its depth."""

from __future__ import annotations

from typing import Any

import pytest

from convergence import errors
from convergence.engine.nesting.converger import NestingLimits
from convergence.resources.contract import FinalFailure
from tests.engine.test_nested import CHILD, child_of, create, nested, tree, update
from tests.engine.test_operations_costs import Counted
from tests.harness import Harness, emptied, hot
from tests.reality import fails

MOST = 6


def children(count: int) -> dict[str, Any]:
    """Nested stacks with the same template."""
    return {f'child{number}': {'type': CHILD, 'value': 'x'} for number in range(count)}


def size_of_tree(harness: Harness, stack_id: str) -> int:
    """How many resources the goals of a stack and of the stacks nested in it have."""
    nested = [row.token for row in harness.reader.resources(stack_id) if row.token is not None]
    living = [token for token in nested if (stack := harness.reader.stack(token)) and stack.deleted_at is None]
    return harness.stack(stack_id).resource_count + sum(size_of_tree(harness, token) for token in living)


@pytest.fixture
def limited(engine: Any) -> Harness:
    """No tree may have more resources than `MOST`."""
    return Harness(engine, nesting=NestingLimits(max_resources=MOST))


def test_resources_are_counted_over_the_whole_tree(limited):
    """F125: two resources of two each are six. Of three each the last nested stack is refused; a rollback fits."""
    stack = create(limited, children(2), {CHILD: nested(count=2)})
    limited.run()
    assert limited.state(stack) == 'CREATE_COMPLETE', limited.stack(stack).status_reason
    assert size_of_tree(limited, stack) == MOST
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
    assert size_of_tree(limited, stack) == MOST
    update(limited, stack, children(1), {CHILD: nested(count=MOST - 1)})
    limited.run()
    assert limited.state(stack) == 'UPDATE_FAILED', 'what it stands in for is still there'
    update(limited, stack, {'other': 'x'}, {})
    limited.run()
    assert limited.state(stack) == 'UPDATE_COMPLETE', limited.stack(stack).status_reason
    assert size_of_tree(limited, stack) == 1
    update(limited, stack, children(1), {CHILD: nested(count=MOST - 1)})
    limited.run()
    assert limited.state(stack) == 'UPDATE_COMPLETE', limited.stack(stack).status_reason


def test_an_update_of_the_stack_at_the_top_fits_beside_what_is_nested_in_it(limited):
    """It was held against its own template alone."""
    files = {CHILD: nested(count=3)}
    stack = create(limited, {**children(1), 'own': 'x'}, files)
    limited.run()
    assert limited.state(stack) == 'CREATE_COMPLETE'
    more = {**children(1), 'own': 'x', 'other': 'x', 'third': 'x'}
    before = limited.stack(stack).traversal_id
    with pytest.raises(errors.RequestLimitExceeded, match=f'would have {MOST + 1}, and the limit is {MOST} '):
        update(limited, stack, more, files)
    assert limited.stack(stack).traversal_id == before
    del more['third']
    update(limited, stack, more, files)
    limited.run()
    assert limited.state(stack) == 'UPDATE_COMPLETE'
    assert size_of_tree(limited, stack) == MOST
    update(limited, stack, {'own': 'x', 'other': 'x', 'third': 'x'}, {})
    limited.run()
    assert limited.state(stack) == 'UPDATE_COMPLETE', 'fewer are never too many'


def test_no_limit_is_in_the_way_of_a_rollback(limited):
    """What goes back to more counts only once what has taken its place has gone back to less."""
    files = {'small.yaml': nested(count=1), 'large.yaml': nested(count=2)}
    one = {'type': 'small.yaml', 'value': 'x', 'after': ['other']}
    wanted = {'one': one, 'other': {'type': 'large.yaml', 'value': 'x'}, 'bad': {'value': 'x', 'after': ['one']}}
    stack = create(limited, wanted, files)
    limited.run()
    assert limited.state(stack) == 'CREATE_COMPLETE'
    assert size_of_tree(limited, stack) == MOST
    limited.reality.once['update', 'bad'] = [fails(FinalFailure('no'))]
    swapped = {'small.yaml': nested(count=2), 'large.yaml': nested(count=1)}
    wanted = {**wanted, 'bad': {'value': 'y', 'after': ['one']}}
    limited.stacks.update_stack(
        limited.context, {'stack_id': stack}, hot(wanted), files=swapped, args={'disable_rollback': False}
    )
    limited.run()
    assert limited.state(stack) == 'ROLLBACK_COMPLETE', limited.stack(stack).status_reason
    assert size_of_tree(limited, stack) == MOST


def test_what_the_limit_costs_does_not_depend_on_how_many_stacks_the_tree_has(engine):
    """F125."""

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
    assert costs == [unlimited] * 2


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
