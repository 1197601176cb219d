"""Finds the objects of dead workers, by values in the requests that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keystoneauth1 import exceptions
from keystoneauth1.session import Session

from convergence.resources.contract import Call, TransientFailure
from convergence.resources.openstack.labels import LABEL, described, uuid_of
from convergence_heat.labels import OF_TYPES, Collection, Place

PAGE = 500
"""Objects in one page of a list."""

LATER = frozenset(
    {'rules', 'tags', 'dhcp_agent_ids', 'l3_agent_id', 'l3_agent_ids', 'roles', 'groups', 'members', 'location'}
)
"""Properties that classes set with further requests. A found object may lack them."""


class Seeker:
    """Queries a service for objects.

    :param session: of the call.
    :param region: empty: any.
    :param interface: of the endpoints.
    """

    def __init__(self, session: Session, region: str, interface: str) -> None:
        self._session = session
        self._target = {'interface': interface} | ({'region_name': region} if region else {})

    def one(self, service: str, path: str, **params: Any) -> Mapping[str, Any] | None:
        """Return the object at a path; None if the service says that there is none.

        :raises TransientFailure: any other answer, or none.
        """
        with _answering(path):
            try:
                answer = self._session.get(
                    path, endpoint_filter=self._target | {'service_type': service}, params=params
                )
            except exceptions.NotFound:
                return None
            found: Mapping[str, Any] = answer.json()
            return found

    def all(self, collection: Collection, **params: Any) -> Iterator[Mapping[str, Any]]:
        """The objects of a collection, page by page.

        :raises TransientFailure: as above; a collection that is not there is no answer either.
        """
        path = collection.listing or collection.path
        marker: dict[str, str] = {}
        while True:
            answer = self.one(collection.service, path, limit=PAGE, **params, **marker)
            if answer is None:
                raise TransientFailure(f'The service {collection.service} has no {path}; it cannot say what there is.')
            page = answer[collection.plural]
            yield from page
            if not page or collection.service == 'identity':  # Keystone has no pages here.
                return
            marker = {'marker': page[-1]['id']}

    def change(self, collection: Collection, object_id: str, body: Any) -> None:
        """Change an object. That it is gone is none of the caller's business.

        :raises TransientFailure: the service does not.
        """
        target = self._target | {'service_type': collection.service}
        path = f'{collection.path}/{object_id}'
        with _answering(path):
            try:
                self._session.request(path, collection.change, json=body, endpoint_filter=target)
            except exceptions.NotFound:
                return


def found(seeker: Seeker, name: str, call: Call[Any], properties: Mapping[str, Any]) -> str | None:
    """Return the id of the object that was made for a call; None if there is none.

    :param name: of the type, which is one of `OF_TYPES`.
    :param properties: as Heat's class sees them.
    :raises TransientFailure: the answer is not known now.
    """
    collection = OF_TYPES[name]
    if collection.place is Place.ID:
        return (
            uuid_of(call.token) if seeker.one(collection.service, f'{collection.path}/{uuid_of(call.token)}') else None
        )
    if collection.place is Place.METADATA:
        marked = (each for each in seeker.all(collection) if (each.get('metadata') or {}).get(LABEL) == call.token)
        return next((str(each['id']) for each in marked), None)
    wanted = described(told(properties), call.token)
    params = {'description': wanted} if collection.filters else {}
    fitting = (each for each in seeker.all(collection, **params) if each.get('description') == wanted)
    return next((str(each['id']) for each in fitting), None)


def told(properties: Mapping[str, Any]) -> str | None:
    """Return the user's own description of an object."""
    more = properties.get('value_specs') if 'value_specs' in properties else None
    said = properties.get('description') if 'description' in properties else (more or {}).get('description')
    return said or None


# --- objects whose key is what the template says of them ---------------------------------------------------------

Look = Callable[[Seeker, Mapping[str, Any]], str | None]
"""The id of the object that has the key which properties say; None: there is none."""


def _key_pair(seeker: Seeker, properties: Mapping[str, Any]) -> str | None:
    there = seeker.one('compute', f'/os-keypairs/{properties["name"]}')
    return str(there['keypair']['name']) if there else None


def _router_interface(seeker: Seeker, properties: Mapping[str, Any]) -> str | None:
    router, subnet, port = (properties.get(key) for key in ('router', 'subnet', 'port'))
    if subnet:
        ports = seeker.one('network', '/v2.0/ports', device_id=router, fixed_ips=f'subnet_id={subnet}', fields='id')
        return f'{router}:subnet_id={subnet}' if ports and ports['ports'] else None
    there = seeker.one('network', f'/v2.0/ports/{port}')
    return f'{router}:port_id={port}' if there and there['port'].get('device_id') == router else None


def _attachment(seeker: Seeker, properties: Mapping[str, Any]) -> str | None:
    server, volume = properties['instance_uuid'], properties['volume_id']
    there = seeker.one('compute', f'/servers/{server}/os-volume_attachments/{volume}')
    return str(there['volumeAttachment']['id']) if there else None


BY_KEY: Mapping[str, Look] = {
    'OS::Nova::KeyPair': _key_pair,
    'OS::Neutron::RouterInterface': _router_interface,
    'OS::Cinder::VolumeAttachment': _attachment,
}
"""Finders of objects that can carry no token. They run before the object is made."""

NAMED = frozenset({'OS::Nova::KeyPair'})
"""Types of which there is one object of a name: the old one goes before it is replaced, as Heat removes it."""

SETS = frozenset(
    {
        'OS::Keystone::GroupRoleAssignment',
        'OS::Keystone::UserRoleAssignment',
        'OS::Neutron::FloatingIPAssociation',
        'OS::Neutron::RouterGateway',
    }
)
"""Types that change something to be so and so: a second time it is so already."""


@contextmanager
def _answering(path: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.ClientException, ValueError, KeyError) as error:
        raise TransientFailure(f'The objects at {path} cannot be listed: {type(error).__name__}: {error}') from error
