"""Reads the query of a URL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from convergence.api.faults import bad_request

LARGEST = 2**31 - 1
"""Maximum of any number in a request: the largest that every database can store."""

_WORDS = {
    **dict.fromkeys(('1', 't', 'true', 'on', 'y', 'yes'), True),
    **dict.fromkeys(('0', 'f', 'false', 'off', 'n', 'no'), False),
}


def flag(name: str, value: Any) -> bool:
    """Return a boolean that was sent as a boolean or as a word.

    :raises HttpProblem: 400 for any other value.
    """
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _WORDS:
        raise bad_request(
            f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false, and 1, t, on, y, yes, '
            '0, f, off, n, no.'
        )
    return _WORDS[word]


def number(name: str, value: Any) -> int:
    """Return a non-negative integer.

    :raises HttpProblem: 400 for any other value.
    """
    try:
        found = int(value) if not isinstance(value, bool) else -1
    except (TypeError, ValueError):
        raise bad_request(f'Only integer is allowed for {name}, not {str(value)[:50]!r}.') from None
    if not 0 <= found <= LARGEST:
        raise bad_request(f'Value {str(value)[:50]} for {name} must be between 0 and {LARGEST}.')
    return found


class Query:
    """The parameters of a request; each may occur several times."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        for name, texts in values.items():
            if any('\0' in text for text in (name, *texts)):
                raise bad_request(f'The query parameter {name!r} has a NUL character.')
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def names(self) -> Iterable[str]:
        """Return the names of all parameters."""
        return self._values.keys()

    def text(self, name: str) -> str | None:
        """Return the value of a parameter, the last of several; None if it is missing."""
        return self._values[name][-1] if name in self._values else None

    def texts(self, name: str) -> list[str] | None:
        """Return all values of a parameter; None if it is missing."""
        return self._values.get(name)

    def flag(self, name: str, *, unsaid: bool = False, empty: bool | None = None) -> bool:
        """Return the boolean value of a parameter.

        :param empty: value of a parameter without "="; None refuses it.
        """
        value = self.text(name)
        if value == '' and empty is not None:
            return empty
        return unsaid if value is None else flag(name, value)

    def number(self, name: str) -> int | None:
        """Return the non-negative integer value of a parameter; None if it is missing."""
        value = self.text(name)
        return None if value is None else number(name, value)

    def filters(self, names: Iterable[str]) -> dict[str, str | list[str]]:
        """Return the present parameters among `names`: a text, or a list if one occurs several times."""
        found = {name: self._values[name] for name in names if name in self._values}
        return {name: texts[0] if len(texts) == 1 else texts for name, texts in found.items()}
