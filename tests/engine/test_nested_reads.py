"""What callers are told of stacks in stacks."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event as sql_events

from convergence.engine.reads.answers import ResourceReads, StackReads
from convergence.resources.contract import InProgress
from convergence.rpc.engine_api import EventQuery, StackQuery
from tests.engine.test_nested import CHILD, child_of, create, lowest, nested, tree, update
from tests.harness import Harness, hot

THREE = {'below': {'type': 'level1.yaml', 'value': 'a'}, 'beside': {'value': 'x', 'after': ['below']}}


@pytest.fixture
def resources(harness: Harness) -> Any:
    """What is asked about resources and events."""
    return ResourceReads(harness.reader, harness.compiler)


@pytest.fixture
def stacks(harness: Harness) -> Any:
    """What is asked about stacks."""
    return StackReads(harness.reader, harness.compiler)


def made(harness: Harness, depth: int = 3) -> dict[str, str]:
    """A stack with stacks in it, complete; its identity."""
    stack_id = create(harness, THREE, tree(depth))
    harness.run()
    assert harness.state(stack_id) == 'CREATE_COMPLETE', harness.stack(stack_id).status_reason
    return {'stack_id': stack_id}


def test_nested_stacks_are_listed_and_counted_only_for_whoever_asks(harness, stacks):
    identity = made(harness)
    below = [lowest(harness, identity['stack_id'], depth) for depth in (1, 2, 3)]

    def listed(**query: Any) -> list[str]:
        found = stacks.list_stacks(harness.context, StackQuery(**query))
        assert stacks.count_stacks(harness.context, StackQuery(**query)) == len(found)
        return [each['stack_identity']['stack_id'] for each in found]

    assert listed() == listed(not_tags=['x']) == [identity['stack_id']]
    assert set(listed(show_nested=True)) == {identity['stack_id'], *(each.id for each in below)}
    assert listed(filters={'parent': below[0].id}) == listed(filters={'owner_id': below[0].id}) == [below[1].id]
    assert listed(filters={'owner_id': 'nobody'}) == listed(filters={'id': below[0].id}) == []
    (shown,) = stacks.show_stack(harness.context, {'stack_id': below[1].id})
    assert shown['parent'] == below[0].id
    (top,) = stacks.show_stack(harness.context, identity)
    assert top['parent'] is None
    harness.delete(identity['stack_id'])
    harness.run()
    assert listed(show_deleted=True) == [identity['stack_id']]


def test_resources_are_listed_with_those_of_the_stacks_below(harness, resources):
    identity = made(harness)
    below = [lowest(harness, identity['stack_id'], depth) for depth in (1, 2, 3)]

    def listed(depth: int, of: Any = identity, **filters: Any) -> list[tuple[Any, ...]]:
        return [
            (row['resource_name'], row.get('parent_resource'), row['stack_identity']['stack_id'])
            for row in resources.list_stack_resources(harness.context, of, nested_depth=depth, filters=filters)
        ]

    top = identity['stack_id']
    assert listed(0) == [('below', None, top), ('beside', None, top)]
    assert listed(1) == [('below', None, top), ('below', 'below', below[0].id), ('beside', None, top)]
    every = [
        ('below', None, top),
        ('below', 'below', below[0].id),
        ('below', 'below', below[1].id),
        ('thing0', 'below', below[2].id),
        ('beside', None, top),
    ]
    assert listed(3) == listed(2**40) == every
    assert listed(3, type='Test::Thing') == [every[3], every[4]]
    assert listed(0, {'stack_id': below[2].id}) == [every[3]]
    rows = resources.list_stack_resources(harness.context, identity, nested_depth=3, with_detail=True)
    assert [row.get('nested_stack_id', {}).get('stack_id') for row in rows] == [
        *(each.id for each in below),
        None,
        None,
    ]
    assert rows[0]['required_by'] == ['beside'] and rows[3]['attributes']['value'] == 'a'
    shown = resources.describe_stack_resource(harness.context, {'stack_id': below[1].id}, 'below')
    assert (shown['parent_resource'], shown['nested_stack_id']['stack_id']) == ('below', below[2].id)
    assert shown['nested_stack_id']['stack_name'] == below[2].name


def test_each_resource_is_listed_once_while_everything_changes(harness, resources):
    """F129: an update is under way in the nested stack, one of whose resources is being replaced by another."""
    other = nested(count=1, extra={'value': 'y', 'after': ['thing0']})
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()})
    harness.run()
    harness.reality.always['update', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    update(harness, stack_id, {'child': {'type': CHILD, 'value': 'b'}}, {CHILD: other})
    harness.run()
    child = child_of(harness, stack_id)
    assert harness.state(child.id) == 'UPDATE_IN_PROGRESS'
    rows = resources.list_stack_resources(harness.context, {'stack_id': stack_id}, nested_depth=1)
    assert [(row['resource_name'], row['required_by'], row['resource_action']) for row in rows] == [
        ('child', [], 'UPDATE'),
        ('extra', [], 'INIT'),
        ('thing0', ['extra'], 'UPDATE'),
    ]


def test_what_a_listing_asks_of_the_database_does_not_grow_with_the_tree(harness, resources, stacks):
    statements: list[str] = []

    def count(connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        if statement.startswith(('SELECT', 'WITH')):
            statements.append(statement)

    def cost(identity: dict[str, str]) -> int:
        statements.clear()
        resources.list_stack_resources(harness.context, identity, nested_depth=5)
        resources.list_events(harness.context, identity, EventQuery(nested_depth=5))
        stacks.list_stacks(harness.context, StackQuery(show_nested=True))
        return len(statements)

    few = {f'child{number}': {'type': CHILD, 'value': 'a'} for number in range(1)}
    many = {f'child{number}': {'type': CHILD, 'value': 'a'} for number in range(9)}
    stack_id = create(harness, few, {CHILD: nested()})
    harness.run()
    sql_events.listen(harness.engine, 'before_cursor_execute', count)
    try:
        first = cost({'stack_id': stack_id})
        update(harness, stack_id, many, {CHILD: nested()})
        harness.run()
        assert cost({'stack_id': stack_id}) == first
    finally:
        sql_events.remove(harness.engine, 'before_cursor_execute', count)


def test_events_of_nested_stacks_are_told_with_their_own_stacks(harness, resources):
    identity = made(harness, 2)
    below = [lowest(harness, identity['stack_id'], depth) for depth in (1, 2)]

    def told(of: Any = identity, **query: Any) -> list[dict[str, Any]]:
        return list(resources.list_events(harness.context, of, EventQuery(**query)))

    names = {each['stack_name'] for each in told()}
    assert names == {'s'}
    every = told(nested_depth=2)
    assert {each['stack_identity']['stack_id'] for each in every} == {
        identity['stack_id'],
        *(each.id for each in below),
    }
    assert {each['root_stack_id']['stack_id'] for each in every} == {identity['stack_id']}
    (done,) = [each for each in every if (each['resource_name'], each['resource_status']) == ('thing0', 'COMPLETE')]
    assert done['event_identity']['stack_id'] == below[1].id
    assert {each['stack_name'] for each in told(nested_depth=1)} == {'s', below[0].name}
    assert {each['stack_name']: each['stack_path'] for each in every} == {
        's': '',
        below[0].name: 'below',
        below[1].name: 'below/below',
    }
    marker = done['event_identity']['path'].rpartition('/')[2]
    assert told(nested_depth=2, marker=marker) == every[every.index(done) + 1 :]
    own = told(nested_depth=2, filters={'resource_name': below[1].name})
    assert [(each['physical_resource_id'], each['resource_status']) for each in own] == [
        (below[1].id, 'IN_PROGRESS'),
        (below[1].id, 'COMPLETE'),
    ]
    (root,) = {each['root_stack_id']['stack_id'] for each in told({'stack_id': below[1].id}, nested_depth=1)}
    assert root == identity['stack_id']


def test_what_a_nested_template_hides_is_hidden_above_and_nothing_else(harness, resources, stacks):
    """The parent's template knows nothing of secrets: it is the nested one that calls its parameter hidden."""
    parameters = {'secret': {'type': 'string', 'hidden': True}, 'name': {'type': 'string'}}
    inner = hot(
        {'kept': {'value': {'get_param': 'secret'}}, 'open': {'value': {'get_param': 'name'}}},
        parameters=parameters,
        outputs={
            'told': {'value': {'get_attr': ['kept', 'value']}},
            'name': {'value': {'get_attr': ['open', 'value']}},
        },
    )
    outputs = {name: {'value': {'get_attr': ['child', name]}} for name in ('told', 'name')}
    child = {'type': CHILD, 'secret': 'opensesame', 'name': 'web'}
    identity = harness.stacks.create_stack(
        harness.context, 's', hot({'child': child}, outputs=outputs), files={CHILD: inner}
    )
    harness.run()
    assert harness.reality.values() == {'kept': 'opensesame', 'open': 'web'}
    (shown,) = stacks.show_stack(harness.context, identity)
    assert {each['output_key']: each['output_value'] for each in shown['outputs']} == {'told': '******', 'name': 'web'}
    resource = resources.describe_stack_resource(harness.context, identity, 'child', ['told', 'name'])
    assert (resource['attributes']['told'], resource['attributes']['name']) == ('******', 'web')
