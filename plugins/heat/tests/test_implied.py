"""What resources of Heat come after although the template does not say so."""

from __future__ import annotations

import convergence_heat

from convergence import template
from convergence.resources.implied import ask_for_implied
from convergence.resources.registry import Registry

NETWORK = """
heat_template_version: wallaby
resources:
  net: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.0.0.0/24}}
  other_subnet: {type: OS::Neutron::Subnet, properties: {network_id: other, cidr: 10.1.0.0/24}}
  outside: {type: OS::Neutron::Subnet, properties: {network: public, cidr: 10.2.0.0/24}}
  port: {type: OS::Neutron::Port, properties: {network_id: {get_resource: net}}}
  fixed: {type: OS::Neutron::Port, properties: {network: x, fixed_ips: [{subnet_id: {get_resource: other_subnet}}]}}
  server: {type: OS::Nova::Server, properties: {flavor: a, networks: [{network: {get_resource: net}}, {port: known}]}}
  router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: public}}}
  inside: {type: OS::Neutron::RouterInterface, properties:
           {router: {get_resource: router}, subnet: {get_resource: subnet}}}
  elsewhere: {type: OS::Neutron::RouterInterface, properties:
              {router_id: {get_resource: router}, subnet: {get_resource: other_subnet}}}
  gateway: {type: OS::Neutron::RouterGateway, properties: {router_id: {get_resource: router}, network: public}}
  route: {type: OS::Neutron::ExtraRoute, properties:
          {router_id: {get_resource: router}, destination: 10.9.0.0/24, nexthop: 10.0.0.9}}
  routes: {type: OS::Neutron::ExtraRouteSet, properties: {router: {get_resource: router}}}
  ip: {type: OS::Neutron::FloatingIP, properties: {floating_network: public, port_id: {get_resource: port}}}
  association: {type: OS::Neutron::FloatingIPAssociation, properties:
                {floatingip_id: known, port_id: {get_resource: fixed}}}
  alone: {type: OS::Neutron::FloatingIPAssociation, properties: {floatingip_id: known, port_id: known}}
"""


def test_what_comes_after_what_is_what_heat_finds_out():
    registry = Registry(convergence_heat.manifest().types())
    compiled = template.compile(NETWORK, identity=template.StackIdentity('', '', ''))
    said = ask_for_implied(compiled, registry)
    assert {name: sorted(names) for name, names in said.items()} == {
        'port': ['subnet'],
        'server': ['subnet'],
        'router': ['outside'],
        'gateway': ['elsewhere', 'inside', 'outside'],
        'route': ['elsewhere', 'gateway', 'inside'],
        'routes': ['elsewhere', 'inside'],
        'ip': ['gateway', 'inside', 'router'],
        'association': ['elsewhere'],
    }
