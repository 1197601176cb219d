"""Who asks.

With Keystone, keystonemiddleware stands before the application and says so in headers, which it removes when they
come from outside. Without, the project is the one of the URL, and only one account of this machine is let in: the
client's address must be a loopback address, the request must have been meant for this machine, and it must bring the
token that only this account can read. Every account of the machine can reach the address. A page in a browser can send
requests to it too, but it knows no token, and it cannot give them another origin or the name of another host.
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
"""Beginnings of the headers in which keystonemiddleware says who asks."""


class Authentication(StrEnum):
    """How the API knows who asks. The value is that of the option."""

    NOAUTH = 'noauth'
    KEYSTONE = 'keystone'


def new_request_id() -> str:
    """By what a request is known in answers and logs."""
    return f'req-{uuid.uuid4()}'


def strip_identity(environ: dict[str, Any]) -> None:
    """Remove what only keystonemiddleware may say, where it does not stand before the application."""
    for name in [name for name in environ if name.startswith(_PREFIXES)]:
        del environ[name]


def context_of(
    authentication: Authentication, environ: Mapping[str, Any], project_id: str, request_id: str, token: str = ''
) -> CallerContext:
    """Who asks, for a request about a project.

    :param token: that a request must bring where nobody else verifies who asks; empty: none.
    :raises HttpProblem: 401, nobody has verified who it is, or the token is wrong.
    :raises Forbidden: it is somebody else than the project's people, or not on this machine.
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
        # keystonemiddleware adds the header that says where a token can be had.
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
    """Whether an address or a name is that of this machine for itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'
