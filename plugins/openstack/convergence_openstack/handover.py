"""The interfaces that a server releases for its replacement, and reclaims if it stays in use."""

from __future__ import annotations

from typing import Any

from openstack.exceptions import HttpException

from convergence.resources.contract import TransientFailure
from convergence_openstack.interfaces import attach, detach, entries, interfaces, made_ports
from convergence_openstack.task import Task

HAD = 'had'
"""Key in the private data: the released interfaces, in the form of Nova's request."""


def give(task: Task) -> None:
    """Detach from a server the ports of its template, and interfaces with an address that the template names.

    :raises TransientFailure: it still has one of them.
    """
    had, going = _had(task)
    if HAD not in task.data:
        task.data[HAD] = had
        task.record()
    for port_id in going:
        detach(task, port_id)
    if going:
        raise TransientFailure(f'{task.call.name}: the server has not released its ports yet')
    for port_id, _ in _own(task.data[HAD]):
        task.cloud.ask('network', 'PUT', f'/ports/{port_id}', {'port': {'fixed_ips': []}})


def take(task: Task) -> None:
    """Give a server the detached interfaces back.

    :raises TransientFailure: another server still has one of them.
    """
    had: list[dict[str, Any]] = task.data.get(HAD) or []
    for port_id, addresses in _own(had):
        try:
            task.cloud.ask('network', 'PUT', f'/ports/{port_id}', {'port': {'fixed_ips': addresses}})
        except HttpException as error:
            if error.status_code in (400, 409):
                raise TransientFailure(f'{task.call.name}: another port has its address still') from error
            raise
    if had:
        live = interfaces(task)
        ports = {each['port_id'] for each in live}
        networks = [(each['net_id'], address['ip_address']) for each in live for address in each.get('fixed_ips') or ()]
        for one in had:
            if 'port' in one and one['port'] not in ports and 'addresses' not in one:
                attach(task, one)
            if 'uuid' in one and (one['uuid'], one['fixed_ip']) not in networks:
                attach(task, one)
    if HAD in task.data:
        del task.data[HAD]
        task.record()


def _own(had: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Ports that were made for the server, with their addresses."""
    return [(one['port'], one['addresses']) for one in had if 'addresses' in one]


def _had(task: Task) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the interfaces to give back, and the ports to detach."""
    wanted = entries(task.given)
    named = {str(each['port']) for each in wanted if each.get('port')}
    addresses = {str(each['fixed_ip']) for each in wanted if each.get('fixed_ip') and not each.get('port')}
    own = {str(each['id']): each for each in made_ports(task)} if addresses else {}
    had: list[dict[str, Any]] = []
    going: list[str] = []
    for each in interfaces(task):
        port_id, there = str(each['port_id']), [str(one['ip_address']) for one in each.get('fixed_ips') or ()]
        if port_id in named:
            had.append({'port': port_id})
            going.append(port_id)
        elif port_id in own:
            had.append({'port': port_id, 'addresses': [dict(one) for one in own[port_id]['fixed_ips']]})
        elif addresses & set(there):
            had.append({'uuid': each['net_id'], 'fixed_ip': next(iter(addresses & set(there)))})
            going.append(port_id)
    return had, going
