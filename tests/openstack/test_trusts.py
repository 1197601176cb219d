"""What acts for a user at real services when his request, and his token, are gone."""

from __future__ import annotations

import pytest
import requests

from tests.openstack.installation import eventually
from tests.openstack.templates import network, ref, resource, template

PROCESSES = {'engines': 1, 'workers': 1}
pytestmark = pytest.mark.timeout(1800)


def scaled() -> dict:
    """A group of networks in nested stacks, and a policy that adds one."""
    group = resource('Heat::AutoScalingGroup', min_size=1, max_size=3, resource={'type': 'OS::Neutron::Net'})
    policy = resource(
        'Heat::ScalingPolicy',
        auto_scaling_group_id=ref('nets'),
        adjustment_type='change_in_capacity',
        scaling_adjustment=1,
    )
    outputs = {'up': {'value': {'get_attr': ['up', 'alarm_url']}}}
    return {**template(nets=group, up=policy), 'outputs': outputs}


def test_a_group_is_scaled_by_a_signal_for_a_user_whose_tokens_are_gone(user, installation):
    stack = user.create('s', scaled()).ended('CREATE_COMPLETE')
    (trust,) = user.trusts()
    (up,) = [each['output_value'] for each in stack.show()['outputs']]
    user.cloud.session.delete(
        f'{installation.layout.auth_url}/auth/tokens', headers={'X-Subject-Token': user.cloud.session.get_token()}
    )
    user.cloud.session.invalidate()
    answer = requests.post(up, timeout=60)
    assert answer.ok, answer.text
    eventually(lambda: user.things() == {'networks': 2}, 'the group has grown')
    eventually(lambda: not stack.show()['stack_status'].endswith('IN_PROGRESS'), 'the stack is at rest')
    # All that is nested acts with what the root has.
    assert user.trusts() == [trust]
    stack.delete()
    eventually(lambda: user.trusts() == [], 'the trust goes last')


def test_another_user_who_updates_a_stack_is_acted_for_from_then_on(user, installation):
    goal = network()
    stack = user.create('s', template(**goal)).ended('CREATE_COMPLETE')
    assert len(user.trusts()) == 1
    other = installation.colleague(user)
    goal['network'] = resource('Neutron::Net', name='changed')
    other.has(stack).update(template(**goal)).ended('UPDATE_COMPLETE')
    (trust,) = other.trusts()
    eventually(lambda: user.trusts() == [], 'the trust of the first user is removed')
    stack.act('check').ended('CHECK_COMPLETE')
    assert other.trusts() == [trust]
    stack.delete()
    eventually(lambda: other.trusts() == [], 'the trust goes last')
    assert user.trusts() == []


def test_the_trust_of_a_deleted_stack_is_there_until_its_last_object_is_gone(user):
    stack = user.create('s', template(**network())).ended('CREATE_COMPLETE')
    (trust,) = user.trusts()
    port = user.cloud.network.create_port(network_id=stack.ids()['network'])
    user.ask('DELETE', stack.path)
    eventually(
        lambda: 'repeated' in (stack.resource('subnet')['resource_status_reason'] or ''), 'the subnet cannot be removed'
    )
    assert user.trusts() == [trust]
    user.cloud.network.delete_port(port)
    stack.ended('DELETE_COMPLETE')
    eventually(lambda: user.trusts() == [], 'the trust goes last')
