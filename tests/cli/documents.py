"""The answers of the API, as far as the command line reads them."""

import itertools

_numbers = itertools.count(1)
STACK, STACK_ID = 'site', 'stack-id'


def event(name, state, reason='', physical_id='thing'):
    """Something that happened to a resource."""
    return {
        'id': str(next(_numbers)),
        'resource_name': name,
        'resource_status': state,
        'resource_status_reason': reason,
        'physical_resource_id': physical_id,
        'event_time': '2026-01-31T12:00:00Z',
    }


def stack_event(state):
    """Something that happened to the stack."""
    return event(STACK, state, physical_id=STACK_ID)


def resource(name, physical_id):
    """A resource that is there."""
    return {'resource_name': name, 'physical_resource_id': physical_id, 'resource_type': 'T'}
