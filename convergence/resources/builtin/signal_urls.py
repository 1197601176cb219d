"""The addresses of signals: signed ones of the resource itself, or those of the API, which need a member's token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from convergence import signing
from convergence.resources.contract import Call, FinalFailure

AddressOfApi = Callable[[], str | None]
"""Returns the address of the Orchestration API with its version, as senders of signals reach it; None: not known."""


def nowhere() -> str | None:
    """Return None: the address of the API is not known."""
    return None


def grant_of(call: Call[Any]) -> signing.Grant:
    """Return the permission that the signed addresses of a resource carry."""
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
    """Return the address of the API.

    :raises FinalFailure: it is not known.
    """
    found = api()
    if found is None:
        raise FinalFailure(
            f'the address for signals to {call.name} is not known: set [api] public_url, also where '
            'engines and workers run, and update the stack'
        )
    return found


def signed(api: AddressOfApi, call: Call[Any]) -> str:
    """Return the signed address, which works without an account.

    :raises FinalFailure: there is none, or the address of the API is not known.
    """
    return grant_of(call).address(known(api, call), key_of(call))


def signed_if_known(api: AddressOfApi, call: Call[Any]) -> str | None:
    """Return the signed address; None if there is none, or if the address of the API is not known."""
    found, key = api(), signing.key_in(call.data)
    return None if found is None or key is None else grant_of(call).address(found, key)


def with_token(api: AddressOfApi, call: Call[Any]) -> str:
    """Return the signal address for senders with the token of a member.

    :raises FinalFailure: the address of the API is not known.
    """
    path = '/'.join(quote(part, safe='') for part in (call.stack_name, call.stack_id, 'resources', call.name))
    return f'{known(api, call)}/{quote(call.project_id, safe="")}/stacks/{path}/signal'
