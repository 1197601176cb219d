"""The types live through what the engine does with them: a real session and openstacksdk, a cloud in memory."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path

import convergence_openstack
import pytest

from convergence.resources.manifest import FORMAT, Manifest
from convergence.testing import Fixture, conformance
from tests.fake_cloud.cloud import CLOUD, IMAGE, USER, Cloud

pytest.importorskip('openstack', reason='openstacksdk is not installed')

from convergence_openstack.library import load

ENTRIES = json.loads(
    Path(convergence_openstack.__file__).with_name(convergence_openstack.FILE).read_text(encoding='utf-8')
)['types']


def fixture(name, properties, **more):
    """How a type is tried out: each call meets one that has loaded nothing. Copies share what the manifest says."""
    unloaded = Manifest({'format': FORMAT, 'types': {name: ENTRIES[name]}}, load).types()[name]
    return Fixture(
        lambda: copy(unloaded),
        properties,
        credentials=lambda: USER,
        leftovers=CLOUD.made,
        boundaries=((Cloud, 'handle'),),
        wait=CLOUD.wait,
        **more,
    )


IMAGED = {'disk_format': 'raw', 'container_format': 'bare', 'location': 'http://example.org/image'}
SERVER = {'image': 'cirros', 'flavor': 'm1.tiny', 'networks': [{'network': 'kept-networks'}]}
PORT = {'network': 'kept-networks', 'fixed_ips': [{'ip_address': '10.0.0.5'}]}
FIXTURES = {
    'network': fixture('OS::Neutron::Net', {'name': 'n'}, changed={'name': 'm'}),
    'network with words and tags': fixture(
        'OS::Neutron::Net',
        {'value_specs': {'description': 'words of mine'}, 'tags': ['a']},
        changed={'value_specs': {'description': 'other words'}, 'tags': ['a', 'b'], 'admin_state_up': False},
    ),
    'subnet': fixture(
        'OS::Neutron::Subnet',
        {'network': 'kept-networks', 'cidr': '10.1.0.0/24'},
        changed={'network': 'kept-networks', 'cidr': '10.1.0.0/24', 'dns_nameservers': ['10.0.0.1']},
        impossible=[{'network': 'kept-networks'}],
        replaced={'network': 'kept-networks', 'cidr': '10.2.0.0/24'},
    ),
    'port': fixture(
        'OS::Neutron::Port',
        {'network': 'kept-networks', 'value_specs': {'description': 'words of mine'}},
        changed={'network': 'kept-networks', 'value_specs': {'description': 'words of mine'}, 'admin_state_up': False},
    ),
    'port with an address': fixture(
        'OS::Neutron::Port', PORT, replaced={**PORT, 'mac_address': 'fa:16:3e:00:00:02'}
    ),
    'router': fixture(
        'OS::Neutron::Router',
        {'external_gateway_info': {'network': 'kept-networks'}},
        changed={'external_gateway_info': {'network': 'kept-networks', 'enable_snat': False}},
    ),
    'interface': fixture('OS::Neutron::RouterInterface', {'router': 'kept-routers', 'subnet': 'kept-subnets'}),
    'volume': fixture(
        'OS::Cinder::Volume',
        {'size': 1, 'metadata': {'of': 'mine'}},
        changed={'size': 2, 'name': 'v', 'metadata': {'of': 'yours'}, 'volume_type': 'plain'},
        impossible=[{'snapshot_id': IMAGE, 'image': IMAGE}],
    ),
    'key pair': fixture(
        'OS::Nova::KeyPair', {'name': 'k', 'save_private_key': True}, replaced={'name': 'k', 'public_key': 'a'}
    ),
    'server': fixture(
        'OS::Nova::Server',
        {**SERVER, 'metadata': {'of': 'mine'}},
        changed={**SERVER, 'name': 'renamed', 'flavor': 'm1.small', 'metadata': {'of': 'yours'}},
        replaced={**SERVER, 'config_drive': True},
        impossible=[{'flavor': 'm1.tiny'}, {**SERVER, 'flavor': 'no such'}],
    ),
    'server with a port of its own': fixture(
        'OS::Nova::Server',
        {**SERVER, 'networks': [{'subnet': 'kept-subnets'}]},
        changed={**SERVER, 'networks': [{'network': 'kept-networks'}]},
    ),
    'server with a port': fixture(
        'OS::Nova::Server',
        {**SERVER, 'networks': [{'port': 'kept-ports'}]},
        changed={**SERVER, 'networks': [{'network': 'kept-networks'}]},
        replaced={**SERVER, 'networks': [{'port': 'kept-ports'}], 'config_drive': True},
    ),
    'floating IP': fixture(
        'OS::Neutron::FloatingIP',
        {'floating_network': 'kept-networks'},
        changed={'floating_network': 'kept-networks', 'port_id': 'kept-ports'},
    ),
    'association': fixture(
        'OS::Neutron::FloatingIPAssociation',
        {'floatingip_id': 'kept-floatingips', 'port_id': 'kept-ports'},
        changed={'floatingip_id': 'kept-floatingips', 'port_id': 'kept-ports', 'fixed_ip_address': '10.0.0.7'},
    ),
    'security group': fixture(
        'OS::Neutron::SecurityGroup',
        {'description': 'doors', 'rules': [{'protocol': 'tcp', 'port_range_min': 22, 'port_range_max': 22}]},
        changed={'rules': [{'protocol': 'icmp'}, {'direction': 'egress', 'remote_mode': 'remote_group_id'}]},
        impossible=[{'name': 'default'}],
    ),
    'image': fixture(
        'OS::Glance::WebImage',
        {**IMAGED, 'members': ['a'], 'visibility': 'shared', 'extra_properties': {'mine': '1'}},
        changed={**IMAGED, 'members': ['b'], 'visibility': 'shared', 'active': False, 'tags': ['t']},
        replaced={**IMAGED, 'location': 'http://example.org/other'},
        impossible=[{**IMAGED, 'members': ['a']}],
    ),
    'project': fixture(
        'OS::Keystone::Project',
        {'name': 'p', 'description': 'of mine', 'domain': 'kept-domains'},
        changed={'name': 'p', 'domain': 'kept-domains', 'tags': ['a']},
    ),
    'attachment': fixture(
        'OS::Cinder::VolumeAttachment',
        {'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes'},
        changed={'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes', 'mountpoint': '/dev/vdc'},
    ),
}  # fmt: skip
CASES = [(name, case) for name, each in FIXTURES.items() for case in conformance(each)]


@pytest.mark.parametrize('case', [case for _, case in CASES], ids=[f'{name}: {case}' for name, case in CASES])
def test_life(case, cloud):
    case.run()
