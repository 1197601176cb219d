"""Signals of those who have no token: the URL, or a token that is good for one resource, shows that they may."""

from __future__ import annotations

from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.queries import flag
from convergence.rpc.engine_api import EngineApi
from convergence.signing import EXPIRES, SIGNATURE, proof_of

QUERY = (SIGNATURE, 'SignatureMethod', 'SignatureVersion', EXPIRES)
MAX_BODY_BYTES = 64 * 1024
"""Largest body of such a signal."""


def take(call: ApiCall) -> ApiAnswer:
    """Hand a signal to a resource, without a token: a signature in the URL, or as X-Auth-Token, shows that one may."""
    given, expires = call.query.text(SIGNATURE), call.query.text(EXPIRES)
    call.ask(
        EngineApi.resource_signal_by_address,
        resource_id=call.path['resource_id'],
        proof=proof_of(given or call.headers.get('x-auth-token', '')),
        expires=expires,
        details=call.body,
    )
    return ApiAnswer(None)


def make_address(call: ApiCall) -> ApiAnswer:
    """Make an address at which a resource can be signalled without a token; ``revoke`` makes all earlier ones void."""
    body = call.body or {}
    expires_in_s, revoke = body.get('expires_in_s'), body.get('revoke')
    made = call.about_stack(
        EngineApi.resource_signal_address,
        resource_name=call.path['resource_name'],
        expires_in_s=expires_in_s,
        revoke=flag('revoke', revoke) if revoke is not None else False,
    )
    return ApiAnswer(made)
