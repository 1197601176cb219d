"""Networks and subnets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence_openstack.declared.networks import NetAttributes, NetProperties, SubnetAttributes, SubnetProperties
from convergence_openstack.kind import CloudType, Shown, of_network
from convergence_openstack.lookups import NETWORK, QOS_POLICY, SEGMENT, SUBNET_POOL, Sort
from convergence_openstack.task import Task


class NeutronType(CloudType):
    """The common base of the objects of Neutron."""

    later: ClassVar[tuple[str, ...]] = ('tags',)

    @override
    def put(self, task: Task, name: str, shown: Shown | None) -> None:
        """Replace the tags."""
        self.ask(task, 'PUT', '/tags', {'tags': list(task.given['tags'] or [])})

    @override
    def is_broken(self, shown: Shown) -> bool:
        """Neutron shows errors of ports that have no host yet, and may have one later."""
        return False


class Net(NeutronType):
    """A network of Neutron."""

    Properties, Attributes = NetProperties, NetAttributes
    collection = of_network('networks', 'network')
    sorts: ClassVar[Mapping[str, Sort]] = {'qos_policy': QOS_POLICY}
    sent: ClassVar[Mapping[str, str]] = {
        'name': 'name',
        'admin_state_up': 'admin_state_up',
        'tenant_id': 'tenant_id',
        'shared': 'shared',
        'port_security_enabled': 'port_security_enabled',
        'qos_policy': 'qos_policy_id',
        'dns_domain': 'dns_domain',
        'availability_zone_hints': 'availability_zone_hints',
    }
    later: ClassVar[tuple[str, ...]] = ('tags', 'dhcp_agent_ids')
    live: ClassVar[tuple[str, ...]] = ('name', 'admin_state_up', 'shared', 'port_security_enabled')

    @override
    def body(self, task: Task) -> dict[str, Any]:
        """Only administrators may say that a network is not shared."""
        body = super().body(task)
        return body if body.get('shared') else {key: value for key, value in body.items() if key != 'shared'}

    @override
    def cleared(self, task: Task, name: str) -> Json:
        """Return the value by which Neutron means "not given"."""
        unsaid: dict[str, Json] = {
            'dns_domain': '', 'shared': False, 'port_security_enabled': True, 'admin_state_up': True
        }  # fmt: skip
        return unsaid[name] if name in unsaid else super().cleared(task, name)

    @override
    def put(self, task: Task, name: str, shown: Shown | None) -> None:
        """Agents are added and taken away; tags are replaced."""
        if name == 'tags':
            super().put(task, name, shown)
            return
        agents = f'/networks/{task.object_id}/dhcp-agents'
        there = {each['id'] for each in task.cloud.ask('network', 'GET', agents)['agents']}
        wanted = set(task.given[name] or ())
        for agent in sorted(wanted - there):
            task.cloud.ask('network', 'POST', f'/agents/{agent}/dhcp-networks', {'network_id': task.object_id})
        for agent in sorted(there - wanted):
            task.cloud.ask('network', 'DELETE', f'/agents/{agent}/dhcp-networks/{task.object_id}')

    @override
    def read(self, task: Task, shown: Shown, name: str) -> Json:
        """Segments are objects of their own."""
        if name == 'segments':
            found = task.cloud.listed('network', '/segments', 'segments', network_id=task.object_id)
            return [dict(each) for each in found]
        return super().read(task, shown, name)


class Subnet(NeutronType):
    """A subnet of Neutron."""

    Properties, Attributes = SubnetProperties, SubnetAttributes
    collection = of_network('subnets', 'subnet')
    sorts: ClassVar[Mapping[str, Sort]] = {'network': NETWORK, 'subnetpool': SUBNET_POOL, 'segment': SEGMENT}
    sent: ClassVar[Mapping[str, str]] = {
        'name': 'name',
        'network': 'network_id',
        'subnetpool': 'subnetpool_id',
        'prefixlen': 'prefixlen',
        'cidr': 'cidr',
        'ip_version': 'ip_version',
        'dns_nameservers': 'dns_nameservers',
        'gateway_ip': 'gateway_ip',
        'enable_dhcp': 'enable_dhcp',
        'allocation_pools': 'allocation_pools',
        'tenant_id': 'tenant_id',
        'host_routes': 'host_routes',
        'ipv6_ra_mode': 'ipv6_ra_mode',
        'ipv6_address_mode': 'ipv6_address_mode',
        'segment': 'segment_id',
    }
    live: ClassVar[tuple[str, ...]] = ('name', 'enable_dhcp')

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Check the source of its addresses, and the properties for IPv6."""
        version = given.get('ip_version')
        modes = [given[name] for name in ('ipv6_ra_mode', 'ipv6_address_mode') if given.get(name)]
        pool, cidr, length = (given.get(name) for name in ('subnetpool', 'cidr', 'prefixlen'))
        if pool and (cidr or version) and cidr:
            return 'subnetpool and cidr cannot be used together; give one of them'
        if not pool and not cidr:
            return 'it needs addresses; give cidr, or subnetpool'
        if length is not None and not pool:
            return 'prefixlen needs subnetpool'
        if version == 4 and modes:
            return 'ipv6_ra_mode and ipv6_address_mode need ip_version 6'
        if len(set(modes)) > 1:
            return 'ipv6_ra_mode and ipv6_address_mode differ; give both the same value, or leave one out'
        return None

    @override
    def body(self, task: Task) -> dict[str, Any]:
        """An empty gateway says that there is none."""
        body = super().body(task)
        return body | {'gateway_ip': None} if task.given.get('gateway_ip') == '' else body

    @override
    def cleared(self, task: Task, name: str) -> Json:
        """Lists are emptied."""
        return [] if name in ('dns_nameservers', 'host_routes', 'allocation_pools') else super().cleared(task, name)

    @override
    def _put_changed(self, task: Task, changed: frozenset[str]) -> Shown | None:
        if task.given.get('gateway_ip') == '':
            task.given['gateway_ip'] = None
        if 'allocation_pools' in changed and task.given['allocation_pools'] is None:
            changed -= {'allocation_pools'}  # Neutron keeps the pools that it has
        return super()._put_changed(task, changed)
