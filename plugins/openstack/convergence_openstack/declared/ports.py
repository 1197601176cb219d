"""Ports, floating IPs and security groups."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedValues, Range, custom
from convergence.resources.schema import prop
from convergence.resources.translation import Rename
from convergence_openstack.declaring import HIDDEN, PROTOCOLS, by_service


@dataclass(frozen=True)
class PortFixedIps:
    """The items of ``fixed_ips``."""

    subnet_id: str | None = prop(
        None, description='An older name of subnet.', constraints=[by_service('neutron.subnet')], support=HIDDEN
    )
    subnet: str | None = prop(None, description='Subnet, by name or id.', constraints=[by_service('neutron.subnet')])
    ip_address: str | None = prop(None, description='Address.', constraints=[custom('ip_addr')])


@dataclass(frozen=True)
class PortAllowedAddressPairs:
    """The items of ``allowed_address_pairs``."""

    mac_address: str | None = prop(None, description='MAC address.', constraints=[custom('mac_addr')])
    ip_address: str = prop(description='Address.', constraints=[custom('ip_or_cidr')])


@dataclass(frozen=True)
class PortExtraProperties:
    """The properties of a port, also of one that is made for a server (``port_extra_properties``)."""

    value_specs: dict[str, Json] | None = prop(
        {}, description='Further fields of the request, by their names in the API of the service.', update_allowed=True
    )
    admin_state_up: bool | None = prop(True, description='Whether it is at work.', update_allowed=True)
    mac_address: str | None = prop(None, description='MAC address.', constraints=[custom('mac_addr')])
    allowed_address_pairs: list[PortAllowedAddressPairs | None] | None = prop(
        None, description='Further addresses from which it may send.', update_allowed=True
    )
    binding_vnic_type: str | None = prop(
        'normal',
        description='Sort of the network interface.',
        update_allowed=True,
        constraints=[
            AllowedValues(
                ('normal', 'direct', 'macvtap', 'direct-physical', 'baremetal', 'virtio-forwarder', 'smart-nic')
            )
        ],
        name='binding:vnic_type',
    )
    port_security_enabled: bool | None = prop(
        None, description='Whether addresses and security groups are enforced.', update_allowed=True
    )
    qos_policy: str | None = prop(
        None,
        description='QoS policy, by name or id.',
        update_allowed=True,
        constraints=[by_service('neutron.qos_policy')],
    )
    propagate_uplink_status: bool | None = prop(
        None, description='Whether it is down when its uplink is.', update_allowed=True
    )
    no_fixed_ips: bool | None = prop(False, description='Whether it has no address at all.', update_allowed=True)


@dataclass(frozen=True)
class PortProperties(PortExtraProperties):
    """The properties of a port."""

    TRANSLATIONS = (Rename(('network_id',), 'network'), Rename(('fixed_ips', 'subnet_id'), 'subnet'))
    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    network_id: str | None = prop(
        None, description='An older name of network.', constraints=[by_service('neutron.network')], support=HIDDEN
    )
    network: str = prop(description='Network, by name or id.', constraints=[by_service('neutron.network')])
    device_id: str | None = prop('', description='What it is plugged into.', update_allowed=True)
    device_owner: str | None = prop('', description='What sort of thing that is.', update_allowed=True)
    fixed_ips: list[PortFixedIps | None] | None = prop(None, description='Requested addresses.', update_allowed=True)
    security_groups: list[Json] | None = prop(None, description='Security groups, by name or id.', update_allowed=True)
    replacement_policy: str | None = prop(
        'AUTO',
        description='Of no effect any more, but that REPLACE_ALWAYS makes each change a replacement.',
        update_allowed=True,
        constraints=[AllowedValues(('REPLACE_ALWAYS', 'AUTO'))],
        support=HIDDEN,
    )
    dns_name: str | None = prop(
        None, description='Name under which it is known to DNS.', update_allowed=True, constraints=[custom('dns_name')]
    )
    tags: list[str | None] | None = prop(None, description='Tags.', update_allowed=True)


@dataclass(frozen=True)
class PortAttributes:
    """The attributes of a port."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    admin_state_up: str = attr('Whether it is at work.', of=('admin_state_up',))
    device_id: str = attr('What it is plugged into.', of=('device_id',))
    device_owner: str = attr('What sort of thing that is.', of=('device_owner',))
    fixed_ips: list[Json] = attr('Requested addresses.', of=('fixed_ips',))
    mac_address: str = attr('MAC address.', of=('mac_address',))
    name: str = attr('Name. Default: derived from the names of the stack and the resource.', of=('name',))
    network_id: str = attr('An older name of network.', of=('network_id',))
    security_groups: list[Json] = attr('Security groups, by name or id.', of=('security_groups',))
    status: str = attr('What the service says of its state.', of=('status',))
    tenant_id: str = attr('Project that it belongs to; only administrators may name another one.', of=('tenant_id',))
    allowed_address_pairs: list[Json] = attr('Further addresses from which it may send.', of=('allowed_address_pairs',))
    subnets: list[Json] = attr('Subnets.', of=('subnets',), dear=True)
    port_security_enabled: bool = attr(
        'Whether addresses and security groups are enforced.', of=('port_security_enabled',)
    )
    qos_policy_id: str = attr('QoS policy.', of=('qos_policy_id',))
    dns_assignment: dict[str, Json] = attr('Names that DNS has for it.', of=('dns_assignment',))
    network: dict[str, Json] = attr('Network, by name or id.', of=('network',), dear=True)
    propagate_uplink_status: bool = attr('Whether it is down when its uplink is.', of=('propagate_uplink_status',))


@dataclass(frozen=True)
class FloatingIPProperties:
    """The properties of a floating IP."""

    TRANSLATIONS = (Rename(('floating_network_id',), 'floating_network'),)
    floating_network_id: str | None = prop(
        None,
        description='An older name of floating_network.',
        constraints=[by_service('neutron.network')],
        support=HIDDEN,
    )
    floating_network: str = prop(
        description='Network outside from which the address is, by name or id.',
        constraints=[by_service('neutron.network')],
    )
    floating_subnet: str | None = prop(
        None, description='Subnet of it, by name or id.', constraints=[by_service('neutron.subnet')]
    )
    value_specs: dict[str, Json] | None = prop(
        {}, description='Further fields of the request, by their names in the API of the service.'
    )
    port_id: str | None = prop(None, description='Port.', update_allowed=True, constraints=[by_service('neutron.port')])
    fixed_ip_address: str | None = prop(
        None,
        description='Address of the port to which it leads, where that has several.',
        update_allowed=True,
        constraints=[custom('ip_addr')],
    )
    floating_ip_address: str | None = prop(None, description='Requested address.', constraints=[custom('ip_addr')])
    dns_name: str | None = prop(
        None,
        description='Name under which it is known to DNS.',
        update_allowed=True,
        constraints=[custom('rel_dns_name')],
    )
    dns_domain: str | None = prop(
        None,
        description='Domain of the names that are made for it.',
        update_allowed=True,
        constraints=[custom('dns_domain')],
    )


@dataclass(frozen=True)
class FloatingIPAttributes:
    """The attributes of a floating IP."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    router_id: str = attr('An older name of router.', of=('router_id',))
    tenant_id: str = attr('Project that it belongs to; only administrators may name another one.', of=('tenant_id',))
    floating_network_id: str = attr('An older name of floating_network.', of=('floating_network_id',))
    fixed_ip_address: str = attr(
        'Address of the port to which it leads, where that has several.', of=('fixed_ip_address',), dear=True, live=True
    )
    floating_ip_address: str = attr('Requested address.', of=('floating_ip_address',))
    port_id: str = attr('Port.', of=('port_id',), dear=True, live=True)


@dataclass(frozen=True)
class FloatingIPAssociationProperties:
    """The properties of the association of a floating IP."""

    floatingip_id: str = prop(description='Floating IP.', update_allowed=True)
    port_id: str = prop(description='Port.', update_allowed=True, constraints=[by_service('neutron.port')])
    fixed_ip_address: str | None = prop(
        None,
        description='Address of the port to which it leads, where that has several.',
        update_allowed=True,
        constraints=[custom('ip_addr')],
    )


@dataclass(frozen=True)
class FloatingIPAssociationAttributes:
    """The attributes of the association of a floating IP."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)


@dataclass(frozen=True)
class SecurityGroupRules:
    """The items of ``rules``."""

    direction: str | None = prop(
        'ingress', description='Into the port, or out of it.', constraints=[AllowedValues(('ingress', 'egress'))]
    )
    ethertype: str | None = prop('IPv4', description='Version of IP.', constraints=[AllowedValues(('IPv4', 'IPv6'))])
    port_range_min: int | None = prop(
        None, description='First port, or the type of ICMP.', constraints=[Range(0, 65535)]
    )
    port_range_max: int | None = prop(
        None, description='Last port, or the code of ICMP.', constraints=[Range(0, 65535)]
    )
    protocol: str | None = prop(
        None, description='Protocol, by name or number.', constraints=[AllowedValues(PROTOCOLS)]
    )
    remote_mode: str | None = prop(
        'remote_ip_prefix',
        description='Kind of the other side: an address or a group.',
        constraints=[AllowedValues(('remote_ip_prefix', 'remote_group_id'))],
    )
    remote_group_id: str | None = prop(
        None,
        description='Security group of the other side; unless given, this one.',
        constraints=[by_service('neutron.security_group')],
    )
    remote_ip_prefix: str | None = prop(
        None, description='Addresses of the other side.', constraints=[custom('net_cidr')]
    )
    description: str | None = prop(None, description='Description.')


@dataclass(frozen=True)
class SecurityGroupProperties:
    """The properties of a security group."""

    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    description: str | None = prop(None, description='Description.', update_allowed=True)
    rules: list[SecurityGroupRules | None] | None = prop(
        [],
        description='Allowed traffic. Without a rule for egress, all egress is allowed.',
        update_allowed=True,
    )
    stateful: bool | None = prop(None, description='Whether answers are let through.', update_allowed=True)


@dataclass(frozen=True)
class SecurityGroupAttributes:
    """The attributes of a security group."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
