"""Seals user data, so that database files and backups do not reveal it.

Sealed texts differ from plain ones, so rows written before the first key stay readable. They are sealed at their next
write, or by `convergence.db.repositories.rotation`.
"""

from __future__ import annotations

import base64
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy.engine import Engine

from convergence.errors import ConfigurationError, SealedWithAnotherKey
from convergence.randomness import SIZE, random_bytes

SEALED = 's1:'
"""How every text begins that is sealed now, and no JSON text does."""
SEALED_BEFORE = 'gAAAA'
"""How those begin that were sealed as Fernet tokens, which takes several times as long: they are still opened."""
_PURPOSE = b'convergence: sealed documents, AES-SIV'
_NONCE = SIZE
_ATTRIBUTE = 'convergence_seal'


def new_key() -> str:
    """A key that was never used before."""
    return Fernet.generate_key().decode()


def is_sealed(text: str) -> bool:
    """Return True if a stored text is sealed, with any key."""
    return text.startswith((SEALED, SEALED_BEFORE))


class _Key:
    """One key: seals and opens with AES-SIV (RFC 5297), under 16 random bytes each time.

    Two nonces that are the same by chance tell no more than that two texts are the same. So no key wears out, however
    much is sealed with it.
    """

    def __init__(self, key: str) -> None:
        """:raises ValueError: it is none."""
        self.fernet = Fernet(key)
        derived = HKDF(SHA256(), 64, salt=None, info=_PURPOSE).derive(base64.urlsafe_b64decode(key))
        self._cipher = AESSIV(derived)

    def close(self, text: str) -> str:
        """A sealed text: `SEALED`, and in base 64 the nonce and what AES-SIV makes of the text with it."""
        nonce = random_bytes()
        return SEALED + b2a_base64(nonce + self._cipher.encrypt(text.encode(), [nonce]), newline=False).decode()

    def open(self, sealed: str) -> str | None:
        """The text; None where it was not sealed with this key, or is damaged."""
        try:
            read = a2b_base64(sealed[len(SEALED) :])
            return self._cipher.decrypt(read[_NONCE:], [read[:_NONCE]]).decode()
        except (InvalidTag, ValueError):
            return None


class Seal:
    """Some keys: the first one seals, each of them opens.

    :param keys: as `new_key` makes them, at least one.
    :param origin: where they come from: the name of an option or file, for errors.
    :raises ConfigurationError: one of them is no key. The text does not repeat it.
    """

    def __init__(self, keys: Sequence[str], origin: str) -> None:
        self.origin = origin
        made = []
        for number, key in enumerate(keys, 1):
            try:
                made.append(_Key(key))
            except ValueError:
                raise ConfigurationError(
                    f'{origin}: number {number} of {len(keys)} is not a key. '
                    'Make one with "convergence-manage secrets new-key".'
                ) from None
        if not made:
            raise ConfigurationError(f'{origin}: there is no key. Make one with "convergence-manage secrets new-key".')
        self._keys = made
        self._before = MultiFernet([each.fernet for each in made])

    def close(self, text: str) -> str:
        """`text`, sealed with the first key."""
        return self._keys[0].close(text)

    def open(self, sealed: str) -> str:
        """The text that was sealed, with any of the keys.

        :raises SealedWithAnotherKey: with none of them.
        """
        text = self._opened(sealed)
        if text is None:
            raise SealedWithAnotherKey(
                f'A value in the database is sealed with a key that is not among those of {self.origin}. '
                'Put the key back, after those that are there; nothing was changed.'
            )
        return text

    def _opened(self, sealed: str) -> str | None:
        if sealed.startswith(SEALED):
            return next((text for key in self._keys if (text := key.open(sealed)) is not None), None)
        try:
            return self._before.decrypt(sealed).decode()
        except InvalidToken:
            return None

    def is_up_to_date(self, text: str) -> bool:
        """Return True if a stored text is sealed with the first key, as texts are sealed now."""
        return text.startswith(SEALED) and self._keys[0].open(text) is not None


def apply_seal(engine: Engine, seal: Seal) -> None:
    """From now on, seal and open what goes through the columns of `convergence.db.schema.columns` on an engine."""
    setattr(engine.dialect, _ATTRIBUTE, seal)


def seal_of(dialect: Any) -> Seal | None:
    """The seal of the engine to which a dialect belongs."""
    seal: Seal | None = getattr(dialect, _ATTRIBUTE, None)
    return seal


def opened(text: str, seal: Seal | None) -> str:
    """A stored text as it was before it was sealed, if it was.

    :raises SealedWithAnotherKey: there is no key for it.
    """
    if not is_sealed(text):
        return text
    if seal is None:
        raise SealedWithAnotherKey(
            'The values in the database are sealed, and this process has no key. Set [secrets] keys, or key_file, '
            'to the keys of the other processes; nothing was changed.'
        )
    return seal.open(text)
