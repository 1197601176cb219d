"""An installation with an API, for the tests: embedded, asked in the process or through a real server."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from falcon import testing
from oslo_config import cfg
from oslo_policy.policy import Enforcer

from convergence.api.application import Application, ApplicationOptions
from convergence.api.event_stream import Followers
from convergence.api.identity import Authentication
from convergence.api.policy import Policy
from convergence.cmd.embedded import Embedded
from convergence.concurrency import Executor
from convergence.config import (
    DatabaseSettings,
    EngineSettings,
    LimitSettings,
    LocalProviderSettings,
    Settings,
    TransportSettings,
    WorkerSettings,
)
from convergence.db.connections.database import connect
from convergence.db.schema import migration

LONG_S = 60.0
HOST = 'localhost:8004'
BASE = f'http://{HOST}/v1'

TEMPLATE = """
heat_template_version: 2018-08-31
description: two resources, one after the other
parameters:
  text: {type: string, default: hello}
  secret: {type: string, default: canary-9271, hidden: true}
resources:
  first: {type: OS::Heat::TestResource, properties: {value: {get_param: text}}}
  second: {type: OS::Heat::Value, properties: {value: {get_attr: [first, output]}}}
outputs:
  shown: {description: what was said, value: {get_attr: [second, value]}}
"""


def waiting(seconds: float) -> dict[str, Any]:
    """A template whose resource takes its time to be made, and none to be removed."""
    properties = {'action_wait_secs': {'create': seconds}}
    resources = {'slow': {'type': 'OS::Heat::TestResource', 'properties': properties}}
    return {'heat_template_version': '2018-08-31', 'resources': resources}


def settings(directory: Path) -> Settings:
    """Everything below `directory`, and quick."""
    return Settings(
        host='here',
        executor=Executor.THREADING,
        state_dir=directory,
        database=DatabaseSettings(f'sqlite:///{directory}/convergence.sqlite', max_retries=0),
        transport=TransportSettings(),
        engine=EngineSettings(sweep_interval_s=0.2, cancel_patience_s=0.5),
        worker=WorkerSettings(workers=2, poll_interval_min_s=0.01, poll_interval_max_s=0.05),
        limits=LimitSettings(),
        local_provider=LocalProviderSettings(True, directory / 'local', {}),
    )


@cache
def _migrated() -> bytes:
    """The file of an SQLite database with the tables of the present version, and nothing else."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / 'convergence.sqlite'
        engine = connect(f'sqlite:///{path}')
        migration.sync(engine)
        engine.dispose()
        return path.read_bytes()


def spare_migration(directory: Path) -> None:
    """Put the database of `settings` into a directory, unless it is there: to make its tables is most of a first start."""
    path = directory / 'convergence.sqlite'
    if not path.exists():
        path.write_bytes(_migrated())


def empty_conf() -> cfg.ConfigOpts:
    """A configuration without any file."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    return conf


def application(engine: Any, authentication: Authentication = Authentication.NOAUTH, **options: Any) -> Application:
    """The application with the default policy."""
    followers = options.pop('followers', None) or Followers(options.pop('most', 4), poll_s=0.02)
    return Application(engine, Policy(Enforcer(empty_conf())), ApplicationOptions(authentication, **options), followers)


def client(wsgi: Any) -> testing.TestClient:
    """Asks an application in this process."""
    return testing.TestClient(wsgi, headers={'Host': HOST})


@dataclass(frozen=True)
class Api:
    """An installation with a client."""

    embedded: Embedded
    client: testing.TestClient

    def ask(self, method: str, path: str, **arguments: Any) -> testing.Result:
        """Send a request; a path without a slash at its beginning is one of the project `p`."""
        path = path if path.startswith('/') else f'/v1/p/{path}'
        return self.client.simulate_request(method, path, **arguments)

    def create(self, name: str, template: Any = TEMPLATE, *, wait: bool = True, project: str = 'p', **body: Any) -> str:
        """Create a stack; its path below the project, such as ``stacks/NAME/ID``."""
        made = self.ask('POST', f'/v1/{project}/stacks', json={'stack_name': name, 'template': template, **body})
        assert made.status_code == 201, made.text
        stack_id = made.json['stack']['id']
        if wait:
            self.wait(name, stack_id, project)
        return f'stacks/{name}/{stack_id}'

    def wait(self, name: str, stack_id: str, project: str = 'p') -> dict[str, Any]:
        """Wait for the operation on a stack to end."""
        return self.embedded.wait({'tenant': project, 'stack_name': name, 'stack_id': stack_id}, LONG_S)

    def settle(self, path: str) -> dict[str, Any]:
        """Wait for the operation on the stack of a path to end."""
        _, name, stack_id = path.split('/')
        return self.wait(name, stack_id)


@contextlib.contextmanager
def installed(directory: Path, **changed: Any) -> Iterator[Api]:
    """An installation of one process with a client that needs no server.

    :param changed: parts of the settings that differ from the usual ones.
    """
    spare_migration(directory)
    with Embedded(replace(settings(directory), **changed)) as embedded:
        yield Api(embedded, client(application(embedded.client)))


def verified(api: Api, project: str = 'p', roles: str = 'member', **more: str) -> Any:
    """Return a client of a user whom keystonemiddleware has verified."""
    headers = {'X-Identity-Status': 'Confirmed', 'X-Project-Id': project, 'X-User-Id': 'u', 'X-Roles': roles, **more}
    asked = client(application(api.embedded.client, Authentication.KEYSTONE))

    def ask(method: str, path: str, **arguments: Any) -> testing.Result:
        return asked.simulate_request(method, path, headers=headers, **arguments)

    return ask


def lines(result: testing.Result) -> list[dict[str, Any]]:
    """The events of a stream."""
    return [json.loads(line[6:]) for line in result.text.splitlines() if line.startswith('data: ')]
