"""How much the types ask services for."""

from __future__ import annotations

import pytest

pytest.importorskip('openstack', reason='openstacksdk is not installed')

from convergence.core.model import Action
from plugins.openstack.tests.thing import Thing

MOST = 3
"""Requests that a resource may take from nothing to being shown, tokens and versions of services left out."""


def made(cloud, name, kind, /, **properties):
    """The id of a resource that a worker has made and read, in `MOST` requests."""
    before = len(cloud.requests)
    thing = Thing(f'OS::{kind}', **properties).of(name).do(Action.CREATE)
    thing.show()
    asked = cloud.requests[before:]
    assert len(asked) <= MOST, '\n'.join(' '.join(each) for each in asked)
    return thing.call.physical_id


def test_no_resource_of_a_first_stack_takes_more_than_three(cloud):
    network = made(cloud, 'network', 'Neutron::Net')
    subnet = made(cloud, 'subnet', 'Neutron::Subnet', network=network, cidr='10.0.0.0/24')
    made(cloud, 'port', 'Neutron::Port', network=network, fixed_ips=[{'subnet': subnet}])
    router = made(cloud, 'router', 'Neutron::Router')
    made(cloud, 'interface', 'Neutron::RouterInterface', router=router, subnet=subnet)
    assert len(cloud.requests) <= 7, '\n'.join(' '.join(each) for each in cloud.requests)


def test_nor_does_one_that_takes_its_time(cloud):
    """A flavor and an image by their names are looked up once, for all servers of a stack."""
    cloud.takes_s.update(servers=2.0, volumes=1.0)
    key = made(cloud, 'key', 'Nova::KeyPair', name='key', public_key='ssh-ed25519 AAAA')
    port = made(cloud, 'port', 'Neutron::Port', network='kept-networks')
    names = len(cloud.requests)
    first = Thing(
        'OS::Nova::Server', image='cirros', flavor='m1.tiny', key_name=key, networks=[{'network': 'kept-networks'}]
    )
    first.of('first').do(Action.CREATE)
    lookups = [path for _, path in cloud.requests[names:] if path in ('/flavors', '/v2/images', '/v2.0/networks')]
    assert sorted(lookups) == ['/flavors', '/v2/images']
    server = made(cloud, 'server', 'Nova::Server', image='cirros', flavor='m1.tiny', networks=[{'port': port}])
    volume = made(cloud, 'volume', 'Cinder::Volume', size=1)
    made(cloud, 'attachment', 'Cinder::VolumeAttachment', instance_uuid=server, volume_id=volume)


def test_what_takes_long_is_asked_about_ever_less_often(cloud):
    cloud.takes_s.update(servers=600.0)
    Thing('OS::Nova::Server', image='cirros', flavor='m1.tiny', networks=[{'network': 'kept-networks'}]).do(
        Action.CREATE
    )
    looks = [path for method, path in cloud.requests if method == 'GET' and path.startswith('/servers/')]
    # After ten minutes the last pause is half a minute.
    assert len(looks) < 30, len(looks)
