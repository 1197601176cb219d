"""Templates of the tests, as data."""

from __future__ import annotations

from typing import Any

VERSION = '2018-08-31'
PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICEWmIWs3qhCV8PQltcmEjdlqy5q0sEKj86XECNaiEjX tests'
"""Nova makes no pairs any more, it takes public keys. Nobody has the private one."""


def template(**resources: Any) -> dict[str, Any]:
    """A template with some resources."""
    return {'heat_template_version': VERSION, 'resources': resources}


def resource(kind: str, /, *after: str, **properties: Any) -> dict[str, Any]:
    """A resource. The type is named without ``OS::``.

    :param after: which it depends on, without saying so otherwise.
    """
    return {'type': f'OS::{kind}', 'properties': properties, **({'depends_on': list(after)} if after else {})}


def ref(name: str) -> dict[str, str]:
    """A reference to a resource."""
    return {'get_resource': name}


def network(cidr: str = '10.1.0.0/24') -> dict[str, Any]:
    """A network with a subnet."""
    return {
        'network': resource('Neutron::Net'),
        'subnet': resource('Neutron::Subnet', network=ref('network'), cidr=cidr),
    }


def server(*after: str, **properties: Any) -> dict[str, Any]:
    """A server; it is on no network unless properties say so."""
    given = {
        'image': 'cirros',
        'flavor': 'm1.tiny',
        'user_data_format': 'RAW',
        'networks': [{'allocate_network': 'none'}],
    }
    return resource('Nova::Server', *after, **{**given, **properties})


def eight(prefix: str, **changed: Any) -> dict[str, Any]:
    """The eight resources that a first stack of most users has.

    :param prefix: of names that have to be unique in a project.
    :param changed: properties by resource, in place of the usual ones.
    """
    given: dict[str, dict[str, Any]] = {
        **network(),
        'port': resource(
            'Neutron::Port', network=ref('network'), fixed_ips=[{'subnet': ref('subnet'), 'ip_address': '10.1.0.50'}]
        ),
        'router': resource('Neutron::Router', external_gateway_info={'network': 'public'}),
        'interface': resource('Neutron::RouterInterface', router=ref('router'), subnet=ref('subnet')),
        'key': resource('Nova::KeyPair', name=f'{prefix}-key', public_key=PUBLIC_KEY),
        'server': server(key_name=ref('key'), networks=[{'port': ref('port')}], metadata={'of': 'mine'}),
        'volume': resource('Cinder::Volume', size=1),
    }
    for name, properties in changed.items():
        given[name] = given[name] | {'properties': given[name]['properties'] | properties}
    return template(**given)


def twelve(prefix: str, **changed: Any) -> dict[str, Any]:
    """The eight, and what connects them with each other and with the outside."""
    more = {
        'attachment': resource('Cinder::VolumeAttachment', instance_uuid=ref('server'), volume_id=ref('volume')),
        'group': resource(
            'Neutron::SecurityGroup',
            description='doors',
            rules=[{'protocol': 'tcp', 'port_range_min': 22, 'port_range_max': 22}],
        ),
        'address': resource('Neutron::FloatingIP', 'interface', floating_network='public'),
        'association': resource(
            'Neutron::FloatingIPAssociation', 'interface', floatingip_id=ref('address'), port_id=ref('port')
        ),
    }
    return template(**eight(prefix, **changed)['resources'], **more)


def all_kinds(prefix: str, **changed: Any) -> dict[str, Any]:
    """One of each type that a user may have here and that can be found again after a crash."""
    more = {
        'rule': resource(
            'Neutron::SecurityGroupRule',
            security_group=ref('group'),
            protocol='udp',
            port_range_min=53,
            port_range_max=53,
        ),
        'pool': resource('Neutron::SubnetPool', prefixes=['10.2.0.0/16'], default_prefixlen=24),
        'spare': resource(
            'Neutron::Port', network=ref('network'), fixed_ips=[{'subnet': ref('subnet'), 'ip_address': '10.1.0.60'}]
        ),
        'second': resource('Neutron::Router'),
        'gateway': resource('Neutron::RouterGateway', router_id=ref('second'), network='public'),
    }
    whole: dict[str, dict[str, Any]] = {**twelve(prefix)['resources'], **more}
    for name, properties in changed.items():
        whole[name] = whole[name] | {'properties': whole[name]['properties'] | properties}
    return template(**whole)
