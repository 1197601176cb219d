"""Recognises refusals of requests that were already served.

A dead worker may have sent the request, and its successor repeats it. If the refusal is ambiguous, the service is
queried for the present state; if that is the desired one, the request counts as served. Creations are excluded: an
existing object may have another creator, and they search before they make anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from convergence.core.model import Action

REFUSED = frozenset({400, 404, 409})
"""Status codes of refusals, which may mean that the request was already served."""

Ask = Callable[[str], Any]
"""Returns the JSON at an address of a service; None if there is nothing."""

Look = Callable[[Ask, str, Any], Any]
"""The answer that a request to an address, with a body, would return; None: it was refused for another reason."""


def answer_of(action: Action, method: str, url: str, body: Any, ask: Ask) -> Any:
    """Return the answer that the service would have given to a refused request if it had been the first one.

    :returns: the body of an answer; None if the request was not served before, or is of an unknown kind.
    """
    if action is Action.CREATE:
        return None
    bare = url.partition('?')[0].rstrip('/').removesuffix('.json')
    for way, path, look in _LOOKS:
        if way == method.upper() and path.search(bare) and isinstance(body, Mapping):
            return look(ask, bare, body)
    return None


def is_gone(action: Action, method: str, status: int) -> bool:
    """Return True if an update tried to remove something that is already gone."""
    return action is Action.UPDATE and method.upper() == 'DELETE' and status == 404


def _below(key: Callable[[Any], Any]) -> Look:
    """A member of a collection that has a key of its own, which is in the request."""

    def look(ask: Ask, url: str, body: Any) -> Any:
        wanted = key(body)
        return ask(f'{url}/{wanted}') if wanted else None

    return look


def _attachment(ask: Ask, url: str, body: Any) -> Any:
    there = ask(f'{url}/{body["volumeAttachment"]["volumeId"]}')
    if there is None:
        return None
    # In the answer to this request it has an id, which is that of the volume; shown, it has none from 2.89 on.
    attachment = there['volumeAttachment']
    return {'volumeAttachment': {'id': attachment['volumeId'], **attachment}}


def _server(ask: Ask, url: str, body: Any) -> Any:
    server = (ask(url.removesuffix('/action')) or {}).get('server')
    if server is None:
        return None
    status, task = str(server['status']), str(server.get('OS-EXT-STS:task_state') or '')
    ((name, wanted),) = body.items()
    match name:
        case 'resize':
            # A size that is not confirmed yet may be another one than this request is about.
            same = (server.get('flavor') or {}).get('id') in (None, wanted['flavorRef'])
            done = status == 'RESIZE' or task.startswith('resize') or (status == 'VERIFY_RESIZE' and same)
        case 'confirmResize':
            done = status in ('VERIFY_RESIZE', 'ACTIVE')
        case 'rebuild':
            done = status == 'REBUILD' or task.startswith('rebuild')
        case 'suspend':
            done = status == 'SUSPENDED' or task == 'suspending'
        case 'resume':
            done = status == 'ACTIVE' or task == 'resuming'
        case _:
            done = False
    return {'server': server} if done else None


def _volume(ask: Ask, url: str, body: Any) -> Any:
    volume = (ask(url.removesuffix('/action')) or {}).get('volume')
    if volume is None:
        return None
    ((name, wanted),) = body.items()
    match name:
        case 'os-extend':
            done = volume['status'] == 'extending' or int(volume['size']) >= int(wanted['new_size'])
        case 'os-retype':
            done = volume['status'] == 'retyping' or volume['volume_type'] == wanted['new_type']
        case _:
            done = False
    return {} if done else None


def _parts_of_trunk(ask: Ask, url: str, body: Any) -> Any:
    trunk, _, wanted = url.rpartition('/')
    found = (ask(trunk) or {}).get('trunk')
    if found is None:
        return None
    there = {each['port_id'] for each in found['sub_ports']}
    asked = {each['port_id'] for each in body['sub_ports']}
    done = asked <= there if wanted == 'add_subports' else not asked & there
    return found if done else None


_LOOKS: tuple[tuple[str, re.Pattern[str], Look], ...] = (
    ('POST', re.compile(r'/servers/[^/]+/os-volume_attachments$'), _attachment),
    (
        'POST',
        re.compile(r'/servers/[^/]+/os-interface$'),
        _below(lambda body: body['interfaceAttachment'].get('port_id')),
    ),
    ('POST', re.compile(r'/servers/[^/]+/action$'), _server),
    ('POST', re.compile(r'/volumes/[^/]+/action$'), _volume),
    ('POST', re.compile(r'/images/[^/]+/members$'), _below(lambda body: body['member'])),
    ('PUT', re.compile(r'/trunks/[^/]+/(add|remove)_subports$'), _parts_of_trunk),
)
