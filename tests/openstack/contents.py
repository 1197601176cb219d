"""What a cloud has before its users come: accounts, the catalog, flavors, an image, a network to the outside."""

from __future__ import annotations

from typing import Any

import openstack

from tests.openstack.layout import PASSWORD, REGION, Layout

DOMAIN = 'default'
FLAVORS = {'m1.tiny': 64, 'm1.small': 128, 'm1.medium': 256, 'm1.large': 512}
"""Their memory in MiB."""

IMAGES = ('cirros', 'fedora', 'ubuntu')
OUTSIDE = 'public'
"""The network to the outside, and its subnet."""


def connection(layout: Layout, user: str = 'admin', project: str = '') -> Any:
    """Who is logged in, as openstacksdk has it.

    :param project: empty: the one that has the user's name.
    """
    return openstack.connect(
        auth_url=layout.auth_url,
        username=user,
        password=PASSWORD,
        project_name=project or user,
        user_domain_id=DOMAIN,
        project_domain_id=DOMAIN,
        region_name=REGION,
        identity_api_version='3',
    )


def accounts(layout: Layout) -> None:
    """Accounts of the services, of Convergence and of a user; the catalog. Keystone is enough for it."""
    identity = connection(layout).identity
    service = identity.create_project(name='service', domain_id=DOMAIN)
    roles = {
        name: identity.find_role(name) or identity.create_role(name=name) for name in ('admin', 'service', 'member')
    }
    for name in ('glance', 'placement', 'neutron', 'nova', 'cinder', 'convergence'):
        made = identity.create_user(name=name, password=PASSWORD, domain_id=DOMAIN)
        for role in ('admin', 'service'):
            identity.assign_project_role_to_user(service, made, roles[role])
    user(layout, 'demo')
    volumes = f'{layout.url("cinder")}/v3/%(project_id)s'
    catalog = {
        'image': ('glance', layout.url('glance')),
        'placement': ('placement', layout.url('placement')),
        'network': ('neutron', layout.url('neutron')),
        'compute': ('nova', f'{layout.url("nova")}/v2.1'),
        'block-storage': ('cinder', volumes),
        'volumev3': ('cinderv3', volumes),
    }
    for sort, (name, url) in catalog.items():
        registered = identity.create_service(name=name, type=sort)
        for interface in ('public', 'internal', 'admin'):
            identity.create_endpoint(service_id=registered.id, interface=interface, url=url, region_id=REGION)


def user(layout: Layout, name: str) -> tuple[str, str]:
    """A user with a project of the same name, in which he has the role ``member``; the ids of both."""
    identity = connection(layout).identity
    project = identity.create_project(name=name, domain_id=DOMAIN)
    made = identity.create_user(name=name, password=PASSWORD, domain_id=DOMAIN)
    identity.assign_project_role_to_user(project, made, identity.find_role('member'))
    return made.id, project.id


def colleague(layout: Layout, name: str, project_id: str) -> str:
    """Another user, with the role ``member`` in somebody's project; his id."""
    identity = connection(layout).identity
    made = identity.create_user(name=name, password=PASSWORD, domain_id=DOMAIN)
    identity.assign_project_role_to_user(project_id, made, identity.find_role('member'))
    return str(made.id)


def things(layout: Layout) -> None:
    """Flavors, images and the network to the outside. All APIs must answer; nothing behind them is needed."""
    cloud = connection(layout)
    for name, memory_mib in FLAVORS.items():
        cloud.compute.create_flavor(name=name, ram=memory_mib, vcpus=1, disk=1)
    for name in IMAGES:
        cloud.image.create_image(
            name=name,
            container_format='bare',
            disk_format='raw',
            visibility='public',
            data=b'pretended',
            validate_checksum=False,
        )
    outside = cloud.network.create_network(name=OUTSIDE, is_router_external=True, is_shared=False)
    cloud.network.create_subnet(
        name=OUTSIDE, network_id=outside.id, ip_version=4, cidr='172.24.0.0/16', is_dhcp_enabled=False
    )
