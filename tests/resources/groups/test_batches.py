"""Members change a few at a time; as many as are asked for are left alone meanwhile."""

from __future__ import annotations

import itertools

from convergence.resources.builtin.groups.batches import Batch, BatchPolicy, is_finished, next_batch


def steps(members, size, policy, failed=(), current=(), names=None):
    """All batches until nothing is left to do.

    :param names: those of the members in the end; None: any.
    """
    current, found = set(current), []
    names = names or []
    fresh = itertools.chain(
        (name for name in names if name not in members), (f'new{number}' for number in itertools.count())
    )
    while not is_finished(members, current, size):
        leaving = {name for name in members if names and name not in names}
        batch = next_batch(members, current - leaving, size, policy, fresh, failed=failed, leaving=leaving)
        found.append(batch)
        members, failed = list(batch.members), ()
        current = (current | batch.renewed) & set(members)
        assert len(found) < 100
    return found


def test_every_group_gets_there_within_the_bounds():
    cases = itertools.product(range(7), range(7), [1, 2, 3, 10], [0, 1, 3, 6, 9], [False, True])
    for count, size, max_size, least, named in cases:
        before = [f'm{number}' for number in range(count)]
        names = [f'm{number}' for number in range(size)] if named else None
        batches = steps(before, size, BatchPolicy(max_size, least), names=names)
        for batch in batches:
            untouched = set(before) & set(batch.members) - batch.renewed
            # What is removed at the end has been made up for before.
            assert len(batch.renewed) <= max_size
            assert len(untouched) >= min(least, size, count) or not batch.renewed, (count, size, max_size, least)
            before = batch.members
        assert len(before) == size
        assert names is None or set(before) == set(names)
        assert set(before) <= set().union(*(batch.renewed for batch in batches))


def test_another_stands_in_where_too_few_would_be_left():
    policy = BatchPolicy(max_size=1, min_in_service=2)
    assert steps(['a', 'b'], 2, policy) == [
        Batch(('a', 'b', 'new0'), frozenset({'new0'})),
        Batch(('a', 'b', 'new0'), frozenset({'a'})),
        Batch(('a', 'new0'), frozenset()),
    ]
    assert steps(['a', 'b'], 2, policy, names=['a', 'b']) == [
        Batch(('a', 'b', 'new0'), frozenset({'new0'})),
        Batch(('a', 'b', 'new0'), frozenset({'a'})),
        Batch(('a', 'b', 'new0'), frozenset({'b'})),
        Batch(('a', 'b'), frozenset()),
    ]


def test_what_failed_is_made_again_first_and_all_of_it():
    first, *others = steps(['a', 'b', 'c', 'd'], 4, BatchPolicy(), failed={'d', 'b'})
    assert first == Batch(('a', 'b', 'c', 'd'), frozenset({'b', 'd'}))
    assert [set(batch.renewed) for batch in others] == [{'a'}, {'c'}]


def test_a_group_that_becomes_smaller_loses_what_is_outdated_and_then_those_in_front():
    assert steps(['a', 'b', 'c'], 1, BatchPolicy(), current={'a', 'b', 'c'}) == [Batch(('c',), frozenset())]
    assert steps(['a', 'b', 'c'], 2, BatchPolicy(), current={'a', 'c'}) == [Batch(('a', 'c'), frozenset())]
