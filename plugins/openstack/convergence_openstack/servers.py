"""Servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import Answer, Call, Done, FinalFailure, InProgress, TransientFailure
from convergence.resources.openstack.labels import LABEL
from convergence_openstack import addresses, booting, handover, interfaces
from convergence_openstack.declared.servers import ServerAttributes, ServerProperties
from convergence_openstack.kind import (
    FIRST_PAUSE_S,
    CloudType,
    Collection,
    Place,
    Shown,
    looks_of,
    pause_s,
)
from convergence_openstack.lookups import FLAVOR, FLOATING_IP, IMAGE, NETWORK, PORT, QOS_POLICY, SUBNET, VOLUME, Sort
from convergence_openstack.lookups import VOLUME_SNAPSHOT as SNAPSHOT
from convergence_openstack.task import Task, at_work

MADE_WITH = '2.67'
"""The version of the API with which servers are made: disks have types, networks may be ``none``, there are tags."""

WITH_FILES = '2.56'
"""The last one that puts files into servers."""

SHOWN_WITH = '2.46'
"""The last microversion that shows the id of a flavor."""

REBUILT_WITH = '2.57'
"""The first one that takes other user data when a server is rebuilt."""

_BEFORE_IT_IS = ('BUILD', 'UNKNOWN')
_AT_REST = ('ACTIVE', 'SHUTOFF', 'SUSPENDED', 'PAUSED')
_GONE = ('DELETED', 'SOFT_DELETED')


class Server(CloudType):
    """A server of Nova."""

    Properties, Attributes = ServerProperties, ServerAttributes
    collection = Collection(
        'compute',
        '/servers',
        'server',
        'servers',
        Place.METADATA,
        listing='/servers/detail',
        microversion=SHOWN_WITH,
    )
    sorts: ClassVar[Mapping[str, Sort]] = {
        'flavor': FLAVOR,
        'image': IMAGE,
        'block_device_mapping.volume_id': VOLUME,
        'block_device_mapping.snapshot_id': SNAPSHOT,
        'block_device_mapping_v2.volume_id': VOLUME,
        'block_device_mapping_v2.snapshot_id': SNAPSHOT,
        'block_device_mapping_v2.image': IMAGE,
        'networks.network': NETWORK,
        'networks.subnet': SUBNET,
        'networks.port': PORT,
        'networks.floating_ip': FLOATING_IP,
        'networks.port_extra_properties.qos_policy': QOS_POLICY,
    }
    sent: ClassVar[Mapping[str, str]] = {
        'name': 'name',
        'flavor': 'flavorRef',
        'image': 'imageRef',
        'key_name': 'key_name',
        'availability_zone': 'availability_zone',
        'metadata': 'metadata',
        'config_drive': 'config_drive',
        'diskConfig': 'OS-DCF:diskConfig',
        'admin_pass': 'adminPass',
        'tags': 'tags',
    }
    live: ClassVar[tuple[str, ...]] = ('name',)
    removal_takes_time = True
    first_pause_s = 3.0

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Check the boot source and each of its networks."""
        if not booting.can_boot(given):
            return 'there is nothing to boot from; give image, or a disk with boot_index 0'
        networks = [each for each in given.get('networks') or () if each]
        if len(networks) > 1 and any(each.get('allocate_network') for each in networks):
            return 'allocate_network excludes other networks; give one of them'
        for each in networks:
            if not any(each.get(name) for name in ('network', 'port', 'subnet', 'allocate_network')):
                return 'each of its networks needs one of network, subnet, port and allocate_network'
            if each.get('port') and each.get('subnet'):
                return 'a port is in subnets already; leave subnet out, or port'
        return None

    @override
    def body(self, task: Task) -> dict[str, Any]:
        """With disks, networks and user data."""
        given = task.given
        body = super().body(task)
        body['metadata'] = _texts(given.get('metadata'))
        disks = booting.disks(given)
        if disks:
            body['block_device_mapping_v2'] = disks
        body['networks'] = interfaces.wanted(task)
        if given.get('security_groups') and not isinstance(body['networks'], str):
            body['security_groups'] = [{'name': each} for each in given['security_groups']]
        data = booting.user_data(task)
        if data:
            body['user_data'] = data
        if given.get('personality'):
            body['personality'] = [
                {'path': path, 'contents': booting.encoded(str(text))} for path, text in given['personality'].items()
            ]
        return body

    @override
    def post(self, task: Task, body: Any) -> Any:
        """Return the body with the hints for the scheduler beside the server."""
        hints = dict(task.given.get('scheduler_hints') or {})
        if task.given.get('reservation_id'):
            hints['reservation'] = task.given['reservation_id']
        if hints:
            body = {**body, 'os:scheduler_hints': hints}
        version = WITH_FILES if task.given.get('personality') else MADE_WITH
        return task.cloud.ask('compute', 'POST', '/servers', body, microversion=version)

    @override
    def made(self, task: Task, shown: Shown) -> Answer:
        """It is never ready when it has just begun to be made."""
        progress: dict[str, Json] = {'step': 'wait', 'looks': 1}
        return InProgress(progress, str(shown['id']), task.changed_data(), self.first_pause_s)

    @override
    def is_built(self, shown: Shown) -> bool:
        """It runs."""
        if shown['status'] == 'ERROR':
            fault = (shown.get('fault') or {}).get('message') or 'it does not say why'
            raise FinalFailure(
                f'Nova could not make the server {shown["id"]}: {fault}; repair the cause and update the stack: '
                'another one is made'
            )
        return shown['status'] not in _BEFORE_IT_IS

    @override
    def waited(self, task: Task, shown: Shown, looks: int) -> Answer:
        """Floating IPs lead to interfaces, which it has when it runs."""
        answer = super().waited(task, shown, looks)
        if isinstance(answer, Done):
            self._read_properties(task)
            interfaces.floating_ips(task, {})
        return answer

    @override
    def replaces(self, changed: frozenset[str], before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        """Return True if the policies of the template replace the server."""
        policies = {
            'flavor': 'flavor_update_policy',
            'image': 'image_update_policy',
            'user_data': 'user_data_update_policy',
        }
        if 'image' in changed and not (before.get('image') and given.get('image')):
            return True
        return any(name in changed and given.get(policy) == 'REPLACE' for name, policy in policies.items())

    @override
    def change(self, task: Task, changed: frozenset[str], before: Mapping[str, Any]) -> Answer:
        """Send the immediate changes first, then size, image and networks, each after the one before it is done."""
        slow = changed
        if 'user_data' in slow and task.given['user_data_update_policy'] != 'REBUILD':
            slow -= {'user_data'}
        if 'networks' in changed:
            interfaces.keep_named(task, before)
            interfaces.floating_ips(task, before)
        return self._go_on(task, {'changed': sorted(slow), 'begun': False, 'rebuilt': False, 'looks': 0})

    @override
    def go_on(self, task: Task, action: Action, progress: Mapping[str, Any]) -> Answer:
        """The next step."""
        if progress['step'] == 'until':
            return self._until(task, str(progress['status']), looks_of(progress))
        return self._go_on(task, progress)

    @override
    def suspend(self, call: Call[Any]) -> Answer:
        """Put it to rest."""
        return self._be(call, Action.SUSPEND, 'SUSPENDED', 'suspend')

    @override
    def resume(self, call: Call[Any]) -> Answer:
        """Wake it up."""
        return self._be(call, Action.RESUME, 'ACTIVE', 'resume')

    @override
    def release_for_replacement(self, call: Call[Any]) -> None:
        """Another server is about to be made, perhaps with its ports."""
        with at_work(call, Action.DELETE) as task:
            task.resolve(self.sorts)
            handover.give(task)

    @override
    def reclaim(self, call: Call[Any]) -> None:
        """Give the server its interfaces back."""
        with at_work(call, Action.DELETE) as task:
            handover.take(task)

    @override
    def read(self, task: Task, shown: Shown, name: str) -> Json:
        """Return an attribute; addresses have several forms."""
        match name:
            case 'first_address':
                return addresses.first(shown)
            case 'networks':
                return addresses.by_network(task, shown)
            case 'addresses':
                return addresses.whole(task, shown)
            case 'console_urls':
                return addresses.consoles(task)
            case 'instance_name':
                return shown.get('OS-EXT-SRV-ATTR:instance_name')
            case 'os_collect_config':
                return {}
        return super().read(task, shown, name)

    @override
    def delete(self, call: Call[Any]) -> Answer:
        """Remove it, and the ports that were made for it."""
        if call.physical_id is None and interfaces.MADE_PORTS in call.data:
            with at_work(call, Action.DELETE) as task:
                interfaces.remove_made_ports(task)
        return super().delete(call)

    @override
    def _gone(self, task: Task, looks: int) -> Answer:
        try:
            shown = self.shown(task)
        except HttpException as error:
            if error.status_code != 404:
                raise
            shown = {'status': _GONE[0]}
        if shown['status'] in _GONE:
            interfaces.remove_made_ports(task)
            return Done()
        # A server that could not be made, or resumed, is in error, too, until it is removed.
        return InProgress({'step': 'gone', 'looks': looks + 1}, poll_after_s=pause_s(looks))

    # --- steps --------------------------------------------------------------------------------------------------------

    def _go_on(self, task: Task, progress: Mapping[str, Any]) -> Answer:
        """Take the next step, derived from the present state of the server: finished steps are not repeated."""
        shown, given = self.shown(task), task.given
        status, doing = shown['status'], shown.get('OS-EXT-STS:task_state')
        changed, rebuilt = set(progress['changed']), bool(progress['rebuilt'])
        if status == 'ERROR':
            fault = (shown.get('fault') or {}).get('message') or 'it does not say why'
            raise FinalFailure(f'{task.call.name}: the server is in error behind the change: {fault}')
        if doing is None and status == 'VERIFY_RESIZE':
            self._confirm(task)
        elif doing is not None or status not in _AT_REST:
            return self._once_more(progress, looks_of(progress))
        elif not progress['begun'] and self._at_once(task, changed):
            return self._go_on(task, {**progress, 'begun': True})
        elif 'flavor' in changed and (shown.get('flavor') or {}).get('id') != given['flavor']:
            self._act(task, {'resize': {'flavorRef': given['flavor']}})
        elif not rebuilt and self._needs_rebuilding(shown, changed, given):
            self._rebuild(task, changed)
            return self._once_more({**progress, 'rebuilt': True}, 0)
        elif 'networks' in changed and not interfaces.settle(task):
            pass
        else:
            return self._updated(task, changed)
        return self._once_more(progress, 0)

    def _confirm(self, task: Task) -> None:
        """Confirm the new size. Nova shows no sign of a running confirmation, and refuses a second one."""
        try:
            self._act(task, {'confirmResize': None})
        except HttpException as error:
            if error.status_code != 400:
                raise

    def _at_once(self, task: Task, changed: set[str]) -> bool:
        """Change what takes no time; whether there was anything."""
        given, quick = task.given, changed & {'name', 'metadata', 'tags', 'admin_pass'}
        if 'name' in quick:
            self._changed(task, {'name': given['name'] or task.default_name()})
        if 'metadata' in quick:
            self._put_metadata(task)
        if 'tags' in quick:
            self.ask(task, 'PUT', '/tags', {'tags': list(given['tags'] or ())})
        if 'admin_pass' in quick and given['admin_pass']:
            self._act(task, {'changePassword': {'adminPass': given['admin_pass']}})
        return bool(quick)

    def _updated(self, task: Task, changed: set[str]) -> Answer:
        if 'networks' in changed:
            interfaces.floating_ips(task, {})
            task.data[interfaces.NAMED_PORTS] = []
        return self.updated(task)

    def _once_more(self, progress: Mapping[str, Any], looks: int) -> Answer:
        return InProgress({**progress, 'step': 'change', 'looks': looks + 1}, poll_after_s=pause_s(looks))

    def _needs_rebuilding(self, shown: Shown, changed: set[str], given: Mapping[str, Any]) -> bool:
        image = shown.get('image') or {}
        return 'user_data' in changed or ('image' in changed and image.get('id') != given['image'])

    def _rebuild(self, task: Task, changed: set[str]) -> None:
        given = task.given
        body: dict[str, Any] = {'imageRef': given['image']}
        if given['image_update_policy'] == 'REBUILD_PRESERVE_EPHEMERAL':
            body['preserve_ephemeral'] = True
        if given.get('admin_pass'):
            body['adminPass'] = given['admin_pass']
        if 'user_data' in changed:
            body['user_data'] = booting.user_data(task)
        version = REBUILT_WITH if 'user_data' in changed else SHOWN_WITH
        self._act(task, {'rebuild': body}, microversion=version)

    def _put_metadata(self, task: Task) -> None:
        metadata = _texts(task.given['metadata']) | {LABEL: task.call.token}
        try:
            self.ask(task, 'PUT', '/metadata', {'metadata': metadata})
        except HttpException as error:
            if error.status_code == 409:  # an earlier update is not done with it
                raise TransientFailure(f'{task.call.name}: {error.details}') from error
            raise

    def _be(self, call: Call[Any], action: Action, status: str, how: str) -> Answer:
        with at_work(call, action) as task:
            shown = self.shown(task)
            if shown['status'] == status:
                return Done()
            if shown.get('OS-EXT-STS:task_state') is None:
                self._act(task, {how: None})
            return InProgress({'step': 'until', 'status': status, 'looks': 0}, poll_after_s=FIRST_PAUSE_S)

    def _until(self, task: Task, status: str, looks: int) -> Answer:
        shown = self.shown(task)
        if shown['status'] == status:
            return Done()
        if shown['status'] == 'ERROR':
            raise FinalFailure(f'{task.call.name}: the server is in error, and does not become {status}')
        return InProgress({'step': 'until', 'status': status, 'looks': looks + 1}, poll_after_s=pause_s(looks))

    def _act(self, task: Task, body: Mapping[str, Any], microversion: str = SHOWN_WITH) -> None:
        """Request an action. Nova refuses it during another action; then it is retried."""
        try:
            path = f'/servers/{task.object_id}/action'
            task.cloud.ask('compute', 'POST', path, dict(body), microversion=microversion)
        except HttpException as error:
            if error.status_code == 409:
                raise TransientFailure(f'{task.call.name}: {error.details}') from error
            raise


def _texts(metadata: Mapping[str, Any] | None) -> dict[str, str]:
    """Nova keeps texts only."""
    return {key: booting.as_text(value) for key, value in (metadata or {}).items() if value is not None}
