"""Has credentials made for operations after which a stack acts for its user.

The token of the user is shown to Keystone here, and goes nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from convergence import errors
from convergence.api.calls import ApiCall
from convergence.rpc.engine_api import EngineApi

LOG = logging.getLogger(__name__)

R = TypeVar('R')


def lent(
    call: ApiCall,
    ask: Callable[[Mapping[str, Any] | None], R],
    *,
    stack_identity: Mapping[str, str] | None = None,
    repair: bool | None = None,
) -> R:
    """Have an engine carry out an operation that may bring credentials for its stack.

    :param ask: asks it, with the credentials, or None where there are to be none.
    :param stack_identity: the stack that there is already; where it has fitting credentials nothing is made.
    :param repair: whether it is enough that the stack can act with those that it has, whoever's they are.
    :raises CredentialsRefused: the user, or the token, may not pass on what is needed.
    :raises KeystoneUnavailable: Keystone does not answer; nothing was changed.
    """
    issuer = call.issuer
    if issuer is None:
        return ask(None)
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
        return ask({'id': planned['id']})
    user = {
        'user_id': str(call.context.user_id),
        'project_id': str(call.context.project_id),
        'token': call.headers.get('x-auth-token', ''),
    }
    try:
        made = issuer.make(draft, planned['id'], user)
        return ask({'id': planned['id'], 'made': made})
    except (errors.UserError, errors.KeystoneUnavailable):
        _discard(call, planned['id'])
        raise


def _discard(call: ApiCall, credentials_id: str) -> None:
    try:
        call.ask(EngineApi.discard_credentials, credentials_id=credentials_id)
    except errors.ConvergenceError as error:
        LOG.info('Credentials %s of a refused request are removed later: %s', credentials_id, error)
