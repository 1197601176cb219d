"""Signal addresses: how they are made and revoked, and how a signal that comes with one is let in.

See `convergence.signing` for what an address is.
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

REFUSED = (
    'This address lets nothing be signalled: it is incomplete, has expired or was revoked, or what it was for is gone.'
)
"""The one answer to everybody who may not signal: it tells nothing of what there is."""
MOST_SIGNALS = 10_000
"""Signals that one resource takes by addresses. Who knows an address could fill the database otherwise."""
_NO_KEY = 'of-nothing'
LONGEST_S = 10 * 365 * 86400
"""Seconds for which an address may be asked for that ends: ten years."""


class SignalAddresses:
    """Takes signals that come with a signature instead of a token, and makes and revokes their addresses.

    :param signals: takes signals, whoever sends them.
    :param api: address of the API as the senders reach it, with its version; None while nobody has configured it.
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
        """Hand a signal to a resource, on the strength of a signature. A hook cannot be cleared so.

        :param context: its project is that of the address.
        :param proof: what `convergence.signing.proof_of` makes of the signature.
        :param expires: the moment that the address names, as it stands there.
        :raises Forbidden: the address is not, or no longer, good for that; the text is always the same.
        :raises Invalid: the type refuses what was said, or the resource has received enough.
        :raises NotSupported: the resource takes no signals as it is now.
        """
        row = self._reader.resource(resource_id) if isinstance(resource_id, str) else None
        stack = self._reader.stack(row.stack_id) if row is not None else None
        key = signing.key_in(row.data) if row is not None else None
        grant = signing.Grant(
            context.project_id or '', str(resource_id), row.revocation if row is not None else '', _moment(expires)
        )
        # Who asks for something that is not there waits as long as others.
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
        """An address at which whoever knows it can signal a resource, and do nothing else.

        :param expires_in_s: for how many seconds it is good; None: as long as the resource lives.
        :param revoke: make all addresses void that were made before.
        :returns: ``signal_url``, ``expires_at`` (seconds since the epoch, or null) and ``revoked``.
        :raises ResourceNotFound: the stack has no such resource.
        :raises ResourceActionNotSupported: its type has no signal addresses.
        :raises Invalid: the number of seconds is none.
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
                'Nobody knows where a signal address should lead to: set [api] public_url for all engines and workers.'
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
        LOG.info('The user has revoked all signal addresses of %s', row.name)
        return revocation


def _moment(expires: Json) -> int | None:
    """What an address says of its end; a moment long past where it makes no sense."""
    if expires is None:
        return None
    text = str(expires)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else 0
