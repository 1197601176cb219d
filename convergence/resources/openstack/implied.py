"""Dependencies between resources that templates leave out, as Heat's classes derive them.

Two properties mean the same thing if their values are equal, be they known or a `FutureValue`. A name and an id of the
same thing are not equal: a template with both needs ``depends_on`` as well, as in Heat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from convergence.resources.contract import FutureValue, Outline

SUBNET = 'OS::Neutron::Subnet'
PORT = 'OS::Neutron::Port'
ROUTER = 'OS::Neutron::Router'
GATEWAY = 'OS::Neutron::RouterGateway'
INTERFACE = 'OS::Neutron::RouterInterface'

Outlines = Mapping[str, Outline]


def of_port(own: Outline, template: Outlines) -> Iterator[str]:
    """All subnets of its network: of which of them it gets an address is not known."""
    return _having(template, SUBNET, 'network', own.properties.get('network'))


def of_server(own: Outline, template: Outlines) -> Iterator[str]:
    """All subnets of the networks in which it gets ports."""
    networks = own.properties.get('networks')
    for each in networks if isinstance(networks, list) else ():
        if isinstance(each, Mapping):
            yield from _having(template, SUBNET, 'network', each.get('network'))


def of_router(own: Outline, template: Outlines) -> Iterator[str]:
    """All subnets of the network outside, in which it gets an address."""
    return _having(template, SUBNET, 'network', _outside(own))


def of_gateway(own: Outline, template: Outlines) -> Iterator[str]:
    """The subnets of its network, and the interfaces of its router: a gateway goes before them."""
    yield from _having(template, SUBNET, 'network', own.properties.get('network'))
    yield from _having(template, INTERFACE, 'router', own.properties.get('router_id'))


def of_route(own: Outline, template: Outlines) -> Iterator[str]:
    """Yield the resources that connect its router: the next hop must be in a network of it."""
    router = own.properties.get('router_id')
    yield from _having(template, INTERFACE, 'router', router)
    yield from _having(template, GATEWAY, 'router_id', router)


def of_routes(own: Outline, template: Outlines) -> Iterator[str]:
    """The interfaces of its router."""
    return _having(template, INTERFACE, 'router', own.properties.get('router'))


def of_floating_ip(own: Outline, template: Outlines) -> Iterator[str]:
    """The way from its network to its port: gateways and routers there, interfaces here."""
    outside = own.properties.get('floating_network')
    yield from _having(template, GATEWAY, 'network', outside)
    yield from (each.name for each in _of_type(template, ROUTER) if _same(_outside(each), outside))
    yield from _interfaces_at(own.properties.get('port_id'), template)


def of_association(own: Outline, template: Outlines) -> Iterator[str]:
    """The interfaces through which its port is reached."""
    return _interfaces_at(own.properties.get('port_id'), template)


def of_forwarding(own: Outline, template: Outlines) -> Iterator[str]:
    """As above."""
    return _interfaces_at(own.properties.get('internal_port'), template)


def of_attachment(own: Outline, template: Outlines) -> Iterator[str]:
    """All route tables of its VPC: they are the routers that get the gateway."""
    return _having(template, 'AWS::EC2::RouteTable', 'VpcId', own.properties.get('VpcId'))


AFTER: Mapping[str, Callable[[Outline, Outlines], Iterator[str]]] = {
    PORT: of_port,
    'OS::Nova::Server': of_server,
    ROUTER: of_router,
    GATEWAY: of_gateway,
    'OS::Neutron::ExtraRoute': of_route,
    'OS::Neutron::ExtraRouteSet': of_routes,
    'OS::Neutron::FloatingIP': of_floating_ip,
    'OS::Neutron::FloatingIPAssociation': of_association,
    'OS::Neutron::FloatingIPPortForward': of_forwarding,
    'AWS::EC2::VPCGatewayAttachment': of_attachment,
}
"""For names of types, what resources of them come after."""


def _of_type(template: Outlines, type_name: str) -> Iterator[Outline]:
    return (each for each in template.values() if each.type == type_name)


def _having(template: Outlines, type_name: str, key: str, value: Any) -> Iterator[str]:
    """The resources of a type in which a property has a value."""
    return (each.name for each in _of_type(template, type_name) if _same(each.properties.get(key), value))


def _same(one: Any, other: Any) -> bool:
    return one is not None and bool(one == other)


def _outside(router: Outline) -> Any:
    gateway = router.properties.get('external_gateway_info')
    return gateway.get('network') if isinstance(gateway, Mapping) else None


def _interfaces_at(reference: Any, template: Outlines) -> Iterator[str]:
    """The interfaces of routers in a subnet in which a port of the template has, or may get, an address."""
    port = template.get(reference.resource) if isinstance(reference, FutureValue) else None
    if port is None or port.type != PORT:
        return
    for interface in _of_type(template, INTERFACE):
        if _may_be_in(port, interface.properties.get('subnet'), template):
            yield interface.name


def _may_be_in(port: Outline, subnet: Any, template: Outlines) -> bool:
    fixed = port.properties.get('fixed_ips')
    if isinstance(fixed, list) and fixed:
        return any(isinstance(each, Mapping) and _same(each.get('subnet'), subnet) for each in fixed)
    there = template.get(subnet.resource) if isinstance(subnet, FutureValue) else None
    # The network of a subnet that is no resource is known only to the service.
    return (
        there is None or there.type != SUBNET or _same(there.properties.get('network'), port.properties.get('network'))
    )
