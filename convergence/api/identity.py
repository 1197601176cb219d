"""Identity of the caller.

With Keystone, keystonemiddleware runs before the application and sets headers with the identity; it removes such
headers of a client. Without Keystone the URL names the project, and only one account of this machine has access: the
client must have a loopback address, the host of the request must be this machine, and the request must carry the token
that only this account can read. Every account of the machine can reach the address. A page in a browser can send
requests to it too, but it does not know the token and cannot forge the origin or the host.
"""

from __future__ import annotations

import hmac
import uuid
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from convergence.api.faults import HttpProblem
from convergence.errors import Forbidden
from convergence.rpc.context import CallerContext

_PREFIXES = (
    'HTTP_X_USER',
    'HTTP_X_PROJECT',
    'HTTP_X_TENANT',
    'HTTP_X_ROLE',
    'HTTP_X_IDENTITY',
    'HTTP_X_SERVICE',
    'HTTP_X_DOMAIN',
    'HTTP_X_IS_ADMIN',
    'HTTP_X_TRUST',
    'HTTP_X_SYSTEM',
    'HTTP_OPENSTACK_SYSTEM',
)
"""Prefixes of the headers with the identity that keystonemiddleware sets."""


class Authentication(StrEnum):
    """How the API identifies callers; the values of the option."""

    NOAUTH = 'noauth'
    KEYSTONE = 'keystone'


def new_request_id() -> str:
    """Return a new id of a request for answers and logs."""
    return f'req-{uuid.uuid4()}'


def strip_identity(environ: dict[str, Any]) -> None:
    """Remove the headers of keystonemiddleware if it does not run before the application."""
    for name in [name for name in environ if name.startswith(_PREFIXES)]:
        del environ[name]


def context_of(
    authentication: Authentication, environ: Mapping[str, Any], project_id: str, request_id: str, token: str = ''
) -> CallerContext:
    """Return the context of the caller for a request about a project.

    :param token: that a request must carry without Keystone; empty: none.
    :raises HttpProblem: 401 for an unverified caller, or a wrong token.
    :raises Forbidden: the caller belongs to another project, or is not on this machine.
    """
    if authentication is Authentication.NOAUTH:
        _require_local(environ)
        _require_token(environ, token)
        return CallerContext(
            request_id=request_id,
            user_id='noauth',
            project_id=project_id,
            roles=['admin', 'member', 'reader'],
        )
    if environ.get('HTTP_X_IDENTITY_STATUS') != 'Confirmed':
        # keystonemiddleware adds the header with the address of Keystone.
        raise HttpProblem(HTTPStatus.UNAUTHORIZED, 'Authentication required')
    verified = environ.get('HTTP_X_PROJECT_ID') or ''
    if verified != project_id:
        raise Forbidden('You are not authorized to use the project of this URL; the token is for another one.')
    return CallerContext(
        request_id=request_id,
        user_id=environ.get('HTTP_X_USER_ID'),
        project_id=verified,
        roles=[role.strip() for role in environ.get('HTTP_X_ROLES', '').split(',') if role.strip()],
    )


def _require_local(environ: Mapping[str, Any]) -> None:
    origin = environ.get('HTTP_ORIGIN')
    local = (
        is_loopback(environ.get('REMOTE_ADDR') or '127.0.0.1')
        and is_loopback(_host_of(f'//{environ.get("HTTP_HOST", "localhost")}'))
        and (origin is None or is_loopback(_host_of(origin)))
    )
    if not local:
        raise Forbidden(
            'This API serves requests that come from its own machine, for localhost, and no others. '
            'Configure [api] authentication = keystone to let others in.'
        )


def _require_token(environ: Mapping[str, Any], token: str) -> None:
    given = str(environ.get('HTTP_X_AUTH_TOKEN') or '')
    if token and not hmac.compare_digest(given.encode(errors='replace'), token.encode()):
        raise HttpProblem(
            HTTPStatus.UNAUTHORIZED,
            'Authentication required: this API serves the account that it runs as. The token is in the file "token" of '
            'its data directory; send it as X-Auth-Token, which clients take from OS_TOKEN or CONVERGENCE_TOKEN',
        )


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ''
    except ValueError:
        return ''


def is_loopback(host: str) -> bool:
    """Return True for a loopback address or name."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'
