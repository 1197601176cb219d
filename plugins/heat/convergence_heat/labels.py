"""The collections of services, and the part of an object that can carry the token of its resource.

A token in the request that makes the object is on it from the first moment: the object never exists without its label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Place(StrEnum):
    """The part of an object that carries the token."""

    DESCRIPTION = 'description'
    METADATA = 'metadata'
    ID = 'id'


@dataclass(frozen=True, slots=True)
class Collection:
    """The objects of one kind in a service.

    :param service: its type in the catalog of Keystone.
    :param path: of the collection, behind the endpoint. Objects are made with POST to it.
    :param singular: the key of an object in bodies; empty if a body is the object.
    :param plural: the key of the list in answers.
    :param change: the HTTP method that changes an object.
    :param listing: the path of the list with all fields of objects, if it is another one.
    :param filters: True if the service can filter the list by description; otherwise the whole list is read.
    """

    service: str
    path: str
    singular: str
    plural: str
    place: Place
    change: str = 'PUT'
    listing: str = ''
    filters: bool = False


def _network(last: str, singular: str, *, under: str = '/v2.0', plural: str = '') -> Collection:
    path = f'{under}/{last}'
    named = plural or last.replace('-', '_')
    return Collection('network', path, singular, named, Place.DESCRIPTION, filters=True)


def _balancing(last: str, singular: str) -> Collection:
    return Collection('load-balancer', f'/v2/lbaas/{last}', singular, last, Place.DESCRIPTION, filters=True)


def _identity(last: str, singular: str) -> Collection:
    return Collection('identity', f'/{last}', singular, last, Place.DESCRIPTION, change='PATCH')


OF_TYPES: Mapping[str, Collection] = {
    'OS::Neutron::Net': _network('networks', 'network'),
    'OS::Neutron::ProviderNet': _network('networks', 'network'),
    'OS::Neutron::Subnet': _network('subnets', 'subnet'),
    'OS::Neutron::Port': _network('ports', 'port'),
    'OS::Neutron::Router': _network('routers', 'router'),
    'OS::Neutron::FloatingIP': _network('floatingips', 'floatingip'),
    'OS::Neutron::SecurityGroup': _network('security-groups', 'security_group'),
    'OS::Neutron::SecurityGroupRule': _network('security-group-rules', 'security_group_rule'),
    'OS::Neutron::SubnetPool': _network('subnetpools', 'subnetpool'),
    'OS::Neutron::Trunk': _network('trunks', 'trunk'),
    'OS::Neutron::Segment': _network('segments', 'segment'),
    'OS::Neutron::QoSPolicy': _network('policies', 'policy', under='/v2.0/qos'),
    'OS::Octavia::LoadBalancer': _balancing('loadbalancers', 'loadbalancer'),
    'OS::Octavia::Listener': _balancing('listeners', 'listener'),
    'OS::Octavia::Pool': _balancing('pools', 'pool'),
    'OS::Octavia::L7Policy': _balancing('l7policies', 'l7policy'),
    'OS::Nova::Server': Collection(
        'compute', '/servers', 'server', 'servers', Place.METADATA, listing='/servers/detail'
    ),
    'OS::Cinder::Volume': Collection(
        'block-storage', '/volumes', 'volume', 'volumes', Place.METADATA, listing='/volumes/detail'
    ),
    'OS::Glance::WebImage': Collection('image', '/v2/images', '', 'images', Place.ID, change='PATCH'),
    'OS::Glance::Image': Collection('image', '/v2/images', '', 'images', Place.ID, change='PATCH'),
    'OS::Keystone::Project': _identity('projects', 'project'),
    'OS::Keystone::User': _identity('users', 'user'),
    'OS::Keystone::Group': _identity('groups', 'group'),
    'OS::Keystone::Role': _identity('roles', 'role'),
    'OS::Keystone::Domain': _identity('domains', 'domain'),
}
"""The collections of the types whose objects can carry a token."""


def collection_of(path: str) -> Collection | None:
    """The collection of which an address is that of the whole, with its endpoint or without."""
    bare = path.partition('?')[0].rstrip('/').removesuffix('.json')
    return next((each for each in OF_TYPES.values() if bare.endswith(each.path)), None)
