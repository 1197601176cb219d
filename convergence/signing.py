"""Signal addresses: a caller who knows the URL may signal one resource, and may do nothing else. No I/O.

An address contains the id of a resource and a signature. The signature is an HMAC of the project, the resource, a
random text from the last revocation, and the expiry of the address. Each resource has a key of its own for it, which is
stored with the resource and deleted with it. The database stores nothing for a single address.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from convergence.secrecy import MASK

KEY = 'signal_key'
"""Name of the key in the private data of a resource."""
SIGNATURE, EXPIRES = 'Signature', 'Expires'
"""Parameters of the query. Two further ones, as in the signal addresses of Heat, name the method of the signature."""

_METHOD = {'SignatureMethod': 'HmacSHA256', 'SignatureVersion': '2'}
_PATH = re.compile(r'/v1/(?P<project>[^/]+)/signals/(?P<resource>[^/]+)')
_BEGINNING = 'cvsig_'
"""Prefix of every signature, by which `without_signatures` finds it in any text."""
_SHOWN = re.compile(rf'{_BEGINNING}[A-Za-z0-9_-]+')


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission that an address carries.

    :param resource_id: id of the row of the resource that accepts the signals.
    :param revocation: random text from the last revocation of the row's addresses; empty: none was revoked. It changes
        all signatures, so that an attacker who knows the key cannot make valid addresses after a revocation.
    :param expires_at: expiry in whole seconds since the epoch; None: the address is valid as long as the resource
        exists.
    """

    project_id: str
    resource_id: str
    revocation: str = ''
    expires_at: int | None = None

    def signature(self, key: str) -> str:
        """Return the signature for an address.

        :param key: key of the resource.
        """
        expires = '' if self.expires_at is None else str(self.expires_at)
        parts = ('convergence-signal', self.project_id, self.resource_id, self.revocation, expires)
        # The length before each part ensures that two different grants never have the same text.
        text = ''.join(f'{len(part)}:{part}' for part in parts)
        made = hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()
        return _BEGINNING + base64.urlsafe_b64encode(made).decode().rstrip('=')

    def endpoint(self, api: str) -> str:
        """Return the address without its signature. A caller must send the signature in the header X-Auth-Token.

        :param api: address of the API with its version, without a trailing slash.
        """
        expires = '' if self.expires_at is None else f'?{urlencode({EXPIRES: self.expires_at})}'
        return f'{api}/{quote(self.project_id, safe="")}/signals/{quote(self.resource_id, safe="")}{expires}'

    def address(self, api: str, key: str) -> str:
        """Return the address with its signature. See `endpoint`."""
        query = {} if self.expires_at is None else {EXPIRES: self.expires_at}
        plain = self.endpoint(api).partition('?')[0]
        return f'{plain}?{urlencode({**query, **_METHOD, SIGNATURE: self.signature(key)})}'

    def is_proven_by(self, key: str, proof: str) -> bool:
        """Return True if `proof` is the result of `proof_of` for the signature. Takes the same time for any proof."""
        return hmac.compare_digest(proof_of(self.signature(key)).encode(), proof.encode(errors='replace'))


def proof_of(signature: str) -> str:
    """Return a hash that proves knowledge of a signature, so that the broker never carries the signature itself."""
    return hashlib.sha256(signature.encode(errors='replace')).hexdigest()


def server_proof(secret: str, nonce: str, url: str) -> str:
    """Return the proof that a server knows the secret of its start.

    :param nonce: chosen by the client.
    :param url: the address at which the server listens. With it in the proof, no other address can relay the proof.
    """
    text = f'convergence-server\n{nonce}\n{url}'
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def key_in(data: Mapping[str, Any]) -> str | None:
    """Return the key in the private data of a resource, or None if it has none."""
    key = data.get(KEY)
    return key if isinstance(key, str) and key else None


def resource_of(address: str) -> str | None:
    """Return the id of the resource in a signal address, or None if `address` is not a signal address."""
    try:
        path = urlsplit(address).path
    except ValueError:
        return None
    found = re.search(rf'{_PATH.pattern}$', path)
    return unquote(found['resource']) if found is not None else None


def is_signal_path(path: str) -> bool:
    """Return True if a decoded path of the API is the path of a signal address."""
    return _PATH.fullmatch(path) is not None


def without_signatures(text: str) -> str:
    """Return `text` with all signatures of signal addresses masked."""
    return _SHOWN.sub(MASK, text)
