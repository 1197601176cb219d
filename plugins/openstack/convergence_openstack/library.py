"""The types by their names in templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence.resources.contract import ResourceType
from convergence_openstack.attachments import VolumeAttachment
from convergence_openstack.floating_ips import FloatingIP, FloatingIPAssociation
from convergence_openstack.images import WebImage
from convergence_openstack.key_pairs import KeyPair
from convergence_openstack.networks import Net, Subnet
from convergence_openstack.ports import Port
from convergence_openstack.projects import Project
from convergence_openstack.routers import Router, RouterInterface
from convergence_openstack.security_groups import SecurityGroup
from convergence_openstack.servers import Server
from convergence_openstack.volumes import Volume

TYPES: Mapping[str, type[ResourceType[Any]]] = {
    'OS::Cinder::Volume': Volume,
    'OS::Cinder::VolumeAttachment': VolumeAttachment,
    'OS::Glance::WebImage': WebImage,
    'OS::Keystone::Project': Project,
    'OS::Neutron::FloatingIP': FloatingIP,
    'OS::Neutron::FloatingIPAssociation': FloatingIPAssociation,
    'OS::Neutron::Net': Net,
    'OS::Neutron::Port': Port,
    'OS::Neutron::Router': Router,
    'OS::Neutron::RouterInterface': RouterInterface,
    'OS::Neutron::SecurityGroup': SecurityGroup,
    'OS::Neutron::Subnet': Subnet,
    'OS::Nova::KeyPair': KeyPair,
    'OS::Nova::Server': Server,
}
"""All that the manifest offers."""


def load(name: str) -> ResourceType[Any]:
    """A type.

    :raises ImportError: there is none of that name.
    """
    found = TYPES.get(name)
    if found is None:
        raise ImportError(f'convergence-openstack has no type {name}')
    return found()
