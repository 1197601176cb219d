"""Networks, subnets, routers and their interfaces."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedValues, Range, custom
from convergence.resources.schema import prop
from convergence.resources.translation import Rename
from convergence_openstack.declaring import HIDDEN, by_service


@dataclass(frozen=True)
class NetProperties:
    """The properties of a network."""

    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    value_specs: dict[str, Json] | None = prop(
        {}, description='Further fields of the request, by their names in the API of the service.', update_allowed=True
    )
    admin_state_up: bool | None = prop(True, description='Whether it is at work.', update_allowed=True)
    tenant_id: str | None = prop(
        None, description='Project that it belongs to; only administrators may name another one.'
    )
    shared: bool | None = prop(False, description='Whether all projects may use it.', update_allowed=True)
    dhcp_agent_ids: list[Json] | None = prop(
        None, description='DHCP agents that serve it; only administrators may choose them.', update_allowed=True
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
    dns_domain: str | None = prop(
        None,
        description='Domain of the names that are made for it.',
        update_allowed=True,
        constraints=[custom('dns_domain')],
    )
    availability_zone_hints: list[Json] | None = prop(None, description='Preferred availability zones.')
    tags: list[str | None] | None = prop(None, description='Tags.', update_allowed=True)


@dataclass(frozen=True)
class NetAttributes:
    """The attributes of a network."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    status: str = attr('What the service says of its state.', of=('status',))
    name: str = attr('Name. Default: derived from the names of the stack and the resource.', of=('name',))
    subnets: list[Json] = attr('Subnets.', of=('subnets',))
    admin_state_up: str = attr('Whether it is at work.', of=('admin_state_up',))
    tenant_id: str = attr('Project that it belongs to; only administrators may name another one.', of=('tenant_id',))
    port_security_enabled: bool = attr(
        'Whether addresses and security groups are enforced.', of=('port_security_enabled',)
    )
    mtu: int = attr('Largest packet.', of=('mtu',))
    qos_policy_id: str = attr('QoS policy.', of=('qos_policy_id',))
    l2_adjacency: bool = attr('Whether all hosts reach each other directly.', of=('l2_adjacency',))
    segments: list[Json] = attr('Segments.', of=('segments',), dear=True)


@dataclass(frozen=True)
class SubnetAllocationPools:
    """The items of ``allocation_pools``."""

    start: str = prop(description='First address.', constraints=[custom('ip_addr')])
    end: str = prop(description='Last address.', constraints=[custom('ip_addr')])


@dataclass(frozen=True)
class SubnetHostRoutes:
    """The items of ``host_routes``."""

    destination: str = prop(description='Network that it leads to.', constraints=[custom('net_cidr')])
    nexthop: str = prop(description='Address to which it is sent.', constraints=[custom('ip_addr')])


@dataclass(frozen=True)
class SubnetProperties:
    """The properties of a subnet."""

    TRANSLATIONS = (Rename(('network_id',), 'network'),)
    network_id: str | None = prop(
        None, description='An older name of network.', constraints=[by_service('neutron.network')], support=HIDDEN
    )
    network: str = prop(description='Network, by name or id.', constraints=[by_service('neutron.network')])
    subnetpool: str | None = prop(
        None, description='Pool from which the addresses are taken.', constraints=[by_service('neutron.subnetpool')]
    )
    prefixlen: int | None = prop(
        None, description='Length of the prefix that is taken from the pool.', constraints=[Range(0, None)]
    )
    cidr: str | None = prop(None, description='Addresses, as address/length.', constraints=[custom('net_cidr')])
    value_specs: dict[str, Json] | None = prop(
        {}, description='Further fields of the request, by their names in the API of the service.', update_allowed=True
    )
    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    ip_version: int | None = prop(4, description='Version of IP.', constraints=[AllowedValues((4, 6))])
    dns_nameservers: list[Json] | None = prop([], description='Addresses of name servers.', update_allowed=True)
    gateway_ip: str | None = prop(
        None, description='Address of the gateway; an empty text for none.', update_allowed=True
    )
    enable_dhcp: bool | None = prop(True, description='Whether addresses are handed out by DHCP.', update_allowed=True)
    allocation_pools: list[SubnetAllocationPools | None] | None = prop(
        None, description='Ranges from which addresses are given to ports.', update_allowed=True
    )
    tenant_id: str | None = prop(
        None, description='Project that it belongs to; only administrators may name another one.'
    )
    host_routes: list[SubnetHostRoutes | None] | None = prop(
        None, description='Routes that hosts get.', update_allowed=True
    )
    ipv6_ra_mode: str | None = prop(
        None,
        description='How routers announce themselves.',
        constraints=[AllowedValues(('dhcpv6-stateful', 'dhcpv6-stateless', 'slaac'))],
    )
    ipv6_address_mode: str | None = prop(
        None,
        description='How hosts get their addresses.',
        constraints=[AllowedValues(('dhcpv6-stateful', 'dhcpv6-stateless', 'slaac'))],
    )
    segment: str | None = prop(
        None,
        description='Segment of the network, by name or id.',
        update_allowed=True,
        constraints=[by_service('neutron.segment')],
    )
    tags: list[str | None] | None = prop(None, description='Tags.', update_allowed=True)


@dataclass(frozen=True)
class SubnetAttributes:
    """The attributes of a subnet."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    name: str = attr('Name. Default: derived from the names of the stack and the resource.', of=('name',))
    network_id: str = attr('An older name of network.', of=('network_id',))
    tenant_id: str = attr('Project that it belongs to; only administrators may name another one.', of=('tenant_id',))
    allocation_pools: list[Json] = attr('Ranges from which addresses are given to ports.', of=('allocation_pools',))
    gateway_ip: str = attr('Address of the gateway; an empty text for none.', of=('gateway_ip',))
    host_routes: list[Json] = attr('Routes that hosts get.', of=('host_routes',))
    ip_version: str = attr('Version of IP.', of=('ip_version',))
    cidr: str = attr('Addresses, as address/length.', of=('cidr',))
    dns_nameservers: list[Json] = attr('Addresses of name servers.', of=('dns_nameservers',))
    enable_dhcp: str = attr('Whether addresses are handed out by DHCP.', of=('enable_dhcp',))


@dataclass(frozen=True)
class RouterExternalGatewayInfoExternalFixedIps:
    """The items of ``external_gateway_info_external_fixed_ips``."""

    ip_address: str | None = prop(None, description='Address.', constraints=[custom('ip_addr')])
    subnet: str | None = prop(None, description='Subnet, by name or id.', constraints=[by_service('neutron.subnet')])


@dataclass(frozen=True)
class RouterExternalGatewayInfo:
    """The contents of ``external_gateway_info``."""

    network: str = prop(description='Network, by name or id.', update_allowed=True)
    enable_snat: bool | None = prop(
        None, description='Whether addresses are translated on the way out.', update_allowed=True
    )
    external_fixed_ips: list[RouterExternalGatewayInfoExternalFixedIps | None] | None = prop(
        None, description='Requested external addresses.', update_allowed=True
    )


@dataclass(frozen=True)
class RouterProperties:
    """The properties of a router."""

    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    external_gateway_info: RouterExternalGatewayInfo | None = prop(
        None, description='Way to the outside.', update_allowed=True
    )
    value_specs: dict[str, Json] | None = prop(
        {}, description='Further fields of the request, by their names in the API of the service.', update_allowed=True
    )
    admin_state_up: bool | None = prop(True, description='Whether it is at work.', update_allowed=True)
    l3_agent_id: str | None = prop(
        None, description='An older name of l3_agent_ids, for one.', update_allowed=True, support=HIDDEN
    )
    l3_agent_ids: list[str | None] | None = prop(
        None, description='L3 agents that serve it; only administrators may choose them.', update_allowed=True
    )
    distributed: bool | None = prop(None, description='Whether it is distributed over the hosts.')
    ha: bool | None = prop(None, description='Whether it fails over to another host.')
    availability_zone_hints: list[Json] | None = prop(
        None, description='Preferred availability zones.', update_allowed=True
    )
    tags: list[str | None] | None = prop(None, description='Tags.', update_allowed=True)
    tenant_id: str | None = prop(
        None, description='Project that it belongs to; only administrators may name another one.'
    )


@dataclass(frozen=True)
class RouterAttributes:
    """The attributes of a router."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    status: str = attr('What the service says of its state.', of=('status',))
    external_gateway_info: dict[str, Json] = attr('Way to the outside.', of=('external_gateway_info',))
    name: str = attr('Name. Default: derived from the names of the stack and the resource.', of=('name',))
    admin_state_up: str = attr('Whether it is at work.', of=('admin_state_up',))
    tenant_id: str = attr('Project that it belongs to; only administrators may name another one.', of=('tenant_id',))


@dataclass(frozen=True)
class RouterInterfaceProperties:
    """The properties of an interface of a router."""

    TRANSLATIONS = (Rename(('port_id',), 'port'), Rename(('router_id',), 'router'), Rename(('subnet_id',), 'subnet'))
    router: str = prop(description='Router, by name or id.', constraints=[by_service('neutron.router')])
    router_id: str | None = prop(
        None, description='An older name of router.', constraints=[by_service('neutron.router')], support=HIDDEN
    )
    subnet_id: str | None = prop(
        None, description='An older name of subnet.', constraints=[by_service('neutron.subnet')], support=HIDDEN
    )
    subnet: str | None = prop(None, description='Subnet, by name or id.', constraints=[by_service('neutron.subnet')])
    port_id: str | None = prop(None, description='Port.', constraints=[by_service('neutron.port')], support=HIDDEN)
    port: str | None = prop(None, description='Port, by name or id.', constraints=[by_service('neutron.port')])


@dataclass(frozen=True)
class RouterInterfaceAttributes:
    """The attributes of an interface of a router."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
