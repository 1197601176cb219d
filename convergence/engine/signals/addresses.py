"""Signal addresses: creation, revocation, and the check of signals that use them.

See `convergence.signing` for the form of an address.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Callable

from convergence import errors, signing
from convergence.core.effects import Decision
from convergence.core.model import Json
from convergence.core.rows import Resource, Stack
from convergence.core.signals import revoke
from convergence.core.views import SignalView
from convergence.db.ports import ReaderPort
from convergence.db.scopes import SignalledResource
from convergence.db.transaction import Transactions
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.signals.signals import SignalOperations

LOG = logging.getLogger(__name__)

REFUSED = 'This address permits no signal: it is incomplete, expired or revoked, or its resource is gone.'
"""The only answer to unauthorized senders: it reveals nothing about stacks and resources."""
MOST_SIGNALS = 10_000
"""Maximum number of signals that a resource accepts by addresses. It keeps senders from filling the database."""
_NO_KEY = 'of-nothing'
LONGEST_S = 10 * 365 * 86400
"""Maximum lifetime in seconds of an address that expires: ten years."""


class SignalAddresses:
    """Accepts signals that carry a signature instead of a token, and creates and revokes their addresses.

    :param signals: accepts signals of any sender.
    :param api: address of the API as the senders reach it, with its version; None: not configured.
    """

    def __init__(
        self,
        store: Transactions,
        reader: ReaderPort,
        signals: SignalOperations,
        new_id: Callable[[], str],
        api: Callable[[], str | None],
    ) -> None:
        self._store = store
        self._reader = reader
        self._signals = signals
        self._new_id = new_id
        self._api = api

    def resource_signal_by_address(
        self, context: Caller, resource_id: str, proof: str, expires: Json = None, details: Json = None
    ) -> None:
        """Pass a signal to a resource, authorized by a signature. It cannot clear a hook.

        :param context: its project is that of the address.
        :param proof: result of `convergence.signing.proof_of` for the signature.
        :param expires: the expiry in the address, as text.
        :raises Forbidden: the address is not valid (any more); the text is always the same.
        :raises Invalid: the type refuses the signal, or the resource has received enough.
        :raises NotSupported: the resource takes no signals in its present state.
        """
        row = self._reader.resource(resource_id) if isinstance(resource_id, str) else None
        stack = self._reader.stack(row.stack_id) if row is not None else None
        key = signing.key_in(row.data) if row is not None else None
        grant = signing.Grant(
            context.project_id or '', str(resource_id), row.revocation if row is not None else '', _moment(expires)
        )
        # A request for an unknown resource takes as long as any other.
        proven = grant.is_proven_by(key or _NO_KEY, str(proof))
        if row is None or stack is None or key is None or not proven:
            raise errors.Forbidden(REFUSED)
        expired = grant.expires_at is not None and grant.expires_at <= self._reader.now()
        if expired or stack.project_id != context.project_id or self._signals.is_going(row):
            raise errors.Forbidden(REFUSED)
        if self._reader.count_signals(row.id) >= MOST_SIGNALS:
            raise errors.Invalid(f'{row.name} has received {MOST_SIGNALS} signals and takes no more by this address.')
        revocation = row.revocation

        def may(present: Resource) -> None:
            if present.revocation != revocation:
                raise errors.Forbidden(REFUSED)

        self._signals.receive(stack, row, details, may)

    def resource_signal_address(
        self,
        context: Caller,
        stack_identity: Document,
        resource_name: str,
        expires_in_s: float | None = None,
        revoke: bool = False,
    ) -> dict[str, Json]:
        """An address that permits its owner to signal a resource, and nothing else.

        :param expires_in_s: lifetime in seconds; None: as long as the resource lives.
        :param revoke: revoke all earlier addresses.
        :returns: ``signal_url``, ``expires_at`` (seconds since the epoch, or null) and ``revoked``.
        :raises ResourceNotFound: the stack has no such resource.
        :raises ResourceActionNotSupported: its type has no signal addresses.
        :raises Invalid: the lifetime is no valid number of seconds.
        """
        stack, row = self._signals.named(context, stack_identity, resource_name)
        self._signals.listening(row)
        key = signing.key_in(row.data)
        if key is None:
            raise errors.ResourceActionNotSupported(f'{row.name} ({row.shown_type}) has no signal addresses.')
        expires_at = self._end(expires_in_s)
        api = self._api()
        if api is None and not revoke:
            raise errors.Invalid(
                'Signal addresses need the public address of the API: set [api] public_url for all engines and workers.'
            )
        revocation = self._revoke(stack, row) if revoke else row.revocation
        grant = signing.Grant(stack.project_id, row.id, revocation, expires_at)
        return {
            'signal_url': None if api is None else grant.address(api, key),
            'expires_at': expires_at,
            'revoked': bool(revoke),
        }

    def _end(self, expires_in_s: float | None) -> int | None:
        if expires_in_s is None:
            return None
        is_number = isinstance(expires_in_s, int | float) and not isinstance(expires_in_s, bool)
        if not is_number or not 0 < expires_in_s <= LONGEST_S:
            raise errors.Invalid(f'expires_in_s must be a number of seconds, more than 0 and at most {LONGEST_S}')
        return math.ceil(self._reader.now() + expires_in_s)

    def _revoke(self, stack: Stack, row: Resource) -> str:
        revocation = secrets.token_urlsafe(32)

        def decide(view: SignalView) -> Decision[bool]:
            return revoke(view, revocation, self._new_id)

        committed = self._store.transact(SignalledResource(stack.id, row.id), decide)
        if committed is None or not committed.verdict:
            raise errors.ResourceNotFound(f'The Resource ({row.name}) could not be found in Stack {stack.name}.')
        LOG.info('Signal addresses of resource %s revoked: the API refuses all earlier ones', row.name)
        return revocation


def _moment(expires: Json) -> int | None:
    """The expiry of an address; a moment long past if it is malformed."""
    if expires is None:
        return None
    text = str(expires)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else 0
