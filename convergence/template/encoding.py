"""The encoding of partly evaluated values as plain JSON.

A function that waits for other resources is ``{"$fn": [code, argument]}``. A map of the user with a key that begins
with ``$`` is wrapped as ``{"$map": {…}}``. All other values stay the same. Data of the user, in a template, a parameter
or a file, can therefore never become a function: only `call` creates one.
"""

from __future__ import annotations

from convergence.core.model import Json
from convergence.template.limits import ITEM_BYTES, Budget

FUNCTION = '$fn'
MAP = '$map'
MARK = '$'


def call(code: str, argument: Json) -> dict[str, Json]:
    """Return the encoding of a function.

    :param code: code of the function's meaning, which may differ between versions of the language.
    :param argument: the encoded argument.
    """
    return {FUNCTION: [code, argument]}


def wrap(entries: dict[str, Json]) -> dict[str, Json]:
    """Return the encoding of a map with encoded values."""
    for key in entries:
        if key.startswith(MARK):
            return {MAP: entries}
    return entries


def function_of(encoded: Json) -> tuple[str, Json] | None:
    """Return code and encoded argument of a function; None for other values."""
    if isinstance(encoded, dict) and len(encoded) == 1:
        found = encoded.get(FUNCTION)
        if isinstance(found, list):
            code, argument = found
            assert isinstance(code, str)
            return code, argument
    return None


def entries_of(encoded: Json) -> dict[str, Json] | None:
    """Return keys and encoded values of a map of the user; None for other values."""
    if not isinstance(encoded, dict) or function_of(encoded):
        return None
    inner = encoded.get(MAP)
    return inner if isinstance(inner, dict) else encoded


def encode(literal: Json, budget: Budget, subject: str) -> Json:
    """Return an encoded copy of literal data.

    :param subject: the origin of the data, for the error.
    :raises RequestLimitExceeded: the data would make the document too large.
    """
    if isinstance(literal, str):
        budget.spend_text(ITEM_BYTES + len(literal), subject)
        return literal
    budget.spend_text(ITEM_BYTES, subject)
    if isinstance(literal, dict):
        budget.spend_text(sum(map(len, literal)) + ITEM_BYTES * len(literal), subject)
        return wrap({key: encode(value, budget, subject) for key, value in literal.items()})
    if isinstance(literal, list):
        return [encode(value, budget, subject) for value in literal]
    return literal


def decode(encoded: Json) -> Json:
    """Return the literal data of `encoded`, which must not contain a function."""
    if isinstance(encoded, dict):
        entries = entries_of(encoded)
        assert entries is not None, 'a function cannot be decoded'
        return {key: decode(value) for key, value in entries.items()}
    if isinstance(encoded, list):
        return [decode(value) for value in encoded]
    return encoded


def escaped(plain: Json, levels: int = 3) -> Json:
    """Encode the outer levels of literal data, for callers that read only those.

    Without it a map of the user could be taken for a function.
    """
    if levels:
        if isinstance(plain, dict):
            return wrap({key: escaped(value, levels - 1) for key, value in plain.items()})
        if isinstance(plain, list):
            return [escaped(value, levels - 1) for value in plain]
    return plain
