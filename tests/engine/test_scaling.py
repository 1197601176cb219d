"""Groups that are scaled by signals: nobody loses members, whatever happens at the same moment."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from convergence import errors, signing
from convergence.core.model import Action
from convergence.core.rows import Stack
from convergence.db.scopes import WholeStack
from convergence.engine.compile.stored_submissions import StoredSubmissions
from convergence.engine.reads.stacks import StackReads
from convergence.resources.contract import FinalFailure, InProgress
from tests.harness import API, Crash, Harness, hot
from tests.reality import fails

MEMBER = {'type': 'Test::Thing', 'properties': {'value': 'x'}}


def group(size: int | None = 2, *, value: str = 'x', least: int = 0, most: int = 5, **more: Any) -> dict[str, Any]:
    """A group of things."""
    member = {'type': 'Test::Thing', 'properties': {'value': value}}
    properties = {'type': 'OS::Heat::AutoScalingGroup', 'min_size': least, 'max_size': most, 'resource': member, **more}
    return properties if size is None else {**properties, 'desired_capacity': size}


def policy(amount: float = 1, kind: str = 'change_in_capacity', **more: Any) -> dict[str, Any]:
    """A policy for the group ``web``."""
    return {
        'type': 'OS::Heat::ScalingPolicy',
        'auto_scaling_group_id': {'get_resource': 'web'},
        'adjustment_type': kind,
        'scaling_adjustment': amount,
        **more,
    }


def created(harness: Harness, resources: dict[str, Any], **outputs: Any) -> str:
    """A stack that is complete; its id."""
    shown = {name: {'value': value} for name, value in outputs.items()}
    identity = harness.stacks.create_stack(harness.context, 's', hot(resources, outputs=shown))
    harness.run()
    stack = harness.stack(identity['stack_id'])
    assert f'{stack.action}_{stack.status}' == 'CREATE_COMPLETE', stack.status_reason
    return stack.id


def update(harness: Harness, stack_id: str, resources: dict[str, Any], **outputs: Any) -> None:
    """Accept an update."""
    shown = {name: {'value': value} for name, value in outputs.items()}
    harness.stacks.update_stack(harness.context, {'stack_id': stack_id}, hot(resources, outputs=shown))


def signal(harness: Harness, stack_id: str, name: str = 'up', details: Any = None) -> str:
    """Signal a policy; what its event says of it."""
    harness.signals.resource_signal(harness.context, {'stack_id': stack_id}, name, details)
    return [event.reason for event in harness.reader.events(stack_id) if event.action is Action.SIGNAL][-1]


def nested(harness: Harness, stack_id: str, name: str = 'web') -> Stack:
    """The nested stack of a group."""
    return harness.stack(harness.row(stack_id, name).physical_id or '')


def members(harness: Harness, stack_id: str) -> list[str]:
    """The names of the things that there are."""
    return sorted(harness.reality.values())


def test_a_group_keeps_its_members_where_a_database_does_not_show_yet_what_they_are_made_from(harness, monkeypatch):
    """An update that does not say how many: a node that lags had it taken for a new group, and all were removed."""
    stack_id = created(harness, {'web': group(2), 'up': policy(1)})
    signal(harness, stack_id)
    harness.run()
    unseen, shown, asked = nested(harness, stack_id).template_id, StoredSubmissions.of_template, []

    def lagging(self: StoredSubmissions, template_id: str) -> Any:
        asked.append(template_id)
        return None if asked.count(unseen) == 1 and template_id == unseen else shown(self, template_id)

    monkeypatch.setattr(StoredSubmissions, 'of_template', lagging)
    update(harness, stack_id, {'web': group(None, most=4), 'up': policy(1)})
    harness.run()
    harness.recover()
    assert unseen in asked
    assert len(members(harness, stack_id)) == 3
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'


def test_a_signal_adds_a_member_and_another_one_removes_the_oldest(harness):
    stack_id = created(harness, {'web': group(2), 'up': policy(1), 'down': policy(-1)})
    first = members(harness, stack_id)
    assert signal(harness, stack_id) == (
        'Signal: No signal details provided; group web is scaled from 2 to 3 (change_in_capacity : 1)'
    )
    harness.run()
    assert nested(harness, stack_id).status_reason == (
        'Stack UPDATE completed successfully; up: change_in_capacity : 1'
    )
    (new,) = set(members(harness, stack_id)) - set(first)
    assert harness.reality.calls['update', first[0]] == harness.reality.calls['update', first[1]] == 0
    for _ in range(2):
        signal(harness, stack_id, 'down')
        harness.run()
    assert members(harness, stack_id) == [new]
    assert harness.state(stack_id) == 'CREATE_COMPLETE'


def test_what_a_group_tells_is_true_after_scaling_and_reaches_who_asks(harness):
    resources = {
        'web': group(1),
        'up': policy(1),
        'reader': {'value': {'list_join': [',', {'get_attr': ['web', 'outputs_list', 'value']}]}},
    }
    size = {'get_attr': ['web', 'current_size']}
    refs = {'get_attr': ['web', 'refs']}
    stack_id = created(harness, resources, size=size, refs=refs)
    assert harness.reality.values()['reader'] == 'x'
    signal(harness, stack_id)
    harness.run()
    (shown,) = StackReads(harness.reader, harness.compiler).show_stack(harness.context, {'stack_id': stack_id})
    outputs = {each['output_key']: each['output_value'] for each in shown['outputs']}
    things = set(harness.reality.objects) - {harness.row(stack_id, 'reader').physical_id}
    assert outputs['size'] == 2
    assert set(outputs['refs']) == things
    update(harness, stack_id, resources, size=size, refs=refs)
    harness.run()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert harness.reality.values()['reader'] == 'x,x'
    assert len(members(harness, stack_id)) == 3


def test_keys_behind_an_attribute_of_all_members_go_into_what_each_tells(harness):
    told = {
        'first': {'get_attr': ['web', 'outputs_list', 'value', 0]},
        'by_name': {'get_attr': ['web', 'outputs', 'value', 0]},
        'whole': {'get_attr': ['web', 'outputs_list', 'value']},
    }
    stack_id = created(harness, {'web': group(2)}, **told)
    (shown,) = StackReads(harness.reader, harness.compiler).show_stack(harness.context, {'stack_id': stack_id})
    outputs = {each['output_key']: each['output_value'] for each in shown['outputs']}
    assert outputs['first'] == outputs['whole'] == ['x', 'x']
    assert list(outputs['by_name'].values()) == ['x', 'x']


def test_two_signals_at_the_same_moment_do_not_count_from_the_same_size(harness):
    """F128: the second one finds that the group is being scaled, whenever it comes."""
    stack_id = created(harness, {'web': group(1), 'up': policy(1), 'other': policy(2)})
    harness.store.before(WholeStack, lambda: signal(harness, stack_id, 'other'))
    assert signal(harness, stack_id) == (
        'Signal: No signal details provided; no action required: due to scaling activity'
    )
    harness.run()
    assert len(members(harness, stack_id)) == 3
    signal(harness, stack_id)
    harness.run()
    assert len(members(harness, stack_id)) == 4


def test_the_bounds_of_a_group_hold_for_signals(harness):
    resources = {
        'web': group(2, least=1, most=4),
        'double': policy(100, 'percent_change_in_capacity'),
        'a_little': policy(-10, 'percent_change_in_capacity', min_adjustment_step=2),
        'none': policy(0, 'exact_capacity'),
    }
    stack_id = created(harness, resources)
    sizes = []
    for name in ('double', 'double', 'a_little', 'none'):
        told = signal(harness, stack_id, name)
        harness.run()
        sizes.append(len(members(harness, stack_id)))
        assert ('no change in capacity' in told) == (len(sizes) == 2)
    assert sizes == [4, 4, 2, 1]


def test_a_group_is_left_alone_after_it_has_got_other_members(harness):
    stack_id = created(harness, {'web': group(1, cooldown=3600), 'up': policy(1)})
    assert signal(harness, stack_id).endswith('no action required: due to cooldown, cooldown 3600')
    assert len(members(harness, stack_id)) == 1


def test_a_policy_says_for_how_long_the_group_is_left_alone_after_it(harness):
    stack_id = created(harness, {'web': group(1), 'up': policy(1, cooldown=3600), 'down': policy(-1)})
    signal(harness, stack_id)
    harness.run()
    for name in ('up', 'down'):
        assert signal(harness, stack_id, name).endswith('no action required: due to cooldown, cooldown 3600')
    assert len(members(harness, stack_id)) == 2


def test_a_policy_may_be_among_the_actions_of_any_state_of_an_alarm(harness):
    """A policy that makes the group smaller stands among the ``ok_actions``, for example."""
    stack_id = created(harness, {'web': group(2), 'down': policy(-1)})
    said = {'previous': 'alarm', 'current': 'ok', 'reason': 'quiet'}
    assert signal(harness, stack_id, 'down', details=said) == (
        'Signal: alarm state changed from alarm to ok (quiet); group web is scaled from 2 to 1 (change_in_capacity : -1)'
    )
    harness.run()
    assert len(members(harness, stack_id)) == 1


def test_a_signed_address_scales_without_an_account(harness):
    address = {'get_attr': ['up', 'alarm_url']}
    stack_id = created(harness, {'web': group(1), 'up': policy(1)}, address=address)
    (shown,) = StackReads(harness.reader, harness.compiler).show_stack(harness.context, {'stack_id': stack_id})
    (url,) = (each['output_value'] for each in shown['outputs'])
    assert url.startswith(f'{API}/p/signals/')
    row = harness.row(stack_id, 'up')
    signature = signing.Grant('p', row.id).signature(signing.key_in(row.data))
    assert signature in url
    harness.addresses.resource_signal_by_address(harness.context, row.id, signing.proof_of(signature))
    harness.run()
    assert len(members(harness, stack_id)) == 2
    harness.addresses.resource_signal_address(harness.context, {'stack_id': stack_id}, 'up', revoke=True)
    with pytest.raises(errors.Forbidden):
        harness.addresses.resource_signal_by_address(harness.context, row.id, signing.proof_of(signature))


def test_an_update_keeps_the_size_until_another_one_is_asked_for(harness):
    stack_id = created(harness, {'web': group(1), 'up': policy(1)})
    for _ in range(2):
        signal(harness, stack_id)
        harness.run()
    update(harness, stack_id, {'web': group(1, value='y'), 'up': policy(1)})
    harness.run()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE', harness.stack(stack_id).status_reason
    assert sorted(harness.reality.values().values()) == ['y', 'y', 'y']
    update(harness, stack_id, {'web': group(2, value='y'), 'up': policy(1)})
    harness.run()
    assert len(members(harness, stack_id)) == 2
    update(harness, stack_id, {'web': group(None, value='y', most=1), 'up': policy(1)})
    harness.run()
    assert len(members(harness, stack_id)) == 1


def test_an_update_that_comes_in_the_middle_of_scaling_does_not_lose_it(harness):
    stack_id = created(harness, {'web': group(1), 'up': policy(1)})
    signal(harness, stack_id)
    update(harness, stack_id, {'web': group(1, value='y'), 'up': policy(1)})
    told = signal(harness, stack_id)
    assert 'no action required' in told
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE', harness.stack(stack_id).status_reason
    assert sorted(harness.reality.values().values()) == ['y', 'y']


def test_a_group_whose_row_is_busy_is_not_scaled(harness):
    stack_id = created(harness, {'web': group(1), 'up': policy(1)})
    for verb in ('update', 'poll'):
        harness.reality.always[verb, members(harness, stack_id)[0]] = lambda call: InProgress(
            {}, poll_after_s=1e6, is_told=True
        )
    update(harness, stack_id, {'web': group(1, value='y'), 'up': policy(1)})
    harness.run()
    assert signal(harness, stack_id).endswith('no action required: the group web is UPDATE_IN_PROGRESS')


def test_wherever_the_engine_dies_a_group_is_scaled_once_or_not_at_all(harness):
    """F165."""
    stack_id = created(harness, {'web': group(1), 'up': policy(1)})
    crashed = 0
    for commit in range(1, 3):
        harness.store.crash_after = harness.store.commits + commit
        try:
            signal(harness, stack_id)
        except Crash:
            crashed += 1
        harness.restart()
        harness.recover()
        assert harness.state(nested(harness, stack_id).id) == 'UPDATE_COMPLETE'
        assert len(members(harness, stack_id)) == 1 + commit
    assert crashed


def test_a_member_that_failed_goes_first_and_is_made_again_where_it_stays(harness):
    stack_id = created(harness, {'web': group(1), 'up': policy(1), 'down': policy(-1)})
    (first,) = members(harness, stack_id)
    create = harness.reality.always
    signal(harness, stack_id)
    new = next(row.name for row in harness.rows(nested(harness, stack_id).id) if row.name != first)
    create['create', new] = fails(FinalFailure('no room'))
    harness.run()
    assert harness.state(nested(harness, stack_id).id) == 'UPDATE_FAILED'
    create.clear()
    assert 'from 1 to 2' in signal(harness, stack_id)
    harness.recover()
    assert members(harness, stack_id) == sorted([first, new])


def test_a_policy_without_its_group_says_so(harness):
    resources = {'web': group(1), 'up': policy(1, auto_scaling_group_id='nobody')}
    stack_id = created(harness, resources)
    with pytest.raises(errors.EntityNotFound, match='Alarm up could not find scaling group named "nobody"'):
        signal(harness, stack_id)


@pytest.mark.parametrize(
    ('empty', 'told'),
    [
        (group(0), {'outputs_list': [], 'outputs': {}}),
        (
            {'type': 'OS::Heat::ResourceGroup', 'count': 0, 'resource_def': MEMBER},
            {'attributes': {}, 'value': []},
        ),
        (
            {'type': 'OS::Heat::ResourceChain', 'resources': [], 'resource_properties': {'value': 'x'}},
            {'attributes': {}, 'value': []},
        ),
    ],
)
def test_a_group_without_members_tells_empty_lists_and_maps(harness, empty, told):
    """It told null, which whoever wants a list refuses."""
    asked = {name: {'get_attr': ['web', name, *([] if name == 'value' else ['value'])]} for name in told}
    stack_id = created(harness, {'web': empty, 'reader': {'link': asked}}, **asked)
    assert harness.row(stack_id, 'reader').properties['link'] == told
    (shown,) = StackReads(harness.reader, harness.compiler).show_stack(harness.context, {'stack_id': stack_id})
    assert {each['output_key']: each['output_value'] for each in shown['outputs']} == told


def test_keys_behind_an_attribute_go_into_what_each_member_tells(harness):
    member = {'type': 'OS::Heat::Value', 'properties': {'value': {'net': ['a', 'b']}}}
    asked = {name: {'get_attr': ['web', name, 'value', 'net', 1]} for name in ('outputs_list', 'outputs')}
    stack_id = created(harness, {'web': group(2, resource=member), 'reader': {'link': asked}})
    link = harness.row(stack_id, 'reader').properties['link']
    assert link['outputs_list'] == ['b', 'b']
    assert list(link['outputs'].values()) == ['b', 'b']


LAUNCHED = {'type': 'AWS::AutoScaling::LaunchConfiguration', 'ImageId': 'cirros', 'InstanceType': 'small'}
REFERRING = {'resource': {'type': 'Test::Thing', 'properties': {'value': {'get_resource': 'other'}}}}
SERVERS = {
    'type': 'AWS::AutoScaling::AutoScalingGroup',
    'AvailabilityZones': ['nova'],
    'LaunchConfigurationName': {'get_resource': 'other'},
    'MinSize': 1,
    'MaxSize': 2,
}


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (group(9, **REFERRING), 'DesiredCapacity must be between MinSize and MaxSize'),
        (
            group(1, resource={'type': 'Test::Thing', 'properties': {'vale': {'get_resource': 'other'}}}),
            'Unknown Property vale. Did you mean value',
        ),
        ({**SERVERS, 'DesiredCapacity': 9}, 'DesiredCapacity must be between MinSize and MaxSize'),
        ({**SERVERS, 'HealthCheckType': 'EC2'}, 'Property HealthCheckType not implemented yet'),
        ({**SERVERS, 'InstanceId': 'server-1'}, 'InstanceId .*; set LaunchConfigurationName'),
        ({**SERVERS, 'LoadBalancerNames': ['front']}, 'LoadBalancerNames: no type of load balancer'),
        ({**SERVERS, 'MinSize': 3}, 'MinSize can not be greater than MaxSize'),
        ({**SERVERS, 'update_policy': {'AutoScalingRollingUpdate': {'PauseTime': '1m'}}}, '1m is not a duration'),
        (
            {**SERVERS, 'update_policy': {'AutoScalingRollingUpdate': {'PauseTime': 'PT2H'}}},
            'Maximum PauseTime is 1 hour',
        ),
        ({**SERVERS, 'update_policy': {'RollingUpdate': {}}}, 'Unknown Property RollingUpdate'),
    ],
)
def test_what_cannot_be_is_refused_at_once_though_a_part_is_not_known_yet(harness, wrong, message):
    """Members are nearly always made of references to other resources."""
    policy = wrong.pop('update_policy', None)
    document = yaml.safe_load(hot({'web': wrong, 'other': 'x'}))
    if policy is not None:
        document['resources']['web']['update_policy'] = policy
    with pytest.raises(errors.StackValidationFailed, match=message):
        harness.stacks.create_stack(harness.context, 's', document)


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        ({'web': group(9)}, 'DesiredCapacity must be between MinSize and MaxSize'),
        ({'web': group(1, least=3, most=2)}, 'MinSize can not be greater than MaxSize'),
        (
            {'up': policy(1, min_adjustment_step=1, auto_scaling_group_id='web')},
            'min_adjustment_step property should only be specified for adjustment_type with value percent_change',
        ),
        ({'servers': {**LAUNCHED, 'InstanceId': 'server-1'}}, 'InstanceId .*; set ImageId and InstanceType'),
        ({'servers': {**LAUNCHED, 'KernelId': 'k'}}, 'Property KernelId not implemented yet'),
        (
            {
                'servers': {
                    **LAUNCHED,
                    'BlockDeviceMappings': [{'DeviceName': 'vdb', 'Ebs': {'SnapshotId': 's', 'Iops': 1}}],
                }
            },
            'Property Iops not implemented yet',
        ),
    ],
)
def test_what_cannot_be_is_refused_at_once(harness, wrong, message):
    with pytest.raises(errors.StackValidationFailed, match=message):
        harness.stacks.create_stack(harness.context, 's', hot(wrong))


def test_members_are_made_anew_a_few_at_a_time(harness):
    """And whoever repeats a step that was taken does not take another one."""
    rolling = {'max_batch_size': 2, 'min_in_service': 1, 'pause_time': 0}
    stack_id = created(harness, {'web': group(4, rolling_updates=rolling)})
    harness.reality.journal.clear()
    update(harness, stack_id, {'web': group(4, value='y', rolling_updates=rolling)})
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE', harness.stack(stack_id).status_reason
    traversals = harness.reader.traversals(nested(harness, stack_id).id)
    assert [each.action for each in traversals] == ['CREATE', 'UPDATE', 'UPDATE']
    assert sorted(harness.reality.values().values()) == ['y'] * 4


def test_a_size_asked_for_together_with_another_definition_is_reached_a_few_members_at_a_time(harness):
    """In the middle there are more members, or fewer: that is not the size that is to be kept."""
    rolling = {'max_batch_size': 1, 'min_in_service': 1}
    stack_id = created(harness, {'web': group(2, rolling_updates=rolling)})
    update(harness, stack_id, {'web': group(4, value='y', rolling_updates=rolling)})
    harness.recover()
    assert sorted(harness.reality.values().values()) == ['y'] * 4
    update(harness, stack_id, {'web': group(1, value='z', rolling_updates=rolling)})
    harness.recover()
    update(harness, stack_id, {'web': group(None, value='w', rolling_updates=rolling)})
    harness.recover()
    assert sorted(harness.reality.values().values()) == ['w']


def servers(size: int, image: str = 'old', **more: Any) -> dict[str, Any]:
    """A group of servers by a launch configuration."""
    return {
        'configuration': {
            'type': 'AWS::AutoScaling::LaunchConfiguration',
            'ImageId': image,
            'InstanceType': 'small',
            'UserData': 'begin',
        },
        'web': {
            'type': 'AWS::AutoScaling::AutoScalingGroup',
            'AvailabilityZones': ['nova'],
            'LaunchConfigurationName': {'get_resource': 'configuration'},
            'MinSize': 0,
            'MaxSize': 5,
            'DesiredCapacity': size,
            **more,
        },
        'up': {
            'type': 'AWS::AutoScaling::ScalingPolicy',
            'AutoScalingGroupName': {'get_resource': 'web'},
            'AdjustmentType': 'ChangeInCapacity',
            'ScalingAdjustment': 1,
        },
    }


def test_servers_keep_their_launch_configuration_until_they_are_rolled(harness):
    """The servers are whatever the environment maps the type of instances to."""
    names = ('ImageId', 'InstanceType', 'UserData')
    server = hot(
        {'thing': {'value': {'get_param': 'ImageId'}}},
        parameters={**{name: {'type': 'string'} for name in names}, 'Tags': {'type': 'json'}},
        outputs={'PublicIp': {'value': {'get_attr': ['thing', 'value']}}},
    )
    kept = {'params': {'resource_registry': {'AWS::EC2::Instance': 'server.yaml'}}, 'files': {'server.yaml': server}}
    outputs = {'addresses': {'value': {'get_attr': ['web', 'InstanceList']}}}

    def images() -> list[str]:
        return sorted(str(each['value']) for each in harness.reality.objects.values())

    identity = harness.stacks.create_stack(harness.context, 's', hot(servers(2), outputs=outputs), **kept)
    harness.run()
    stack = harness.stack(identity['stack_id'])
    assert f'{stack.action}_{stack.status}' == 'CREATE_COMPLETE', stack.status_reason
    changed = hot(servers(2, 'new'), outputs=outputs)
    harness.stacks.update_stack(harness.context, {'stack_id': stack.id}, changed, **kept)
    harness.run()
    assert images() == ['old', 'old']
    assert signal(harness, stack.id).endswith('group web is scaled from 2 to 3 (ChangeInCapacity : 1)')
    harness.run()
    assert images() == ['new', 'old', 'old']
    (shown,) = StackReads(harness.reader, harness.compiler).show_stack(harness.context, {'stack_id': stack.id})
    (addresses,) = (each['output_value'] for each in shown['outputs'])
    assert sorted(addresses.split(',')) == ['new', 'old', 'old']
