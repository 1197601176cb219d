"""Finds the objects that a notification of a service concerns.

Events that only announce the start of an action, and reports that are sent at intervals, concern none: nothing has
happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

Where = tuple[str, ...]
"""The place of the id of an object in the payload of a notification: keys, each inside the one before it."""

Notified = Callable[[str, Mapping[str, Any]], Iterable[str]]

_NOTHING_HAPPENED = ('.start', '.exists', '.usage')

SERVERS: Mapping[str, tuple[Where, ...]] = {
    'compute.instance.': (('instance_id',),),
    # As Nova has it on its topic versioned_notifications.
    'instance.': (('nova_object.data', 'uuid'),),
}
VOLUMES: Mapping[str, tuple[Where, ...]] = {'volume.': (('volume_id',),)}
IMAGES: Mapping[str, tuple[Where, ...]] = {'image.': (('id',),)}


def _of_neutron(kind: str) -> Mapping[str, tuple[Where, ...]]:
    """Created and changed ones stand there whole, several of them in a list; of removed ones there is the id."""
    return {f'{kind}.': ((kind, 'id'), (f'{kind}s', 'id'), (f'{kind}_id',))}


EVENTS: Mapping[str, Mapping[str, tuple[Where, ...]]] = {
    'AWS::EC2::Instance': SERVERS,
    'AWS::EC2::Volume': VOLUMES,
    'OS::Cinder::Volume': VOLUMES,
    'OS::Glance::WebImage': IMAGES,
    'OS::Neutron::FloatingIP': _of_neutron('floatingip'),
    'OS::Neutron::Net': _of_neutron('network'),
    'OS::Neutron::Port': _of_neutron('port'),
    'OS::Neutron::Router': _of_neutron('router'),
    'OS::Neutron::SecurityGroup': _of_neutron('security_group'),
    'OS::Neutron::Subnet': _of_neutron('subnet'),
    'OS::Nova::Server': SERVERS,
}
"""By type: how its events begin, and where each says which object it is about."""


def objects_of(events: Mapping[str, tuple[Where, ...]], event_type: str, payload: Mapping[str, Any]) -> Iterator[str]:
    """The ids that an event names, if it is one of these."""
    if event_type.endswith(_NOTHING_HAPPENED):
        return
    for prefix, places in events.items():
        if event_type.startswith(prefix):
            for place in places:
                yield from _at(payload, place)


def _at(value: object, place: Where) -> Iterator[str]:
    """The texts that stand at a place; into lists the way goes to each member."""
    if isinstance(value, list):
        for each in value:
            yield from _at(each, place)
    elif not place:
        if isinstance(value, str):
            yield value
    elif isinstance(value, Mapping):
        yield from _at(value.get(place[0]), place[1:])


NOTIFIED: Mapping[str, Notified] = {name: partial(objects_of, events) for name, events in EVENTS.items()}
"""Stands in for `ResourceType.notified`, by type."""
