"""Trees of stacks: snapshots, what is restored from them, what is let go of, and what is taken over."""

import json

import pytest

from convergence import errors
from convergence.core.nesting import nested_snapshot
from convergence.db.records import Keep
from convergence.db.repositories.sweeps import Sweeps
from tests.engine.test_groups import group, made, resource
from tests.engine.test_nested import CHILD, child_of, create, lowest, nested, tree, update
from tests.harness import hot

KEPT = hot({'a': {'type': 'Test::Kept', 'value': {'get_param': 'value'}}}, parameters={'value': {'type': 'string'}})
FILES = {'level1.yaml': tree(2)['level1.yaml'], 'level2.yaml': KEPT}


def resources(value='x'):
    return {'below': {'type': 'level1.yaml', 'value': value}}


def snapshots(harness, operation, stack_id, *arguments):
    return getattr(harness.snapshots, operation)(harness.context, {'stack_id': stack_id}, *arguments)


def taken(harness, stack_id):
    snapshot_id = snapshots(harness, 'stack_snapshot', stack_id)['id']
    harness.run()
    assert harness.state(stack_id) == 'SNAPSHOT_COMPLETE', harness.stack(stack_id).status_reason
    return snapshot_id


def restored(harness, stack_id, snapshot_id):
    snapshots(harness, 'stack_restore', stack_id, snapshot_id)
    harness.run()
    assert harness.state(stack_id) == 'RESTORE_COMPLETE', harness.stack(stack_id).status_reason


def content(harness, stack_id, new=None):
    """What somebody has put into the object at the bottom, or puts there now."""
    thing = harness.reality.objects[harness.row(lowest(harness, stack_id, 2).id, 'a').physical_id]
    if new is not None:
        thing['content'] = new
    return thing.get('content')


def test_a_snapshot_reaches_every_level_and_so_does_the_way_back(harness):
    stack_id = create(harness, resources(), FILES)
    harness.run()
    content(harness, stack_id, 'old')
    snapshot_id = taken(harness, stack_id)
    last = lowest(harness, stack_id, 2)
    assert harness.state(last.id) == 'SNAPSHOT_COMPLETE'
    data = snapshots(harness, 'show_snapshot', stack_id, snapshot_id)['data']
    assert data['resources']['below']['resources']['below']['resources']['a']['resource_id'] == 'a-1'
    assert snapshots(harness, 'stack_list_snapshots', last.id)[0]['status'] == 'COMPLETE'
    content(harness, stack_id, 'new')
    update(harness, stack_id, resources('y'), {**FILES, 'level2.yaml': KEPT.replace(' a:', ' b:')})
    harness.run()
    assert harness.reality.values() == {'b': 'y'}
    restored(harness, stack_id, snapshot_id)
    assert harness.reality.values() == {'a': 'x'}
    assert (content(harness, stack_id), lowest(harness, stack_id, 2).id) == ('old', last.id)
    update(harness, stack_id, resources(), FILES)
    harness.run()
    assert harness.state(lowest(harness, stack_id, 2).id) == 'RESTORE_COMPLETE', 'there was nothing to do'


def test_a_nested_stack_that_is_gone_comes_back_from_the_snapshot_of_the_tree(harness):
    stack_id = create(harness, resources(), FILES)
    harness.run()
    content(harness, stack_id, 'old')
    snapshot_id = taken(harness, stack_id)
    update(harness, stack_id, {'other': 'x'}, {})
    harness.run()
    assert harness.reality.values() == {'other': 'x'}
    Sweeps(harness.store, Keep(deleted_s=-1.0)).purge_stacks(10)
    restored(harness, stack_id, snapshot_id)
    assert (harness.reality.values(), content(harness, stack_id)) == ({'a': 'x'}, 'old')


def test_a_snapshot_of_a_tree_that_is_deleted_leaves_nothing_at_any_level(harness):
    stack_id = create(harness, resources(), FILES)
    harness.run()
    snapshot_id = taken(harness, stack_id)
    last = lowest(harness, stack_id, 2).id
    assert len(harness.reality.copies) == 1
    snapshots(harness, 'delete_snapshot', stack_id, snapshot_id)
    for _ in range(6):
        for worker in harness.workers:
            worker._parts.snapshot_removal()
    assert harness.reality.copies == {}
    assert harness.kept.of_stack(stack_id) == harness.kept.of_stack(last) == []
    assert harness.state(last) == 'SNAPSHOT_COMPLETE'


def test_a_snapshot_is_taken_once_whoever_asks_how_often(harness):
    """The answer of the engine is lost, and the worker dies: the next one finds what has been begun."""
    stack_id = create(harness, {'child': {'type': 'level2.yaml', 'value': 'x'}}, FILES)
    harness.run()
    act, lost = harness.nesting.act_on_nested_stack, []

    def unheard(*arguments, **named):
        answer = act(*arguments, **named)
        lost.append(answer)
        raise errors.NoAnswer('no answer in time')

    harness.nesting.act_on_nested_stack = unheard
    snapshot_id = snapshots(harness, 'stack_snapshot', stack_id)['id']
    harness.deliver()
    harness.nesting.act_on_nested_stack = act
    harness.recover()
    assert harness.state(stack_id) == 'SNAPSHOT_COMPLETE'
    child = child_of(harness, stack_id)
    assert len(lost) == 1
    assert [each.id for each in harness.kept.of_stack(child.id)] == [nested_snapshot(snapshot_id, child.id)]


def adopt(harness, data):
    args = {'adopt_stack_data': json.dumps(data)}
    return harness.stacks.create_stack(harness.context, 'again', None, {}, args=args)['stack_id']


def let_go_of(harness, stack_id):
    exported = harness.abandonment.export_stack(harness.context, {'stack_id': stack_id})
    data = harness.abandonment.abandon_stack(harness.context, {'stack_id': stack_id})
    assert exported == data
    harness.run()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'
    return data


def test_a_tree_that_was_abandoned_is_adopted_and_nothing_is_made_again(harness):
    """F127: at any depth, also where messages are lost."""
    files = tree(2)
    before = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}, 'beside': 'x'}, files)
    harness.run()
    data = let_go_of(harness, before)
    assert data['resources']['below']['resources']['below']['resources']['thing0']['resource_id']
    assert data['resources']['below']['template']['resources']['below']['type'] == 'level2.yaml'
    stack_id = adopt(harness, data)
    harness.messages.checks.clear()
    harness.recover()
    assert harness.state(stack_id) == 'ADOPT_COMPLETE', harness.stack(stack_id).status_reason
    assert harness.state(lowest(harness, stack_id, 2).id) == 'ADOPT_COMPLETE'
    assert not any(harness.row(stack_id, 'below').data.values())
    assert harness.reality.calls['create', 'thing0'] == harness.reality.calls['create', 'beside'] == 1
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}, 'beside': 'x'}, files)
    harness.run()
    assert harness.reality.values() == {'thing0': 'b', 'beside': 'x'}
    harness.delete(stack_id)
    harness.run()
    assert harness.reality.objects == {}


@pytest.mark.parametrize('missing', ['resources', 'resource_id'])
def test_what_data_do_not_have_of_a_tree_is_not_made(harness, missing):
    before = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()})
    harness.run()
    data = let_go_of(harness, before)
    del (data['resources']['child'] if missing == 'resources' else data['resources']['child']['resources']['thing0'])[
        missing
    ]
    stack_id = adopt(harness, data)
    harness.recover()
    assert harness.state(stack_id) == 'ADOPT_FAILED'
    assert 'provided.' in harness.stack(stack_id).status_reason
    assert harness.reality.calls['create', 'thing0'] == 1
    assert list(harness.reality.values()) == ['thing0'], 'nobody has taken it over, and nobody removes it'


def test_the_members_of_groups_keep_their_names_when_they_are_adopted(harness):
    member = {'type': 'Test::Thing', 'properties': {'value': 'x'}}
    scaled = resource('OS::Heat::AutoScalingGroup', min_size=2, max_size=3, resource=member)
    fixed = group(2, removal_policies=[{'resource_list': ['0']}])
    before = made(harness, {'scaled': scaled, 'group': fixed})

    def names(stack_id):
        return [
            {row.name for row in harness.rows(child_of(harness, stack_id, each).id)} for each in ('scaled', 'group')
        ]

    kept = names(before)
    assert kept[1] == {'1', '2'}
    stack_id = adopt(harness, let_go_of(harness, before))
    harness.recover()
    assert harness.state(stack_id) == 'ADOPT_COMPLETE', harness.stack(stack_id).status_reason
    assert names(stack_id) == kept
    assert len(harness.reality.order('create')) == 4


def test_a_tree_that_is_at_work_below_is_not_abandoned(harness):
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()})
    harness.run()
    harness.act(child_of(harness, stack_id).id, 'check')
    with pytest.raises(errors.ActionInProgress, match='s-child-'):
        harness.abandonment.abandon_stack(harness.context, {'stack_id': stack_id})
