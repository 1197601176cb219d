"""What users do with stacks, at real services."""

from __future__ import annotations

import pytest

from tests.openstack.installation import eventually
from tests.openstack.templates import eight, network, ref, resource, server, template, twelve

pytestmark = pytest.mark.timeout(1800)
SERVERS = {'servers': 1, 'volumes': 1, 'key pairs': 1}


@pytest.mark.parametrize('goal', [eight, twelve])
def test_a_stack_comes_and_goes(user, goal):
    stack = user.create('s', goal('s')).ended('CREATE_COMPLETE')
    things = user.things()
    assert things.items() >= {'networks': 1, 'subnets': 1, 'routers': 1, **SERVERS}.items(), things
    (port,) = user.cloud.network.ports(id=stack.ids()['port'])
    assert port.device_id == stack.ids()['server'] and port.fixed_ips[0]['ip_address'] == '10.1.0.50'
    stack.delete()


def test_what_can_be_changed_in_place_keeps_its_objects(user):
    stack = user.create('s', eight('s')).ended('CREATE_COMPLETE')
    before = stack.ids()
    goal = eight(
        's',
        network={'name': 'renamed'},
        port={'name': 'renamed'},
        server={'metadata': {'of': 'yours'}, 'flavor': 'm1.small'},
        volume={'size': 2},
    )
    stack.update(goal).ended('UPDATE_COMPLETE')
    assert stack.ids() == before
    cloud = user.cloud
    assert cloud.network.get_network(before['network']).name == 'renamed'
    assert cloud.block_storage.get_volume(before['volume']).size == 2
    changed = cloud.compute.get_server(before['server'])
    assert (changed.flavor['original_name'], changed.metadata['of'], changed.status) == ('m1.small', 'yours', 'ACTIVE')
    stack.update(goal).ended('UPDATE_COMPLETE')
    assert stack.ids() == before
    stack.delete()


def test_what_cannot_be_changed_is_replaced_and_nothing_is_left_over(user):
    goal = {**network(), 'server': server(), 'volume': resource('Cinder::Volume', size=2)}
    stack = user.create('s', template(**goal)).ended('CREATE_COMPLETE')
    before, things = stack.ids(), user.things()
    goal |= {
        'server': server(availability_zone='nova'),
        'volume': resource('Cinder::Volume', size=2, availability_zone='nova'),
    }
    stack.update(template(**goal)).ended('UPDATE_COMPLETE')
    after = stack.ids()
    assert {name for name in before if before[name] != after[name]} == {'server', 'volume'}
    assert user.things() == things
    stack.delete()


def test_a_port_and_a_server_are_replaced_and_keep_their_address_and_port(user):
    stack = user.create('s', eight('s')).ended('CREATE_COMPLETE')
    before, things = stack.ids(), user.things()
    changed = {'port': {'mac_address': 'fa:16:3e:00:00:50'}, 'server': {'availability_zone': 'nova'}}
    stack.update(eight('s', server=changed['server'])).ended('UPDATE_COMPLETE')
    assert {name for name, made in stack.ids().items() if made != before[name]} == {'server'}
    stack.update(eight('s', **changed)).ended('UPDATE_COMPLETE')
    after = stack.ids()
    assert {name for name, made in after.items() if made != before[name]} == {'server', 'port'}
    assert user.things() == things
    port = user.cloud.network.get_port(after['port'])
    assert (port.device_id, port.mac_address) == (after['server'], 'fa:16:3e:00:00:50')
    assert [each['ip_address'] for each in port.fixed_ips] == ['10.1.0.50']
    stack.delete()


def test_a_replacement_that_is_taken_back_leaves_the_old_port_its_address(user):
    goal = eight('s')
    stack = user.create('s', goal).ended('CREATE_COMPLETE')
    before, things = stack.ids(), user.things()
    changed = eight('s', port={'mac_address': 'fa:16:3e:00:00:50'}, server={'availability_zone': 'nova'})
    changed['resources']['bad'] = resource(
        'Neutron::Port',
        'server',
        network=ref('network'),
        fixed_ips=[{'subnet': ref('subnet'), 'ip_address': '192.0.2.1'}],
    )
    stack.update(changed, disable_rollback=False).ended('ROLLBACK_COMPLETE')
    assert stack.ids() == before and user.things() == things
    port = user.cloud.network.get_port(before['port'])
    assert port.device_id == before['server']
    assert [each['ip_address'] for each in port.fixed_ips] == ['10.1.0.50']
    stack.delete()


def test_a_creation_that_fails_is_taken_back(user):
    goal = eight('s', port={'fixed_ips': [{'subnet': ref('subnet'), 'ip_address': '192.0.2.1'}]})
    stack = user.create('s', goal, disable_rollback=False).ended('ROLLBACK_COMPLETE')
    assert user.things() == {}
    stack.delete()


def test_an_update_that_fails_is_taken_back(user):
    goal = {**network(), 'server': server(metadata={'of': 'mine'})}
    stack = user.create('s', template(**goal)).ended('CREATE_COMPLETE')
    before, things = stack.ids(), user.things()
    goal |= {
        'server': server(metadata={'of': 'yours'}),
        'bad': resource(
            'Neutron::Port', 'server', network=ref('network'), fixed_ips=[{'subnet': ref('subnet'), 'ip_address': '192.0.2.1'}]
        ),
    }  # fmt: skip
    stack.update(template(**goal), disable_rollback=False).ended('ROLLBACK_COMPLETE')
    assert stack.ids() == before and user.things() == things
    assert user.cloud.compute.get_server(before['server']).metadata['of'] == 'mine'
    stack.delete()


def test_a_stack_is_suspended_and_resumed(user):
    stack = user.create('s', template(server=server())).ended('CREATE_COMPLETE')
    stack.act('suspend').ended('SUSPEND_COMPLETE')
    assert user.cloud.compute.get_server(stack.ids()['server']).status == 'SUSPENDED'
    stack.act('resume').ended('RESUME_COMPLETE')
    assert user.cloud.compute.get_server(stack.ids()['server']).status == 'ACTIVE'
    stack.delete()


def test_a_check_finds_what_is_gone_and_an_update_makes_it_again(user):
    goal = eight('s')
    stack = user.create('s', goal).ended('CREATE_COMPLETE')
    before, things = stack.ids(), user.things()
    stack.act('check').ended('CHECK_COMPLETE')
    user.cloud.compute.delete_server(before['server'])
    user.cloud.compute.wait_for_delete(user.cloud.compute.get_server(before['server']))
    stack.act('check').ended('CHECK_FAILED')
    assert stack.resource('server')['resource_status'] == 'CHECK_FAILED'
    stack.update(goal).ended('UPDATE_COMPLETE')
    assert {name for name, made in stack.ids().items() if made != before[name]} == {'server'}
    assert user.things() == things
    stack.delete()


def test_what_is_abandoned_stays_and_can_be_adopted(user):
    stack = user.create('s', eight('s')).ended('CREATE_COMPLETE')
    before, things = stack.ids(), user.things()
    data = user.ask('DELETE', f'{stack.path}/abandon')
    assert user.things() == things
    adopted = user.create('again', eight('s'), adopt_stack_data=data).ended('ADOPT_COMPLETE')
    assert adopted.ids() == before and user.things() == things
    adopted.delete()


def test_what_is_there_already_is_used_and_left_where_it_is(user):
    network = user.cloud.network.create_network(name='mine')
    goal = template(
        network={'type': 'OS::Neutron::Net', 'external_id': network.id},
        subnet=resource('Neutron::Subnet', network=ref('network'), cidr='10.9.0.0/24'),
    )
    stack = user.create('s', goal).ended('CREATE_COMPLETE')
    assert user.things() == {'networks': 1, 'subnets': 1}
    stack.delete()
    assert user.things() == {'networks': 1}
    user.cloud.network.delete_network(network)


def test_a_snapshot_can_be_taken_and_restored(user):
    goal = {**network(), 'volume': resource('Cinder::Volume', size=1, name='first')}
    stack = user.create('s', template(**goal)).ended('CREATE_COMPLETE')
    before = stack.ids()
    made = user.ask('POST', f'{stack.path}/snapshots', {'name': 'before'})['id']
    stack.ended('SNAPSHOT_COMPLETE')
    stack.update(template(**goal | {'volume': resource('Cinder::Volume', size=1, name='second')}))
    stack.ended('UPDATE_COMPLETE')
    user.ask('POST', f'{stack.path}/snapshots/{made}/restore')
    stack.ended('RESTORE_COMPLETE')
    assert stack.ids() == before and user.cloud.block_storage.get_volume(before['volume']).name == 'first'
    stack.delete()


def test_a_wrong_flavor_fails_before_anything_of_the_server_is_made(user):
    stack = user.create('s', template(server=server(flavor='no such'))).ended('CREATE_FAILED')
    assert 'no such' in stack.show()['stack_status_reason'] and user.things() == {}
    stack.delete()


def test_a_user_sees_no_token_of_ours_in_what_he_has_described(user):
    goal = {'group': resource('Neutron::SecurityGroup', description='doors', rules=[{'protocol': 'icmp'}])}
    stack = user.create('s', template(**goal)).ended('CREATE_COMPLETE')
    assert user.cloud.network.get_security_group(stack.ids()['group']).description == 'doors'
    stack.delete()


def test_the_trust_of_a_stack_goes_with_it(user):
    stack = user.create('s', template(**network())).ended('CREATE_COMPLETE')
    assert len(user.trusts()) == 1
    stack.delete()
    eventually(lambda: user.trusts() == [], 'the trust is removed')
