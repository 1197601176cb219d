"""Convergence before the control plane: an API, engines and workers, and users who have stacks and look at their cloud."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from convergence_simulator.real.launcher import QUICK, LaunchedProcess, Launcher, merged

from tests.chaos.cluster_servers import free_ports
from tests.chaos.failpoints import VARIABLE
from tests.chaos.installation import Points
from tests.openstack import contents
from tests.openstack.configuration import account
from tests.openstack.layout import Layout
from tests.openstack.process import REQUESTS, TYPES
from tests.services import SERVICES, unique_name

ROOT = Path(__file__).parents[2]
SERVICE_UNAVAILABLE = 503
PATIENCE_S = 600.0
"""For how long a stack that ought to end is waited for, on a machine that is busy with other things."""


class Installation(Launcher):
    """An API, engines and workers; what has died is started again while somebody waits for a stack.

    :param directory: for what they write.
    :param urls: of the database and the broker.
    :param types: the package whose types are tried out, by its manifest.
    :ivar requests: the file in which each request of theirs to a service has a line.
    """

    def __init__(self, layout: Layout, directory: Path, urls: tuple[str, str], types: str = 'heat') -> None:
        database_url, rabbit_url = urls
        (port,) = free_ports(1)
        self._url = f'http://127.0.0.1:{port}'
        self.layout = layout
        sections = {
            'DEFAULT': {'executor': 'threading', 'control_exchange': unique_name()},
            'database': {'connection': database_url},
            'transport': {'url': rabbit_url},
            'api': {'port': port, 'public_url': self._url, 'authentication': 'keystone'},
            'keystone_authtoken': account(layout, 'convergence') | {'www_authenticate_uri': layout.auth_url},
            'trustee': {'auth_section': 'keystone_authtoken'},
            'plugins': {'prefer': types},
            'credentials': {'method': 'trusts', 'delegated_roles': 'member'},
            # What a worker that was killed has asked for may still be on its way to a service for so long: where less was
            # waited for on a busy machine, what Neutron and Nova had not shown yet was left there.
            'engine': {
                'create_ambiguity_s': 15,
                'lease_s': 5,
                'enable_stack_abandon': True,
                'enable_stack_adopt': True,
            },
            'worker': {'threads': 8, 'poll_interval_max_s': 2, 'park_after_s': 2},
        }
        environment = {'PYTHONPATH': str(ROOT), 'HOME': str(directory), 'PYTHONWARNINGS': 'ignore'}
        super().__init__(directory, merged(QUICK, sections), environment, special='tests.openstack.process')
        self.points = Points(directory / 'failpoints')
        self.requests = directory / 'requests'
        self.environment |= {VARIABLE: str(self.points.directory), TYPES: types, REQUESTS: str(self.requests)}
        self._counts = {'engine': 0, 'worker': 0}
        self._api: LaunchedProcess | None = None

    def begin(self, engines: int = 1, workers: int = 1) -> None:
        """Prepare the database, and have so many processes at work."""
        synced = self.manage('db', 'sync')
        assert synced.returncode == 0, synced.stderr
        self._api = self.launch('api')
        self._counts = {'engine': engines, 'worker': workers}
        self.fill(engines, workers)
        self._api.ready()

    def mend(self) -> None:
        """Start again what has died; nobody waits for it."""
        for kind, count in self._counts.items():
            processes = self.of(kind)
            self.gone += [each for each in processes if not each.running()]
            processes[:] = [each for each in processes if each.running()]
            processes += [self.launch(kind) for _ in range(count - len(processes))]

    def end(self) -> None:
        """End all processes."""
        if self._api is not None and self._api.running():
            self._api.end()
        self.stop(20.0)

    def user(self, name: str = '') -> User:
        """A new user with a project of his own.

        :param name: empty: one that nobody has.
        """
        name = name or unique_name()
        user_id, project_id = contents.user(self.layout, name)
        return User(self, name, user_id, project_id)

    def colleague(self, of: User) -> User:
        """A new user in the project of another one."""
        name = unique_name()
        return User(self, name, contents.colleague(self.layout, name, of.project_id), of.project_id, of.project)

    def url(self, project_id: str) -> str:
        """The API as a project has it."""
        return f'{self._url}/v1/{project_id}'


class User:
    """Somebody with a project.

    :param project: its name; empty: that of the user.
    :ivar cloud: what he has at the services, as openstacksdk has it.
    """

    def __init__(self, installation: Installation, name: str, user_id: str, project_id: str, project: str = '') -> None:
        self.installation = installation
        self.name, self.id, self.project_id, self.project = name, user_id, project_id, project or name
        self.cloud = contents.connection(installation.layout, name, self.project)

    def ask(self, method: str, path: str, json: Any = None, status: int | None = None) -> Any:
        """Send Convergence a request; the body of its answer.

        :param status: which it must be; None: one of success.
        """
        url = f'{self.installation.url(self.project_id)}/{path}'
        answer = self.cloud.session.request(url, method, json=json, raise_exc=False)
        while method == 'GET' and answer.status_code == SERVICE_UNAVAILABLE and status is None:
            self.installation.mend()  # the engine may have been killed, too
            time.sleep(float(answer.headers['Retry-After']))
            answer = self.cloud.session.request(url, method, json=json, raise_exc=False)
        expected = answer.status_code == status if status else answer.ok
        assert expected, f'{method} {path}: {answer.status_code} {answer.text}'
        return answer.json() if answer.content else None

    def create(self, name: str, template: Mapping[str, Any] | str, **more: Any) -> Stack:
        """Ask for a stack."""
        made = self.ask('POST', 'stacks', {'stack_name': name, 'template': template, **more})
        return Stack(self, name, made['stack']['id'])

    def has(self, stack: Stack) -> Stack:
        """A stack of the project, as this user has it."""
        return Stack(self, stack.name, stack.id)

    def trusts(self) -> list[str]:
        """The ids of the trusts in which he lets somebody act for him, as an administrator sees them."""
        layout = self.installation.layout
        url = f'{layout.auth_url}/OS-TRUST/trusts?trustor_user_id={self.id}'
        listed = contents.connection(layout).session.get(url).json()['trusts']
        return [str(each['id']) for each in listed]

    def things(self) -> dict[str, int]:
        """How many objects of each sort the project has at the services; what is not there is left out."""
        network, compute, volumes = self.cloud.network, self.cloud.compute, self.cloud.block_storage
        project = {'project_id': self.project_id}
        found = {
            'networks': network.networks(**project),
            'subnets': network.subnets(**project),
            'ports': network.ports(**project),
            'routers': network.routers(**project),
            'floating IPs': network.ips(**project),
            'security groups': (each for each in network.security_groups(**project) if each.name != 'default'),
            'subnet pools': network.subnet_pools(**project),
            'servers': compute.servers(),
            'key pairs': compute.keypairs(),
            'server groups': compute.server_groups(),
            'volumes': volumes.volumes(),
            'snapshots': volumes.snapshots(),
        }
        counted = Counter({sort: sum(1 for _ in things) for sort, things in found.items()})
        return dict(+counted)


@dataclass(frozen=True)
class Stack:
    """A stack of a user."""

    user: User
    name: str
    id: str

    @property
    def path(self) -> str:
        """Behind the project."""
        return f'stacks/{self.name}/{self.id}'

    def show(self) -> dict[str, Any]:
        """What the API shows of it."""
        shown: dict[str, Any] = self.user.ask('GET', self.path)['stack']
        return shown

    def ended(self, state: str, limit_s: float = PATIENCE_S) -> Stack:
        """Wait until it is not in progress any more, and see that it is in a state then."""
        ends = time.monotonic() + limit_s
        while (shown := self.show())['stack_status'].endswith('IN_PROGRESS'):
            self.user.installation.mend()
            assert time.monotonic() < ends, f'{self.name} is still {shown["stack_status"]}: {self._explained()}'
            time.sleep(1)
        told = f'{shown["stack_status"]} {shown["stack_status_reason"]}'
        assert shown['stack_status'] == state, f'{self.name} is {told}: {self._explained()}'
        return self

    def update(self, template: Mapping[str, Any] | str, **more: Any) -> Stack:
        """Ask for something else."""
        self.user.ask('PUT', self.path, {'template': template, **more})
        return self

    def act(self, action: str, **arguments: Any) -> Stack:
        """Ask for an action."""
        self.user.ask('POST', f'{self.path}/actions', {action: arguments or None})
        return self

    def delete(self) -> None:
        """Have it removed, and wait until it is."""
        self.user.ask('DELETE', self.path)
        self.ended('DELETE_COMPLETE')

    def resource(self, name: str) -> dict[str, Any]:
        """One of its resources."""
        shown: dict[str, Any] = self.user.ask('GET', f'{self.path}/resources/{name}')['resource']
        return shown

    def ids(self) -> dict[str, str]:
        """The ids of the objects of its resources."""
        listed = self.user.ask('GET', f'{self.path}/resources')['resources']
        return {each['resource_name']: each['physical_resource_id'] for each in listed}

    def _explained(self) -> str:
        listed = self.user.ask('GET', f'{self.path}/resources')['resources']
        odd = {
            each['resource_name']: f'{each["resource_status"]} {each["resource_status_reason"]}'
            for each in listed
            if not each['resource_status'].endswith('COMPLETE')
        }
        return json.dumps(odd, indent=1)


@contextmanager
def installed(
    layout: Layout, directory: Path, engines: int = 1, workers: int = 1, types: str = 'heat'
) -> Iterator[Installation]:
    """An installation with a database of its own in the PostgreSQL of this machine, on its RabbitMQ."""
    server = SERVICES.get('postgresql')
    url = server.create()
    try:
        installation = Installation(layout, directory, (url, SERVICES.get('rabbit').url), types)
        try:
            installation.begin(engines, workers)
            yield installation
        finally:
            installation.end()
    finally:
        server.drop(urlsplit(url).path.lstrip('/'))


def eventually(look: Callable[[], Any], what: str, limit_s: float = PATIENCE_S) -> Any:
    """What `look` gives as soon as that is true of anything."""
    ends = time.monotonic() + limit_s
    while not (seen := look()):
        assert time.monotonic() < ends, f'{what}: not within {limit_s:g} s'
        time.sleep(0.3)
    return seen
