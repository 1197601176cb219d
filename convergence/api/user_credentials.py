"""Creates credentials for operations after which a stack acts for its user.

Only this module sends the token of the user, and only to Keystone.
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


def with_user_credentials(
    call: ApiCall,
    ask: Callable[[Mapping[str, Any] | None], R],
    *,
    stack_identity: Mapping[str, str] | None = None,
) -> R:
    """Let an engine carry out an operation with credentials of the user for the stack.

    :param ask: sends the request, with the credentials, or None if stacks get none.
    :param stack_identity: an existing stack; if it has these credentials already, no new ones are created.
    :raises CredentialsRefused: the user, or the token, may not delegate the required roles.
    :raises KeystoneUnavailable: Keystone does not answer; nothing was changed.
    """
    issuer = call.issuer
    if issuer is None:
        return ask(None)
    return _with(call, ask, _made(call, issuer, stack_identity))


def query_with_user_credentials(call: ApiCall, ask: Callable[[Mapping[str, Any] | None], Document]) -> Document:
    """Send a query about a stack that does not exist yet.

    If resource types need credentials to query their services, temporary ones are created for this request and deleted
    after it. If that is not possible, the answer comes without the results of these services.
    """
    document = ask(None)
    if not document.pop('wants_credentials', False) or call.issuer is None:
        return document
    try:
        credentials = _made(call, call.issuer, None)
    except (errors.CredentialsRefused, errors.KeystoneUnavailable) as error:
        LOG.info(
            'No credentials for request %s, its answer lacks the results of services: %s',
            call.context.request_id,
            error,
        )
        return document
    try:
        document = ask(credentials)
    finally:
        _discard(call, credentials['id'])
    document.pop('wants_credentials', None)
    return document


def with_repaired_credentials(
    call: ApiCall, ask: Callable[[Mapping[str, Any] | None], R], stack_identity: Mapping[str, str]
) -> R:
    """Let an engine carry out an operation that must not fail because of missing credentials.

    The stack gets credentials of the user only if it cannot act with its own, and if they can be created.
    """
    issuer = call.issuer
    if issuer is None:
        return ask(None)
    try:
        made = _made(call, issuer, stack_identity, repair=True)
    except (errors.CredentialsRefused, errors.KeystoneUnavailable) as error:
        LOG.info('No new credentials for stack %s, it keeps its present ones: %s', stack_identity['stack_name'], error)
        return ask(None)
    return _with(call, ask, made)


def _made(
    call: ApiCall, issuer: Issuer, stack_identity: Mapping[str, str] | None, *, repair: bool | None = None
) -> dict[str, Any]:
    """Return the credentials for an operation: those of the stack, or new ones."""
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
    """Let an engine delete unused credentials. Call it only after a definite refusal by Keystone or by an engine."""
    try:
        call.ask(EngineApi.discard_credentials, credentials_id=credentials_id)
    except errors.ConvergenceError as error:
        LOG.info(
            'Credentials %s of a refused request not deleted yet, an engine deletes them later: %s',
            credentials_id,
            error,
        )
