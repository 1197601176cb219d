"""What an update would do, down to the resources of nested stacks: no more than it does."""

from __future__ import annotations

from typing import Any

import pytest

from convergence.engine.compile.stored_submissions import StoredSubmissions
from convergence.engine.preview.preview import Previews
from tests.engine.test_nested import CHILD, create, nested, tree, update
from tests.harness import Harness, hot


def foreseen(harness: Harness, stack_id: str, resources: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """By list of the preview, the resources in it: each with the one that it is in."""
    previews = Previews(harness.reader, harness.registry, harness.stacks)
    lists = previews.preview_update_stack(
        harness.context, {'stack_id': stack_id}, hot(resources), files=files, args={'show_nested': True}
    )
    return {
        fate: [(each.get('parent_resource'), each['resource_name'], each['certainty']) for each in documents]
        for fate, documents in lists.items()
        if documents
    }


def test_only_what_changes_below_is_said_to_change(harness):
    """A value goes down three levels to one of two things; beside it is a tree that stays as it is."""
    files = {**tree(3), 'level3.yaml': nested(count=1, still={'value': 'as it was'}), CHILD: nested()}
    before = {'below': {'type': 'level1.yaml', 'value': 'a'}, 'child': {'type': CHILD, 'value': 'x'}}
    stack_id = create(harness, before, files)
    harness.run()
    same = foreseen(harness, stack_id, before, files)
    assert set(same) == {'unchanged'} and len(same['unchanged']) == 7
    after = {**before, 'below': {'type': 'level1.yaml', 'value': 'b'}}
    told = foreseen(harness, stack_id, after, files)
    assert told == {
        'updated': [
            (None, 'below', 'certain'),
            ('below', 'below', 'certain'),
            ('below', 'below', 'certain'),
            ('below', 'thing0', 'certain'),
        ],
        'unchanged': [(None, 'child', 'certain'), ('below', 'still', 'certain'), ('child', 'thing0', 'certain')],
    }
    steps = len(harness.reality.journal)
    update(harness, stack_id, after, files)
    harness.run()
    assert [each[1] for each in harness.reality.journal[steps:] if each[0] == 'update'] == ['thing0']


def test_what_is_added_and_removed_with_a_nested_stack_is_told(harness):
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'x'}}, {CHILD: nested(count=2)})
    harness.run()
    more = {'other': {'type': CHILD, 'value': 'y'}}
    told = foreseen(harness, stack_id, more, {CHILD: nested(count=1)})
    assert told == {
        'added': [(None, 'other', 'certain'), ('other', 'thing0', 'certain')],
        'deleted': [
            (None, 'child', 'certain'),
            ('child', 'thing0', 'certain'),
            ('child', 'thing1', 'certain'),
        ],
    }
    fewer = foreseen(harness, stack_id, {'child': {'type': CHILD, 'value': 'x'}}, {CHILD: nested(count=1)})
    assert fewer == {
        'updated': [(None, 'child', 'certain')],
        'unchanged': [('child', 'thing0', 'certain')],
        'deleted': [('child', 'thing1', 'certain')],
    }


def test_what_a_creation_makes_is_shown_with_a_list_for_each_nested_stack(harness):
    previews = Previews(harness.reader, harness.registry, harness.stacks)
    template = hot({'below': {'type': 'level1.yaml', 'value': 'a'}, 'beside': 'x'})

    def previewed(**args: Any) -> Any:
        return previews.preview_stack(harness.context, 'new', template, files=tree(2), args=args)['resources']

    def names(resources: Any) -> Any:
        return [names(each) if isinstance(each, list) else each['resource_name'] for each in resources]

    assert names(previewed()) == [[['thing0']], 'beside']
    assert previewed()[0][0][0]['properties'] == {'value': 'a', 'key': '', 'link': None}
    paths = [each['path'] for each in previewed(show_nested=True)]
    assert paths == ['below', 'below/below', 'below/below/thing0', 'beside']


def scaled(value: str, size: int) -> dict[str, Any]:
    """A group whose members are changed one by one."""
    member = {'type': CHILD, 'properties': {'value': value}}
    rolling = {'min_in_service': 2, 'pause_time': 1}
    sizes = {'min_size': 0, 'max_size': 9, 'desired_capacity': size}
    return {'group': {'type': 'OS::Heat::AutoScalingGroup', 'resource': member, 'rolling_updates': rolling, **sizes}}


def counted(value: str, count: int, *removed: str) -> dict[str, Any]:
    """A group whose members have numbers."""
    member = {'type': CHILD, 'properties': {'value': value}}
    policies = [{'resource_list': [*removed]}]
    properties = {'count': count, 'resource_def': member, 'removal_policies': policies}
    return {'group': {'type': 'OS::Heat::ResourceGroup', **properties}}


@pytest.mark.parametrize(
    'goals',
    [
        [scaled('a', 3), scaled('b', 3), scaled('b', 4), scaled('c', 2), scaled('d', 0)],
        [counted('a', 4), counted('a', 3, '1'), counted('a', 4), counted('b', 5), counted('b', 2)],
    ],
)
def test_the_members_that_a_group_has_are_those_that_are_said_to_change(harness, goals):
    """They were said to be replaced, all of them, by others whose names nobody will ever have."""
    files = {CHILD: nested()}
    stack_id = create(harness, goals[0], files)
    harness.run()
    for goal in goals[1:]:
        told = foreseen(harness, stack_id, goal, files)
        group = harness.row(stack_id, 'group').physical_id or ''
        values = {row.name: row.properties['value'] for row in harness.rows(group)}
        update(harness, stack_id, goal, files)
        harness.recover()
        after = {row.name: row.properties['value'] for row in harness.rows(group)}
        changed = {
            'updated': {name for name in after if name in values and after[name] != values[name]},
            'added': set(after) - set(values),
            'deleted': set(values) - set(after),
        }
        said = {fate: {name for above, name, _ in told.get(fate, ()) if above == 'group'} for fate in changed}
        assert said == changed


def test_nothing_is_said_of_members_where_a_database_does_not_show_what_they_are_made_from(harness, monkeypatch):
    """A group whose size the update leaves open was said to get the size of a new one, at the cost of its members."""
    files = {CHILD: nested()}
    stack_id = create(harness, scaled('a', 3), files)
    harness.run()
    wanted = scaled('b', 3)
    del wanted['group']['desired_capacity']
    group = harness.row(stack_id, 'group').physical_id or ''
    made_from, shown = harness.stack(group).template_id, StoredSubmissions.of_template

    def lagging(self: StoredSubmissions, template_id: str) -> Any:
        return None if template_id == made_from else shown(self, template_id)

    monkeypatch.setattr(StoredSubmissions, 'of_template', lagging)
    told = foreseen(harness, stack_id, wanted, files)
    assert [each[:2] for each in told['updated']] == [(None, 'group')]
    assert set(told) == {'updated'}
    monkeypatch.undo()
    told = foreseen(harness, stack_id, wanted, files)
    assert len([above for above, _, _ in told['updated'] if above == 'group']) == 3
