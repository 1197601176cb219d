"""Images that the service fetches from somewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action
from convergence.resources.contract import Answer, Done, FinalFailure, ForeignObject, InProgress
from convergence.resources.openstack.labels import uuid_of
from convergence_openstack.declared.images import WebImageAttributes, WebImageProperties
from convergence_openstack.kind import CloudType, Collection, Place, Shown, looks_of, pause_s
from convergence_openstack.task import SHOWN, Task

PATCHED = 'application/openstack-images-v2.1-json-patch'
"""The content type of changes for Glance."""

_OWN_FORMATS = frozenset({'ami', 'ari', 'aki'})
_NOT_SAID = {'visibility': 'private', 'protected': False, 'tags': []}


class WebImage(CloudType):
    """An image of Glance, fetched by the service from an address."""

    Properties, Attributes = WebImageProperties, WebImageAttributes
    collection = Collection('image', '/images', '', 'images', Place.ID, change='PATCH')
    sent: ClassVar[Mapping[str, str]] = {
        name: name
        for name in (
            'name', 'id', 'min_disk', 'min_ram', 'protected', 'disk_format', 'container_format', 'tags', 'architecture',
            'kernel_id', 'ramdisk_id', 'os_distro', 'os_version', 'owner', 'visibility',
        )
    }  # fmt: skip
    later: ClassVar[tuple[str, ...]] = ('location', 'members')
    live: ClassVar[tuple[str, ...]] = ('protected', 'visibility')

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Formats that come together, and members that see it only where it is shared."""
        formats = (given.get('disk_format'), given.get('container_format'))
        if set(formats) & _OWN_FORMATS and formats[0] != formats[1]:
            return 'disk_format and container_format are the same where one of them is ami, ari or aki'
        if given.get('members') and given.get('visibility') != 'shared':
            return 'members need visibility: shared'
        return None

    @override
    def body(self, task: Task) -> dict[str, Any]:
        """With the user's own properties beside the others."""
        return {**super().body(task), **(task.given.get('extra_properties') or {})}

    @override
    def make(self, task: Task) -> Answer:
        """Make the image; an id that the template gives may belong to another creator."""
        try:
            return super().make(task)
        except HttpException as error:
            if error.status_code == 409 and task.given.get('id'):
                raise ForeignObject(f'the image {task.given["id"]} belongs to another creator') from error
            raise

    @override
    def labelled(self, task: Task) -> str | None:
        """By its id, which is made of the token unless the template gives one."""
        object_id = str(task.call.properties.id or uuid_of(task.call.token))
        return object_id if task.cloud.there('image', f'/images/{object_id}') is not None else None

    @override
    def put(self, task: Task, name: str, shown: Shown | None) -> None:
        """Have it fetched, unless that has begun; have those see it who are to."""
        if name == 'location':
            if shown is None or shown['status'] != 'queued' or shown.get('os_glance_importing_to_stores'):
                return
            how = {'name': 'web-download', 'uri': task.given['location']}
            try:
                self.ask(task, 'POST', '/import', {'method': how})
            except HttpException as error:
                if error.status_code != 409:  # it is on its way
                    raise
            return
        there = {each['member_id'] for each in self.ask(task, 'GET', '/members')['members']}
        wanted = set(task.given['members'] or ())
        for member in sorted(wanted - there):
            self.ask(task, 'POST', '/members', {'member': member})
        for member in sorted(there - wanted):
            task.cloud.remove('image', f'/images/{task.object_id}/members/{member}')

    @override
    def is_built(self, shown: Shown) -> bool:
        """It can be used, or is kept from being used."""
        failed = shown.get('os_glance_failed_import')
        if self.is_broken(shown) or failed:
            raise FinalFailure(
                f'the image {shown["id"]} could not be fetched ({failed or shown["status"]}); see that location can be '
                'reached by the service, and update the stack: another one is made'
            )
        return shown['status'] in ('active', 'deactivated')

    @override
    def is_broken(self, shown: Shown) -> bool:
        """It has no contents, and will get none."""
        return shown.get('status') in ('killed', 'deleted', 'pending_delete')

    @override
    def waited(self, task: Task, shown: Shown, looks: int) -> Answer:
        """Deactivate the ready image, if that is desired."""
        answer = super().waited(task, shown, looks)
        if isinstance(answer, Done):
            self._read_properties(task)
            self._activate(task, shown)
        return answer

    @override
    def change(self, task: Task, changed: frozenset[str], before: Mapping[str, Any]) -> Answer:
        """Properties all at once, then members, then whether it can be used."""
        shown, given = self.shown(task), task.given
        wanted = {name: given[name] for name in changed & set(self.sent)}
        wanted = {name: _NOT_SAID.get(name) if value is None else value for name, value in wanted.items()}
        if 'extra_properties' in changed:
            gone = set(before.get('extra_properties') or ()) - set(given['extra_properties'] or ())
            wanted |= {**dict.fromkeys(gone), **(given['extra_properties'] or {})}
        changes = [
            {'op': 'remove', 'path': f'/{name}'} if value is None else {'op': 'add', 'path': f'/{name}', 'value': value}
            for name, value in sorted(wanted.items())
            if value is not None or shown.get(name) is not None
        ]
        if changes:
            path = f'/images/{task.object_id}'
            task.saw(task.cloud.ask('image', 'PATCH', path, changes, headers={'Content-Type': PATCHED}))
        if 'members' in changed:
            self.put(task, 'members', shown)
        if 'active' in changed:
            return self._activated(task, 0)
        return self.updated(task)

    @override
    def go_on(self, task: Task, action: Action, progress: Mapping[str, Any]) -> Answer:
        """Poll until the image is ready."""
        return self._activated(task, looks_of(progress))

    def _activated(self, task: Task, looks: int) -> Answer:
        shown = self.shown(task)
        if not self.is_built(shown):
            return InProgress({'step': 'activate', 'looks': looks + 1}, data=task.data, poll_after_s=pause_s(looks))
        self._activate(task, shown)
        return self.updated(task)

    def _activate(self, task: Task, shown: Shown) -> None:
        """Activate or deactivate the image, as desired."""
        is_wanted = task.given.get('active') is not False
        if is_wanted != (shown['status'] == 'active'):
            self.ask(task, 'POST', f'/actions/{"reactivate" if is_wanted else "deactivate"}')
            SHOWN.drop(task.call.token)
