"""Key pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.contract import Answer
from convergence_openstack.declared.servers import KeyPairAttributes, KeyPairProperties
from convergence_openstack.keyed import KeyedType
from convergence_openstack.kind import Shown
from convergence_openstack.lookups import USER, Sort
from convergence_openstack.task import Task

WITH_USERS = '2.10'
"""The version of the API that knows sorts of keys and their users, and that makes pairs: from 2.92 on none does."""

PRIVATE = 'private_key'
"""In the private data: the private key that Nova has made, and shows once."""


class KeyPair(KeyedType):
    """A key pair of Nova. There is one of a name."""

    Properties, Attributes = KeyPairProperties, KeyPairAttributes
    sorts: ClassVar[Mapping[str, Sort]] = {'user': USER}
    sent: ClassVar[Mapping[str, str]] = {'name': 'name', 'public_key': 'public_key', 'type': 'type', 'user': 'user_id'}
    is_name = delete_before_create = True

    @override
    def refuse(self, given: Mapping[str, Any]) -> str | None:
        """Refuse to save a private key of a pair that the service does not make."""
        if given.get('save_private_key') and given.get('public_key'):
            return 'save_private_key works only if the service makes the pair; leave public_key out'
        return None

    @override
    def key(self, given: Mapping[str, Any]) -> str:
        """Its name."""
        return str(given['name'])

    @override
    def there(self, task: Task, key: str) -> Shown | None:
        """As Nova shows it."""
        found = task.cloud.there('compute', f'/os-keypairs/{key}', params=_whose(task), microversion=WITH_USERS)
        pair: Shown | None = found['keypair'] if found else None
        return pair

    @override
    def make_it(self, task: Task, key: str) -> Shown:
        """Have Nova keep the public key, or make a pair."""
        made = task.cloud.ask('compute', 'POST', '/os-keypairs', {'keypair': self.body(task)}, microversion=WITH_USERS)
        pair: Shown = made['keypair']
        if task.given.get('save_private_key') and pair.get('private_key'):
            task.data[PRIVATE] = pair['private_key']
        return {name: value for name, value in pair.items() if name != 'private_key'}

    @override
    def remove_it(self, task: Task, key: str) -> None:
        """Remove it."""
        path = f'/os-keypairs/{key}'
        task.cloud.ask('compute', 'DELETE', path, params=_whose(task), microversion=WITH_USERS)

    @override
    def taken(self, task: Task) -> Answer:
        """A pair whose private half was to be kept, and was lost with the worker, is made once more."""
        if task.given.get('save_private_key') and PRIVATE not in task.data:
            self.remove_it(task, self.key(task.given))
            return self._make_keyed(task)
        return super().taken(task)

    @override
    def read(self, task: Task, shown: Shown, name: str) -> Json:
        """The private half is not at the service any more."""
        if name == 'private_key':
            kept: Json = task.call.data.get(PRIVATE) or ''
            return kept
        return super().read(task, shown, name)


def _whose(task: Task) -> dict[str, str]:
    user = task.given.get('user')
    return {'user_id': str(user)} if user else {}
