"""How much the classes of Heat ask services for. What an update of openstack-heat makes of it shows here."""

from __future__ import annotations

import importlib.util

import pytest

from convergence.core.model import Action
from plugins.heat.tests.thing import Thing
from tests.fake_cloud.cloud import USER

if importlib.util.find_spec('heat') is None:
    pytest.skip('openstack-heat is not installed: make heat', allow_module_level=True)

from convergence_heat import operation

EIGHT = 40
"""Requests that a stack of the eight resources which most first stacks have may take, from nothing to shown."""


@pytest.fixture
def fresh(cloud, monkeypatch):
    """A worker that has asked the cloud for nothing yet."""
    kept = operation.KeptAnswers()
    monkeypatch.setattr(operation, 'KEPT', kept)
    monkeypatch.setattr(operation, 'RECENT', operation.RecentReads(kept))
    USER.renew()
    cloud.sent = 0
    return cloud


def made(name, kind, /, **properties):
    """The id of a resource that a worker has made and read."""
    thing = Thing(f'OS::{kind}', **properties).of(name).do(Action.CREATE)
    thing.show()
    return thing.call.physical_id


def test_the_eight_resources_of_a_first_stack(fresh):
    fresh.takes_s.update(servers=8.0, volumes=1.0)
    network = made('network', 'Neutron::Net')
    subnet = made('subnet', 'Neutron::Subnet', network=network, cidr='10.0.0.0/24')
    port = made('port', 'Neutron::Port', network=network, fixed_ips=[{'subnet': subnet}])
    router = made('router', 'Neutron::Router')
    made('interface', 'Neutron::RouterInterface', router=router, subnet=subnet)
    key = made('key', 'Nova::KeyPair', name='key', public_key='ssh-ed25519 AAAA')
    made(
        'server', 'Nova::Server', image='cirros', flavor='m1.tiny', key_name=key, user_data_format='RAW',
        networks=[{'port': port}],
    )  # fmt: skip
    made('volume', 'Cinder::Volume', size=1)
    assert fresh.sent <= EIGHT, '\n'.join(' '.join(each) for each in fresh.requests)


def test_what_takes_long_is_asked_about_ever_less_often(fresh):
    fresh.takes_s.update(servers=600.0)
    made(
        'server',
        'Nova::Server',
        image='cirros',
        flavor='m1.tiny',
        user_data_format='RAW',
        networks=[{'network': 'kept-networks'}],
    )
    looks = [path for method, path in fresh.requests if method == 'GET' and path.startswith('/servers/')]
    # After ten minutes the last pause is half a minute.
    assert len(looks) < 40, len(looks)
