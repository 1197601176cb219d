"""The disks and the user data from which a server boots."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from convergence_openstack.task import Task

_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', re.IGNORECASE)
_KEPT = ('device_name', 'device_type', 'disk_bus', 'volume_size', 'delete_on_termination', 'volume_type')


def disks(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The disks of a server, of both forms in which templates have them, in the words of the API."""
    told = [_of_older_form(each) for each in given.get('block_device_mapping') or () if each]
    told += [_of_newer_form(each) for each in given.get('block_device_mapping_v2') or () if each]
    if given.get('image') and told and not any(each.get('boot_index') == 0 for each in told):
        image = {'source_type': 'image', 'destination_type': 'local', 'uuid': given['image'], 'boot_index': 0}
        told.insert(0, image | {'delete_on_termination': True})
    return told


def can_boot(given: Mapping[str, Any]) -> bool:
    """Return True if the properties name something to boot from."""
    return bool(given.get('image')) or any(each.get('boot_index') == 0 for each in disks(given))


def user_data(task: Task) -> str | None:
    """Return the user data in the form of the API; None if there are none.

    ``HEAT_CFNTOOLS`` is sent unchanged, too: the agents for which Heat wraps it are not served here.
    """
    text = task.given.get('user_data') or ''
    if task.given.get('user_data_format') == 'SOFTWARE_CONFIG' and _UUID.fullmatch(text):
        config = task.call.software.config(text)
        text = str(config.content.get('config') or '') if config is not None else text
    return encoded(text) if text else None


def encoded(text: str) -> str:
    """Return a text in the form that the API requires for contents of files."""
    return base64.b64encode(text.encode()).decode()


def as_text(value: Any) -> str:
    """A value of metadata: a text, or the JSON of anything else."""
    return value if isinstance(value, str) else json.dumps(value)


def _of_older_form(disk: Mapping[str, Any]) -> dict[str, Any]:
    source = 'snapshot' if disk.get('snapshot_id') else 'volume'
    name = str(disk['device_name'])
    told = {
        'device_name': name,
        'source_type': source,
        'destination_type': 'volume',
        'uuid': disk.get('snapshot_id') or disk.get('volume_id'),
        'boot_index': 0 if name.rpartition('/')[2] == 'vda' else -1,
        'volume_size': disk.get('volume_size'),
        'delete_on_termination': disk.get('delete_on_termination'),
    }
    return {key: value for key, value in told.items() if value is not None}


def _of_newer_form(disk: Mapping[str, Any]) -> dict[str, Any]:
    told = {key: disk[key] for key in _KEPT if disk.get(key) is not None}
    sources = (('volume_id', 'volume'), ('snapshot_id', 'snapshot'), ('image', 'image'))
    source = next(((disk[key], kind) for key, kind in sources if disk.get(key)), None)
    told['boot_index'] = disk['boot_index'] if disk.get('boot_index') is not None else -1
    if source is not None:
        return told | {'uuid': source[0], 'source_type': source[1], 'destination_type': 'volume'}
    told |= {'source_type': 'blank', 'destination_type': 'local', 'delete_on_termination': True}
    if disk.get('swap_size'):
        return told | {'guest_format': 'swap', 'volume_size': disk['swap_size']}
    if disk.get('ephemeral_size') or disk.get('ephemeral_format'):
        sized = {'volume_size': disk.get('ephemeral_size'), 'guest_format': disk.get('ephemeral_format')}
        return told | {key: value for key, value in sized.items() if value}
    return told | {'destination_type': 'volume'}
