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
