"""What an engine answers, as far as the command line looks at it."""

import itertools

_numbers = itertools.count(1)
STACK = 'site'


def event(name, action, status, kind='T', reason=''):
    """Something that happened to a resource."""
    return {
        'event_identity': {'path': f'/resources/{name}/events/{next(_numbers)}'},
        'stack_name': STACK,
        'resource_name': name,
        'resource_type': kind,
        'resource_action': action,
        'resource_status': status,
        'resource_status_reason': reason,
    }


def stack_event(action, status):
    """Something that happened to the stack."""
    return event(STACK, action, status, kind='OS::Heat::Stack')


def resource(name, physical_id):
    """A resource that is there."""
    return {'resource_name': name, 'physical_resource_id': physical_id, 'resource_type': 'T'}
