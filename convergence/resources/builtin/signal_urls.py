"""Where signals to a resource are sent: to its own signed addresses, or to the API with the token of a member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from convergence import signing
from convergence.resources.contract import Call, FinalFailure

AddressOfApi = Callable[[], str | None]
"""Tells the address of the Orchestration API with its version, as the senders of signals reach it; None: unknown."""


def nowhere() -> str | None:
    """Nobody knows where the API is."""
    return None


def grant_of(call: Call[Any]) -> signing.Grant:
    """What the signed addresses of a resource allow."""
    return signing.Grant(call.project_id, call.resource_id, call.revocation)


def key_of(call: Call[Any]) -> str:
    """The key of its signed addresses.

    :raises FinalFailure: it has none.
    """
    key = signing.key_in(call.data)
    if key is None:
        raise FinalFailure(f'{call.name} has no key for signal addresses; mark it unhealthy, and update the stack')
    return key


def known(api: AddressOfApi, call: Call[Any]) -> str:
    """The address of the API.

    :raises FinalFailure: nobody knows it.
    """
    found = api()
    if found is None:
        raise FinalFailure(
            f'nobody knows to which address signals for {call.name} are sent: set [api] public_url, also where '
            'engines and workers run, and update the stack'
        )
    return found


def signed(api: AddressOfApi, call: Call[Any]) -> str:
    """The signed address: whoever knows it needs no account.

    :raises FinalFailure: there is none, or nobody knows where the API is.
    """
    return grant_of(call).address(known(api, call), key_of(call))


def signed_if_known(api: AddressOfApi, call: Call[Any]) -> str | None:
    """The signed address; None where there is none, or nobody knows where the API is."""
    found, key = api(), signing.key_in(call.data)
    return None if found is None or key is None else grant_of(call).address(found, key)


def with_token(api: AddressOfApi, call: Call[Any]) -> str:
    """The address to which signals are sent with the token of a member.

    :raises FinalFailure: nobody knows where the API is.
    """
    path = '/'.join(quote(part, safe='') for part in (call.stack_name, call.stack_id, 'resources', call.name))
    return f'{known(api, call)}/{quote(call.project_id, safe="")}/stacks/{path}/signal'
