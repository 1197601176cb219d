"""Signals without a token of Keystone: the signature in the URL, or a token for one resource, is the permission."""

from __future__ import annotations

from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.queries import flag
from convergence.rpc.engine_api import EngineApi
from convergence.signing import EXPIRES, SIGNATURE, proof_of

QUERY = (SIGNATURE, 'SignatureMethod', 'SignatureVersion', EXPIRES)
MAX_BODY_BYTES = 64 * 1024
"""Largest body of such a signal."""


def take(call: ApiCall) -> ApiAnswer:
    """Send a signal to a resource with a signature instead of a token: in the URL, or as X-Auth-Token."""
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
    """Create an address that can signal a resource without a token; ``revoke`` invalidates all earlier ones."""
    body = call.body or {}
    expires_in_s, revoke = body.get('expires_in_s'), body.get('revoke')
    made = call.about_stack(
        EngineApi.resource_signal_address,
        resource_name=call.path['resource_name'],
        expires_in_s=expires_in_s,
        revoke=flag('revoke', revoke) if revoke is not None else False,
    )
    return ApiAnswer(made)
