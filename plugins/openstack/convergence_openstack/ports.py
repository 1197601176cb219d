"""Ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import Call, FinalFailure, TransientFailure
from convergence_openstack.declared.ports import PortAttributes, PortProperties
from convergence_openstack.kind import Shown, of_network
from convergence_openstack.lookups import NETWORK, QOS_POLICY, SECURITY_GROUP, SUBNET, Sort
from convergence_openstack.networks import NeutronType
from convergence_openstack.task import Task, at_work

HAD = 'had'
"""In the private data: the addresses that a port had before it gave them to the one that replaces it."""

PLAIN = {
    'name': 'name',
    'admin_state_up': 'admin_state_up',
    'device_id': 'device_id',
    'device_owner': 'device_owner',
    'mac_address': 'mac_address',
    'binding:vnic_type': 'binding:vnic_type',
    'port_security_enabled': 'port_security_enabled',
    'qos_policy': 'qos_policy_id',
    'dns_name': 'dns_name',
    'propagate_uplink_status': 'propagate_uplink_status',
    'security_groups': 'security_groups',
    'allowed_address_pairs': 'allowed_address_pairs',
}
"""Request keys of properties that ports share with ports made for servers."""


def fixed_ips(given: Any) -> list[dict[str, Any]]:
    """Addresses in the words of the API."""
    pairs = (('subnet', 'subnet_id'), ('ip_address', 'ip_address'))
    return [{key: each[name] for name, key in pairs if each.get(name)} for each in given or () if each]


def address_pairs(given: Any) -> list[dict[str, Any]]:
    """Return further addresses, without fields that are not given."""
    return [{key: value for key, value in each.items() if value is not None} for each in given or () if each]


class Port(NeutronType):
    """A port of Neutron."""

    Properties, Attributes = PortProperties, PortAttributes
    collection = of_network('ports', 'port')
    sorts: ClassVar[Mapping[str, Sort]] = {
        'network': NETWORK,
        'fixed_ips.subnet': SUBNET,
        'security_groups': SECURITY_GROUP,
        'qos_policy': QOS_POLICY,
    }
    sent: ClassVar[Mapping[str, str]] = {**PLAIN, 'network': 'network_id', 'fixed_ips': 'fixed_ips'}
    live: ClassVar[tuple[str, ...]] = ('name', 'admin_state_up', 'port_security_enabled')

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Addresses and none of them; security without its being enforced."""
        if given.get('no_fixed_ips') and given.get('fixed_ips'):
            return 'fixed_ips and no_fixed_ips exclude each other; give one of them'
        if given.get('port_security_enabled') is False and (
            given.get('security_groups') or given.get('allowed_address_pairs')
        ):
            return 'without port_security_enabled it has no security_groups and no allowed_address_pairs'
        return None

    @override
    def replaces(self, changed: frozenset[str], before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        """Return True if the user's policy replaces the port."""
        return given.get('replacement_policy') == 'REPLACE_ALWAYS'

    @override
    def body(self, task: Task) -> dict[str, Any]:
        """Leave out empty properties: some users may not send them."""
        body = super().body(task)
        body = {key: value for key, value in body.items() if value != '' or key not in ('device_id', 'device_owner')}
        return self._worded(task.given, body, frozenset(body))

    @override
    def cleared(self, task: Task, name: str) -> Json:
        """Return the value by which Neutron means "not given"."""
        unsaid: dict[str, Json] = {
            **{key: [] for key in ('security_groups', 'allowed_address_pairs')},
            **dict.fromkeys(('device_id', 'device_owner', 'dns_name'), ''),
            'port_security_enabled': True,
            'binding:vnic_type': 'normal',
        }
        return unsaid[name] if name in unsaid else super().cleared(task, name)

    @override
    def _put_changed(self, task: Task, changed: frozenset[str]) -> Shown | None:
        worded = self._worded(task.given, task.given, changed)
        task.given.update({name: worded[name] for name in ('fixed_ips', 'allowed_address_pairs') if name in worded})
        if 'no_fixed_ips' in changed and not task.given.get('fixed_ips'):
            # Neutron assigns an address only on request: request one of any subnet.
            changed |= {'fixed_ips'}
            task.given['fixed_ips'] = [] if task.given.get('no_fixed_ips') else self._any_address(task)
        elif task.given.get('fixed_ips') is None:
            changed -= {'fixed_ips'}  # the port keeps its addresses
        return super()._put_changed(task, changed)

    @override
    def read(self, task: Task, shown: Shown, name: str) -> Json:
        """Its network and its subnets are objects of their own."""
        if name == 'network':
            found: Json = task.cloud.ask('network', 'GET', f'/networks/{shown["network_id"]}')['network']
            return found
        if name == 'subnets':
            ids = (each['subnet_id'] for each in shown['fixed_ips'])
            return [task.cloud.ask('network', 'GET', f'/subnets/{each}')['subnet'] for each in dict.fromkeys(ids)]
        return super().read(task, shown, name)

    @override
    def release_for_replacement(self, call: Call[Any]) -> None:
        """Another port is about to be made, perhaps with its addresses."""
        with at_work(call, Action.DELETE) as task:
            had = [dict(each) for each in self.shown(task)['fixed_ips']]
            if HAD not in task.data:
                task.data[HAD] = had
                task.record()
            if had:
                self._changed(task, {'fixed_ips': []})

    @override
    def reclaim(self, call: Call[Any]) -> None:
        """Give the port its addresses back."""
        if HAD not in call.data:
            return
        with at_work(call, Action.DELETE) as task:
            if task.data[HAD]:
                try:
                    self._changed(task, {'fixed_ips': task.data[HAD]})
                except HttpException as error:
                    if error.status_code in (400, 409):
                        raise TransientFailure(
                            f'{call.name}: another port has its address still: {error.details}'
                        ) from error
                    raise
            del task.data[HAD]
            task.record()

    def _worded(self, given: Mapping[str, Any], told: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
        """The lists of a port in the words of the API."""
        body = dict(told)
        if given.get('fixed_ips') is not None and 'fixed_ips' in names:
            body['fixed_ips'] = fixed_ips(given['fixed_ips'])
        if given.get('allowed_address_pairs') is not None and 'allowed_address_pairs' in names:
            body['allowed_address_pairs'] = address_pairs(given['allowed_address_pairs'])
        if given.get('no_fixed_ips') and told is not given:
            body['fixed_ips'] = []
        return body

    def _any_address(self, task: Task) -> list[dict[str, Any]]:
        subnets = list(task.cloud.listed('network', '/subnets', 'subnets', network_id=task.given['network']))
        if not subnets:
            raise FinalFailure(f'{task.call.name}: its network has no subnet from which it could get an address')
        return [{'subnet_id': subnets[0]['id']}]
