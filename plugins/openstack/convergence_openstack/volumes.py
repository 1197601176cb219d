"""Volumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import Answer, Done, FinalFailure, InProgress, TransientFailure
from convergence.resources.openstack.labels import LABEL
from convergence_openstack.declared.volumes import VolumeAttributes, VolumeProperties
from convergence_openstack.kind import FIRST_PAUSE_S, CloudType, Collection, Place, Shown, looks_of, pause_s
from convergence_openstack.lookups import BACKUP, IMAGE, VOLUME, VOLUME_SNAPSHOT, Sort
from convergence_openstack.task import Task

EXTENDS_IN_USE = '3.42'
"""The version of the API from which a volume can grow while a server has it."""

_AT_REST = ('available', 'in-use')


class Volume(CloudType):
    """A volume of Cinder."""

    Properties, Attributes = VolumeProperties, VolumeAttributes
    collection = Collection('block-storage', '/volumes', 'volume', 'volumes', Place.METADATA, listing='/volumes/detail')
    sorts: ClassVar[Mapping[str, Sort]] = {
        'snapshot_id': VOLUME_SNAPSHOT,
        'backup_id': BACKUP,
        'image': IMAGE,
        'source_volid': VOLUME,
    }
    sent: ClassVar[Mapping[str, str]] = {
        'name': 'name',
        'description': 'description',
        'availability_zone': 'availability_zone',
        'size': 'size',
        'snapshot_id': 'snapshot_id',
        'image': 'imageRef',
        'source_volid': 'source_volid',
        'volume_type': 'volume_type',
        'metadata': 'metadata',
        'multiattach': 'multiattach',
    }
    later: ClassVar[tuple[str, ...]] = ('read_only',)
    live: ClassVar[tuple[str, ...]] = ('name', 'description', 'size')
    removal_takes_time = True

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Check the source of its contents, and its size."""
        sources = [name for name in ('snapshot_id', 'source_volid', 'image', 'backup_id') if given.get(name)]
        if len(sources) > 1:
            return f'{" and ".join(sources)} exclude each other; give one of them'
        if not sources and given.get('size') is None:
            return 'it needs a size, unless it is made from a snapshot, a volume, an image or a backup; give size'
        if sources == ['image'] and given.get('size') is None:
            return 'a volume that is made from an image needs a size; give size'
        return None

    @override
    def body(self, task: Task) -> dict[str, Any]:
        """Multiattach is said by types of volumes nowadays, and refused elsewhere; a backup says how large it is."""
        body = super().body(task)
        body = {key: value for key, value in body.items() if key != 'multiattach' or value}
        backup = task.given.get('backup_id')
        if backup and 'size' not in body:
            body['size'] = task.cloud.ask('block-storage', 'GET', f'/backups/{backup}')['backup']['size']
        return body

    @override
    def post(self, task: Task, body: Any) -> Any:
        """Return the body with the hints for the scheduler beside the volume."""
        given = task.given
        if given.get('scheduler_hints'):
            body = {**body, 'OS-SCH-HNT:scheduler_hints': given['scheduler_hints']}
        return super().post(task, body)

    @override
    def is_built(self, shown: Shown) -> bool:
        """Available, or with a server already."""
        if self.is_broken(shown):
            raise FinalFailure(
                f'the volume {shown["id"]} is {shown["status"]}; see why with "openstack volume message list", '
                'then update the stack: another one is made'
            )
        return shown['status'] in _AT_REST

    @override
    def is_broken(self, shown: Shown) -> bool:
        """The states of Cinder that begin with this word."""
        return str(shown.get('status', '')).startswith('error')

    @override
    def waited(self, task: Task, shown: Shown, looks: int) -> Answer:
        """A volume that is made from a backup is filled when it is there."""
        answer = super().waited(task, shown, looks)
        if isinstance(answer, InProgress) or not task.given.get('backup_id'):
            return answer
        return InProgress({'step': 'restore', 'looks': 0}, answer.physical_id, answer.data, 0.0)

    @override
    def remove(self, task: Task) -> None:
        """While a server lets it go it cannot be removed."""
        try:
            super().remove(task)
        except HttpException as error:
            if error.status_code == 400:
                raise TransientFailure(f'{task.call.name}: the volume is in use still: {error.details}') from error
            raise

    @override
    def put(self, task: Task, name: str, shown: Shown | None) -> None:
        """Set if the volume is read-only."""
        self._act(task, 'os-update_readonly_flag', {'readonly': bool(task.given['read_only'])})

    @override
    def replaces(self, changed: frozenset[str], before: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        """A volume cannot shrink."""
        if 'size' in changed and given.get('size') and before.get('size'):
            return bool(given['size'] < before['size'])
        return False

    @override
    def change(self, task: Task, changed: frozenset[str], before: Mapping[str, Any]) -> Answer:
        """Name and metadata, then type, then size, then another backup; the last three take their time."""
        shown = self.shown(task)
        body: dict[str, Any] = {
            name: task.default_name() if name == 'name' and task.given[name] is None else task.given[name] or ''
            for name in ('name', 'description')
            if name in changed
        }
        if 'metadata' in changed:
            label = {key: value for key, value in shown['metadata'].items() if key == LABEL}
            self.ask(task, 'PUT', '/metadata', {'metadata': {**(task.given['metadata'] or {}), **label}})
        if body:
            shown = self._changed(task, body)
        if 'read_only' in changed:
            self.put(task, 'read_only', shown)
        if 'backup_id' in changed and task.given['backup_id']:
            return InProgress({'step': 'restore', 'looks': 0}, data=task.data, poll_after_s=0.0)
        return self._grown(task, 0)

    @override
    def go_on(self, task: Task, action: Action, progress: Mapping[str, Any]) -> Answer:
        """Poll the last request, and send the next one."""
        if progress['step'] in ('restore', 'restoring'):
            return self._restored(task, action, progress)
        return self._grown(task, looks_of(progress))

    @override
    def read(self, task: Task, shown: Shown, name: str) -> Json:
        """Numbers as texts, and lists as texts, where the field has always had them so."""
        metadata = {key: value for key, value in (shown.get('metadata') or {}).items() if key != LABEL}
        match name:
            case 'display_name':
                return str(shown['name'])
            case 'display_description':
                return shown.get('description')
            case 'metadata':
                return json.dumps(metadata)
            case 'metadata_values':
                return metadata
            case 'attachments':
                return str(shown.get('attachments'))
            case 'attachments_list':
                return list(shown.get('attachments') or ())
            case 'multiattach':
                return bool(shown.get(name))
        value = shown.get(name)
        return value if value is None or name == 'status' else str(value)

    def _grown(self, task: Task, looks: int) -> Answer:
        """Send one request after the other, each when the volume is at rest; finished changes are not requested."""
        shown, given = self.shown(task), task.given
        if self.is_broken(shown):
            raise FinalFailure(
                f'{task.call.name}: the volume {shown["id"]} is {shown["status"]} behind the change; see why with '
                '"openstack volume message list"'
            )
        if shown['status'] not in _AT_REST:
            return InProgress({'step': 'change', 'looks': looks + 1}, data=task.data, poll_after_s=pause_s(looks))
        if (
            given.get('volume_type')
            and shown['volume_type'] != given['volume_type']
            and not self._is_of_type(task, shown)
        ):
            self._act(task, 'os-retype', {'new_type': given['volume_type'], 'migration_policy': 'on-demand'})
        elif given.get('size') and shown['size'] < given['size']:
            in_use = {'microversion': EXTENDS_IN_USE} if shown['status'] == 'in-use' else {}
            self._act(task, 'os-extend', {'new_size': given['size']}, **in_use)
        else:
            return self.updated(task)
        return InProgress({'step': 'change', 'looks': 1}, data=task.data, poll_after_s=FIRST_PAUSE_S)

    def _is_of_type(self, task: Task, shown: Shown) -> bool:
        """Return True if the volume has the desired type: the volume shows its name, the properties give the id."""
        found = task.cloud.there('block-storage', f'/types/{task.given["volume_type"]}')
        return found is not None and found['volume_type']['name'] == shown['volume_type']

    def _restored(self, task: Task, action: Action, progress: Mapping[str, Any]) -> Answer:
        """Fill it from a backup. To do that twice is to do it once."""
        shown, looks = self.shown(task), looks_of(progress)
        if not self.is_built(shown):
            return InProgress({'step': 'restoring', 'looks': looks + 1}, poll_after_s=pause_s(looks))
        if progress['step'] == 'restoring':
            return self._grown(task, 0) if action is Action.UPDATE else Done(task.object_id, task.changed_data())
        path = f'/backups/{task.given["backup_id"]}/restore'
        task.cloud.ask('block-storage', 'POST', path, {'restore': {'volume_id': task.object_id}})
        return InProgress({'step': 'restoring', 'looks': 1}, poll_after_s=FIRST_PAUSE_S)

    def _act(self, task: Task, name: str, body: Mapping[str, Any], **options: Any) -> None:
        path = f'{self.collection.path}/{task.object_id}/action'
        task.cloud.ask(self.collection.service, 'POST', path, {name: dict(body)}, **options)
