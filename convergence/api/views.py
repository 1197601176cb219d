"""Converts answers of engines into documents for clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from convergence.documents import Document


def url(base: str, identity: Mapping[str, str]) -> str:
    """Return the URL of a stack, or of one of its parts if the identity has a path.

    :param base: URL of the API with its version.
    """
    parts = (identity['tenant'], 'stacks', identity['stack_name'], identity['stack_id'])
    path = quote(identity.get('path') or '', safe='/')
    return f'{base}/{"/".join(quote(part, safe="") for part in parts)}{path}'


def link(base: str, identity: Mapping[str, str], relation: str = 'self') -> dict[str, str]:
    """Return a link to a stack or to one of its parts."""
    return {'href': url(base, identity), 'rel': relation}


def stack(base: str, document: Mapping[str, Any], *, with_project: bool = False) -> Document:
    """Return the document of a stack, for a list or in full."""
    identity = document['stack_identity']
    shown: Document = {'id': identity['stack_id'], 'links': [link(base, identity)]}
    if with_project:
        shown['project'] = identity['tenant']
    hidden = ('stack_identity', 'stack_action', 'traversal_id', 'resources')
    shown.update({name: value for name, value in document.items() if name not in hidden})
    action, status = document.get('stack_action'), document.get('stack_status')
    if action and status:
        shown['stack_status'] = f'{action}_{status}'
    return shown


def preview(base: str, document: Mapping[str, Any]) -> Document:
    """Return the document of a previewed stack, which has no state."""
    hidden = ('stack_status', 'stack_status_reason', 'stack_action')
    shown = stack(base, {name: value for name, value in document.items() if name not in hidden})
    return {**shown, 'resources': document.get('resources', [])}


_RESOURCE_HIDDEN = ('resource_identity', 'stack_identity', 'stack_name', 'resource_action', 'metadata')


def resource(base: str, document: Mapping[str, Any], *, with_detail: bool = True) -> Document:
    """Return the document of a resource."""
    links = [link(base, document['resource_identity']), link(base, document['stack_identity'], 'stack')]
    nested = document.get('nested_stack_id')
    if isinstance(nested, Mapping):
        links.append(link(base, nested, 'nested'))
    hidden = (*_RESOURCE_HIDDEN, 'nested_stack_id', *(() if with_detail else ('description', 'attributes')))
    shown: Document = {name: value for name, value in document.items() if name not in hidden}
    if shown.get('parent_resource', '') is None:
        del shown['parent_resource']
    shown['links'] = links
    action, status = document.get('resource_action'), document.get('resource_status')
    if action and status:
        shown['resource_status'] = f'{action}_{status}'
    return shown


_EVENT_FIELDS = (
    'resource_name',
    'logical_resource_id',
    'physical_resource_id',
    'resource_status_reason',
    'event_time',
)
_EVENT_DETAILS = ('resource_type', 'resource_properties')


def event(base: str, document: Mapping[str, Any], *, with_detail: bool = False) -> Document:
    """Return the document of an event."""
    identity = document['event_identity']
    of_stack = document['stack_identity']
    of_resource, _, event_id = identity['path'].rpartition('/events/')
    links = [
        link(base, identity),
        link(base, {**of_stack, 'path': of_resource}, 'resource'),
        link(base, of_stack, 'stack'),
    ]
    if document.get('root_stack_id'):
        links.append(link(base, document['root_stack_id'], 'root_stack'))
    place = ('stack_path',) if 'stack_path' in document else ()
    names = (*_EVENT_FIELDS, *place, *(_EVENT_DETAILS if with_detail else ()))
    return {
        'id': event_id,
        'links': links,
        'resource_status': f'{document["resource_action"]}_{document["resource_status"]}',
        **{name: document.get(name) for name in names},
    }
