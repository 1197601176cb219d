"""Attachments of volumes to servers, including the move from one server to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from openstack.exceptions import HttpException
from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.contract import Answer, Call, InProgress, ObjectNotFound, Observed, TransientFailure
from convergence.resources.values import named
from convergence_openstack.declared.volumes import VolumeAttachmentAttributes, VolumeAttachmentProperties
from convergence_openstack.keyed import KeyedType
from convergence_openstack.kind import Shown, looks_of, pause_s
from convergence_openstack.lookups import VOLUME, Sort
from convergence_openstack.task import Task, at_work

PLACES = 'places'
"""In the private data: servers with volumes that updates have attached, or were about to."""

Where = tuple[str, str]
"""A server and a volume."""


class VolumeAttachment(KeyedType):
    """A volume that a server has."""

    Properties, Attributes = VolumeAttachmentProperties, VolumeAttachmentAttributes
    sorts: ClassVar[Mapping[str, Sort]] = {'volume_id': VOLUME}
    removal_takes_time = True

    @override
    def key(self, given: Mapping[str, Any]) -> str:
        """Nova knows it by the volume."""
        return str(given['volume_id'])

    @override
    def there(self, task: Task, key: str) -> Shown | None:
        """As the server has it."""
        return _attached(task, (_server(task), key))

    @override
    def make_it(self, task: Task, key: str) -> Shown:
        """Have the server take it."""
        body = {'volumeId': key}
        if task.given.get('mountpoint'):
            body['device'] = task.given['mountpoint']
        path = f'/servers/{_server(task)}/os-volume_attachments'
        made: Shown = task.cloud.ask('compute', 'POST', path, {'volumeAttachment': body})['volumeAttachment']
        return made

    @override
    def remove_it(self, task: Task, key: str) -> None:
        """Have servers let it go: what updates have begun, too."""
        for place in _places(task, (_server(task), key)):
            _detach(task, place)

    @override
    def is_removed(self, task: Task, key: str) -> bool:
        """Return True if the volume is free for another server."""
        return all(_is_free(task, place) for place in _places(task, (_server(task), key)))

    @override
    def is_ready(self, task: Task, shown: Shown) -> bool:
        """Return True if Cinder shows the attachment to the server."""
        volume = _volume(task, str(task.given['volume_id']))
        return volume is not None and volume['status'] == 'in-use'

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Return a healthy observation if the server has the volume."""
        if call.physical_id is None:
            raise ObjectNotFound(f'{call.name} has no object')
        with at_work(call, Action.CHECK) as task:
            self._read_properties(task)
            if _attached(task, (_server(task), self.key(task.given))) is None:
                raise ObjectNotFound(f'{call.name}: the server does not have the volume')
            return Observed()

    @override
    def change(self, task: Task, changed: frozenset[str], before: Mapping[str, Any]) -> Answer:
        """Detach the volume from its present or former server, and attach it to the desired one."""
        old = (str(before['instance_uuid']), str(before['volume_id']))
        task.data[PLACES] = [list(each) for each in _places(task, old, _wanted(task))]
        task.record()
        # Another device needs a new attachment.
        reattach = 'mountpoint' in changed and old == _wanted(task)
        return self._moved(task, {'step': 'move', 'reattach': reattach, 'looks': 0})

    @override
    def go_on(self, task: Task, action: Action, progress: Mapping[str, Any]) -> Answer:
        """The next step of a move."""
        return self._moved(task, progress)

    def _moved(self, task: Task, progress: Mapping[str, Any]) -> Answer:
        wanted, looks = _wanted(task), looks_of(progress)
        reattach = bool(progress.get('reattach'))
        old = [place for place in _places(task, wanted) if place != wanted or reattach]
        still = [place for place in old if not _is_free(task, place)]
        for place in still:
            _detach(task, place)
        if still:
            return self._later(task, reattach, looks)
        if _attached(task, wanted) is None:
            self.make_it(task, wanted[1])
            return self._later(task, False, 0)
        if not self.is_ready(task, {}):
            return self._later(task, False, looks)
        task.data[PLACES] = []
        return self.updated(task)

    def _later(self, task: Task, reattach: bool, looks: int) -> Answer:
        progress: dict[str, Json] = {'step': 'move', 'reattach': reattach, 'looks': looks + 1}
        return InProgress(progress, _wanted(task)[1], task.data, pause_s(looks))


def _server(task: Task) -> str:
    given = task.given or named(task.call.properties)
    return str(given['instance_uuid'])


def _wanted(task: Task) -> Where:
    return _server(task), str(task.given['volume_id'])


def _places(task: Task, *known: Where) -> list[Where]:
    """All servers and volumes that the resource has put, or was about to put, together."""
    recorded = [(str(server), str(volume)) for server, volume in task.data.get(PLACES) or ()]
    return list(dict.fromkeys([*recorded, *known]))


def _attached(task: Task, place: Where) -> Shown | None:
    server, volume = place
    found = task.cloud.there('compute', f'/servers/{server}/os-volume_attachments/{volume}')
    attachment: Shown | None = found['volumeAttachment'] if found else None
    return attachment


def _volume(task: Task, volume: str) -> Shown | None:
    found = task.cloud.there('block-storage', f'/volumes/{volume}')
    shown: Shown | None = found['volume'] if found else None
    return shown


def _is_free(task: Task, place: Where) -> bool:
    """Return True if the server does not have the volume and no detachment is running."""
    volume = _volume(task, place[1])
    if volume is None:
        return True
    if any(each.get('server_id') == place[0] for each in volume.get('attachments') or ()):
        return False
    return volume['status'] not in ('detaching', 'attaching') and _attached(task, place) is None


def _detach(task: Task, place: Where) -> None:
    server, volume = place
    try:
        task.cloud.ask('compute', 'DELETE', f'/servers/{server}/os-volume_attachments/{volume}')
    except HttpException as error:
        if error.status_code in (400, 409) and not _is_free(task, place):
            # It is on its way already, or the server is busy with something else.
            raise TransientFailure(f'{task.call.name}: the server has the volume still: {error.details}') from error
        if error.status_code not in (400, 404, 409):
            raise
