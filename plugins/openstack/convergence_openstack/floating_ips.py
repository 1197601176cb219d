"""Floating IPs, and where they lead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import Answer, Call, Done, ObjectNotFound, Observed
from convergence.resources.values import named
from convergence_openstack.declared.ports import (
    FloatingIPAssociationAttributes,
    FloatingIPAssociationProperties,
    FloatingIPAttributes,
    FloatingIPProperties,
)
from convergence_openstack.kind import CloudType, Shown, of_network
from convergence_openstack.lookups import NETWORK, PORT, SUBNET, Sort
from convergence_openstack.networks import NeutronType
from convergence_openstack.task import Task, at_work

LED = 'led'
"""In the private data: floating IPs that updates have led somewhere, or were about to, with the ports."""


class FloatingIP(NeutronType):
    """A floating IP of Neutron."""

    Properties, Attributes = FloatingIPProperties, FloatingIPAttributes
    collection = of_network('floatingips', 'floatingip')
    sorts: ClassVar[Mapping[str, Sort]] = {'floating_network': NETWORK, 'floating_subnet': SUBNET, 'port_id': PORT}
    sent: ClassVar[Mapping[str, str]] = {
        'floating_network': 'floating_network_id',
        'floating_subnet': 'subnet_id',
        'port_id': 'port_id',
        'fixed_ip_address': 'fixed_ip_address',
        'floating_ip_address': 'floating_ip_address',
        'dns_name': 'dns_name',
        'dns_domain': 'dns_domain',
    }
    later: ClassVar[tuple[str, ...]] = ()
    live: ClassVar[tuple[str, ...]] = ('port_id',)

    @override
    def replaces(self, changed: frozenset[str], before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        """Neutron does not change the names of an address."""
        return bool(changed & {'dns_name', 'dns_domain'})

    @override
    def change(self, task: Task, changed: frozenset[str], before: Mapping[str, Any]) -> Answer:
        """Send the whole association."""
        self._changed(task, _leading(task.given))
        return self.updated(task)


class FloatingIPAssociation(CloudType):
    """The association of a floating IP. A repeated request changes nothing."""

    Properties, Attributes = FloatingIPAssociationProperties, FloatingIPAssociationAttributes
    collection = of_network('floatingips', 'floatingip')
    sorts: ClassVar[Mapping[str, Sort]] = {'port_id': PORT}
    token_enforced = True
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[Any]) -> Answer:
        """Have it lead there."""
        with at_work(call, Action.CREATE) as task:
            self._read_properties(task)
            _lead(task, str(task.given['floatingip_id']), _leading(task.given))
            return Done(call.resource_id, task.changed_data())

    @override
    def implements(self, hook: str) -> bool:
        """No `find`: a second creation answers with the same object."""
        return hook != 'find' and super().implements(hook)

    @override
    def change(self, task: Task, changed: frozenset[str], before: Mapping[str, Any]) -> Answer:
        """Have others not lead there any more, and this one."""
        floating_ip = str(task.given['floatingip_id'])
        led = _led(task, before, task.given)
        task.data[LED] = [list(each) for each in led]
        task.record()
        for address, port in led:
            if address != floating_ip:
                _let_go(task, address, {port})
        _lead(task, floating_ip, _leading(task.given))
        task.data[LED] = []
        return self.updated(task)

    @override
    def delete(self, call: Call[Any]) -> Answer:
        """Remove the association, unless another one has replaced it."""
        if call.physical_id is None:
            return Done()
        with at_work(call, Action.DELETE) as task:
            led = _led(task, named(call.properties))
            for address in dict.fromkeys(address for address, _ in led):
                _let_go(task, address, {port for each, port in led if each == address})
            return Done()

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Return a healthy observation if the association exists."""
        if call.physical_id is None:
            raise ObjectNotFound(f'{call.name} was not made')
        with at_work(call, Action.CHECK) as task:
            there = self.shown(task).get('port_id')
            if not there:
                raise ObjectNotFound(f'{call.name}: the floating IP leads nowhere')
            return Observed(properties={'port_id': there})

    @override
    def shown(self, task: Task) -> Shown:
        """The floating IP."""
        address = named(task.call.properties)['floatingip_id']
        return task.saw(self.inner(task.cloud.ask('network', 'GET', f'/floatingips/{address}')))


def _leading(given: Mapping[str, Any]) -> dict[str, Json]:
    port = given.get('port_id')
    return {'port_id': port} | ({'fixed_ip_address': given.get('fixed_ip_address')} if port else {})


def _led(task: Task, *properties: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The floating IPs that the resource may have led somewhere, with the ports."""
    recorded = [(str(address), str(port)) for address, port in task.data.get(LED) or ()]
    return list(
        dict.fromkeys([*recorded, *((str(each['floatingip_id']), str(each['port_id'])) for each in properties)])
    )


def _lead(task: Task, address: str, where: Mapping[str, Json]) -> None:
    task.cloud.ask('network', 'PUT', f'/floatingips/{address}', {'floatingip': dict(where)})


def _let_go(task: Task, address: str, ports: set[str]) -> None:
    """Have a floating IP lead nowhere, if it leads to one of these ports; they may be called by their names."""
    try:
        shown = task.cloud.ask('network', 'GET', f'/floatingips/{address}')['floatingip']
        there = shown.get('port_id')
        if there and there in {task.cloud.id_of(PORT, each) for each in ports}:
            _lead(task, address, {'port_id': None})
    except HttpException as error:
        if error.status_code != 404:
            raise
