"""Translates errors of services into failures of the contract, with a remedy for the user."""

from __future__ import annotations

import requests
from keystoneauth1 import exceptions as keystone
from openstack.exceptions import HttpException, SDKException

from convergence.core.model import Action
from convergence.resources.contract import (
    FinalFailure,
    ObjectNotFound,
    OutcomeUnknown,
    PluginFailure,
    TransientFailure,
)

BUSY = frozenset({408, 413, 425, 429, 500, 502, 503, 504})
"""Status codes of temporary failures: the same request may succeed later."""

_ADVICE = {
    401: 'the service refuses the token of the stack; update the stack to renew its credentials',
    403: 'the roles of the user of the stack do not allow it; request them, and update the stack',
    404: 'something that it needs is not there; see that the ids and names in its properties exist',
    409: 'something else has it, or is being changed; remove that or wait, and update the stack',
}
_QUOTA = 'raise the quota, or delete unused objects'


def status_of(error: Exception) -> int | None:
    """Return the status code of an answer; None without an answer."""
    value = getattr(error, 'http_status', None) or getattr(error, 'status_code', None)
    return value if isinstance(value, int) else None


def may_pass(error: Exception) -> bool:
    """Return True if the same request may succeed later: a service is down or overloaded, or a quota is used up."""
    if isinstance(error, (keystone.ConnectFailure, requests.ConnectionError, requests.Timeout)):
        return True
    return status_of(error) in BUSY or is_quota(error)


def is_quota(error: Exception) -> bool:
    """Return True if a quota is used up."""
    return status_of(error) in (403, 409, 413) and 'quota' in _said(error).lower()


def failure_of(error: Exception, action: Action, subject: str, *, is_unsure: bool) -> PluginFailure:
    """Return the failure to raise for an error.

    :param subject: the type and the name of the resource.
    :param is_unsure: True if a request may have made an object without a confirmation, and no other search covers it.
    """
    if isinstance(error, PluginFailure):
        return error
    text = f'{subject}: {_said(error)}'
    if status_of(error) == 404 and action in (Action.DELETE, Action.CHECK):
        return ObjectNotFound(text)
    if is_unsure:
        return OutcomeUnknown(text)
    if may_pass(error) or (status_of(error) == 409 and action is Action.DELETE):
        return TransientFailure(f'{text} ({_QUOTA})' if is_quota(error) else text)
    advice = _ADVICE.get(status_of(error) or 0)
    return FinalFailure(f'{text} ({advice})' if advice else text)


def _said(error: Exception) -> str:
    """Return the text of the service, without its address."""
    if isinstance(error, HttpException):
        said = error.details or error.message or type(error).__name__
        return f'{said} (HTTP {error.status_code})'
    if isinstance(error, SDKException):
        return str(error.message or type(error).__name__)
    return f'{type(error).__name__}: {error}'
