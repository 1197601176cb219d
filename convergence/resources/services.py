"""Finds the service of a cloud that a resource type belongs to, by the name of the type."""

from __future__ import annotations

from collections.abc import Iterable

_SERVICES = frozenset(
    [
        'Aodh',
        'Barbican',
        'Blazar',
        'Cinder',
        'Designate',
        'Glance',
        'Ironic',
        'Keystone',
        'Magnum',
        'Manila',
        'Mistral',
        'Neutron',
        'Nova',
        'Octavia',
        'Swift',
        'Trove',
        'Zaqar',
        'Zun',
    ]
)
"""As they stand in the names of resource types; clients know them in lower case."""
_ELSEWHERE = {
    'OS::Heat::SwiftSignal': 'Swift',
    'OS::Heat::SwiftSignalHandle': 'Swift',
    'AWS::EC2::Instance': 'Nova',
    'AWS::EC2::Volume': 'Cinder',
    'AWS::S3::Bucket': 'Swift',
}
"""Types with other names."""

UNAVAILABLE = '99001'
"""The number, in the field, of the error that the service of a resource type is not there."""


def missing_service(type_name: str, names: Iterable[str]) -> str | None:
    """The service, in lower case, that a type needs and of which there is no type at all; None for other types.

    :param names: the types that there are.
    """
    parts = type_name.split('::')
    service = _ELSEWHERE.get(type_name) or (parts[1] if parts[0] == 'OS' and len(parts) > 2 else '')
    if service not in _SERVICES or any(name.startswith(f'OS::{service}::') for name in names):
        return None
    return service.lower()


def unavailable(type_name: str, service: str) -> str:
    """Return the error about a type whose service is missing, in words that clients of the field compare."""
    return (
        f'HEAT-E{UNAVAILABLE} Service {service} is not available for resource type {type_name}, reason: no '
        'package that is installed here offers a type of it.'
    )
