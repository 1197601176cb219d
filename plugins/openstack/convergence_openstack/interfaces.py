"""The networks of a server: the requested interfaces, the present ones, and the ports that are made for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openstack.exceptions import HttpException

from convergence.resources.contract import TransientFailure
from convergence.resources.openstack.labels import label
from convergence_openstack.lookups import SECURITY_GROUP
from convergence_openstack.ports import PLAIN, address_pairs
from convergence_openstack.task import Task

MADE_PORTS = 'ports'
"""In the private data: ports were made for the server, or were about to be. They carry its label."""

NAMED_PORTS = 'named'
"""Key in the private data during an update: ports of templates, which must not count as made by Nova."""

Entry = Mapping[str, Any]
"""One of the networks in a template."""

Interface = Mapping[str, Any]
"""An interface of a server, as Nova shows it."""


def entries(given: Mapping[str, Any]) -> list[Entry]:
    """Return the single networks of a template, without those that the service is to allocate."""
    return [each for each in given.get('networks') or () if each and not each.get('allocate_network')]


def allocation(given: Mapping[str, Any]) -> str | None:
    """``none`` or ``auto`` if Nova manages the networks; None: the template names them."""
    told = [each['allocate_network'] for each in given.get('networks') or () if each and each.get('allocate_network')]
    if told:
        return str(told[0])
    return None if entries(given) else 'auto'


def needs_own_port(entry: Entry) -> bool:
    """Return True if a port must be made for it, because Nova does not accept its details."""
    return not entry.get('port') and bool(entry.get('subnet') or entry.get('port_extra_properties'))


def wanted(task: Task) -> str | list[dict[str, Any]]:
    """Return the networks for Nova's request; make the ports that the server needs."""
    allocated = allocation(task.given)
    if allocated is not None:
        return allocated
    told = []
    for number, entry in enumerate(entries(task.given)):
        port = entry.get('port') or (own_port(task, number, entry) if needs_own_port(entry) else None)
        one: dict[str, Any] = {'port': port} if port else {'uuid': entry['network']}
        if not port and entry.get('fixed_ip'):
            one['fixed_ip'] = entry['fixed_ip']
        told.append(one | ({'tag': entry['tag']} if entry.get('tag') else {}))
    return told


def made_ports(task: Task) -> list[Mapping[str, Any]]:
    """The ports that carry the label of the server, attached or not."""
    return list(task.cloud.listed('network', '/ports', 'ports', description=label(task.call.token)))


def own_port(task: Task, number: int, entry: Entry) -> str:
    """The id of the port for an entry, which is made unless it is there."""
    name = f'{task.call.name}-port-{number}'
    body = _port(task, entry) | {'name': name, 'description': label(task.call.token)}
    if task.data.get(MADE_PORTS):
        for port in made_ports(task):
            if port['name'] == name and _fits(port, body):
                return str(port['id'])
    else:
        task.data[MADE_PORTS] = True
        task.record()
    return str(task.cloud.ask('network', 'POST', '/ports', {'port': body})['port']['id'])


def remove_made_ports(task: Task) -> None:
    """Remove the ports that were made for the server, by whichever package."""
    if not (task.data.get(MADE_PORTS) or task.data.get('internal_ports')):
        return
    for port in made_ports(task):
        task.cloud.remove('network', f'/ports/{port["id"]}')


def interfaces(task: Task) -> list[Interface]:
    """Return the interfaces of the server."""
    found: list[Interface] = task.cloud.ask('compute', 'GET', f'/servers/{task.object_id}/os-interface')[
        'interfaceAttachments'
    ]
    return found


def settle(task: Task) -> bool:
    """Take the next step from the present interfaces of a server to the desired ones. Return True if they are reached.

    It starts from the present interfaces, so finished steps are not repeated.
    """
    allocated = allocation(task.given)
    if allocated == 'auto':
        return True
    live = interfaces(task)
    asked = wanted(task) if allocated is None else []
    assert not isinstance(asked, str)
    missing, kept = _compared(asked, live, set(task.data.get(NAMED_PORTS) or ()))
    surplus = [each['port_id'] for each in live if each['port_id'] not in kept]
    for port_id in surplus:
        detach(task, port_id)
    if surplus:
        return False
    for one in missing:
        attach(task, one)
    if missing:
        return False
    if task.data.get(MADE_PORTS):
        for port in made_ports(task):
            if port['id'] not in kept:
                task.cloud.remove('network', f'/ports/{port["id"]}')
    return True


def keep_named(task: Task, before: Mapping[str, Any]) -> None:
    """Remember the ports that templates name, before and now, until an update has succeeded."""
    ports = {str(each['port']) for given in (before, task.given) for each in entries(given) if each.get('port')}
    named = sorted(ports | set(task.data.get(NAMED_PORTS) or ()))
    if named != (task.data.get(NAMED_PORTS) or []):
        task.data[NAMED_PORTS] = named
        task.record()


def attach(task: Task, one: Mapping[str, Any]) -> None:
    """Give the server a port, or one in a network."""
    if one.get('port'):
        body: dict[str, Any] = {'port_id': one['port']}
    else:
        body = {'net_id': one['uuid']}
        if one.get('fixed_ip'):
            body['fixed_ips'] = [{'ip_address': one['fixed_ip']}]
    try:
        task.cloud.ask('compute', 'POST', f'/servers/{task.object_id}/os-interface', {'interfaceAttachment': body})
    except HttpException as error:
        if error.status_code in (400, 409):
            raise TransientFailure(f'{task.call.name}: an interface cannot be attached yet: {error.details}') from error
        raise


def detach(task: Task, port_id: str) -> None:
    """Take a port from the server. That it is gone is no error, nor that it is about to go."""
    try:
        task.cloud.ask('compute', 'DELETE', f'/servers/{task.object_id}/os-interface/{port_id}')
    except HttpException as error:
        if error.status_code == 409:
            raise TransientFailure(f'{task.call.name}: an interface cannot be detached yet: {error.details}') from error
        if error.status_code not in (400, 404):
            raise


def floating_ips(task: Task, before: Mapping[str, Any]) -> None:
    """Associate floating IPs with their desired interfaces, and with no others."""
    after = {str(each['floating_ip']): each for each in entries(task.given) if each.get('floating_ip')}
    for gone in {str(each['floating_ip']) for each in entries(before) if each.get('floating_ip')} - set(after):
        task.cloud.ask('network', 'PUT', f'/floatingips/{gone}', {'floatingip': {'port_id': None}})
    if not after:
        return
    live = interfaces(task)
    for address, entry in after.items():
        port = next(_matching(entry, live), None)
        if port is not None:
            task.cloud.ask('network', 'PUT', f'/floatingips/{address}', {'floatingip': {'port_id': port['port_id']}})


def _compared(
    asked: Sequence[Mapping[str, Any]], live: Sequence[Interface], named: set[str]
) -> tuple[list[Mapping[str, Any]], set[str]]:
    """Return the missing interfaces, and the ports that stay."""
    kept = {str(one['port']) for one in asked if one.get('port')}
    free = [each for each in live if each['port_id'] not in kept | named]
    missing = [one for one in asked if one.get('port') and one['port'] not in {each['port_id'] for each in live}]
    for one in asked:
        if one.get('port'):
            continue
        fitting = next((each for each in free if _is_in(each, one['uuid'], one.get('fixed_ip'))), None)
        if fitting is None:
            missing.append(one)
        else:
            free.remove(fitting)
            kept.add(str(fitting['port_id']))
    return missing, kept


def _matching(entry: Entry, live: Sequence[Interface]) -> Iterator[Interface]:
    for each in live:
        if entry.get('port'):
            if each['port_id'] == entry['port']:
                yield each
        elif entry.get('network') in (None, each['net_id']) and _is_in(each, each['net_id'], entry.get('fixed_ip')):
            yield each


def _is_in(interface: Interface, network: str, address: str | None) -> bool:
    addresses = [each.get('ip_address') for each in interface.get('fixed_ips') or ()]
    return interface['net_id'] == network and (not address or address in addresses)


def _port(task: Task, entry: Entry) -> dict[str, Any]:
    """The port for an entry in the words of the API."""
    more = entry.get('port_extra_properties') or {}
    body: dict[str, Any] = {key: more[name] for name, key in PLAIN.items() if more.get(name) is not None}
    if body.get('allowed_address_pairs'):
        body['allowed_address_pairs'] = address_pairs(body['allowed_address_pairs'])
    network = entry.get('network')
    if not network:
        network = task.cloud.ask('network', 'GET', f'/subnets/{entry["subnet"]}')['subnet']['network_id']
    body['network_id'] = network
    address = {'subnet_id': entry.get('subnet'), 'ip_address': entry.get('fixed_ip')}
    told = {key: value for key, value in address.items() if value}
    if more.get('no_fixed_ips'):
        body['fixed_ips'] = []
    elif told:
        body['fixed_ips'] = [told]
    groups = task.given.get('security_groups')
    if groups and more.get('port_security_enabled') is not False:
        body['security_groups'] = [task.cloud.id_of(SECURITY_GROUP, str(each)) for each in groups]
    return body | (more.get('value_specs') or {})


def _fits(port: Mapping[str, Any], wanted_body: Mapping[str, Any]) -> bool:
    """Return True if a port equals one that would be made for the network."""
    if port['network_id'] != wanted_body['network_id']:
        return False
    there = [dict(each) for each in port['fixed_ips']]
    return all(any(each.items() <= one.items() for one in there) for each in wanted_body.get('fixed_ips') or ())
