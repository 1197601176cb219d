"""Masks secret values in texts for people. Pure.

A secret is masked in each literal form: plain, escaped as in JSON, in Python's own notation or in a URL, and line by
line if it has several lines. A value shorter than `SHORTEST` is not masked: it occurs in many texts by chance, so a
mask would spoil the text and still reveal the place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from convergence.documents import AnyJson

MASK = '******'
"""Shown instead of a secret."""
SHORTEST = 4
"""Characters that a text must have to be masked."""
SHORTEST_LINE = 8
"""Characters that a line of a longer secret must have to be masked by itself."""


def texts(value: Any) -> frozenset[str]:
    """The texts by which a secret value, as JSON, can be recognised: its leaves, and the whole where it is a list or a
    map. Truth values and nothing are no secrets.
    """
    found = {leaf for leaf in _leaves(value) if len(leaf) >= SHORTEST}
    if found and isinstance(value, dict | list):
        found |= {
            json.dumps(value, default=str),
            json.dumps(value, default=str, separators=(',', ':')),
            repr(value),
        }
    return frozenset(found)


def _leaves(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def occurring(secrets: Iterable[str], value: Any) -> frozenset[str]:
    """Return those of `secrets` that are part of a value, as JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return frozenset(secret for secret in secrets if json.dumps(secret, ensure_ascii=False)[1:-1] in text)


def at(value: Any, path: Sequence[str | int]) -> AnyJson:
    """The part of a value to which a path leads; None where it leads nowhere."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def texts_at(value: Any, paths: Iterable[Sequence[str | int]]) -> frozenset[str]:
    """The texts by which the parts of a value at some places can be recognised; see `texts`."""
    return frozenset().union(*(texts(at(value, path)) for path in paths))


def masked_at(value: Any, paths: Iterable[Sequence[str | int]]) -> AnyJson:
    """A value, as JSON, with the parts at some places masked as a whole."""
    steps: dict[str | int, list[Sequence[str | int]]] = {}
    for path in paths:
        if not path:
            return MASK
        steps.setdefault(path[0], []).append(path[1:])
    if not steps:
        return value
    if isinstance(value, dict):
        return {key: masked_at(inner, steps.get(key, ())) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked_at(inner, steps.get(index, ())) for index, inner in enumerate(value)]
    return MASK  # it is not what the paths were made for: it is safer not to show it


def masked(text: str, secrets: Iterable[str]) -> str:
    """`text` without any of `secrets`."""
    for form in sorted({form for secret in secrets for form in _forms(secret)}, key=lambda form: (-len(form), form)):
        text = text.replace(form, MASK)
    return text


def without(value: Any, secrets: Iterable[str]) -> AnyJson:
    """A value, as JSON, with every secret in its texts masked, and every number that is one."""
    known = frozenset(secrets)
    return _without(value, known, MASK) if known else value


def texts_without(value: Any, secrets: Iterable[str]) -> AnyJson:
    """Like `without`, but numbers stay numbers."""
    known = frozenset(secrets)
    return _without(value, known, None) if known else value


def _without(value: Any, secrets: frozenset[str], number: str | None) -> AnyJson:
    if isinstance(value, dict):
        return {key: _without(inner, secrets, number) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, secrets, number) for inner in value]
    if isinstance(value, str):
        return masked(value, secrets)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number if number is not None and is_number and str(value) in secrets else value


def _forms(secret: str) -> Iterable[str]:
    """Yield the forms in which a secret may occur in a text."""
    if len(secret) < SHORTEST:
        return
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    # Python quotes with ' unless there is one in the text and no ".
    quoted = repr(secret)[1:-1]
    yield quoted
    yield quoted.replace("'", "\\'")
    yield quote(secret)
    yield quote(secret, safe='')
    yield quote_plus(secret)
    for line in secret.splitlines():
        if len(line.strip()) >= SHORTEST_LINE:
            yield line.strip()
