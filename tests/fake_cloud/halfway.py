"""Updates that are cut off before and after each of their requests, or that fail in the middle: what both packages try."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from convergence.core.model import Action
from convergence.resources.contract import FinalFailure, InProgress, TransientFailure
from tests.fake_cloud.cloud import IMAGE, Cloud
from tests.fake_cloud.thing import Thing

Make = Callable[..., Thing]
"""Makes a resource of a package: its type, and properties."""


class Killed(BaseException):
    """The worker dies."""


@dataclass
class Case:
    """An update that takes several requests.

    :ivar there: what there is before: objects by sort, each with an id.
    :ivar goes_back: whether there is a way back.
    """

    name: str
    before: dict[str, Any]
    after: dict[str, Any]
    there: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    goes_back: bool = True


SERVER = {'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'network': 'kept-networks'}]}
OTHER_SERVER = {'servers': [{'id': 'other', 'status': 'ACTIVE'}]}
OTHER_NETWORK = {
    'networks': [{'id': 'other', 'name': 'other'}],
    'subnets': [{'id': 'below', 'name': 'below', 'network_id': 'other'}],
}
RULE = {'protocol': 'tcp', 'port_range_min': 22, 'port_range_max': 22}
ROUTE = {'destination': '10.9.0.0/24', 'nexthop': '10.0.0.9'}
CASES = {
    'an attachment moves': Case(
        'OS::Cinder::VolumeAttachment',
        {'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes'},
        {'instance_uuid': 'other', 'volume_id': 'kept-volumes'},
        OTHER_SERVER,
    ),
    'an attachment has another volume': Case(
        'OS::Cinder::VolumeAttachment',
        {'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes'},
        {'instance_uuid': 'kept-servers', 'volume_id': 'other'},
        {'volumes': [{'id': 'other', 'status': 'available', 'attachments': []}]},
    ),
    'an attachment has another device': Case(
        'OS::Cinder::VolumeAttachment',
        {'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes'},
        {'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes', 'mountpoint': '/dev/vdb'},
    ),
    'a server is on one network more': Case(
        'OS::Nova::Server',
        SERVER,
        {**SERVER, 'networks': [{'network': 'kept-networks'}, {'network': 'other'}]},
        OTHER_NETWORK,
    ),
    'a server is on another network twice': Case(
        'OS::Nova::Server', SERVER, {**SERVER, 'networks': [{'network': 'other'}, {'network': 'other'}]}, OTHER_NETWORK
    ),
    'a server has a port': Case(
        'OS::Nova::Server', SERVER, {**SERVER, 'networks': [{'network': 'kept-networks'}, {'port': 'kept-ports'}]}
    ),
    'a server has a port that is made for it': Case(
        'OS::Nova::Server',
        SERVER,
        {**SERVER, 'networks': [{'network': 'kept-networks'}, {'subnet': 'below'}]},
        OTHER_NETWORK,
    ),
    'a server is larger': Case(
        'OS::Nova::Server', SERVER, {**SERVER, 'flavor': 'm1.small', 'metadata': {'of': 'mine'}}
    ),
    'a volume is larger': Case('OS::Cinder::Volume', {'size': 1}, {'size': 2, 'name': 'large'}, goes_back=False),
    'a group has other rules': Case(
        'OS::Neutron::SecurityGroup',
        {'rules': [RULE]},
        {'name': 'g', 'rules': [{**RULE, 'port_range_max': 23}, {'protocol': 'udp'}]},
    ),
    'a trunk has other ports': Case(
        'OS::Neutron::Trunk',
        {'port': 'kept-ports', 'sub_ports': [{'port': 'a', 'segmentation_type': 'vlan', 'segmentation_id': 1}]},
        {
            'name': 't',
            'port': 'kept-ports',
            'sub_ports': [{'port': 'b', 'segmentation_type': 'vlan', 'segmentation_id': 2}],
        },
        {'ports': [{'id': each, 'name': each, 'network_id': 'kept-networks', 'fixed_ips': []} for each in 'ab']},
    ),
    'a router has other routes': Case(
        'OS::Neutron::ExtraRouteSet',
        {'router': 'kept-routers', 'routes': [ROUTE]},
        {'router': 'kept-routers', 'routes': [{**ROUTE, 'nexthop': '10.0.0.8'}]},
    ),
    'a user is in other groups': Case(
        'OS::Keystone::User',
        {'groups': ['a', 'b'], 'domain': 'kept-domains'},
        {'groups': ['b', 'c'], 'domain': 'kept-domains', 'description': 'mine'},
        {'groups': [{'id': each, 'name': each} for each in 'abc']},
    ),
    'an address leads elsewhere': Case(
        'OS::Neutron::FloatingIPAssociation',
        {'floatingip_id': 'one', 'port_id': 'kept-ports'},
        {'floatingip_id': 'two', 'port_id': 'kept-ports'},
        {'floatingips': [{'id': each, 'port_id': None, 'fixed_ip_address': None} for each in ('one', 'two')]},
    ),
}


def made(make: Make, cloud: Cloud, case: Case) -> Thing:
    """What the case is about, in a cloud with nothing else."""
    cloud.clear()
    for sort, things in case.there.items():
        for each in things:
            cloud.things[sort][each['id']] = {'name': '', 'description': '', **each}
    return make(case.name, **case.before).do(Action.CREATE)


def update(thing: Thing, properties: dict[str, Any]) -> None:
    """Change it as the engine does: whoever goes on after a worker has died has what was stored."""
    thing.call = replace(thing.call, previous=thing.read(thing.applied), properties=thing.read(properties))
    progress = None
    for _ in range(50):
        try:
            answer = (
                thing.kind.update(thing.call)
                if progress is None
                else thing.kind.poll(thing.call, Action.UPDATE, progress)
            )
        except (Killed, TransientFailure):
            continue
        thing.take(answer)
        if not isinstance(answer, InProgress):
            thing.applied = properties
            return
        progress = answer.progress
    raise AssertionError('it does not come to an end')


def seen(cloud: Cloud) -> dict[str, Any]:
    """Everything there is, without ids that are made up, in an order of its own."""
    made_up = {key for sort in cloud.things.values() for key in sort if len(key) == 36 and key != IMAGE}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in ('id', 'mac_address', 'ready at')}
        if isinstance(value, list):
            return sorted((plain(each) for each in value), key=repr)
        return 'made up' if value in made_up else value

    things = {sort: plain(list(each.values())) for sort, each in cloud.things.items()}
    return {**things, 'members': {group: plain(sorted(each)) for group, each in cloud.members.items() if each}}


class Watched:
    """A cloud in which a worker dies at a request that changes something, or in which that is refused.

    :ivar count: how many such requests there were.
    """

    def __init__(self, cloud: Cloud, number: int, does: str) -> None:
        self.cloud, self.number, self.does, self.count = cloud, number, does, 0

    def __enter__(self) -> Self:
        self.cloud.handle = self._handle
        return self

    def __exit__(self, *_: object) -> None:
        del self.cloud.handle

    def _handle(self, request: Any) -> Any:
        if request.method == 'GET' or '/auth/tokens' in request.url:
            return Cloud.handle(self.cloud, request)
        self.count += 1
        if self.count != self.number:
            return Cloud.handle(self.cloud, request)
        if self.does == 'refuses':
            return 403, {}, {'forbidden': {'code': 403, 'message': 'not you'}}
        if self.does == 'dies after':
            Cloud.handle(self.cloud, request)
        raise Killed


def undisturbed(make: Make, cloud: Cloud, case: Case, *properties: dict[str, Any]) -> tuple[Any, int]:
    """What there is after updates, and how many requests the first one takes."""
    thing = made(make, cloud, case)
    thing.applied = case.before
    with Watched(cloud, 0, '') as watched:
        update(thing, properties[0])
        count = watched.count
        for each in properties[1:]:
            update(thing, each)
    return seen(cloud), count


def cases_of(names: Mapping[str, Any]) -> dict[str, Case]:
    """The cases of a package.

    :param names: of its types.
    """
    return {about: case for about, case in CASES.items() if case.name in names}


def cut_off(make: Make, cloud: Cloud, case: Case, does: str) -> None:
    """Have a worker die at each request of an update in turn: it is done in the end, once."""
    wanted, requests = undisturbed(make, cloud, case, case.after)
    assert requests
    for number in range(1, requests + 1):
        thing = made(make, cloud, case)
        thing.applied = case.before
        with Watched(cloud, number, does):
            update(thing, case.after)
        assert seen(cloud) == wanted, f'the worker {does} request {number}'
        thing.do(Action.DELETE)


def refused(make: Make, cloud: Cloud, case: Case) -> None:
    """Have each request of an update refused in turn: an update to what was before puts all of it right."""
    wanted, requests = undisturbed(make, cloud, case, case.after, case.before)
    for number in range(1, requests + 1):
        thing = made(make, cloud, case)
        thing.applied = case.before
        with Watched(cloud, number, 'refuses'), contextlib.suppress(FinalFailure):
            update(thing, case.after)
        update(thing, case.before)
        assert seen(cloud) == wanted, f'request {number} was refused'


def port_made_for_server(make: Make, cloud: Cloud, number: int) -> None:
    """Have a worker die behind a request of the creation of a server with a port of its own, and remove it."""
    cloud.clear()
    thing = make('OS::Nova::Server', **{**SERVER, 'networks': [{'subnet': 'kept-subnets'}]})
    with Watched(cloud, number, 'dies after'), contextlib.suppress(Killed):
        thing.kind.create(thing.call)
    assert len(cloud.things['ports']) == 2
    found = thing.kind.find(thing.call)
    assert (found is not None) == (number == 2)
    while isinstance(found, InProgress):
        thing.take(found)
        found = thing.kind.poll(thing.call, Action.CREATE, found.progress)
    if found is not None:
        thing.take(found)
    thing.do(Action.DELETE)
    assert list(cloud.things['ports']) == ['kept-ports']
