"""The attributes of a server that show its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openstack.exceptions import HttpException

from convergence.core.model import Json
from convergence_openstack.interfaces import interfaces
from convergence_openstack.task import Task

CONSOLES = {
    'novnc': 'vnc',
    'xvpvnc': 'vnc',
    'spice-html5': 'spice',
    'rdp-html5': 'rdp',
    'serial': 'serial',
    'webmks': 'mks',
}
"""Types of consoles, with the protocol of each."""

_WITH_CONSOLES = '2.8'

Shown = Mapping[str, Any]


def first(shown: Shown) -> str:
    """The first address; empty: it has none."""
    return next((str(each['addr']) for each in _all(shown)), '')


def by_network(task: Task, shown: Shown) -> Json:
    """The addresses of each network, by its name and by its id."""
    named: dict[str, list[Json]] = {
        name: [each['addr'] for each in there] for name, there in (shown.get('addresses') or {}).items()
    }
    if not named:
        return {}
    ids = _network_ids(interfaces(task))
    by_id = {ids[str(told[0])]: told for told in named.values() if told and str(told[0]) in ids}
    return {**named, **by_id}


def whole(task: Task, shown: Shown) -> Json:
    """The same with the port, the subnets and the network of each."""
    told: dict[str, Any] = {
        name: [dict(each) for each in there] for name, there in (shown.get('addresses') or {}).items()
    }
    if not told:
        return {}
    live = interfaces(task)
    ports = {each['ip_address']: one['port_id'] for one in live for each in one.get('fixed_ips') or ()}
    ids = _network_ids(live)
    for name, there in list(told.items()):
        network_id = next((ids[each['addr']] for each in there if each['addr'] in ids), None)
        if network_id is None:
            continue
        network = task.cloud.ask('network', 'GET', f'/networks/{network_id}')['network']
        subnets = list(task.cloud.listed('network', '/subnets', 'subnets', network_id=network_id))
        for each in there:
            each |= {'port': ports.get(each['addr']), 'network': network, 'subnets': subnets}
        told[network_id] = told[name]
    return told


def consoles(task: Task) -> Json:
    """The address of a console of each type, or why there is none."""
    return {kind: _console(task, kind, protocol) for kind, protocol in CONSOLES.items()}


def _console(task: Task, kind: str, protocol: str) -> str:
    path = f'/servers/{task.object_id}/remote-consoles'
    try:
        made = task.cloud.ask(
            'compute',
            'POST',
            path,
            {'remote_console': {'type': kind, 'protocol': protocol}},
            microversion=_WITH_CONSOLES,
        )
    except HttpException as error:
        return f'There is no such console: {error.details}'
    return str(made['remote_console']['url'])


def _all(shown: Shown) -> list[Mapping[str, Any]]:
    return [each for there in (shown.get('addresses') or {}).values() for each in there]


def _network_ids(live: list[Mapping[str, Any]]) -> dict[str, str]:
    """The network of each address."""
    return {str(each['ip_address']): str(one['net_id']) for one in live for each in one.get('fixed_ips') or ()}
