"""Selects the server and the credentials for a command.

The first of these sources wins:

1. the option ``--endpoint``, ``--server`` with a name from the configuration file, or ``--os-cloud`` with a name from
   ``clouds.yaml``;
2. the variables ``CONVERGENCE_ENDPOINT`` or ``CONVERGENCE_SERVER``;
3. the variables of OpenStack clients: ``OS_CLOUD``, ``OS_ENDPOINT``, or ``OS_AUTH_URL`` for Keystone;
4. the server ``default`` of the configuration file;
5. a running ``convergence serve`` on this machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from convergence.cli.connection import local_servers
from convergence.cli.connection.own_server import OwnServer
from convergence.cli.exits import Unreachable, UsageMistake
from convergence.errors import ConvergenceError
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import read

PROJECT = 'default'
"""The default project."""
_VERSION = re.compile(r'/v1(?:/(?P<project>[^/]+))?/*$')

TokenSource = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Target:
    """A server with the credentials for it.

    :param url: URL of the API with version and project, without a slash at the end.
    :param token: returns the token for requests, empty if they need none. It may log in to Keystone.
    :param source: the option, variable or file that selected the server, for messages.
    :param ca: file with certificates to trust; empty: those of the system.
    :param elsewhere: the data directory of a server that was found outside the working directory; empty otherwise.
    """

    url: str
    source: str
    token: TokenSource = field(default=lambda: '', repr=False)
    ca: str = ''
    elsewhere: str = ''

    @property
    def is_local(self) -> bool:
        """True if the server is on this machine."""
        host = urlsplit(self.url).hostname or ''
        return host in ('localhost', '::1') or host.startswith('127.')


@dataclass(frozen=True, slots=True)
class ServerArguments:
    """The options that select the server; empty: not given."""

    endpoint: str = ''
    project: str = ''
    token: str = field(default='', repr=False)
    server: str = ''
    cloud: str = ''


def find(wish: ServerArguments, environment: Mapping[str, str], directory: Path) -> Target:
    """Return the selected server.

    :param directory: the working directory of the command.
    :raises UsageMistake: an option, a variable or the configuration file is wrong.
    :raises Unreachable: no server is named, and none runs on this machine.
    """
    project = wish.project or environment.get('CONVERGENCE_PROJECT', '')
    token = wish.token or environment.get('CONVERGENCE_TOKEN', '') or environment.get('OS_TOKEN', '')
    if wish.endpoint:
        return _with_own_token(_target(wish.endpoint, project, token, '--endpoint'), environment, directory)
    if wish.server:
        return _configured(wish.server, project, token, environment, directory)
    if wish.cloud:
        return _from_clouds(wish.cloud, '--os-cloud')
    if endpoint := environment.get('CONVERGENCE_ENDPOINT', ''):
        target = _target(endpoint, project, token, 'CONVERGENCE_ENDPOINT')
        return _with_own_token(target, environment, directory)
    if server := environment.get('CONVERGENCE_SERVER', ''):
        return _configured(server, project, token, environment, directory)
    if cloud := environment.get('OS_CLOUD', ''):
        return _from_clouds(cloud, 'OS_CLOUD')
    project = project or environment.get('OS_PROJECT_ID', '')
    if endpoint := environment.get('OS_ENDPOINT', ''):
        return _with_own_token(_target(endpoint, project, token, 'OS_ENDPOINT'), environment, directory)
    if environment.get('OS_AUTH_URL') and environment.get('OS_AUTH_TYPE') not in ('none', 'admin_token'):
        return _from_keystone(_auth_of(environment), 'OS_AUTH_URL', environment.get('OS_CACERT', ''))
    if default := _configuration(environment).get('default'):
        return _configured(str(default), project, token, environment, directory)
    return _served(project, environment, directory)


def _target(endpoint: str, project: str, token: str, source: str, ca: str = '') -> Target:
    parts = urlsplit(endpoint)
    if parts.scheme not in ('http', 'https') or not parts.hostname:
        raise UsageMistake(f'{source}: {endpoint!r} is not a URL such as http://127.0.0.1:8004.')
    whole = endpoint.rstrip('/')
    found = _VERSION.search(whole)
    if found is None:
        whole = f'{whole}/v1/{quote(project or PROJECT, safe="")}'
    elif found['project'] is None:
        whole = f'{whole}/{quote(project or PROJECT, safe="")}'
    elif project and found['project'] != quote(project, safe=''):
        raise UsageMistake(
            f'{source} names the project {found["project"]}, and --project names {project}. Use only one of them.'
        )
    return Target(whole, source, lambda: token, ca)


# --- the configuration file -----------------------------------------------------------------------------------


def configuration_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the configuration file of the command line."""
    named = environment.get('CONVERGENCE_CLIENT_CONFIG')
    base = environment.get('XDG_CONFIG_HOME') or str(Path.home() / '.config')
    return Path(named) if named else Path(base) / 'convergence' / 'cli.yaml'


def _configuration(environment: Mapping[str, str]) -> Mapping[str, Any]:
    path = configuration_path(environment)
    try:
        text = path.read_text(encoding='utf-8')
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageMistake(f'{path} cannot be read: {getattr(error, "strerror", None) or error}') from None
    problems = Problems()
    try:
        document = read(text, str(path), Limits(), problems)
        problems.raise_any()
    except ConvergenceError as error:
        raise UsageMistake(f'{path} cannot be used: {error}') from None
    root = document.root
    if root is None:
        return {}
    if not isinstance(root, dict) or not isinstance(root.get('servers', {}), dict):
        raise UsageMistake(
            f'{path} must be a map with "servers" (a map of servers by name) and "default" (the name of one).'
        )
    return root


def _configured(name: str, project: str, token: str, environment: Mapping[str, str], directory: Path) -> Target:
    path = configuration_path(environment)
    servers: Mapping[str, Any] = _configuration(environment).get('servers') or {}
    found = servers.get(name)
    if not isinstance(found, dict):
        known = f'its servers: {", ".join(map(str, servers))}' if servers else 'it has no servers'
        raise UsageMistake(f'{path} has no server "{name}"; {known}.')
    source, ca = f'server "{name}" of {path}', str(found.get('cacert') or '')
    if isinstance(found.get('auth'), dict):
        auth = {key: str(value) for key, value in found['auth'].items()}
        more = {'auth_type': found.get('auth_type', 'password'), 'endpoint': found.get('endpoint', '')}
        region = {'region_name': str(found.get('region_name') or ''), 'interface': str(found.get('interface') or '')}
        return _from_keystone({**auth, **more, **region}, source, ca)
    if not found.get('endpoint'):
        raise UsageMistake(f'The {source} has neither "endpoint" nor "auth".')
    chosen = project or str(found.get('project') or '')
    target = _target(str(found['endpoint']), chosen, token or str(found.get('token') or ''), source, ca)
    return _with_own_token(target, environment, directory)


# --- Keystone -------------------------------------------------------------------------------------------------

_OS_OPTIONS = re.compile(
    r'OS_(AUTH_URL|AUTH_TYPE|ENDPOINT|REGION_NAME|INTERFACE|TOKEN|USER_ID|USERNAME|PASSWORD|PASSCODE'
    r'|(?:USER_|PROJECT_)?DOMAIN_(?:ID|NAME)|DEFAULT_DOMAIN(?:_ID|_NAME)?|PROJECT_ID|PROJECT_NAME|TENANT_ID|TENANT_NAME'
    r'|TRUST_ID|SYSTEM_SCOPE|APPLICATION_CREDENTIAL_(?:ID|NAME|SECRET))'
)


def _auth_of(environment: Mapping[str, str]) -> dict[str, str]:
    named = {found[1].lower(): value for name, value in environment.items() if (found := _OS_OPTIONS.fullmatch(name))}
    return {name: value for name, value in named.items() if value}


def _from_keystone(auth: Mapping[str, str], source: str, ca: str) -> Target:
    from convergence.cli.connection import keystone

    login = keystone.log_in(auth, source, ca)
    return Target(_target(login.endpoint, login.project_id, '', source).url, source, login.token, ca)


def _from_clouds(name: str, source: str) -> Target:
    from convergence.cli.connection import clouds

    login, ca = clouds.log_in(name, source)
    return Target(_target(login.endpoint, login.project_id, '', source).url, source, login.token, ca)


# --- this machine ---------------------------------------------------------------------------------------------


def _served(project: str, environment: Mapping[str, str], directory: Path) -> Target:
    copies = local_servers.registry(dict(environment))
    if (server := local_servers.find(directory)) is not None:
        return _own(server, project)
    found = local_servers.running(copies)
    if not found:
        raise Unreachable(
            'No server is selected, and none runs on this machine. Start one with "convergence serve", or select one '
            'with --endpoint URL or CONVERGENCE_ENDPOINT.'
        )
    if len(found) > 1:
        listed = ', '.join(f'{server.url} (data in {server.data})' for server in found)
        raise UsageMistake(f'Several servers run on this machine: {listed}. Select one with --endpoint URL.')
    return replace(_own(found[0], project), elsewhere=found[0].data)


def _own(server: local_servers.LocalServer, project: str) -> Target:
    target = _target(server.url, project, '', f'"convergence serve" with data in {server.data}')
    return _proven(target, Path(server.data)) if server.token_file else target


def _proven(target: Target, data: Path, given: str = '') -> Target:
    """Return the target with the token of the user's own server, which must prove its identity for each request."""
    parts = urlsplit(target.url)
    return replace(target, token=OwnServer(data, f'{parts.scheme}://{parts.netloc}', given).token)


def _with_own_token(target: Target, environment: Mapping[str, str], directory: Path) -> Target:
    """Add the token of the user's own server if the target is that server. Send that token to no other server."""
    copies, given = local_servers.registry(dict(environment)), target.token()
    if given:
        data = local_servers.data_of_token(given, copies)
        return _proven(target, data, given) if data is not None else target
    server = local_servers.served_at(target.url, directory, copies) if target.is_local else None
    if server is None:
        return target
    if urlsplit(server.url).scheme == 'http':
        # The name localhost may have several addresses, and another account may listen at one of them.
        target = replace(target, url=urlsplit(target.url)._replace(netloc=urlsplit(server.url).netloc).geturl())
    return _proven(target, Path(server.data)) if server.token_file else target


def from_process(wish: ServerArguments) -> Target:
    """Return the selected server, with the variables and working directory of this process."""
    return find(wish, os.environ, Path.cwd())
