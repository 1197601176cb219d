"""Tokens from Keystone. No other module of the command line imports keystoneauth1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from convergence.cli.exits import Refused, Unreachable, UsageMistake

SERVICE = 'orchestration'
NOT_LISTED = f'{{}}: the catalog of Keystone has no {SERVICE} service for this region. Set endpoint.'
_ABOUT_US = ('auth_type', 'endpoint', 'region_name', 'interface')


@dataclass(frozen=True, slots=True)
class Login:
    """The result of a login.

    :param token: returns a valid token. It raises the errors of `log_in` if it has to renew the token.
    """

    endpoint: str
    project_id: str
    token: Callable[[], str]


def log_in(options: Mapping[str, str], source: str, ca: str) -> Login:
    """Log in, and read the endpoint from the catalog unless `options` have one.

    :param options: the options of clouds.yaml, and those of `_ABOUT_US`.
    :param source: the origin of the options, for messages.
    :raises UsageMistake: options are missing or wrong, or keystoneauth1 is not installed.
    :raises Refused: Keystone does not accept the credentials.
    :raises Unreachable: Keystone does not answer, or its catalog has no orchestration service.
    """
    try:
        from keystoneauth1 import loading, session
    except ImportError:
        raise UsageMistake(
            f'{source} needs keystoneauth1 to log in to Keystone: pip install convergence-orchestration[keystone].'
        ) from None
    given = {name: value for name, value in options.items() if name not in _ABOUT_US}
    with as_usage_mistakes(source):
        kind = options.get('auth_type') or _kind(given)
        if kind.endswith('password') and not given.get('password'):
            raise UsageMistake(f'{source} has no password. Set OS_PASSWORD, or password under auth.')
        loader: Any = loading.get_plugin_loader(kind)
        known = {option.dest for option in loader.get_options()}
        plugin = loader.load_from_options(**{name: value for name, value in given.items() if name in known})
        opened = session.Session(auth=plugin, verify=ca or True)
        endpoint = options.get('endpoint') or opened.get_endpoint(
            service_type=SERVICE,
            region_name=options.get('region_name') or None,
            interface=options.get('interface') or 'public',
        )
        project_id = opened.get_project_id() or ''
    if not endpoint:
        raise Unreachable(NOT_LISTED.format(source))

    def token() -> str:
        with as_usage_mistakes(source):
            return str(opened.get_token())

    return Login(endpoint, project_id, token)


@contextmanager
def as_usage_mistakes(source: str) -> Iterator[None]:
    """Translate the errors of keystoneauth1."""
    from keystoneauth1 import exceptions

    try:
        yield
    except (exceptions.OptionError, exceptions.NoMatchingPlugin, exceptions.AuthPluginException) as error:
        raise UsageMistake(f'{source}: {error}') from None
    except (exceptions.Unauthorized, exceptions.Forbidden) as error:
        raise Refused(f'{source}: Keystone does not accept the credentials: {error}') from None
    except exceptions.CatalogException:
        raise Unreachable(NOT_LISTED.format(source)) from None
    except exceptions.ClientException as error:
        raise Unreachable(f'{source}: Keystone does not answer as expected: {error}') from None


def _kind(options: Mapping[str, str]) -> str:
    if 'application_credential_secret' in options:
        return 'v3applicationcredential'
    return 'token' if 'token' in options and 'password' not in options else 'password'
