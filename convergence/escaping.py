"""Escapes characters that terminals and readers of lines act upon.

Clients choose names, reasons and paths. In a log, a line break in one of them forges a line; on a terminal, an escape
sequence moves the cursor or sets the title; and a bidirectional control shows a text in another order than it has.
"""

from __future__ import annotations

import re

# C0, DEL and C1; the separators that some programs take for line breaks; bidirectional controls; halves of characters.
_ACTIVE = re.compile('[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]')
_SHORT = {'\n': '\\n', '\r': '\\r', '\t': '\\t'}


def escaped(text: str, keep: str = '') -> str:
    r"""Return `text` with these characters escaped as in JSON: ``\n``, ``\u001b``. Escaping twice changes nothing.

    :param keep: characters to leave unchanged.
    """
    return _ACTIVE.sub(lambda found: found[0] if found[0] in keep else _written(found[0]), text)


def has_active(text: str) -> bool:
    """Return True if `escaped` would change the text."""
    return _ACTIVE.search(text) is not None


def _written(character: str) -> str:
    return _SHORT.get(character) or f'\\u{ord(character):04x}'
