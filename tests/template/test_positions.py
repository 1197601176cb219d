"""Positions as numbers."""

from types import SimpleNamespace

import pytest

from convergence.template.positions import Position, Positions

MARKS = [(0, 0), (0, 7), (3, 0), (50_000, 4_000_000), (4_000_000, 50_000)]


@pytest.mark.parametrize('key', MARKS)
@pytest.mark.parametrize('value', MARKS)
def test_a_position_is_what_it_was_made_from(key, value):
    at = [SimpleNamespace(line=line, column=column) for line, column in (key, value)]
    both = Positions.of(*at)
    found = [(each.line, each.column) for each in both]
    assert found == [key, value] == [(each.line, each.column) for each in (both.key, both.value)]
    assert Positions.of(both.key, both.value) == both
    assert Position.of(at[0]) == both.key
