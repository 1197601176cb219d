"""Continues updates that a dead worker, or a failure, left half done.

The row stores the values that each attempt tries to set until one succeeds (`Bridged.tried`). So the next attempt, and
a rollback, starts from every state that the object may have, and not only from the last success.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from heat.engine.clients.progress import VolumeAttachProgress, VolumeDetachProgress
from heat.engine.rsrc_defn import ResourceDefinition
from novaclient.exceptions import ClientException
from typing_extensions import override

from convergence.resources.contract import TransientFailure
from convergence.resources.openstack.labels import label
from convergence_heat.bridged import Bridged

BY_DIFFERENCE = frozenset(
    {
        'OS::Glance::Image',
        'OS::Glance::WebImage',
        'OS::Keystone::Group',
        'OS::Keystone::GroupRoleAssignment',
        'OS::Keystone::User',
        'OS::Keystone::UserRoleAssignment',
        'OS::Neutron::Trunk',
    }
)
"""Types that add and remove the difference of two lists. A difference from the tried values also undoes those."""

_NICS = 'nics'
"""Key in the stored data of a server: the ports that it is known to have during a change of its networks."""

_PORTS = '$ports'
"""Key in the private data: ports for a server may exist although their ids were not stored."""


class MovedAttachment(Bridged):
    """A volume at a server."""

    properties: Any

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any) -> Any:
        """Detach it wherever it is, and attach it; neither, where it is attached by now."""
        moves: Any = super()
        if not self.tried:
            return moves.handle_update(json_snippet, tmpl_diff, prop_diff)
        before = dict(self.properties)
        wanted = {**before, **prop_diff}
        places = [before, *({**before, **each} for each in self.tried)]
        strays = [place for place in places if _place(place) != _place(wanted) and self._attached(place)]
        attached = None if strays or wanted['mountpoint'] != before['mountpoint'] else self._attached(wanted)
        if attached is not None:
            left, reached = VolumeDetachProgress('', '', '', True), VolumeAttachProgress(*_place(wanted), None)
            reached.called = attached
            return left, reached
        if strays:
            self.properties, self.resource_id = strays[0], self._attached(strays[0])
        return moves.handle_update(json_snippet, tmpl_diff, wanted)

    def _attached(self, place: Mapping[str, Any]) -> str | None:
        """The id of the attachment in a place: that of the volume. Nova does not say so any more."""
        one: Any = self
        with one.client_plugin('nova').ignore_not_found:
            return str(one.client('nova').volumes.get_server_volume(*_place(place)).volumeId)
        return None


class AnyNetwork(Bridged):
    """A server, or an instance: on any network of its project, where nothing is said."""

    def _build_nics(self, *arguments: Any, **options: Any) -> Any:
        """Send the networks explicitly: APIs before 2.37 assumed them, and Nova's client requires them."""
        builds: Any = super()
        nics = builds._build_nics(*arguments, **options)
        return nics or ('auto' if builds.client_plugin().is_version_supported('2.37') else None)


class NetworkedServer(AnyNetwork):
    """A server with its interfaces, its size, and ports that the class makes for it."""

    properties: Any

    @override
    def found_again(self) -> None:
        """Know the ports that were made for it."""
        if self._call.data.get(_PORTS):
            for port in self._made_ports():
                self._inner._data_update_ports(port['id'], 'add')

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any) -> Any:
        """Wait until Nova has finished an earlier attempt; until then it refuses all other changes.

        :raises TransientFailure: it has not yet.
        """
        if self.tried:
            self._settle()
        changes: Any = super()
        return changes.handle_update(json_snippet, tmpl_diff, prop_diff)

    def handle_delete(self) -> Any:
        """Remove its ports even where nothing else is left of it."""
        if self.resource_id is None:
            self.found_again()
        deleting: Any = super()
        progress = deleting.handle_delete()
        if progress is None:
            self._inner._delete_internal_ports()
        return progress

    def check_update_complete(self, updaters: Any) -> Any:
        """Continue; a step that was started and not stored is not started again."""
        goes_on: Any = super()
        step = next((each for each in updaters if not each.complete), None)
        if step is None or step.called:
            return goes_on.check_update_complete(updaters)
        if step.handler == 'verify_resize' and self._server().status == 'ACTIVE':
            step.called = True
            return False
        if step.handler != 'interface_attach' or step.handler_kwargs.get('port_id'):
            return goes_on.check_update_complete(updaters)
        known = json.loads(self.data().get(_NICS) or '[]')
        wanted = step.handler_kwargs.get('net_id')
        new = [
            each
            for each in self._server().interface_list()
            if each.port_id not in known and wanted in (None, each.net_id)
        ]
        if new:
            step.called = True
            self._secure(new[0].port_id, step.handler_kwargs.get('security_groups'))
            known.append(new[0].port_id)
        else:
            goes_on.check_update_complete(updaters)
            known = _ports(self._server().interface_list())
        self.data_set(_NICS, json.dumps(known))
        return False

    def _update_networks(self, server: Any, after_props: Any) -> Any:
        changes: Any = super()
        interfaces = self._server().interface_list()
        before = self.properties
        if self.tried:
            self.properties = {**before, 'networks': self._networks_there(interfaces)}
        try:
            updaters = changes._update_networks(server, after_props)
        finally:
            self.properties = before
        if self.tried:
            used = {each.handler_kwargs.get('port_id') for each in updaters} | set(_ports(interfaces))
            for port in self._made_ports():
                if port['id'] not in used:
                    self._inner._delete_internal_port(port['id'])
        self.data_set(_NICS, json.dumps(_ports(interfaces)))
        return updaters

    def _update_flavor(self, after_props: Any) -> Any:
        changes: Any = super()
        if self.tried:
            server = self._server()
            client = self._inner.client_plugin()
            wanted = client.get_flavor(after_props['flavor'])
            # The fields of a flavor depend on the version of the API of Nova.
            same = wanted.id == server.flavor.get('id') or wanted.name == server.flavor.get('original_name')
            if same:
                return []
        return changes._update_flavor(after_props)

    def _create_internal_port(self, net_data: Any, net_number: int, security_groups: Any = None) -> Any:
        known = {each['id'] for each in self._inner._data_get_ports()}
        fitting = self._inner._prepare_internal_port_kwargs(net_data, security_groups)
        for port in self._made_ports():
            same_name = port['name'] == f'{self._inner.name}-port-{net_number}'
            if port['id'] not in known and same_name and _fits(port, fitting):
                self._inner._data_update_ports(port['id'], 'add')
                return port['id']
        if _PORTS not in self._stored:
            self.keep_in_row(_PORTS)
        makes: Any = super()
        return makes._create_internal_port(net_data, net_number, security_groups)

    # --- existing objects --------------------------------------------------------------------------------------------

    @property
    def _inner(self) -> Any:
        """Itself, with the methods of Heat's class."""
        return self

    def _server(self) -> Any:
        return self._inner.client().servers.get(self.resource_id)

    def _settle(self) -> None:
        server = self._server()
        is_resized, task = server.status == 'VERIFY_RESIZE', getattr(server, 'OS-EXT-STS:task_state', None)
        if is_resized and task is None:
            with contextlib.suppress(ClientException):  # perhaps it is confirmed already, and Nova is not done with it
                server.confirm_resize()
        if is_resized or task is not None:
            raise TransientFailure(f'Nova is not done with what an earlier update has begun: {task or "a resize"}')

    def _made_ports(self) -> list[Any]:
        """The ports that were made for it, attached or not."""
        ports: list[Any] = self._inner.client('neutron').list_ports(description=label(self._call.token))['ports']
        return ports

    def _secure(self, port_id: str, groups: Any) -> None:
        """Put a port into security groups, as follows its making."""
        if groups:
            self._inner.client('neutron').update_port(port_id, {'port': {'security_groups': groups}})

    def _networks_there(self, interfaces: Any) -> list[Any]:
        """Return those of the former and the desired networks that the server has."""
        versions = [list(self.properties['networks'] or [])]
        versions += [self._inner_networks(each['networks']) for each in self.tried if 'networks' in each]
        if any(self._inner._str_network(each) for each in versions):
            return versions[0]
        all_of_them: list[Any] = []
        for version in versions:
            all_of_them += [copy.deepcopy(each) for each in version if each not in all_of_them]
        originals = copy.deepcopy(all_of_them)
        self._inner.update_networks_matching_iface_port(all_of_them, interfaces)
        live = _ports(interfaces)
        return [before for before, now in zip(originals, all_of_them, strict=True) if now['port'] in live]

    def _inner_networks(self, given: Any) -> list[Any]:
        one = self._inner
        definition = ResourceDefinition(one.name, one.t.resource_type, {**one.t._properties, 'networks': given})
        properties = definition.properties(one.properties_schema, one.context)
        one.translate_properties(properties, ignore_resolve_error=True)
        return list(properties['networks'] or [])


class SetOfRoutes(Bridged):
    """Routes that are added to those of a router."""

    properties: Any

    def handle_update(self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any) -> Any:
        """Add and remove only missing changes; the class refuses to add a route that exists."""
        updates: Any = super()
        if self.tried:
            one: Any = self
            before = dict(self.properties)
            shown = one.client().show_router(before['router'])
            there = {_route(each) for each in (shown.get('router') or shown)['routes']}
            versions = [before['routes'], *(each.get('routes') for each in self.tried)]
            ours = {_route(each) for version in versions for each in version or ()}
            kept = [{'destination': to, 'nexthop': by} for to, by in sorted(ours & there)]
            self.properties = {**before, 'routes': kept}
        return updates.handle_update(json_snippet, tmpl_diff, prop_diff)


OF_CLASSES: Mapping[str, type[Bridged]] = {
    'CinderVolumeAttachment': MovedAttachment,
    'ExtraRouteSet': SetOfRoutes,
    'Instance': AnyNetwork,
    'Server': NetworkedServer,
}
"""By the names of Heat's classes."""


def _place(properties: Mapping[str, Any]) -> tuple[str, str]:
    return properties['instance_uuid'], properties['volume_id']


def _ports(interfaces: Iterable[Any]) -> list[str]:
    return [each.port_id for each in interfaces]


def _route(given: Mapping[str, Any]) -> tuple[str, str]:
    return str(given['destination']), str(given['nexthop'])


def _fits(port: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return True if a port equals one that would be made for the network."""
    if port['network_id'] != wanted['network_id']:
        return False
    there = [dict(each) for each in port['fixed_ips']]
    return all(any(each.items() <= one.items() for one in there) for each in wanted.get('fixed_ips') or ())
