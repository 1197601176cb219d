"""Heat's own classes live through what the engine does with them: real clients, real sessions, a cloud in memory."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import convergence_heat
import pytest

from convergence.resources.manifest import FORMAT, Manifest
from convergence.testing import Fixture, conformance
from tests.fake_cloud.cloud import CLOUD, USER, Cloud

if importlib.util.find_spec('heat') is None:
    pytest.skip('openstack-heat is not installed: make heat', allow_module_level=True)

ENTRIES = json.loads(Path(convergence_heat.__file__).with_name(convergence_heat.FILE).read_text(encoding='utf-8'))[
    'types'
]
LOADED = {}


def load(name):
    """The type itself, as a worker imports it."""
    from convergence_heat.library import load as imported

    if name not in LOADED:
        LOADED[name] = imported(name)
    return LOADED[name]


def fixture(name, properties, **more):
    """How a type of Heat is tried out."""
    return Fixture(
        lambda: Manifest({'format': FORMAT, 'types': {name: ENTRIES[name]}}, load).types()[name],
        properties,
        credentials=lambda: USER,
        leftovers=CLOUD.made,
        boundaries=((Cloud, 'handle'),),
        **more,
    )


FIXTURES = {
    'network': fixture('OS::Neutron::Net', {'name': 'n'}, changed={'name': 'm'}),
    'described port': fixture(
        'OS::Neutron::Port',
        {'network': 'kept-networks', 'value_specs': {'description': 'words of mine'}},
        changed={'network': 'kept-networks', 'value_specs': {'description': 'words of mine'}, 'admin_state_up': False},
    ),
    'server': fixture(
        'OS::Nova::Server',
        {'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'network': 'kept-networks'}]},
        changed={
            'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'network': 'kept-networks'}],
            'name': 'renamed',
        },
    ),
    'volume': fixture('OS::Cinder::Volume', {'size': 1}, changed={'size': 1, 'name': 'v'}),
    'key pair': fixture('OS::Nova::KeyPair', {'name': 'k', 'save_private_key': True}, replaced={'name': 'k', 'public_key': 'a'}),
    'interface': fixture('OS::Neutron::RouterInterface', {'router': 'kept-routers', 'subnet': 'kept-subnets'}),
    'attachment': fixture(
        'OS::Cinder::VolumeAttachment', {'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes'}
    ),
    'project': fixture('OS::Keystone::Project', {'name': 'p', 'description': 'of mine', 'domain': 'kept-domains'}),
}  # fmt: skip
YIELDING = {
    'port with an address': fixture(
        'OS::Neutron::Port',
        {'network': 'kept-networks', 'fixed_ips': [{'ip_address': '10.0.0.5'}]},
        replaced={'network': 'kept-networks', 'fixed_ips': [{'ip_address': '10.0.0.5'}], 'mac_address': 'fa:16:3e:00:00:02'},
    ),
    'server with a port': fixture(
        'OS::Nova::Server',
        {'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'port': 'kept-ports'}]},
        replaced={
            'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'port': 'kept-ports'}],
            'config_drive': True,
        },
    ),
}  # fmt: skip
"""What gives way to the one that replaces it. That is tried with each, and nothing that is tried above."""
CASES = [(name, case) for name, each in FIXTURES.items() for case in conformance(each)]
CASES += [(name, case) for name, each in YIELDING.items() for case in conformance(each) if case.name == 'gives_way']


@pytest.mark.parametrize('case', [case for _, case in CASES], ids=[f'{name}: {case}' for name, case in CASES])
def test_life(case, cloud):
    case.run()
