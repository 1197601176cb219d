"""Changes of rows name columns that there are, with the types that the rows have: the type checker does the rest."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from convergence.core.changes import NodeChange, ResourceChange, StackChange
from convergence.core.effects import UpdateResource, UpdateResources, UpdateStack
from convergence.core.rows import Node, Resource, Stack

NEVER = {
    # What a row is and where it comes from; what is counted, or cleared, by whoever does not hold the row.
    Stack: {'id', 'name', 'project_id', 'created_at', 'request_key', 'request_digest'},
    Resource: {'id', 'stack_id', 'name', 'created_at', 'replaces', 'damaged'}
    | {'event_count', 'cleared', 'cleared_traversal_id', 'revocation'},
}


@pytest.mark.parametrize(('change', 'row'), [(StackChange, Stack), (ResourceChange, Resource), (NodeChange, Node)])
def test_a_column_of_a_change_is_a_column_of_the_row_with_its_type(change, row):
    wanted, there = get_type_hints(change), get_type_hints(row)
    assert wanted == {name: there.get(name) for name in wanted}
    assert change.__required_keys__ == frozenset()


@pytest.mark.parametrize(('change', 'row'), [(StackChange, Stack), (ResourceChange, Resource)])
def test_a_new_column_can_change_unless_it_is_known_not_to(change, row):
    assert {field.name for field in fields(row)} - set(get_type_hints(change)) == NEVER[row]


@pytest.mark.parametrize(
    ('effect', 'change'),
    [(UpdateStack, StackChange), (UpdateResource, ResourceChange), (UpdateResources, ResourceChange)],
)
def test_effects_carry_typed_changes(effect, change):
    assert get_type_hints(effect)['changes'] is change
