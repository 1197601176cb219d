"""Which objects notifications are about: payloads as Nova, Neutron, Cinder and Glance send them."""

import pytest
from convergence_heat import manifest

from convergence.resources.openstack.notified import EVENTS

ID = 'd9b6a4d0-1f6a-4c53-9f1c-2f0f0f2a9f10'
OTHER = '0aa5a0f7-7d53-4c2b-8c07-5f7b0a6d4e11'

SENT = [
    (
        'OS::Nova::Server',
        'compute.instance.delete.end',
        {'instance_id': ID, 'state': 'deleted', 'tenant_id': 't'},
        [ID],
    ),
    ('OS::Nova::Server', 'compute.instance.update', {'instance_id': ID, 'new_task_state': None}, [ID]),
    ('OS::Nova::Server', 'compute.instance.delete.start', {'instance_id': ID}, []),
    ('OS::Nova::Server', 'compute.instance.exists', {'instance_id': ID}, []),
    (
        'OS::Nova::Server',
        'instance.power_off.end',
        {'nova_object.name': 'InstanceActionPayload', 'nova_object.data': {'uuid': ID, 'host': 'h'}},
        [ID],
    ),
    ('AWS::EC2::Instance', 'compute.instance.shutdown.end', {'instance_id': ID}, [ID]),
    ('OS::Neutron::Port', 'port.update.end', {'port': {'id': ID, 'network_id': OTHER, 'status': 'DOWN'}}, [ID]),
    ('OS::Neutron::Port', 'port.create.end', {'ports': [{'id': ID}, {'id': OTHER}]}, [ID, OTHER]),
    ('OS::Neutron::Port', 'port.delete.end', {'port_id': ID}, [ID]),
    ('OS::Neutron::Port', 'port.delete.start', {'port_id': ID}, []),
    ('OS::Neutron::Port', 'network.delete.end', {'network_id': ID}, []),
    ('OS::Neutron::Net', 'network.delete.end', {'network_id': ID}, [ID]),
    ('OS::Neutron::SecurityGroup', 'security_group.update.end', {'security_group': {'id': ID}}, [ID]),
    ('OS::Neutron::SecurityGroup', 'security_group_rule.create.end', {'security_group_rule': {'id': ID}}, []),
    ('OS::Neutron::FloatingIP', 'floatingip.delete.end', {'floatingip_id': ID}, [ID]),
    ('OS::Cinder::Volume', 'volume.detach.end', {'volume_id': ID, 'status': 'available'}, [ID]),
    ('OS::Glance::WebImage', 'image.delete', {'id': ID, 'deleted': True}, [ID]),
    ('OS::Nova::Server', 'compute.instance.update', {'instance_id': None}, []),
    ('OS::Neutron::Port', 'port.update.end', {'port': 'nonsense'}, []),
]


@pytest.mark.parametrize(('name', 'event_type', 'payload', 'expected'), SENT)
def test_an_event_is_about_the_objects_that_it_names(name, event_type, payload, expected):
    kind = manifest().types()[name]
    assert kind.implements('notified')
    assert sorted(kind.notified(event_type, payload)) == sorted(expected)


def test_only_types_hear_that_can_look():
    types = manifest().types()
    assert sorted(EVENTS) == [name for name, kind in sorted(types.items()) if kind.implements('notified')]
    assert all(types[name].implements('observe') for name in EVENTS)
