"""An installation whose stacks have credentials of the small Keystone, and a type that uses them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from falcon import testing
from oslo_config import cfg

from convergence.cmd.embedded import Embedded
from convergence.cmd.wiring.api import make_application
from convergence.cmd.wiring.keystone import issuer_of
from convergence.config import ApiSettings, CredentialSettings, EngineSettings
from convergence.credentials.issuing import Issuer
from convergence.db.repositories.credentials import CredentialRows
from convergence.db.schema.sealing import seal_of
from convergence.engine.sweeper.credentials import CredentialRemoval
from convergence.resources.builtin.addressed import addressed_types
from convergence.resources.contract import Call, Change, Done, FinalFailure, ResourceType
from convergence.resources.registry import Registry
from convergence.resources.schema import prop
from tests import keystone
from tests.api.installation import LONG_S, client, settings, spare_migration

SECTIONS = """
[keystone_authtoken]
auth_type = password
auth_url = {url}
www_authenticate_uri = {url}
username = service
password = service-password
project_name = demo
user_domain_name = Default
project_domain_name = Default
[trustee]
auth_section = keystone_authtoken
"""


@dataclass(frozen=True)
class CloudProperties:
    """What the object is."""

    value: str = prop('', update_allowed=True)


class Cloud(ResourceType[CloudProperties]):
    """An object of a cloud: it is made, changed and removed by whoever the token is for.

    :ivar told: action, name of the resource, and for whom Keystone says that the token is.
    :ivar limits_s: how long the requests of its sessions may take.
    """

    Properties, token_enforced = CloudProperties, True

    def __init__(self, cloud: keystone.Keystone) -> None:
        self.cloud = cloud
        self.told: list[tuple[str, str, str]] = []
        self.limits_s: set[float] = set()

    def _tell(self, action: str, call: Call[Any]) -> None:
        acting = call.credentials()
        self.limits_s.add(acting.session().timeout)
        acting.session().get(f'{self.cloud.url}/v3/auth/projects')  # a service, which may say that a token is not good
        answer = acting.session().get(f'{self.cloud.url}/v3/auth/tokens', headers={'X-Subject-Token': acting.token()})
        body = answer.json()['token']
        assert (acting.project_id, acting.user_id) == (body['project']['id'], body['user']['id'])
        self.told.append((action, call.name, f'{acting.user_id}: {",".join(role["name"] for role in body["roles"])}'))

    def create(self, call: Call[Any]) -> Done:
        """Make it."""
        self._tell('create', call)
        return Done(physical_id=call.token)

    def update(self, call: Call[Any]) -> Done:
        """Change it."""
        self._tell('update', call)
        return Done()

    def delete(self, call: Call[Any]) -> Done:
        """Remove it."""
        self._tell('delete', call)
        return Done()

    def check(self, call: Call[Any]) -> None:
        """Look at it."""
        self._tell('check', call)

    def by(self, action: str) -> list[str]:
        """For whom an action was carried out, once for each time."""
        return [who for what, _, who in self.told if what == action]


class CheckedCloud(Cloud):
    """The same, of which the service can be asked before."""

    def validate(self, call: Call[Any]) -> None:
        """Whether there can be such an object."""
        self._tell('validate', call)
        if call.properties.value == 'impossible':
            raise FinalFailure('the cloud has no room for it')

    def plan(self, call: Call[Any]) -> Change:
        """What an update would do."""
        self._tell('plan', call)
        return Change.NONE if call.properties.value == 'same' else Change.IN_PLACE


@dataclass
class Lent:
    """An installation, its Keystone, and people with tokens.

    :param removal: removes credentials when a test says so.
    """

    embedded: Embedded
    identity: keystone.Keystone
    cloud: Cloud
    client: testing.TestClient
    removal: CredentialRemoval
    issuer: Issuer
    directory: Path
    tokens: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, user: str = 'ann', **more: Any) -> testing.Result:
        """Send a request of a user for the project ``demo``."""
        if user not in self.tokens:
            self.tokens[user] = self.identity.token(user)
        headers = {'X-Auth-Token': self.tokens[user]}
        return self.client.simulate_request(method, f'/v1/{"d" * 32}/{path}', headers=headers, **more)

    def create(self, name: str, resources: dict[str, Any], user: str = 'ann', **more: Any) -> str:
        """Create a stack and wait for it; its path."""
        made = self.ask('POST', 'stacks', user, json={'stack_name': name, 'template': template(resources), **more})
        assert made.status_code == 201, made.text
        path = f'stacks/{name}/{made.json["stack"]["id"]}'
        self.wait(path)
        return path

    def update(self, path: str, resources: dict[str, Any], user: str = 'ann') -> dict[str, Any]:
        """Update a stack and wait for it."""
        answer = self.ask('PUT', path, user, json={'template': template(resources)})
        assert answer.status_code == 202, answer.text
        return self.wait(path)

    def delete(self, path: str, user: str = 'ann') -> dict[str, Any]:
        """Delete a stack and wait for it."""
        answer = self.ask('DELETE', path, user)
        assert answer.status_code == 204, answer.text
        return self.wait(path)

    def acted(self, path: str, action: str, user: str = 'ann') -> str:
        """Ask for an action on a stack; its path."""
        answer = self.ask('POST', f'{path}/actions', user, json={action: None})
        assert answer.status_code < 300, answer.text
        return path

    def wait(self, path: str) -> dict[str, Any]:
        """Wait for the operation on a stack to end."""
        _, name, stack_id = path.split('/')
        return self.embedded.wait({'tenant': 'd' * 32, 'stack_name': name, 'stack_id': stack_id}, LONG_S)

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for something that nobody tells."""
        ends = time.monotonic() + LONG_S
        while not holds():
            assert time.monotonic() < ends
            time.sleep(0.02)

    @property
    def kept(self) -> int:
        """How many credentials Keystone has."""
        return len(self.identity.trusts) + len(self.identity.application_credentials)


def template(resources: dict[str, Any]) -> dict[str, Any]:
    """A template with some resources."""
    return {'heat_template_version': '2018-08-31', 'resources': resources}


def cloud(value: str = '', kind: str = 'Test::Cloud') -> dict[str, Any]:
    """A resource in the cloud."""
    return {'type': kind, 'properties': {'value': value}}


def configured(directory: Path, url: str, more: str = '') -> cfg.ConfigOpts:
    """A filled configuration."""
    (directory / 'convergence.conf').write_text(SECTIONS.format(url=url) + more)
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(directory / 'convergence.conf')])
    return conf


@contextlib.contextmanager
def lending(directory: Path, method: str) -> Iterator[Lent]:
    """An installation that has credentials made by a method, and removes them when it is told to."""
    with keystone.running() as identity:
        identity.roles['ben'] = ['member']
        usual, conf = settings(directory), configured(directory, identity.url)
        made = replace(
            usual,
            engine=EngineSettings(sweep_interval_s=60.0),  # tests say when credentials are looked after
            credentials=CredentialSettings(method=method, orphan_grace_s=3600.0),
            api=ApiSettings(authentication='keystone', public_url='http://localhost:8004'),
            local_provider=replace(usual.local_provider, enabled=False),
        )
        kind = Cloud(identity)
        checked = CheckedCloud(identity)
        checked.told = kind.told
        types = {
            'Test::Cloud': kind,
            'Test::CheckedCloud': checked,
            **addressed_types(lambda: 'http://localhost:8004/v1'),
        }
        spare_migration(directory)
        with Embedded(made, types=Registry.builtin(more=types), conf=conf) as embedded:
            parts = embedded.parts
            issuer = issuer_of(made, seal_of(parts.store.engine.dialect), conf)
            application = make_application(made.api, parts.transport, conf, issuer=issuer)
            assert parts.keystone is not None
            assert issuer is not None
            removal = CredentialRemoval(CredentialRows(parts.store, again_s=0.0), parts.keystone, 1.0, 3600.0)
            yield Lent(embedded, identity, kind, client(application), removal, issuer, directory)
