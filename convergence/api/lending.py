"""Has credentials made for operations after which a stack acts for its user.

The token of the user is shown to Keystone here, and goes nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from convergence import errors
from convergence.api.calls import ApiCall
from convergence.credentials.issuing import Issuer
from convergence.documents import Document
from convergence.rpc.engine_api import EngineApi

LOG = logging.getLogger(__name__)

R = TypeVar('R')


def lent(
    call: ApiCall,
    ask: Callable[[Mapping[str, Any] | None], R],
    *,
    stack_identity: Mapping[str, str] | None = None,
) -> R:
    """Have an engine carry out an operation that brings credentials of the user for its stack.

    :param ask: asks it, with the credentials, or None where there are to be none.
    :param stack_identity: the stack that there is already; where it has those credentials nothing is made.
    :raises CredentialsRefused: the user, or the token, may not pass on what is needed.
    :raises KeystoneUnavailable: Keystone does not answer; nothing was changed.
    """
    issuer = call.issuer
    if issuer is None:
        return ask(None)
    return _with(call, ask, _made(call, issuer, stack_identity))


def lent_to_ask(call: ApiCall, ask: Callable[[Mapping[str, Any] | None], Document]) -> Document:
    """Ask about a stack that is not there yet. Where resource types would ask their services for the user, and have
    nothing to act with, they get credentials that are made for this one request, and removed after it.

    Nothing depends on what is told then: where there can be none, it is told without.
    """
    document = ask(None)
    if not document.pop('wants_credentials', False) or call.issuer is None:
        return document
    try:
        credentials = _made(call, call.issuer, None)
    except (errors.CredentialsRefused, errors.KeystoneUnavailable) as error:
        LOG.info('Nothing is asked of services for %s: %s', call.context.request_id, error)
        return document
    try:
        document = ask(credentials)
    finally:
        _discard(call, credentials['id'])
    document.pop('wants_credentials', None)
    return document


def repaired(call: ApiCall, ask: Callable[[Mapping[str, Any] | None], R], stack_identity: Mapping[str, str]) -> R:
    """The same for an operation that must not fail for want of credentials: the stack gets those of the user only where
    it cannot act with its own, and where they can be had.
    """
    issuer = call.issuer
    if issuer is None:
        return ask(None)
    try:
        made = _made(call, issuer, stack_identity, repair=True)
    except (errors.CredentialsRefused, errors.KeystoneUnavailable) as error:
        LOG.info('Stack %s keeps the credentials that it has: %s', stack_identity['stack_name'], error)
        return ask(None)
    return _with(call, ask, made)


def _made(
    call: ApiCall, issuer: Issuer, stack_identity: Mapping[str, str] | None, *, repair: bool | None = None
) -> dict[str, Any]:
    """The credentials that an operation brings: those that the stack has, or new ones."""
    draft = issuer.draft(call.context.roles)
    planned = call.ask(
        EngineApi.plan_credentials,
        kind=draft.method.value,
        roles=list(draft.roles),
        secret=issuer.sealed(draft),
        stack_identity=stack_identity,
        repair=repair,
    )
    if planned['exists']:
        return {'id': planned['id']}
    user = {
        'user_id': str(call.context.user_id),
        'project_id': str(call.context.project_id),
        'token': call.headers.get('x-auth-token', ''),
    }
    try:
        return {'id': planned['id'], 'made': issuer.make(draft, planned['id'], user)}
    except errors.UserError:
        _discard(call, planned['id'])
        raise


def _with(call: ApiCall, ask: Callable[[Mapping[str, Any] | None], R], credentials: dict[str, Any]) -> R:
    try:
        return ask(credentials)
    except errors.UserError:
        if 'made' in credentials:
            _discard(call, credentials['id'])
        raise


def _discard(call: ApiCall, credentials_id: str) -> None:
    """Nobody will need them. Only where it is known what has become of them: what may still be on its way settles."""
    try:
        call.ask(EngineApi.discard_credentials, credentials_id=credentials_id)
    except errors.ConvergenceError as error:
        LOG.info('Credentials %s of a refused request are removed later: %s', credentials_id, error)
