"""Signal addresses: URLs that let whoever knows one signal one resource, and do nothing else. Pure.

An address names a resource and carries a signature: an HMAC of what it may be used for, under a key that belongs to
that resource alone, is stored with it, and goes with it. Nothing is stored for a single address. What a signature
covers: project, resource, a text made by chance at the last revocation, and when the address expires.
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
"""Where a resource type keeps the key in the private data of a resource."""
SIGNATURE, EXPIRES = 'Signature', 'Expires'
"""Parameters of the query. The others, which the field's addresses have too, say how the signature was made."""

_METHOD = {'SignatureMethod': 'HmacSHA256', 'SignatureVersion': '2'}
_PATH = re.compile(r'/v1/(?P<project>[^/]+)/signals/(?P<resource>[^/]+)')
_BEGINNING = 'cvsig_'
"""How every signature begins, so that it is recognised wherever it turns up."""
_SHOWN = re.compile(rf'{_BEGINNING}[A-Za-z0-9_-]+')


@dataclass(frozen=True, slots=True)
class Grant:
    """What an address allows.

    :param resource_id: the row of the resource that may be signalled.
    :param revocation: the text made by chance when the addresses of that row were revoked last; empty: never. Without
        it nobody makes a new address, not even who has got hold of the key before.
    :param expires_at: seconds since the epoch, whole; None: as long as the resource lives.
    """

    project_id: str
    resource_id: str
    revocation: str = ''
    expires_at: int | None = None

    def signature(self, key: str) -> str:
        """The signature, as an address carries it.

        :param key: of the resource.
        """
        expires = '' if self.expires_at is None else str(self.expires_at)
        parts = ('convergence-signal', self.project_id, self.resource_id, self.revocation, expires)
        # Each part with its length: no two grants have the same text.
        text = ''.join(f'{len(part)}:{part}' for part in parts)
        made = hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()
        return _BEGINNING + base64.urlsafe_b64encode(made).decode().rstrip('=')

    def endpoint(self, api: str) -> str:
        """The address without its signature, which then has to come in the header X-Auth-Token.

        :param api: address of the API with its version, without a slash at the end.
        """
        expires = '' if self.expires_at is None else f'?{urlencode({EXPIRES: self.expires_at})}'
        return f'{api}/{quote(self.project_id, safe="")}/signals/{quote(self.resource_id, safe="")}{expires}'

    def address(self, api: str, key: str) -> str:
        """The whole address. See `endpoint`."""
        query = {} if self.expires_at is None else {EXPIRES: self.expires_at}
        plain = self.endpoint(api).partition('?')[0]
        return f'{plain}?{urlencode({**query, **_METHOD, SIGNATURE: self.signature(key)})}'

    def is_proven_by(self, key: str, proof: str) -> bool:
        """Whether somebody knows the signature, from what `proof_of` makes of it. Takes as long for any proof."""
        return hmac.compare_digest(proof_of(self.signature(key)).encode(), proof.encode(errors='replace'))


def proof_of(signature: str) -> str:
    """What shows that a signature is known without telling it: so it does not travel through the message broker."""
    return hashlib.sha256(signature.encode(errors='replace')).hexdigest()


def server_proof(secret: str, nonce: str, url: str) -> str:
    """Return the proof that a server knows the secret of its start.

    :param nonce: chosen by the client.
    :param url: the address at which the server listens. With it in the proof, no other address can relay the proof.
    """
    text = f'convergence-server\n{nonce}\n{url}'
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def key_in(data: Mapping[str, Any]) -> str | None:
    """The key in the private data of a resource; None where it has none."""
    key = data.get(KEY)
    return key if isinstance(key, str) and key else None


def resource_of(address: str) -> str | None:
    """The id of the resource that an address, or anything else, lets be signalled; None where it is no such address."""
    try:
        path = urlsplit(address).path
    except ValueError:
        return None
    found = re.search(rf'{_PATH.pattern}$', path)
    return unquote(found['resource']) if found is not None else None


def is_signal_path(path: str) -> bool:
    """Whether a path of the API, decoded, is one at which signals with a signature are taken."""
    return _PATH.fullmatch(path) is not None


def without_signatures(text: str) -> str:
    """`text`, with every signature of a signal address in it masked."""
    return _SHOWN.sub(MASK, text)
