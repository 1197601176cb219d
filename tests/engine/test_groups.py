"""Groups: members of a nested stack, made, changed and removed as their types say."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from convergence import errors
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.submission import Submission
from convergence.engine.reads.stacks import StackReads
from convergence.resources.contract import FinalFailure
from tests.engine.test_nested import child_of, nested, states
from tests.harness import Harness, hot
from tests.reality import fails

GROUP, CHAIN = 'OS::Heat::ResourceGroup', 'OS::Heat::ResourceChain'


def resource(type_name: str, **properties: Any) -> dict[str, Any]:
    return {'type': type_name, 'properties': properties}


def group(count: int = 3, value: Any = 'v', kind: str = 'Test::Thing', **more: Any) -> dict[str, Any]:
    return resource(GROUP, count=count, resource_def={'type': kind, 'properties': {'value': value}}, **more)


def written(resources: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """A template in which resources stand as they are."""
    return {'heat_template_version': '2021-04-16', 'resources': resources, **sections}


def made(harness: Harness, resources: dict[str, Any], files: dict[str, str] | None = None, **sections: Any) -> str:
    """A stack that is complete."""
    identity = harness.stacks.create_stack(harness.context, 's', written(resources, **sections), files=files or {})
    harness.run()
    stack = harness.stack(identity['stack_id'])
    assert states(harness, stack) == 'CREATE_COMPLETE: Stack CREATE completed successfully'
    return stack.id


def changed(harness: Harness, stack_id: str, resources: dict[str, Any], files: dict[str, str] | None = None) -> None:
    """Update, and see it through."""
    harness.stacks.update_stack(harness.context, {'stack_id': stack_id}, written(resources), files=files or {})
    harness.recover()


def told(harness: Harness, stack_id: str) -> dict[str, Any]:
    """The outputs of a stack."""
    (shown,) = StackReads(harness.reader, harness.compiler).show_stack(harness.context, {'stack_id': stack_id})
    return {each['output_key']: each['output_value'] for each in shown['outputs']}


def members(harness: Harness, stack_id: str, name: str = 'group') -> dict[str, Any]:
    return {row.name: row.properties['value'] for row in harness.rows(child_of(harness, stack_id, name).id)}


def test_members_are_alike_but_for_their_number_and_tell_what_they_are(harness):
    asked = {
        'refs': ['refs'],
        'map': ['refs_map'],
        'values': ['value'],
        'by_name': ['attributes', 'value'],
        'one': ['resource.1.value'],
        'same': ['resource.1', 'value'],
        'short': ['1.value'],
        'reference': ['resource.0'],
        'removed': ['removed_rsrc_list'],
    }
    readers = {name: resource('OS::Heat::Value', value={'get_attr': ['group', *path]}) for name, path in asked.items()}
    stack_id = made(harness, {'group': group(2, 'v-%index%'), **readers})
    assert members(harness, stack_id) == {'0': 'v-0', '1': 'v-1'}
    values = {name: harness.row(stack_id, name).properties['value'] for name in asked}
    ids = values['map']
    assert set(ids) == {'0', '1'}
    assert values == {
        'refs': [ids['0'], ids['1']],
        'map': ids,
        'values': ['v-0', 'v-1'],
        'by_name': {'0': 'v-0', '1': 'v-1'},
        'one': 'v-1',
        'same': 'v-1',
        'short': 'v-1',
        'reference': ids['0'],
        'removed': [],
    }


def test_keys_behind_an_attribute_go_into_what_each_member_tells(harness):
    kind = {'type': 'OS::Heat::Value', 'properties': {'value': {'net': [{'ip': '10.0.0.%index%'}]}}}
    path = ['value', 'net', 0, 'ip']
    readers = {
        'list': resource('OS::Heat::Value', value={'get_attr': ['group', *path]}),
        'map': resource('OS::Heat::Value', value={'get_attr': ['group', 'attributes', *path]}),
    }
    stack_id = made(harness, {'group': resource(GROUP, count=2, resource_def=kind), **readers})
    assert harness.row(stack_id, 'list').properties['value'] == ['10.0.0.0', '10.0.0.1']
    assert harness.row(stack_id, 'map').properties['value'] == {'0': '10.0.0.0', '1': '10.0.0.1'}


RANDOM = {'type': 'OS::Heat::RandomString', 'properties': {'length': 6}}
"""Tells its value to whoever asks by name, and to nobody else."""
SCALED = resource('OS::Heat::AutoScalingGroup', min_size=2, max_size=3, resource=RANDOM)


@pytest.mark.parametrize(
    ('group', 'asked', 'shape'),
    [
        (resource(GROUP, count=2, resource_def=RANDOM), ['value'], list),
        (resource(GROUP, count=2, resource_def=RANDOM), ['resource.0.value'], str),
        (resource(GROUP, count=2, resource_def=RANDOM), ['resource.1', 'value'], str),
        (resource(GROUP, count=2, resource_def=RANDOM), ['attributes', 'value'], dict),
        (resource(CHAIN, resources=[RANDOM['type']] * 2, resource_properties=RANDOM['properties']), ['value'], list),
        (SCALED, ['outputs_list', 'value'], list),
        (SCALED, ['outputs', 'value'], dict),
        (SCALED, ['resource.0.value'], str),
        ({'type': 'member.yaml'}, ['resource.inner', 'value'], str),
        (
            resource('OS::Heat::Stack', template=yaml.safe_dump(written({'inner': RANDOM}))),
            ['resource.inner.value'],
            str,
        ),
    ],
)
def test_what_members_tell_only_whoever_asks_is_told_through_their_group(harness, group, asked, shape):
    """Also where the group was there before somebody asked; the members stay as they are."""
    files = {'member.yaml': yaml.safe_dump(written({'inner': RANDOM}))}
    outputs = {'told': {'value': {'get_attr': ['group', *asked]}}}
    stack_id = made(harness, {'group': group}, files)
    before = {row.physical_id for row in harness.rows(child_of(harness, stack_id, 'group').id)}
    update = written({'group': group}, outputs=outputs)
    for _ in range(2):
        harness.stacks.update_stack(harness.context, {'stack_id': stack_id}, update, files=files)
        harness.recover()
        value = told(harness, stack_id)['told']
        assert isinstance(value, shape)
        values = [value] if isinstance(value, str) else [*(value.values() if isinstance(value, dict) else value)]
        assert [len(each) for each in values] == [6] * len(values)
    assert {row.physical_id for row in harness.rows(child_of(harness, stack_id, 'group').id)} == before


def test_what_was_asked_from_outside_is_asked_after_a_partial_update_too(harness):
    """Whoever updates a nested stack itself, and sends a part of it, takes nothing from the stack around it."""
    outputs = {'told': {'value': {'get_attr': ['group', 'value']}}}
    stack_id = made(harness, {'group': resource(GROUP, count=2, resource_def=RANDOM)}, outputs=outputs)
    child = child_of(harness, stack_id, 'group')
    kept = harness.compiler.stored(child, child.template_id)[1].goal.asked
    assert kept == {'0': ('value',), '1': ('value',)}
    for sent in ({'template': None}, {'template': written({'0': RANDOM, '1': RANDOM, 'more': RANDOM})}):
        harness.stacks.update_stack(harness.context, {'stack_id': child.id}, sent['template'], args={'existing': True})
        harness.recover()
        child = harness.stack(child.id)
        assert harness.compiler.stored(child, child.template_id)[1].goal.asked == kept


def test_one_more_or_one_less_touches_nobody_else(harness):
    stack_id = made(harness, {'group': group(12)})
    calls = sum(harness.reality.calls.values())
    changed(harness, stack_id, {'group': group(13)})
    assert sum(harness.reality.calls.values()) - calls <= 4  # made, and looked at
    assert harness.reality.calls['create', '12'] == 1
    sent = harness.messages.sent
    changed(harness, stack_id, {'group': group(12)})
    assert '12' not in harness.reality.values()
    assert harness.messages.sent - sent < 12
    assert harness.reality.calls['update', '0'] == 0


def test_members_are_removed_by_name_or_reference_and_names_are_not_used_again(harness):
    stack_id = made(harness, {'group': group(4)})
    child = child_of(harness, stack_id, 'group')
    reference = harness.row(child.id, '2').physical_id
    removal = [{'resource_list': ['0', reference, 'nobody']}]
    changed(harness, stack_id, {'group': group(4, removal_policies=removal)})
    assert set(members(harness, stack_id)) == {'1', '3', '4', '5'}
    changed(harness, stack_id, {'group': group(3)})
    assert set(members(harness, stack_id)) == {'1', '3', '4'}
    changed(harness, stack_id, {'group': group(3, removal_policies=[], removal_policies_mode='update')})
    assert set(members(harness, stack_id)) == {'0', '1', '2'}


def batches(harness: Harness, stack_id: str) -> list[int]:
    """How many operations there were on the nested stack."""
    return len(harness.reader.traversals(child_of(harness, stack_id, 'group').id))


def test_members_are_made_and_changed_in_batches(harness):
    """F150."""
    policy = {
        'batch_create': {'max_batch_size': 2},
        'rolling_update': {'max_batch_size': 2, 'min_in_service': 2, 'pause_time': 0},
    }
    stack_id = made(harness, {'group': {**group(5, 'a'), 'update_policy': policy}})
    assert batches(harness, stack_id) == 3
    changed(harness, stack_id, {'group': {**group(5, 'b'), 'update_policy': policy}})
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert members(harness, stack_id) == dict.fromkeys('01234', 'b')
    assert batches(harness, stack_id) == 6
    # Only another definition is rolled out; another size is not.
    changed(harness, stack_id, {'group': {**group(9, 'b'), 'update_policy': policy}})
    assert batches(harness, stack_id) == 7


def test_another_member_stands_in_while_members_are_changed(harness):
    policy = {'rolling_update': {'max_batch_size': 1, 'min_in_service': 2}}
    stack_id = made(harness, {'group': {**group(2, 'a'), 'update_policy': policy}})
    changed(harness, stack_id, {'group': {**group(2, 'b'), 'update_policy': policy}})
    assert members(harness, stack_id) == {'0': 'b', '1': 'b'}
    assert harness.reality.calls['create', '2'] == 1
    assert harness.reality.calls['delete', '2'] == 1


def test_a_batch_that_fails_ends_the_update_and_what_failed_comes_first_afterwards(harness):
    policy = {'rolling_update': {'max_batch_size': 1}}
    stack_id = made(harness, {'group': {**group(3, 'a'), 'update_policy': policy}})
    harness.reality.once['update', '1'] = [fails(FinalFailure('no'))]
    changed(harness, stack_id, {'group': {**group(3, 'b'), 'update_policy': policy}})
    assert harness.state(stack_id) == 'UPDATE_FAILED'
    assert members(harness, stack_id)['0'] == 'a'
    changed(harness, stack_id, {'group': {**group(3, 'c'), 'update_policy': policy}})
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert members(harness, stack_id) == dict.fromkeys('012', 'c')


def test_an_answer_that_is_lost_does_not_advance_the_batches(harness):
    act, lost = harness.nesting.act_on_nested_stack, []

    def forget(context: Any, resource_id: str, fence: int, step: int = 0, *more: Any) -> Any:
        begun = act(context, resource_id, fence, step, *more)
        if step not in lost:
            lost.append(step)
            raise errors.NoAnswer('no answer in time')
        return begun

    harness.nesting.act_on_nested_stack = forget
    policy = {'batch_create': {'max_batch_size': 1}}
    identity = harness.stacks.create_stack(
        harness.context, 's', written({'group': {**group(3), 'update_policy': policy}})
    )
    harness.recover()
    assert harness.state(identity['stack_id']) == 'CREATE_COMPLETE'
    assert lost == [0, 1, 2]
    assert batches(harness, identity['stack_id']) == 3


def test_members_may_be_templates_and_groups_and_mapped_types(harness):
    inner = {'type': GROUP, 'properties': {'count': 2, 'resource_def': {'type': 'child.yaml', 'properties': {}}}}
    resources = {
        'groups': resource(GROUP, count=2, resource_def=inner),
        'mapped': group(1, 'm', kind='My::Thing'),
        'told': resource('OS::Heat::Value', value={'get_attr': ['mapped', 'told']}),
    }
    identity = harness.stacks.create_stack(
        harness.context,
        's',
        written(resources),
        params={'resource_registry': {'My::Thing': 'child.yaml'}},
        files={'child.yaml': nested()},
    )
    harness.run()
    stack = harness.stack(identity['stack_id'])
    assert states(harness, stack) == 'CREATE_COMPLETE: Stack CREATE completed successfully'
    assert harness.reality.calls['create', 'thing0'] == 5
    assert harness.row(stack.id, 'told').properties['value'] == ['m']
    harness.delete(stack.id)
    harness.run()
    assert harness.reality.objects == {}


def test_what_is_several_levels_down_is_asked_by_its_way(harness):
    """It led to an attribute ``resource``, which nothing has."""
    thing = {'type': 'OS::Heat::RandomString', 'properties': {'length': 7}}
    inner = {'type': GROUP, 'properties': {'count': 2, 'index_var': '@at@', 'resource_def': thing}}
    asked = {
        'value': {'get_attr': ['group', 'resource.1.resource.0.value']},
        'reference': {'get_attr': ['group', 'resource.1.resource.0']},
    }
    outputs = {name: {'value': value} for name, value in asked.items()}
    stack_id = made(harness, {'group': resource(GROUP, count=2, resource_def=inner)}, outputs=outputs)
    lowest = child_of(harness, child_of(harness, stack_id, 'group').id, '1')
    row = harness.row(lowest.id, '0')
    seen = told(harness, stack_id)
    assert seen['value'] == row.output.attributes['value']
    assert len(seen['value']) == 7
    assert seen['reference'] == row.output.reference


def test_hidden_values_do_not_stand_in_the_template_of_the_members(harness):
    source = written(
        {'group': group(2, {'get_param': 'secret'})},
        parameters={'secret': {'type': 'string', 'hidden': True, 'default': 'opensesame'}},
    )
    identity = harness.stacks.create_stack(harness.context, 's', source)
    harness.run()
    child = child_of(harness, identity['stack_id'], 'group')
    row, compiled = harness.compiler.stored(child, child.template_id or '')
    assert set(harness.reality.values().values()) == {'opensesame'}
    assert 'opensesame' not in str(row.content['template'])
    assert [each.hidden for each in compiled.parameters.values() if not each.pseudo] == [True]


@pytest.mark.parametrize(
    ('resources', 'message', 'path'),
    [
        ({'g': group(kind='Test::Thinf')}, r'Test::Thinf\) could not be found', 'resource_def.type'),
        (
            {'g': resource(GROUP, resource_def={'type': 'OS::Heat::Value', 'properties': {'vale': 1}})},
            'Unknown Property vale',
            'resource_def.properties.vale',
        ),
        (
            {'g': resource(GROUP, resource_def=resource(GROUP, resource_def={'type': 'X::Y'}))},
            r'X::Y\) could not be found',
            'resource_def.properties.resource_def.type',
        ),
        ({'g': {**group(), 'update_policy': {'rolling_update': {'max_batch_size': 0}}}}, 'max_batch_size', 'max_batch'),
        (
            {'g': {**group(), 'update_policy': {'batch_create': {'pause_time': 3601}}}},
            'Maximum pause_time allowed is 1hr',
            'update_policy',
        ),
        ({'g': resource(CHAIN, resources=['Test::Thing', 'X::Y'])}, 'X::Y', 'resources.1'),
        ({'g': resource('OS::Heat::Stack', template='nothing')}, 'template', 'properties.template'),
        ({'g': resource('AWS::CloudFormation::Stack', TemplateURL='x.yaml')}, 'not among the files', 'properties'),
        (
            {'g': resource('OS::Heat::Stack', template=hot({}), context={'region_name': 'there'})},
            'another region or cloud is not supported',
            'properties',
        ),
    ],
)
def test_what_members_cannot_be_is_refused_where_it_stands(harness, resources, message, path):
    submission = Submission(yaml.safe_dump(written(resources)))
    with pytest.raises(errors.StackValidationFailed, match=message) as caught:
        harness.compiler.validator.inspect('p', submission, Permits())
    places = [problem.place for problem in caught.value.problems if re.search(message, problem.message)]
    assert any(path in '.'.join(map(str, place.path)) for place in places if place is not None)


@pytest.mark.parametrize(
    'made_of',
    [
        resource(GROUP, resource_def={'type': 'leaf.yaml'}),
        resource(CHAIN, resources=['leaf.yaml']),
        resource('OS::Heat::AutoScalingGroup', min_size=1, max_size=2, resource={'type': 'leaf.yaml'}),
    ],
)
@pytest.mark.parametrize('wrong', ['X::Y', 'Test::Thing'])
def test_what_is_wrong_in_a_file_that_members_are_made_from_is_told_in_that_file(harness, made_of, wrong):
    """When the stack is asked for, by whoever asks: not when the members are made."""
    files = {'leaf.yaml': yaml.safe_dump(written({'inner': resource(wrong, vale=1)}))}
    message = r'X::Y\) could not be found' if wrong == 'X::Y' else 'Unknown Property vale'
    with pytest.raises(errors.StackValidationFailed, match=message) as caught:
        harness.compiler.validator.inspect(
            'p', Submission(yaml.safe_dump(written({'g': made_of})), files=files), Permits()
        )
    (problem,) = caught.value.problems
    assert problem.place is not None
    assert (problem.place.source, problem.place.path[:2]) == ('leaf.yaml', ('resources', 'inner'))
    with pytest.raises(errors.StackValidationFailed, match=message):
        harness.stacks.create_stack(harness.context, 's', written({'g': made_of}), files=files)


def test_what_is_not_known_yet_is_not_refused(harness):
    resources = {
        'first': resource('OS::Heat::Value', value=3),
        'a': group({'get_param': 'count'}),
        'b': group({'get_attr': ['first', 'value']}, {'get_attr': ['first', 'value']}),
        'none': group(0, kind='No::Such::Type'),
        'c': resource(GROUP, resource_def={'get_attr': ['first', 'value']}),
        's': resource('OS::Heat::Stack', template={'get_attr': ['first', 'value']}),
    }
    source = written(resources, parameters={'count': {'type': 'number'}})
    harness.compiler.validator.inspect('p', Submission(source), Permits())


def test_a_chain_is_made_in_its_order_and_changes_at_its_end(harness):
    """F150."""
    resources = {
        'chain': resource(CHAIN, resources=['Test::Thing', 'Test::Plain'], resource_properties={'value': 'x'}),
        'refs': resource('OS::Heat::Value', value={'get_attr': ['chain', 'refs']}),
    }
    harness.reality.once['create', '0'] = [fails(FinalFailure('no'))]
    stack_id = str(harness.stacks.create_stack(harness.context, 's', written(resources))['stack_id'])
    harness.run()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    assert harness.reality.calls['create', '1'] == 0
    changed(harness, stack_id, resources)
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert len(harness.row(stack_id, 'refs').properties['value']) == 2
    resources['chain']['properties']['resources'].append('Test::Thing')
    changed(harness, stack_id, resources)
    assert list(members(harness, stack_id, 'chain')) == ['0', '1', '2']


def test_a_template_in_a_property_is_a_stack(harness):
    """F111: the limit of such a stack is in minutes, as in its template."""
    resources = {
        'heat': resource('OS::Heat::Stack', template=nested(), parameters={'value': 'h'}, timeout=7),
        'aws': resource('AWS::CloudFormation::Stack', TemplateURL='child.yaml', Parameters={'value': 'a'}),
        'told': resource('OS::Heat::Value', value={'get_attr': ['heat', 'outputs', 'told']}),
        'name': resource('OS::Heat::Value', value={'get_attr': ['heat', 'stack_name']}),
        'output': resource('OS::Heat::Value', value={'get_attr': ['aws', 'Outputs.told']}),
    }
    stack_id = made(harness, resources, {'child.yaml': nested()})
    child = child_of(harness, stack_id, 'heat')
    values = {name: harness.row(stack_id, name).properties['value'] for name in ('told', 'name', 'output')}
    assert values == {'told': 'h', 'name': child.name, 'output': 'a'}
    assert child.timeout_mins == 7
    resources['heat']['properties'] |= {'parameters': {'value': 'i'}, 'timeout': 9}
    changed(harness, stack_id, resources, {'child.yaml': nested()})
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert harness.stack(child.id).timeout_mins == 9
    assert harness.row(stack_id, 'told').properties['value'] == 'i'


@pytest.mark.parametrize('kind', ['SoftwareDeploymentGroup', 'StructuredDeployments'])
def test_a_deployment_for_each_server_tells_by_its_name(harness, kind):
    config = resource('OS::Heat::SoftwareConfig', group='script', config='true', outputs=[{'name': 'answer'}])
    group = resource(
        f'OS::Heat::{kind}',
        config={'get_resource': 'config'},
        servers={'web': 'id-1', 'db': 'id-2'},
        signal_transport='NO_SIGNAL',
    )
    group['update_policy'] = {'batch_create': {'max_batch_size': 1}, 'rolling_update': {'max_batch_size': 1}}
    paths = {'all': ['deploy_stdouts'], 'one': ['deploy_status_codes', 'web']}
    readers = {
        name: resource('OS::Heat::Value', value=[{'get_attr': ['group', *path]}]) for name, path in paths.items()
    }
    stack_id = made(harness, {'config': config, 'group': group, **readers})
    rows = harness.rows(child_of(harness, stack_id, 'group').id)
    assert {row.name: row.properties['server'] for row in rows} == {'web': 'id-1', 'db': 'id-2'}
    assert batches(harness, stack_id) == 2
    values = {name: harness.row(stack_id, name).properties['value'][0] for name in paths}
    assert set(values['all']) == {'web', 'db'}
    assert values['one'] == values['all']['web']
    group['properties']['servers'] = {'web': 'id-1', 'new': 'id-3'}
    changed(harness, stack_id, {'config': config, 'group': group})
    rows = harness.rows(child_of(harness, stack_id, 'group').id)
    assert {row.name for row in rows} == {'web', 'new'}
