"""How a partly evaluated value is written as plain JSON.

A function that waits for other resources is ``{"$fn": [code, argument]}``. A map of the user with a key that begins
with ``$`` is wrapped as ``{"$map": {…}}``. Every other value stands for itself. So whatever a user sends, in a
template, a parameter or a file, it is never taken for a function: only `call` makes one.
"""

from __future__ import annotations

from convergence.core.model import Json
from convergence.template.limits import ITEM_BYTES, Budget

FUNCTION = '$fn'
MAP = '$map'
MARK = '$'


def call(code: str, argument: Json) -> dict[str, Json]:
    """The encoding of a function.

    :param code: name of the function's meaning, which may differ between versions of the language.
    :param argument: encoded.
    """
    return {FUNCTION: [code, argument]}


def wrap(entries: dict[str, Json]) -> dict[str, Json]:
    """The encoding of a map whose values are encoded already."""
    for key in entries:
        if key.startswith(MARK):
            return {MAP: entries}
    return entries


def function_of(encoded: Json) -> tuple[str, Json] | None:
    """Code and encoded argument if this is a function, else None."""
    if isinstance(encoded, dict) and len(encoded) == 1:
        found = encoded.get(FUNCTION)
        if isinstance(found, list):
            code, argument = found
            assert isinstance(code, str)
            return code, argument
    return None


def entries_of(encoded: Json) -> dict[str, Json] | None:
    """Keys and encoded values if this is a map of the user, else None."""
    if not isinstance(encoded, dict) or function_of(encoded):
        return None
    inner = encoded.get(MAP)
    return inner if isinstance(inner, dict) else encoded


def encode(literal: Json, budget: Budget, subject: str) -> Json:
    """Literal data, encoded as a copy.

    :param subject: where the data comes from, for the error.
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
    """The literal data that `encoded` was made from. It must not contain a function."""
    if isinstance(encoded, dict):
        entries = entries_of(encoded)
        assert entries is not None, 'a function cannot be decoded'
        return {key: decode(value) for key, value in entries.items()}
    if isinstance(encoded, list):
        return [decode(value) for value in encoded]
    return encoded


def escaped(plain: Json, levels: int = 3) -> Json:
    """Literal data as if it were encoded, some levels deep, for whoever only looks that far.

    Without it a map of the user could be taken for a function.
    """
    if levels:
        if isinstance(plain, dict):
            return wrap({key: escaped(value, levels - 1) for key, value in plain.items()})
        if isinstance(plain, list):
            return [escaped(value, levels - 1) for value in plain]
    return plain
