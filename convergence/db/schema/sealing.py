"""Seals what users have entrusted to the database, so that whoever reads its files or backups cannot read that.

A sealed text can be told from a plain one: so rows that were written before there was a key stay readable, and are
sealed when they are written next, or by `convergence.db.schema.rotation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy.engine import Engine

from convergence.errors import ConfigurationError, SealedWithAnotherKey

SEALED = 'gAAAA'
"""How every sealed text begins, and no JSON text does."""
_ATTRIBUTE = 'convergence_seal'


def new_key() -> str:
    """A key that was never used before."""
    return Fernet.generate_key().decode()


def is_sealed(text: str) -> bool:
    """Whether a stored text is sealed, with whatever key."""
    return text.startswith(SEALED)


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
                made.append(Fernet(key))
            except ValueError:
                raise ConfigurationError(
                    f'{origin}: number {number} of {len(keys)} is not a key. '
                    'Make one with "convergence-manage secrets new-key".'
                ) from None
        if not made:
            raise ConfigurationError(f'{origin}: there is no key. Make one with "convergence-manage secrets new-key".')
        self._first, self._all = made[0], MultiFernet(made)

    def close(self, text: str) -> str:
        """`text`, sealed with the first key."""
        return self._first.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """The text that was sealed, with any of the keys.

        :raises SealedWithAnotherKey: with none of them.
        """
        try:
            return self._all.decrypt(sealed).decode()
        except InvalidToken:
            raise SealedWithAnotherKey(
                f'What is stored in the database was sealed with a key that is not among those of {self.origin}. '
                'Put the key back, after those that are there; nothing was changed.'
            ) from None

    def is_up_to_date(self, text: str) -> bool:
        """Whether a stored text is sealed with the first key."""
        try:
            self._first.decrypt(text)
        except InvalidToken:
            return False
        return True


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
            'What is stored in the database is sealed, and this process has no key. Set [secrets] keys, or key_file, '
            'to what the other processes have; nothing was changed.'
        )
    return seal.open(text)
