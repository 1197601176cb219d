"""Routers, and what connects them with subnets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from convergence_openstack.declared.networks import (
    RouterAttributes,
    RouterInterfaceAttributes,
    RouterInterfaceProperties,
    RouterProperties,
)
from convergence_openstack.keyed import KeyedType
from convergence_openstack.kind import Shown, of_network
from convergence_openstack.lookups import NETWORK, PORT, ROUTER, SUBNET, Sort
from convergence_openstack.networks import NeutronType
from convergence_openstack.task import Task


class Router(NeutronType):
    """A router of Neutron."""

    Properties, Attributes = RouterProperties, RouterAttributes
    collection = of_network('routers', 'router')
    sorts: ClassVar[Mapping[str, Sort]] = {
        'external_gateway_info.network': NETWORK,
        'external_gateway_info.external_fixed_ips.subnet': SUBNET,
    }
    sent: ClassVar[Mapping[str, str]] = {
        'name': 'name',
        'admin_state_up': 'admin_state_up',
        'external_gateway_info': 'external_gateway_info',
        'distributed': 'distributed',
        'ha': 'ha',
        'availability_zone_hints': 'availability_zone_hints',
        'tenant_id': 'tenant_id',
    }
    later: ClassVar[tuple[str, ...]] = ('tags', 'l3_agent_ids', 'l3_agent_id')
    live: ClassVar[tuple[str, ...]] = ('name', 'admin_state_up')

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Agents are chosen in one way, and a router that is distributed does not fail over."""
        if given.get('l3_agent_id') and given.get('l3_agent_ids'):
            return 'l3_agent_id and l3_agent_ids say the same; leave the first out'
        if given.get('distributed') and (given.get('l3_agent_id') or given.get('l3_agent_ids')):
            return 'a distributed router is on all agents; leave l3_agent_ids out'
        if given.get('ha') and given.get('distributed'):
            return 'ha and distributed exclude each other here; give one of them'
        if len(given.get('l3_agent_ids') or ()) > 1 and not given.get('ha'):
            return 'only a router with ha can be on several agents; give one, or ha'
        return None

    @override
    def body(self, task: Task) -> dict[str, Any]:
        """The gateway in the words of the API."""
        body = super().body(task)
        gateway = body.get('external_gateway_info')
        return body | {'external_gateway_info': _gateway(gateway)} if gateway else body

    @override
    def _put_changed(self, task: Task, changed: frozenset[str]) -> Shown | None:
        gateway = task.given['external_gateway_info']
        task.given['external_gateway_info'] = _gateway(gateway) if gateway else {}
        return super()._put_changed(task, changed)

    @override
    def put(self, task: Task, name: str, shown: Shown | None) -> None:
        """Agents are added and taken away; tags are replaced."""
        if name == 'tags':
            super().put(task, name, shown)
            return
        one = task.given['l3_agent_id']
        wanted = set(task.given['l3_agent_ids'] or ([one] if one else []))
        there = {each['id'] for each in self.ask(task, 'GET', '/l3-agents')['agents']}
        for agent in sorted(there - wanted):
            task.cloud.ask('network', 'DELETE', f'/agents/{agent}/l3-routers/{task.object_id}')
        for agent in sorted(wanted - there):
            task.cloud.ask('network', 'POST', f'/agents/{agent}/l3-routers', {'router_id': task.object_id})


def _gateway(given: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {'network_id': given['network']}
    if given.get('enable_snat') is not None:
        told['enable_snat'] = given['enable_snat']
    if given.get('external_fixed_ips'):
        told['external_fixed_ips'] = [
            {key: each[name] for name, key in (('ip_address', 'ip_address'), ('subnet', 'subnet_id')) if each.get(name)}
            for each in given['external_fixed_ips']
        ]
    return told


class RouterInterface(KeyedType):
    """An interface of a router in a subnet, or with a port."""

    Properties, Attributes = RouterInterfaceProperties, RouterInterfaceAttributes
    sorts: ClassVar[Mapping[str, Sort]] = {'router': ROUTER, 'subnet': SUBNET, 'port': PORT}

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Either of the two."""
        if bool(given.get('subnet')) == bool(given.get('port')):
            return 'it is in a subnet or has a port; give one of subnet and port'
        return None

    @override
    def key(self, given: Mapping[str, Any]) -> str:
        """Return the external key: the router and its connection."""
        kind = 'port' if given.get('port') else 'subnet'
        return f'{given["router"]}:{kind}_id={given[kind]}'

    @override
    def there(self, task: Task, key: str) -> Shown | None:
        """The port of the router."""
        router, kind, other = _parts(key)
        if kind == 'port_id':
            found = task.cloud.there('network', f'/ports/{other}')
            return found['port'] if found and found['port'].get('device_id') == router else None
        ports = task.cloud.listed('network', '/ports', 'ports', device_id=router, fixed_ips=f'subnet_id={other}')
        return next(iter(ports), None)

    @override
    def make_it(self, task: Task, key: str) -> Shown:
        """Connect them."""
        router, kind, other = _parts(key)
        path = f'/routers/{router}/add_router_interface'
        made: Shown = task.cloud.ask('network', 'PUT', path, {kind: other}, makes=True)
        return made

    @override
    def remove_it(self, task: Task, key: str) -> None:
        """Separate them."""
        router, kind, other = _parts(key)
        task.cloud.ask('network', 'PUT', f'/routers/{router}/remove_router_interface', {kind: other})


def _parts(key: str) -> tuple[str, str, str]:
    """The router, ``subnet_id`` or ``port_id``, and that id; without a word of which, it is a subnet."""
    router, _, other = key.partition(':')
    kind, sign, other_id = other.partition('=')
    return (router, kind, other_id) if sign else (router, 'subnet_id', kind)
