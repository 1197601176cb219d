"""What an error of a service means to the engine, and what a user can do about it."""

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
"""What a service answers that may answer otherwise in a while."""

_ADVICE = {
    401: 'the token of the stack is refused; update the stack to act for you anew',
    403: 'the roles of the user of the stack do not allow it; ask for them, and update the stack',
    404: 'something that it needs is not there; see that the ids and names in its properties exist',
    409: 'something else has it, or is being changed; remove that or wait, and update the stack',
}
_QUOTA = 'raise the quota, or remove what is not needed'


def status_of(error: Exception) -> int | None:
    """What a service has answered; None: nothing."""
    value = getattr(error, 'http_status', None) or getattr(error, 'status_code', None)
    return value if isinstance(value, int) else None


def may_pass(error: Exception) -> bool:
    """Whether the same may work later: a service is away or has too much to do, or a quota is used up."""
    if isinstance(error, (keystone.ConnectFailure, requests.ConnectionError, requests.Timeout)):
        return True
    return status_of(error) in BUSY or is_quota(error)


def is_quota(error: Exception) -> bool:
    """Whether a quota is used up."""
    return status_of(error) in (403, 409, 413) and 'quota' in _said(error).lower()


def failure_of(error: Exception, action: Action, subject: str, *, is_unsure: bool) -> PluginFailure:
    """The failure to raise for an error.

    :param subject: the type and the name of the resource.
    :param is_unsure: something may have been made of which no service has said so, and nobody looks for it otherwise.
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
    """What the service has said, without the address at which it said it."""
    if isinstance(error, HttpException):
        said = error.details or error.message or type(error).__name__
        return f'{said} (HTTP {error.status_code})'
    if isinstance(error, SDKException):
        return str(error.message or type(error).__name__)
    return f'{type(error).__name__}: {error}'
